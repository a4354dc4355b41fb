// Package ask is a plan that asks the user, and goes on with the answers: see its README.
package ask

import (
	"context"
	_ "embed"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

//go:embed tools.json
var definitions []byte

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "book_visit", func(_ context.Context, in struct {
		Day string `json:"day"`
	}) (map[string]string, error) {
		return map[string]string{"visit": "visit on " + in.Day}, nil
	}, worker.DefinedBy(defs...))
}

// The plan waits for each answer, which has to be one of the choices, or to fit the schema.
func TestThePlanAsksTheUser(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	r := w.Submit("plan.json", client.SubmitOptions{Run: "visit"})
	ctx := exampletest.Context(t)
	answer := func(step, bad, good string) {
		var q *outcome.Question
		require.Eventually(t, func() (there bool) {
			var err error
			q, err = w.Client.Question(ctx, "visit", step)
			return err == nil
		}, time.Minute, 20*time.Millisecond)
		_, err := w.Client.Answer(ctx, q, json.RawMessage(bad), client.Answer{})
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
		_, err = w.Client.Approve(ctx, q, client.Answer{})
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err), "it is no approval")
		stands, err := w.Client.Answer(ctx, q, json.RawMessage(good), client.Answer{By: "ann"})
		require.NoError(t, err)
		require.Equal(t, outcome.DecisionAnswered, stands.Decision)
	}
	answer("when", `"friday"`, `"tuesday"`)
	answer("door", `"12"`, `"1234"`)
	exampletest.Check(t, w.Wait(r), "outcome.json")
}
