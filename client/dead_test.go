package client_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// bury keeps a dead letter, as the owner of its run does.
func (w *world) bury(run, step string, change func(*outcome.DeadLetter)) *outcome.DeadLetter {
	w.t.Helper()
	d := &outcome.DeadLetter{
		Run: run, Tenant: "default", Generation: 7, Step: step, Tool: "get_weather", Attempts: 3,
		Error: fault.New(fault.ToolFailed, "503"), Failed: noon, Arguments: json.RawMessage(`{ "b":1.50,"a":"é"}`),
	}
	if change != nil {
		change(d)
	}
	created, err := w.store.Archive.CreateDead(w.ctx(), subjects.NewRun(d.Tenant, d.Run), "", d)
	require.NoError(w.t, err)
	require.True(w.t, created)
	return d
}

func (w *world) dead(o client.DeadOptions) (names []string) {
	w.t.Helper()
	found, err := w.client.DeadLetters(w.ctx(), o)
	require.NoError(w.t, err)
	for _, d := range found {
		require.Empty(w.t, d.Arguments)
		names = append(names, d.Run+" "+d.Step)
	}
	return names
}

// over writes the history of a dead letter's retry.
func (w *world) over(run string, status outcome.RunStatus) {
	w.t.Helper()
	doc := document(run, string(w.record(run).Data), outcome.Results{{Step: "pay", JSON: json.RawMessage(`{"ok":true}`)}})
	doc.Status, doc.Outcome.Status = status, status
	w.keep(doc)
}

func TestDeadLettersNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Empty(t, w.dead(client.DeadOptions{}))
	for i, name := range []string{"old", "new", "middle"} {
		at := noon.Add([]time.Duration{0, 2, 1}[i] * time.Minute)
		w.bury(name, "pay", func(d *outcome.DeadLetter) { d.Failed = at })
	}
	w.bury("old", "ship=3", func(d *outcome.DeadLetter) { d.Failed, d.Tool = noon.Add(-time.Hour), "ship" })
	w.bury("old", "pay", func(d *outcome.DeadLetter) { d.Tenant = "acme" })
	require.Equal(t, []string{"new pay", "middle pay", "old pay", "old ship=3"}, w.dead(client.DeadOptions{}))
	require.Equal(t, []string{"new pay", "middle pay"}, w.dead(client.DeadOptions{Limit: 2}))
	require.Len(t, w.dead(client.DeadOptions{Limit: -1}), 4)
	require.Equal(t, []string{"old pay", "old ship=3"}, w.dead(client.DeadOptions{Run: "old"}))
	require.Equal(t, []string{"old ship=3"}, w.dead(client.DeadOptions{Tool: "ship"}))
	require.Empty(t, w.dead(client.DeadOptions{Run: "new", Tool: "ship"}))
}

func TestDeadLetterWithItsArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bury("r", "ship=3", nil)
	d, err := w.client.DeadLetter(w.ctx(), "r", "ship=3")
	require.NoError(t, err)
	require.Equal(t, `{ "b":1.50,"a":"é"}`, string(d.Arguments))

	large := `{"x":"` + strings.Repeat("x", 2<<20) + `"}`
	blob, err := w.store.Archive.PutBlob(w.ctx(), "", "default/r/7/b/1/x", []byte(large))
	require.NoError(t, err)
	w.bury("r", "b", func(d *outcome.DeadLetter) { d.Arguments, d.Blob = nil, blob })
	d, err = w.client.DeadLetter(w.ctx(), "r", "b")
	require.NoError(t, err)
	require.Equal(t, large, string(d.Arguments))
	_, err = w.client.RetryDead(w.ctx(), d, client.RetryDeadOptions{})
	require.Equal(t, fault.TooLarge, fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "stepjet retry")

	w.bury("r", "gone", func(d *outcome.DeadLetter) {
		d.Arguments, d.Blob = nil, &outcome.Handle{Name: "default/r/7/gone/1/x", Size: 1, SHA256: "x"}
	})
	d, err = w.client.DeadLetter(w.ctx(), "r", "gone")
	require.NoError(t, err, "the rest of it still is of use")
	_, err = w.client.RetryDead(w.ctx(), d, client.RetryDeadOptions{})
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "%v", err)

	for step, code := range map[string]fault.Code{"absent": fault.NotFound, "a/=2/=plan": fault.NotFound, "=": fault.NotFound, "a//b": fault.InvalidID, "=2": fault.InvalidID, "*": fault.InvalidID, ">": fault.InvalidID, "a.b": fault.InvalidID, "": fault.InvalidID} {
		_, err = w.client.DeadLetter(w.ctx(), "r", step)
		require.Equal(t, code, fault.CodeOf(err), "%q: %v", step, err)
	}
	_, err = w.client.DeadLetter(w.ctx(), "", "a")
	require.Equal(t, fault.InvalidID, fault.CodeOf(err))
}

// A call that a person approved of is not made again unasked.
func TestTheRetryOfAnApprovedCallAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.bury("order 42", "pay", func(d *outcome.DeadLetter) { d.Approval = true })
	r, err := w.client.RetryDead(w.ctx(), d, client.RetryDeadOptions{})
	require.NoError(t, err)
	require.Equal(t, `{"steps":[{"id":"pay","tool":"get_weather","approval":true,"arguments":{ "b":1.50,"a":"é"}}]}`, string(w.record(r.ID()).Data))
}

