package worker

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
)

type finder struct{}

// Find is a tool.
func (finder) Find(context.Context) (Result, error) {
	return Result{Text: "one", Artifact: []int{1}, Type: "List"}, nil
}

// What a tool returns for two readers is recorded so: the artifact as the result, text and type beside it, also where it
// is large, and by the method of a value.
func TestResultsForTwoReaders(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	results := map[string]Result{
		"both": {Text: "Ann\nis there", Artifact: map[string]int{"id": 7}, Type: "crm.User"}, "text": {Text: `{"a":1}`, Type: "Note"},
		"none": {}, "artifact": {Artifact: "x"}, "large": {Text: "much", Artifact: strings.Repeat("x", 1<<20), Type: "Text"},
		"wrong": {Artifact: 1, Type: "no type"},
	}
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "look", func(_ context.Context, in struct {
			Name string `json:"name"`
		}) (Result, error) {
			return results[in.Name], nil
		})
		Methods(worker, finder{}, MethodOptions{})
		HandleBatch(worker, "each", func(_ context.Context, items []struct{}) ([]ItemResult[Result], error) {
			return make([]ItemResult[Result], len(items)), nil
		}, Contract(tool.Orchestration{Batch: &tool.Batch{Argument: "items", MaxItems: 2}}))
	})
	look := func(name string) (body, typ, planner string) {
		r := w.run("look", `{"name":"`+name+`"}`)
		require.Nil(t, r.Error)
		return string(r.Body), r.Type, r.Planner
	}
	body, typ, planner := look("both")
	require.Equal(t, []string{`{"id":7}`, "crm.User", "Ann\nis there"}, []string{body, typ, planner})
	body, typ, planner = look("none")
	require.Equal(t, []string{"null", "", ""}, []string{body, typ, planner})
	body, _, planner = look("artifact")
	require.Equal(t, []string{`"x"`, ""}, []string{body, planner})
	r := w.run("look", `{"name":"text"}`)
	require.Equal(t, `{"a":1}`, string(r.Body))
	require.True(t, r.Text, "a text is one, also where it could be read as JSON")
	require.Equal(t, "Note", r.Type)
	r = w.run("look", `{"name":"large"}`)
	require.NotNil(t, r.Handle)
	require.Equal(t, []string{"Text", "much"}, []string{r.Type, r.Planner})
	r = w.run("look", `{"name":"wrong"}`)
	require.Equal(t, fault.ToolTerminal, r.Error.Code)
	r = w.run("find", `{}`)
	require.Equal(t, []string{"[1]", "List", "one"}, []string{string(r.Body), r.Type, r.Planner})
	r = w.run("each", `{}`)
	require.Nil(t, r.Error)
	require.Equal(t, "null", string(r.Body))

	d, err := w.store.Registry.Tool(w.ctx(), "look")
	require.NoError(t, err)
	require.Empty(t, d.Definition.OutputSchema, "what it returns is its artifacts', of any form")
}
