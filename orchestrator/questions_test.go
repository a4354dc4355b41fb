package orchestrator_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// asked waits until a step of a run asks a person.
func (s *system) asked(run, step string) (q *outcome.Question) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var err error
		q, err = s.client.Question(ctx(s.t), run, step)
		return err == nil
	}, patience, 10*time.Millisecond)
	return q
}

// noQuestions waits until nothing is listed any more.
func (s *system) noQuestions() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		all, err := s.client.Questions(ctx(s.t), "")
		return err == nil && len(all) == 0
	}, patience, 10*time.Millisecond)
}

// unasked waits for a run that asks nobody anything any more: what was just answered, once, may still be listed.
func (s *system) unasked(r *client.Run, answered ...string) *outcome.Outcome {
	s.t.Helper()
	over, cancel := context.WithCancel(ctx(s.t))
	go func() {
		defer cancel()
		_, _ = r.Wait(over)
	}()
	for {
		select {
		case <-over.Done():
			return s.wait(r)
		case <-time.After(10 * time.Millisecond):
			all, err := s.client.Questions(ctx(s.t), "")
			require.NoError(s.t, err)
			for _, q := range all {
				require.Contains(s.t, answered, q.Step, "somebody is asked %q", q.Text)
				require.Equal(s.t, 1, q.Number, "somebody is asked %q again", q.Text)
			}
		}
	}
}

// TestTheListOfQuestionsIsOldestFirst, also where an entry was written anew since, as an owner does that begins with it.
func TestTheListOfQuestionsIsOldestFirst(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, run := range []string{"z", "m", "a"} {
		s.submit(`{"steps":[{"id":"ask","tool":"ask","arguments":{"question":"Which?"}}]}`, run)
		s.asked(run, "ask")
	}
	for _, run := range []string{"m", "z"} {
		q := s.asked(run, "ask")
		require.NoError(t, s.store.Archive.PutQuestion(ctx(t), subjects.NewRun(q.Tenant, q.Run), "", q))
	}
	all, err := s.client.Questions(ctx(t), "")
	require.NoError(t, err)
	var runs []string
	for _, q := range all {
		runs = append(runs, q.Run)
	}
	require.Equal(t, []string{"z", "m", "a"}, runs)
}

const refund = `{"steps":[{"id":"order","tool":"echo","arguments":{"amount":50,"to":"ann"}},
	{"id":"pay","tool":"echo","arguments":{"amount":"$ref:order.amount"},"approval":{"ask":"Refund ${ref:order.amount} to ${ref:order.to}?"}},
	{"id":"tell","tool":"echo","arguments":{"paid":"$ref:pay.amount"}}],"output_steps":["pay","tell"]}`

