package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// question is what is looked at of one.
type question struct {
	Key, Run, Tenant, Step, Kind, Tool, Text, Digest string
	Choices                                          []string
	Schema                                           json.RawMessage
	Arguments                                        *struct{ Text string }
}

type questions struct {
	Questions []question
	More      bool
}

// asked waits until so many questions of a tenant are open.
func (w *world) asked(n int, query string) []question {
	w.t.Helper()
	var q questions
	require.Eventually(w.t, func() bool {
		q = get[questions](w, "questions"+query)
		return len(q.Questions) == n
	}, patience, 10*time.Millisecond)
	return q.Questions
}

// say answers a question as the page does.
func (q *question) say(more string) string {
	return fmt.Sprintf(`{"step":%q,"digest":%q%s}`, q.Step, q.Digest, more)
}

const asks = `{"steps":[
	{"id":"pay","tool":"echo","arguments":{"amount":12345678901234567890},"approval":{"ask":"Pay it?"}},
	{"id":"day","tool":"ask","arguments":{"question":"Which day?","choices":["monday",12345678901234567890]}}],
	"output_steps":["pay","day"]}`

// What runs ask is shown, and answered by those alone who may: to the digit, and once.
func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *ui.Config) {
		line := func(name, role string, tenants ...string) map[string]any {
			return map[string]any{"sha256": hashed(name), "name": name, "role": role, "tenants": tenants}
		}
		c.Auth = tokens(t, line("vic", "viewer", "acme"), line("op", "operator", "acme"), line("pat", "approver", "acme"),
			line("both", "operator, approver", "acme"), line("beta", "approver", "beta"), line("all", "viewer", "*"))
	})
	_, err := w.client("acme").Submit(w.ctx(), []byte(asks), client.SubmitOptions{Run: "r/1"})
	require.NoError(t, err)
	w.token = "all"
	w.asked(2, "")
	w.token = "beta"
	require.Empty(t, get[questions](w, "questions").Questions)
	w.token = "vic"
	list := w.asked(2, "?run=acme.r=2F1")
	require.Empty(t, get[questions](w, "questions?run=acme.other").Questions)
	byStep := map[string]question{}
	for _, q := range list {
		require.Equal(t, "acme.r=2F1", q.Key)
		require.Nil(t, q.Arguments, "a list has no arguments")
		byStep[q.Step] = get[question](w, "runs/"+q.Key+"/questions/"+q.Step)
	}
	pay, day := byStep["pay"], byStep["day"]
	require.Equal(t, []string{`"monday"`, `12345678901234567890`}, day.Choices)
	require.JSONEq(t, `{"amount":12345678901234567890}`, pay.Arguments.Text)
	require.Equal(t, "Pay it?", pay.Text)

	approve, answer := "/api/v1/runs/acme.r=2F1/approve", "/api/v1/runs/acme.r=2F1/answer"
	send := func(path, body string) *http.Response { return w.request(http.MethodPost, path, []byte(body)) }
	for token, status := range map[string][2]int{"": {401, 401}, "vic": {403, 403}, "beta": {404, 404}} {
		w.token = token
		refused(w, send(approve, pay.say("")), status[0])
		refused(w, send(answer, day.say(`,"value":"\"monday\""`)), status[1])
	}
	w.token = "op"
	refused(w, send(approve, pay.say("")), http.StatusForbidden)
	e := refused(w, send(answer, pay.say(`,"value":"{}"`)), http.StatusForbidden)
	require.Equal(t, fault.Permission, e.Code, "an approval is not answered past those who approve")
	w.token = "pat"
	for _, body := range []string{day.say(""), day.say(`,"value":"no JSON"`), day.say(`,"value":"\"sunday\""`), `{"step":"day","value":"\"monday\""}`} {
		refused(w, send(answer, body), http.StatusBadRequest)
	}
	refused(w, send(approve, pay.say(`,"arguments":"{"`)), http.StatusUnprocessableEntity)
	refused(w, send(approve, `{"step":"pay","digest":"of something else"}`), http.StatusConflict)
	w.token = "op"
	require.Equal(t, "answered", post[struct{ Decision string }](w, "runs/acme.r=2F1/answer", day.say(`,"value":"12345678901234567890"`)).Decision)
	w.token = "both"
	for range 2 { // asking twice is asking once
		stands := post[struct{ Decision, By string }](w, "runs/acme.r=2F1/approve", pay.say(`,"arguments":"{\"amount\":12345678901234567891}","reason":"fine"`))
		require.Equal(t, "approved", stands.Decision)
		require.Equal(t, "both", stands.By)
	}
	refused(w, send(approve, pay.say(`,"reject":true`)), http.StatusConflict)
	w.asked(0, "")
	var doc *outcome.Run
	require.Eventually(t, func() bool {
		doc, err = w.client("acme").Get(w.ctx(), "r/1")
		return err == nil && doc.Status == outcome.Succeeded
	}, patience, 10*time.Millisecond)
	raw, _ := doc.Outcome.Results.Get("pay")
	require.JSONEq(t, `{"amount":12345678901234567891}`, string(raw))
	raw, _ = doc.Outcome.Results.Get("day")
	require.Equal(t, "12345678901234567890", string(raw))
	require.Equal(t, "both", doc.Steps[0].Answer.By)
	refused(w, w.request(http.MethodGet, "/api/v1/runs/acme.r=2F1/questions/pay", nil), http.StatusNotFound)
}

