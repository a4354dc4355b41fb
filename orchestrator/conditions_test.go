package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// aboutLarge has two conditions over a result that lies in a blob, and one over how a step ended.
const aboutLarge = `{"steps":[{"id":"a","tool":"large"},
	{"id":"yes","tool":"echo","if":"$ref:a.n == 7","arguments":{"n":"$ref:a.n"}},
	{"id":"no","tool":"echo","if":"$ref:a.n > 7"},
	{"id":"after","tool":"echo","if":"$status:no == 'not_taken'","arguments":{"e":"$error:no","y":"$ref:yes.n"}}],
	"output_steps":["yes","no","after"]}`

// TestAConditionThatReadsABlobIsRecorded: what it came to stands in the ledger; of other conditions nothing does.
func TestAConditionThatReadsABlobIsRecorded(t *testing.T) {
	t.Parallel()
	s := start(t)
	text := strings.Repeat("x", 2<<20)
	s.host("large", nil, func(context.Context, json.RawMessage) (worker.Output, error) {
		return worker.Output{Body: fmt.Appendf(nil, `{"n":7,"text":%q}`, text)}, nil
	})
	o := s.run(aboutLarge, "r")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, []string{"no"}, o.NotTaken)
	require.Equal(t, `{"n":7}`, result(t, o, "yes"))
	require.Equal(t, `null`, result(t, o, "no"))
	require.Equal(t, `{"e":null,"y":7}`, result(t, o, "after"))

	doc := s.history("default", "r")
	require.Equal(t, outcome.StepNotTaken, doc.Steps[2].Status)
	require.Equal(t, 1, doc.Stats.NotTaken)
	record := func(step string) string {
		return subjects.ToldRecord(subjects.NewRun("default", "r"), doc.Generation, step, subjects.ToldIf, s.store.Ledger.Shards())
	}
	for step, want := range map[string]string{"yes": `{"holds":true}`, "no": `{"holds":false}`} {
		e, err := s.store.Ledger.Read(ctx(t), record(step))
		require.NoError(t, err)
		require.Equal(t, want, string(e.Data))
	}
	require.False(t, s.lies(record("after")))

	_, err := s.client.Retry(ctx(t), "r", client.RetryOptions{})
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "what was not taken is nothing to try again")
}

// TestConditionsGoOnWithAnotherOwner: an owner that comes while conditions wait for what they refer to comes to the
// same, with those that read a blob too.
func TestConditionsGoOnWithAnotherOwner(t *testing.T) {
	t.Parallel()
	s := start(t)
	begun, let := make(chan struct{}), make(chan struct{})
	text := strings.Repeat("x", 2<<20)
	s.host("large", nil, func(context.Context, json.RawMessage) (worker.Output, error) {
		close(begun)
		<-let
		return worker.Output{Body: fmt.Appendf(nil, `{"n":7,"text":%q}`, text)}, nil
	})
	r := s.submit(aboutLarge, "r")
	<-begun
	s.leave()
	close(let)
	s.orchestrator()
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, []string{"no"}, o.NotTaken)
}

// TestConditionsGoToWhoKnowsThem: an orchestrator that doesn't know language 2 leaves a run with conditions alone and
// goes on with all else; one that knows it goes on with the run.
func TestConditionsGoToWhoKnowsThem(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.Store.Knows = wire.Knowledge{} })
	newer := s.knowing("newer", wire.Ours())
	s.runUntilNeeded(`{"steps":[{"id":"a","tool":"echo","if":"1 < 2"}]}`, wire.LanguageTwo, outcome.Rejected)
	held := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"z","tool":"echo","if":"$status:g == 'succeeded'"},
		{"id":"n","tool":"echo","if":"$status:g == 'failed'"}]}`, "held")
	<-s.tools.begun
	newer()
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.run(plainPlan, "plain").Status)
	require.Eventually(t, func() bool {
		_, err := s.client.Get(ctx(t), "held")
		return fault.CodeOf(err) == fault.NewerVersion
	}, patience, 20*time.Millisecond)
	s.knowing("again", wire.Ours())
	o := s.wait(held)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, []string{"n"}, o.NotTaken)
}
