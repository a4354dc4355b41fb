package orchestrator_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestTheRunThatIsMeant: what is asked of a run that is over is not done to another which was submitted under its id since.
func TestTheRunThatIsMeant(t *testing.T) {
	t.Parallel()
	s := start(t)
	before := s.run(`{"steps":[{"id":"a","tool":"nobody-has-it"}]}`, "r")
	require.Equal(t, outcome.Rejected, before.Status)
	r := s.submit(`{"open":true,"steps":[{"id":"a","tool":"ask","arguments":{"question":"Why?"}}]}`, "r")
	q := s.asked("r", "a")
	require.Equal(t, r.Generation(), q.Generation)
	require.Greater(t, q.Generation, before.Generation)

	add := client.Amendment{Add: []json.RawMessage{json.RawMessage(`{"id":"b","tool":"echo"}`)}, Generation: before.Generation}
	_, err := s.client.Amend(ctx(t), "r", add)
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "%v", err)
	require.Contains(t, err.Error(), "another was submitted under its id since")
	old := *q
	old.Generation = before.Generation
	_, err = s.client.Answer(ctx(t), &old, json.RawMessage(`"so"`), client.Answer{})
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "%v", err)
	_, err = client.Say(ctx(t), s.client, "r", client.Word{Step: "a", Text: "hello", Generation: before.Generation})
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "%v", err)

	// Of one that is still to come nobody says anything: its plan may be on its way.
	id := subjects.NewRun("default", "r")
	_, err = s.nc.Request(subjects.API(id, subjects.VerbCancel), wire.For(q.Generation+1000, wire.Cancel{By: "ann"}.Body()), 300*time.Millisecond)
	require.Error(t, err)
	m, err := s.nc.Request(subjects.API(id, subjects.VerbCancel), []byte(`{"generation":"first"}`), patience)
	require.NoError(t, err)
	require.Equal(t, fault.InvalidValue, fault.CodeOf(wire.ParseRefusal(m.Header, m.Data)))
	doc, err := s.client.Get(ctx(t), "r")
	require.NoError(t, err)
	require.Equal(t, outcome.Running, doc.Status)
	require.Zero(t, doc.Revision)

	add.Generation = r.Generation()
	_, err = s.client.Amend(ctx(t), "r", add)
	require.NoError(t, err)
	_, err = s.client.Answer(ctx(t), q, json.RawMessage(`"so"`), client.Answer{})
	require.NoError(t, err)
	require.NoError(t, cancelled(r.Cancel(ctx(t), "ann")))
	require.Equal(t, outcome.Cancelled, s.wait(r).Status)
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(cancelled(r.Cancel(ctx(t), "ann"))))
}
