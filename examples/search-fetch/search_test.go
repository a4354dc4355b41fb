package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryHitIsFetched(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	exampletest.Check(t, w.Run("plan.json", client.SubmitOptions{Run: "search-fetch"}), "outcome.json")
	require.Equal(t, 1, w.Meter.Of("search_documents").Calls)
	require.Equal(t, 3, w.Meter.Of("fetch_document").Calls)
}

func TestAGuessedIDIsRefused(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	exampletest.Check(t, w.Run("plan-bad.json", client.SubmitOptions{Run: "search-fetch-bad"}), "outcome-bad.json")
	require.Empty(t, w.Meter.Lines(), "nothing of a refused plan runs")
}

// Four runs want to fetch twelve documents at once; the contract allows four.
func TestFetchesAreBounded(t *testing.T) {
	t.Parallel()
	around, open := exampletest.Gate("fetch_document")
	defer open()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions), Around: around})
	var runs []*client.Run
	for range 4 {
		runs = append(runs, w.Submit("plan.json", client.SubmitOptions{}))
	}
	require.NoError(t, w.Meter.Await(exampletest.Context(t), "fetch_document", 4))
	require.Contains(t, w.Waiting(runs...), "fan-out limit 4 of 4")
	open()
	for _, r := range runs {
		require.Equal(t, outcome.Succeeded, w.Wait(r).Status)
	}
	require.Equal(t, exampletest.Usage{Calls: 12, Most: 4}, w.Meter.Of("fetch_document"))
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 2)
	exampletest.CheckLine(t, lines[0], "outcome-bad.json")
	exampletest.CheckLine(t, lines[1], "outcome.json")
}
