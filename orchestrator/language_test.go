package orchestrator_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestARunOfBeforeGoesOnInItsLanguage: a run that was started before some of its plan's words were reserved goes on as
// it was started, and can be looked at. The same plan is refused today.
func TestARunOfBeforeGoesOnInItsLanguage(t *testing.T) {
	t.Parallel()
	const plan = `{"output":"the echo","steps":[{"id":"a","tool":"echo","agent":"me","arguments":{"x":"$error:a, ${input.x}","y":"$last"}}]}`
	s := start(t)
	require.Equal(t, outcome.Rejected, s.run(plan, "today").Status)
	require.Equal(t, outcome.Succeeded, s.run(plainPlan, "plain").Status)
	started, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "plain"), s.history("default", "plain").Generation, 1))
	require.NoError(t, err)

	o := s.before(plan, started)
	require.Equal(t, outcome.Succeeded, o.Status, "%v", o.Errors)
	const given = `{"x":"$error:a, ${input.x}","y":"$last"}`
	a, _ := o.Results.Get("a")
	require.Equal(t, given, string(a))
	doc, err := s.client.Get(ctx(t), "before")
	require.NoError(t, err)
	require.Equal(t, given, string(doc.Steps[0].Arguments))
}

// before has the run "before" stand as an orchestrator of before has left it: with this plan, and with this start. It
// returns how it ends now.
func (s *system) before(plan string, started *kv.Entry) *outcome.Outcome {
	s.t.Helper()
	s.leave()
	js, err := s.nc.JetStream()
	require.NoError(s.t, err)
	id := subjects.NewRun("default", "before")
	ack, err := js.PublishMsg(&nats.Msg{Subject: subjects.Submit("default", "before"), Header: nats.Header{subjects.HeaderVersion: {"1"}}, Data: []byte(plan)})
	require.NoError(s.t, err)
	_, err = js.PublishMsg(&nats.Msg{Subject: subjects.StartRecord(id, ack.Sequence, 1), Header: started.Header, Data: started.Data})
	require.NoError(s.t, err)

	s.orchestrator()
	r, err := s.client.Attach("before")
	require.NoError(s.t, err)
	return s.wait(r)
}