// TestAPersonApprovesWithAnEdit: nothing is sent before the answer's record, then what it says, and the account of the
// run says who.
func TestAPersonApprovesWithAnEdit(t *testing.T) {
	t.Parallel()
	s := start(t)
	held := strings.Replace(refund, `{"steps":[`, `{"steps":[{"id":"hold","tool":"ask","arguments":{"question":"Done?"}},`, 1)
	r := s.submit(held, "r")
	q := s.asked("r", "pay")
	require.Equal(t, "Refund 50 to ann?", q.Text)
	require.JSONEq(t, `{"amount":50}`, string(q.Arguments))
	require.Equal(t, 1, s.tools.total(), "the order alone")
	doc, err := s.client.Get(ctx(t), "r")
	require.NoError(t, err)
	require.Equal(t, outcome.StepAsking, doc.Steps[2].Status)
	require.Equal(t, "an approval", doc.Steps[2].Waiting)

	stale := *q
	stale.Digest = strings.Repeat("0", 64)
	_, err = s.client.Approve(ctx(t), &stale, client.Answer{})
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	require.Contains(t, fault.As(err).Hint, "questions show")
	_, err = s.client.Approve(ctx(t), q, client.Answer{Arguments: json.RawMessage(`[1]`)})
	require.Equal(t, fault.InvalidArguments, fault.CodeOf(err))
	for _, args := range []string{`{"amount":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, `{"amount":1,"amount":2}`} {
		_, err = s.client.Approve(ctx(t), q, client.Answer{Arguments: json.RawMessage(args)})
		require.Equal(t, fault.InvalidArguments, fault.CodeOf(err), args)
		for _, of := range []string{"reference", "output", "return"} { // a tool's and a plan's
			require.NotContains(t, err.Error()+fault.As(err).Hint, of, args)
		}
	}
	unknown := *q
	unknown.Step = "nobody"
	_, err = s.client.Approve(ctx(t), &unknown, client.Answer{})
	require.Equal(t, fault.InvalidID, fault.CodeOf(err))
	asIfAsked := *q
	asIfAsked.Kind = outcome.Ask
	_, err = s.client.Approve(ctx(t), &asIfAsked, client.Answer{})
	require.Equal(t, fault.Permission, fault.CodeOf(err), "the verb of answers approves of nothing")

	for range 2 { // asking twice is asking once
		stands, err := s.client.Approve(ctx(t), q, client.Answer{Arguments: json.RawMessage(`{"amount": 40}`), By: "bob"})
		require.NoError(t, err)
		require.Equal(t, outcome.DecisionApproved, stands.Decision)
		require.JSONEq(t, `{"amount":40}`, string(stands.Arguments))
		require.Equal(t, "bob", stands.By)
		require.False(t, stands.Verified)
	}
	_, err = s.client.Reject(ctx(t), q, client.Answer{})
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	_, err = s.client.Answer(ctx(t), s.asked("r", "hold"), json.RawMessage(`"yes"`), client.Answer{})
	require.NoError(t, err)
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, `{"paid":40}`, result(t, o, "tell"))
	done := s.history("default", "r")
	require.Equal(t, "approved", done.Steps[2].Answer.Decision)
	require.JSONEq(t, `{"amount":40}`, string(done.Steps[2].Answer.Arguments))
	s.noQuestions()
	_, err = s.client.Approve(ctx(t), q, client.Answer{})
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "it was approved with other arguments")
}

// TestWhatAPersonSaysDecides: a rejection, a value, and a plan that is not to begin.
func TestWhatAPersonSaysDecides(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(refund, "rejected")
	_, err := s.client.Reject(ctx(t), s.asked("rejected", "pay"), client.Answer{Reason: "too much", By: "bob"})
	require.NoError(t, err)
	o := s.wait(r)
	require.Equal(t, fault.Rejected, o.Errors[0].Code)
	require.Equal(t, "Rejected by bob (unverified): too much", o.Errors[0].Message)
	require.Equal(t, fault.Skipped, o.Errors[1].Code)

	r = s.submit(refund, "instead")
	_, err = s.client.Answer(ctx(t), s.asked("instead", "pay"), json.RawMessage(`{"amount":7}`), client.Answer{})
	require.NoError(t, err)
	require.Equal(t, `{"paid":7}`, result(t, s.wait(r), "tell"))

	before := s.tools.total()
	r = s.submit(`{"approval":{"ask":"Start?"},"steps":[{"id":"a","tool":"echo"}]}`, "plan")
	q := s.asked("plan", "=")
	require.Equal(t, "Start?", q.Text)
	_, err = s.client.Reject(ctx(t), q, client.Answer{Reason: "no"})
	require.NoError(t, err)
	o = s.wait(r)
	require.Equal(t, outcome.Cancelled, o.Status)
	require.Equal(t, fault.Rejected, o.Errors[0].Code)
	require.Equal(t, before, s.tools.total())

	r = s.submit(`{"steps":[{"id":"a","tool":"ask","timeout":"100ms","arguments":{"question":"Why?"}},
		{"id":"b","tool":"echo","approval":{"timeout":"100ms","on_timeout":"approve"}}]}`, "late")
	o = s.wait(r)
	require.Equal(t, fault.Timeout, o.Errors[0].Code)
	require.Equal(t, outcome.Partial, o.Status, "%s", o.JSON())
	s.noQuestions()
}

// TestNobodyKeepsAskingForWhatCantBeShown: who may write records of the tool can't keep the run waiting by one in the place
// of an attempt that nobody has approved of.
func TestNobodyKeepsAskingForWhatCantBeShown(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"on_missing":"error","steps":[{"id":"g","tool":"gate"},
		{"id":"pay","tool":"echo","arguments":{"amount":"$ref:g.no.such"},"approval":true}]}`, "held")
	<-s.tools.begun
	s.forge(subjects.NewRun("default", "held"), s.running("held"), "echo.pay.1", "")
	close(s.tools.gate)
	soon, cancel := context.WithTimeout(ctx(t), time.Minute)
	defer cancel()
	o, err := r.Wait(soon)
	require.NoError(t, err, "the run waits for somebody to answer what nobody is asked")
	require.Len(t, o.Errors, 1)
	require.Equal(t, fault.UnresolvedRef, o.Errors[0].Code)
	require.Zero(t, o.Errors[0].Attempts)
	require.Nil(t, s.history("default", "held").Steps[1].Answer, "nobody said anything")
	s.noQuestions()
}