// However often it is asked for, one run makes the call again; and what it comes to decides about the letter.
func TestADeadLetterIsRetriedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.bury("order 42", "pay=3", nil)
	all, err := wire.NewContext(map[string]string{"token": "t0p"}, "token")
	require.NoError(t, err)
	r, err := w.client.RetryDead(w.ctx(), d, client.RetryDeadOptions{Context: wire.RunContext{All: all}})
	require.NoError(t, err)
	require.Equal(t, "dead/order 42/pay=3/7/1", r.ID())
	e := w.record(r.ID())
	require.Equal(t, `{"steps":[{"id":"pay","tool":"get_weather","arguments":{ "b":1.50,"a":"é"}}]}`, string(e.Data))
	require.Equal(t, `{"token":"t0p"}`, e.Header.Get(subjects.HeaderContext))

	listed, err := w.client.DeadLetters(w.ctx(), client.DeadOptions{})
	require.NoError(t, err)
	require.Len(t, listed, 1)
	again, err := w.newClient(client.Config{}).RetryDead(w.ctx(), listed[0], client.RetryDeadOptions{})
	require.NoError(t, err, "its arguments are read")
	require.True(t, again.Attached())
	require.Equal(t, r.ID(), again.ID())

	// It succeeds, and whoever asked dies before the letter is removed: the next one only does that.
	w.over(r.ID(), outcome.Succeeded)
	again, err = w.client.RetryDead(w.ctx(), d, client.RetryDeadOptions{})
	require.NoError(t, err)
	require.True(t, again.Attached())
	require.Equal(t, r.ID(), again.ID())
	for range 2 {
		out, err := w.client.SettleDead(w.ctx(), d, again)
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, out.Status)
		require.Empty(t, w.dead(client.DeadOptions{}))
	}
}

func TestADeadLetterWhoseRetryFailsStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.bury("r", "pay", nil)
	for n := 1; n <= 3; n++ {
		r, err := w.client.RetryDead(w.ctx(), d, client.RetryDeadOptions{})
		require.NoError(t, err)
		require.False(t, r.Attached())
		require.Equal(t, fmt.Sprintf("dead/r/pay/7/%d", n), r.ID())
		w.bury(r.ID(), "pay", nil)
		require.Equal(t, []string{"r pay"}, w.dead(client.DeadOptions{}), "one letter stands for the call")
		w.over(r.ID(), []outcome.RunStatus{"", outcome.Failed, outcome.Cancelled, outcome.Expired}[n])
		if n == 2 {
			continue // nobody settles this one
		}
		out, err := w.client.SettleDead(w.ctx(), d, r)
		require.NoError(t, err)
		require.NotEqual(t, outcome.Succeeded, out.Status)
		_, err = w.client.DeadLetter(w.ctx(), r.ID(), "pay")
		require.Equal(t, fault.NotFound, fault.CodeOf(err))
	}
	_, err := w.client.DeadLetter(w.ctx(), "dead/r/pay/7/2", "pay")
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "the next retry did it")
	require.NoError(t, w.client.RemoveDead(w.ctx(), d))
	require.Empty(t, w.dead(client.DeadOptions{}))
	require.Equal(t, fault.NotFound, fault.CodeOf(w.client.RemoveDead(w.ctx(), d)))
}

// The call of a step in a scope is made again as one of the plan's own; its retries are those of no other letter.
func TestADeadLetterOfAStepInAScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for step, id := range map[string]string{"map=3/fetch": "fetch", "a/=2/=plan": "plan", "x/y=1": "y"} {
		d := w.bury("r", step, nil)
		found, err := w.client.DeadLetter(w.ctx(), "r", step)
		require.NoError(t, err)
		require.Equal(t, d.Key, found.Key)
		r, err := w.client.RetryDead(w.ctx(), found, client.RetryDeadOptions{})
		require.NoError(t, err)
		require.Contains(t, string(w.record(r.ID()).Data), `{"id":"`+id+`"`)
		w.over(r.ID(), outcome.Succeeded)
		out, err := w.client.SettleDead(w.ctx(), found, r)
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, out.Status)
		require.Empty(t, w.dead(client.DeadOptions{}))
	}
	one, err := w.client.RetryDead(w.ctx(), w.bury("r", "x/y", nil), client.RetryDeadOptions{})
	require.NoError(t, err)
	other, err := w.client.RetryDead(w.ctx(), w.bury("r/x", "y", nil), client.RetryDeadOptions{})
	require.NoError(t, err)
	require.NotEqual(t, one.ID(), other.ID())
}

func TestADeadLetterOfALongRunID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.bury(strings.Repeat("é", 64), strings.Repeat("s", 64), nil)
	r, err := w.client.RetryDead(w.ctx(), d, client.RetryDeadOptions{})
	require.NoError(t, err)
	require.Regexp(t, `^dead/[0-9a-f]{32}/1$`, r.ID())
	w.bury(r.ID(), d.Step, nil)
	require.Equal(t, []string{d.Run + " " + d.Step}, w.dead(client.DeadOptions{}))
}
