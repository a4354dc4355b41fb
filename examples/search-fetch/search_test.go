package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/example"
	"github.com/stepjet/stepjet/internal/example/exampletest"
	"github.com/stepjet/stepjet/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryHitIsFetched(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, example.Options{Host: host})
	exampletest.Check(t, w.Run("plan.json", client.SubmitOptions{Run: "search-fetch"}), "outcome.json")
	require.Equal(t, 1, w.Meter.Of("search_documents").Calls)
	require.Equal(t, 3, w.Meter.Of("fetch_document").Calls)
}

func TestAGuessedIDIsRefused(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, example.Options{Host: host})
	exampletest.Check(t, w.Run("plan-bad.json", client.SubmitOptions{Run: "search-fetch-bad"}), "outcome-bad.json")
	require.Empty(t, w.Meter.Lines(), "nothing of a refused plan runs")
}

func TestTheContract(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, example.Options{Host: host})
	registered, err := w.Client.Tools(exampletest.Context(t))
	require.NoError(t, err)
	require.Len(t, registered, 2)
	fetch, search := registered[0].Contract, registered[1].Contract
	require.Equal(t, tool.Dependent, fetch.Mode)
	require.Equal(t, 4, fetch.Limit)
	require.Equal(t, []tool.Dependency{{Tool: "search_documents", RequiredFields: []string{"document_id"}}}, fetch.DependsOn)
	require.Equal(t, tool.ParallelLimit, search.Limit)
}