// TestNobodyForgesWhoApproves: in one account anybody may write the header by which a server says who asks, and is not
// believed.
func TestNobodyForgesWhoApproves(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(refund, "r")
	q := s.asked("r", "pay")
	body, err := wire.AnswerRequest{Step: "pay", Answer: wire.Answer{Digest: q.Digest, Decision: wire.Approve, By: "eve", Verified: true}}.Body()
	require.NoError(t, err)
	m, err := s.nc.RequestMsg(&nats.Msg{
		Subject: subjects.API(subjects.NewRun("default", "r"), subjects.VerbApprove), Data: body,
		Header: nats.Header{subjects.HeaderRequestInfo: {`{"acc":"approver","user":"boss"}`}},
	}, patience)
	require.NoError(t, err)
	var reply wire.AnswerReply
	require.NoError(t, json.Unmarshal(m.Data, &reply))
	require.Equal(t, "eve", reply.By)
	require.False(t, reply.Verified)
	s.wait(r)
}

// manyWaits is how long a new owner takes for runs that wait for people, and what memory each takes.
type manyWaits struct {
	ready, listed time.Duration
	bytes         float64 // of the orchestrator's, for each run
}

// manyWait has n runs wait for an answer, and come to another owner, who finds nothing in the bucket of questions. Then each
// is answered, and goes on. measured looks at the memory of this process, which has to be alone for that.
func (s *system) manyWait(n int, measured bool) (w manyWaits) {
	t := s.t
	t.Helper()
	plan := `{"steps":[{"id":"a","tool":"ask","arguments":{"question":"Why?"}},{"id":"b","tool":"echo","arguments":{"x":"$ref:a"}}]}`
	var runs []*client.Run
	for i := range n {
		runs = append(runs, s.submit(plan, "r"+strconv.Itoa(i)))
	}
	all := func() (list []*outcome.Question) {
		require.Eventually(t, func() bool {
			var err error
			list, err = s.client.Questions(ctx(t), "")
			return err == nil && len(list) == n
		}, patience, 50*time.Millisecond)
		return list
	}
	all()
	s.leave()
	require.NoError(t, s.store.Ledger.PurgeSubject(ctx(t), subjects.BucketSubject(subjects.QuestionsBucket, ">")))
	before := inUse(measured)
	began := time.Now()
	s.orchestrator()
	w.ready = time.Since(began)
	all()
	w.listed = time.Since(began)
	w.bytes = (inUse(measured) - before) / float64(n)
	for _, q := range all() {
		_, err := s.client.Answer(ctx(t), q, json.RawMessage(fmt.Sprintf("%q", q.Run)), client.Answer{})
		require.NoError(t, err)
	}
	for i, r := range runs {
		require.Equal(t, fmt.Sprintf(`{"x":"r%d"}`, i), result(t, s.wait(r), "b"))
	}
	s.noQuestions()
	return w
}

