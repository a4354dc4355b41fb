package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Six runs at the same time over two workers: the searches run beside each other, of the reranker no two calls overlap,
// and every run comes to the same.
func TestTheRerankerIsNeverCalledTwiceAtOnce(t *testing.T) {
	t.Parallel()
	around, open := exampletest.Gate("vector_search")
	defer open()
	w := exampletest.Start(t, exampletest.Options{Host: new(reranker).host, Tools: exampletest.ReadTools(t, definitions), Around: around})
	var runs []*client.Run
	for i := range 6 {
		runs = append(runs, w.Submit("plan.json", client.SubmitOptions{Run: fmt.Sprint("rerank-", i)}))
	}
	require.NoError(t, w.Meter.Await(exampletest.Context(t), "vector_search", 18))
	open()
	for _, r := range runs {
		out := *w.Wait(r)
		out.Run = "rerank"
		exampletest.Check(t, &out, "outcome.json")
	}
	require.Equal(t, exampletest.Usage{Calls: 18, Most: 18}, w.Meter.Of("vector_search"))
	require.Equal(t, exampletest.Usage{Calls: 18, Most: 1}, w.Meter.Of("rerank"))
}

// Declared as what it is not, the reranker is called twice at once: it is the contract that keeps its calls apart.
func TestUnderTheWrongContractCallsOverlap(t *testing.T) {
	t.Parallel()
	defs := exampletest.ReadTools(t, definitions)
	defs.Of(t, "rerank").Orchestration.Mode = tool.ParallelSafe
	around, open := exampletest.Gate("rerank")
	defer open()
	w := exampletest.Start(t, exampletest.Options{Host: new(reranker).host, Tools: defs, Around: around})
	r := w.Submit("plan.json", client.SubmitOptions{Run: "rerank"})
	require.NoError(t, w.Meter.Await(exampletest.Context(t), "rerank", 2))
	open()
	require.Equal(t, outcome.Succeeded, w.Wait(r).Status)
	require.Greater(t, w.Meter.Of("rerank").Most, 1)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