// A plan as a whole is rejected, by the user for approvals and no other.
func TestApprovalsHaveAUserOfTheirOwn(t *testing.T) {
	t.Parallel()
	var w *world
	opened := make(chan string, 8)
	w = newWorld(t, func(c *ui.Config) {
		as := func(who string) func(context.Context, string) (*client.Client, func(), error) {
			return func(_ context.Context, tenant string) (*client.Client, func(), error) {
				opened <- who
				return w.client(tenant), func() {}, nil
			}
		}
		c.Actor, c.Approver = as("actor"), as("approver")
	})
	_, err := w.client("default").Submit(w.ctx(), []byte(`{"approval":{"ask":"Begin?"},"steps":[{"id":"a","tool":"echo","arguments":{}}]}`), client.SubmitOptions{Run: "whole"})
	require.NoError(t, err)
	q := w.asked(1, "?tenant=default")[0]
	require.Equal(t, "=", q.Step)
	require.Equal(t, "rejected", post[struct{ Decision string }](w, "runs/"+q.Key+"/approve", q.say(`,"reject":true,"reason":"no"`)).Decision)
	require.Equal(t, "approver", <-opened)
	require.Empty(t, opened)
	require.Eventually(t, func() bool { return get[sheet](w, "runs/"+q.Key).Status == "cancelled" }, patience, 10*time.Millisecond)
}

// The list is read by everybody each second: a question's arguments come over the network once, and not with each look.
func TestTheListOfQuestionsReadsEachOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	large := strings.Repeat("x", 100_000)
	plan := fmt.Sprintf(`{"steps":[{"id":"pay","tool":"echo","arguments":{"what":%q},"approval":{"ask":"Pay it?"}}]}`, large)
	consumers, err := w.nc.SubscribeSync("$JS.API.CONSUMER.CREATE." + subjects.BucketStream(subjects.QuestionsBucket) + ".>")
	require.NoError(t, err)
	_, err = w.client("acme").Submit(w.ctx(), []byte(plan), client.SubmitOptions{Run: "first"})
	require.NoError(t, err)
	w.asked(1, "")
	_, err = w.client("acme").Submit(w.ctx(), []byte(plan), client.SubmitOptions{Run: "second"})
	require.NoError(t, err)
	list := w.asked(2, "")
	require.Equal(t, []string{"first", "second"}, []string{list[0].Run, list[1].Run})
	q := get[question](w, "runs/acme.first/questions/pay")
	post[struct{ Decision string }](w, "runs/acme.first/approve", q.say(""))
	require.Equal(t, "second", w.asked(1, "")[0].Run, "what was answered is gone")
	require.NoError(t, w.nc.Flush())
	n, _, err := consumers.Pending()
	require.NoError(t, err)
	require.Equal(t, 1, n, "the stream is read once, however often somebody looks")
}