// inUse returns the bytes that are in use after a collection; 0 where they are not measured.
func inUse(measured bool) float64 {
	if !measured {
		return 0
	}
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// TestManyRunsWaitForPeople: runs that wait for an answer come back with another owner, are listed, and go on.
func TestManyRunsWaitForPeople(t *testing.T) {
	t.Parallel()
	w := start(t).manyWait(1000, false)
	t.Logf("ready in %v; 1,000 questions listed anew in %v", w.ready, w.listed)
}

var waitingForPeople = flag.Int("waiting", 10_000, "runs that wait for people in BenchmarkRunsWaitForPeople")

// BenchmarkRunsWaitForPeople measures what a run costs that waits for a person, and how long an owner takes to come to many:
// "go test ./orchestrator -run - -bench RunsWaitForPeople -benchtime 1x -timeout 1h".
func BenchmarkRunsWaitForPeople(b *testing.B) {
	for range b.N {
		w := start(b).manyWait(*waitingForPeople, true)
		b.ReportMetric(w.bytes, "B/waiting-run")
		b.ReportMetric(w.ready.Seconds(), "s-until-ready")
		b.ReportMetric(w.listed.Seconds(), "s-until-listed")
	}
}

// TestTheBucketOfQuestionsComesBack: where somebody deletes it, the sweep makes it again, with what is asked.
func TestTheBucketOfQuestionsComesBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"steps":[{"id":"a","tool":"ask","arguments":{"question":"Why?"}}]}`, "r")
	before := s.asked("r", "a")
	js, err := jetstream.New(s.nc)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(ctx(t), subjects.BucketStream(subjects.QuestionsBucket)))
	require.Equal(t, before, s.asked("r", "a"))
	_, err = s.client.Answer(ctx(t), before, json.RawMessage(`"so"`), client.Answer{})
	require.NoError(t, err)
	require.Equal(t, `"so"`, result(t, s.wait(r), "a"))
	s.noQuestions()
}

// TestNobodyIsAskedWhatCanNotBeAnswered: a step whose question is too large, or has no answer, fails when it would ask.
func TestNobodyIsAskedWhatCanNotBeAnswered(t *testing.T) {
	t.Parallel()
	s := start(t)
	large := strings.Repeat("x", 70_000)
	o := s.wait(s.submit(`{"steps":[{"id":"s","tool":"echo","arguments":{"large":"`+large+`","type":"nonsense","n":2}},
		{"id":"choices","tool":"ask","arguments":{"question":"Which?","choices":["$ref:s.large","b"]}},
		{"id":"text","tool":"echo","approval":{"ask":"Look: ${ref:s.large} END"}},
		{"id":"schema","tool":"ask","arguments":{"question":"How many?","schema":{"type":"$ref:s.type"}}},
		{"id":"unfit","tool":"ask","arguments":{"question":"Who?","schema":{"type":"string"},"choices":["$ref:s.n"]}}]}`, "r"))
	failed := map[string]fault.Code{}
	for _, e := range o.Errors {
		failed[e.Step] = e.Code
		require.NotEmpty(t, e.Hint, e.Step)
	}
	require.Equal(t, map[string]fault.Code{
		"choices": fault.TooLarge, "text": fault.TooLarge, "schema": fault.InvalidArguments, "unfit": fault.InvalidArguments,
	}, failed)
	require.Equal(t, 1, s.tools.total())
	s.noQuestions()
}

// TestWhatStandsIsTold: whoever answers what was answered already is told of it, while the run goes on and once it is
// over.
func TestWhatStandsIsTold(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"steps":[{"id":"a","tool":"echo","approval":true},{"id":"k","tool":"ask","arguments":{"question":"Keep?"}}]}`, "r")
	a, k := s.asked("r", "a"), s.asked("r", "k")
	_, err := s.client.Approve(ctx(t), a, client.Answer{By: "ann"})
	require.NoError(t, err)
	closed := &outcome.Question{Run: "r", Step: "a"}
	again := func(q *outcome.Question) {
		t.Helper()
		stands, err := s.client.Approve(ctx(t), q, client.Answer{By: "bob"})
		require.NoError(t, err)
		require.Equal(t, "ann", stands.By)
		for _, other := range []func() (*client.Answered, error){
			func() (*client.Answered, error) { return s.client.Reject(ctx(t), q, client.Answer{By: "bob"}) },
			func() (*client.Answered, error) {
				return s.client.Approve(ctx(t), q, client.Answer{Arguments: json.RawMessage(`{"x":1}`)})
			},
		} {
			_, err = other()
			require.Equal(t, fault.Conflict, fault.CodeOf(err))
			require.Contains(t, err.Error(), "approved already by ann")
		}
	}
	again(a)
	again(closed)
	_, err = s.client.Answer(ctx(t), &outcome.Question{Run: "r", Step: "k"}, json.RawMessage(`1`), client.Answer{})
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "nobody answered it")
	_, err = s.client.Answer(ctx(t), k, json.RawMessage(`{"x": 1}`), client.Answer{By: "cid"})
	require.NoError(t, err)
	s.wait(r)
	again(a)
	again(closed)
	for _, q := range []*outcome.Question{k, {Run: "r", Step: "k"}} {
		stands, err := s.client.Answer(ctx(t), q, json.RawMessage(`{"x":1}`), client.Answer{})
		require.NoError(t, err)
		require.Equal(t, "cid", stands.By)
		_, err = s.client.Answer(ctx(t), q, json.RawMessage(`2`), client.Answer{})
		require.Equal(t, fault.Conflict, fault.CodeOf(err))
	}
}

// TestAnswersFitTheirSchemas: an edit that the tool does not take, and an answer that is none of those asked for, are
// refused one after the other, decide nothing, and leave the question open.
func TestAnswersFitTheirSchemas(t *testing.T) {
	t.Parallel()
	s := start(t)
	takes := `{"type":"object","properties":{"a":{"type":"integer","maximum":9}},"required":["a"],"additionalProperties":false}`
	called := make(chan string, 10)
	s.deploy("v1", takes, `{"type":"object"}`, func(in json.RawMessage) (string, error) {
		called <- string(in)
		return `{"r":7}`, nil
	})
	r := s.submit(`{"steps":[{"id":"pay","tool":"rd","arguments":{"a":1},"approval":true},
		{"id":"many","tool":"ask","arguments":{"question":"How many?","schema":{"type":"integer","minimum":3}}},
		{"id":"which","tool":"ask","arguments":{"question":"Which?","choices":["x",2]}}]}`, "r")
	pay, many, which := s.asked("r", "pay"), s.asked("r", "many"), s.asked("r", "which")
	for _, edited := range []string{`{"a":10}`, `{"a":"1"}`, `{}`, `{"a":1,"b":2}`, `{"a":null}`, `5`} {
		_, err := s.client.Approve(ctx(t), pay, client.Answer{Arguments: json.RawMessage(edited)})
		require.Equal(t, fault.InvalidArguments, fault.CodeOf(err), "%s: %v", edited, err)
	}
	for _, answer := range []string{`2`, `"3"`, `null`, `3.5`, `[3]`} {
		_, err := s.client.Answer(ctx(t), many, json.RawMessage(answer), client.Answer{})
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err), "%s: %v", answer, err)
	}
	for _, answer := range []string{`"y"`, `"2"`, `["x"]`, `null`} {
		_, err := s.client.Answer(ctx(t), which, json.RawMessage(answer), client.Answer{})
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err), "%s: %v", answer, err)
	}
	require.Empty(t, called)
	require.Equal(t, pay, s.asked("r", "pay"), "the question stands as it was")
	_, err := s.client.Approve(ctx(t), pay, client.Answer{Arguments: json.RawMessage(`{"a":9}`)})
	require.NoError(t, err)
	_, err = s.client.Answer(ctx(t), many, json.RawMessage(`3`), client.Answer{})
	require.NoError(t, err)
	_, err = s.client.Answer(ctx(t), which, json.RawMessage(`2`), client.Answer{})
	require.NoError(t, err)
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, `3`, result(t, o, "many"))
	require.Equal(t, `2`, result(t, o, "which"))
	require.Len(t, called, 1)
	require.JSONEq(t, `{"a":9}`, <-called)
}
