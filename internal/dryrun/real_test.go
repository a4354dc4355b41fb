package dryrun_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/builtin"
	"github.com/stepjet/stepjet/internal/dryrun"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
)

// sampled finds a value for the output schema of a tool, where it has one.
func sampled(t *testing.T, d *tool.Definition) {
	t.Helper()
	output, err := d.Output()
	require.NoError(t, err, d.Name)
	if output == nil {
		return
	}
	sample := tool.SampleOf(output)
	require.NotNil(t, sample.JSON, d.Name)
	require.Empty(t, output.Check(sample.JSON, nil), "%s: %s", d.Name, sample.JSON)
}

// Every plan of the NESTFUL data set, which models wrote and people answered, is valid and comes to its end.
func TestPlansOfModels(t *testing.T) {
	t.Parallel()
	var all []dryrun.Tool
	for _, x := range builtin.Group("nestful") {
		c, err := x.Definition.Contract()
		require.NoError(t, err)
		all = append(all, dryrun.Tool{Definition: x.Definition, Contract: c})
	}
	f, err := os.Open("../builtin/testdata/nestful/plans.jsonl")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	plans := 0
	for lines := bufio.NewScanner(f); lines.Scan(); plans++ {
		var x struct{ Plan json.RawMessage }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &x))
		d, err := dryrun.Of(x.Plan, all, nil)
		require.NoError(t, err)
		require.Empty(t, d.Problems)
		require.Equal(t, outcome.Succeeded, d.Status)
		require.Equal(t, len(d.Steps), d.Calls)
		for _, p := range d.Doubts { // 0 has no logarithm, but each reference finds a number
			require.NotContains(t, p.Message, "found nothing")
		}
	}
	require.Greater(t, plans, 100)
}

func TestBuiltInToolsHaveSamples(t *testing.T) {
	t.Parallel()
	for _, group := range builtin.Groups() {
		for _, x := range builtin.Group(group) {
			sampled(t, x.Definition)
		}
	}
}

// The worked examples: each plan beside its tools.
func TestWorkedExamples(t *testing.T) {
	t.Parallel()
	plans, err := filepath.Glob("../../examples/*/plan.json")
	require.NoError(t, err)
	tried := 0
	for _, file := range plans {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), "tools.json"))
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), "models.json")); err == nil {
			continue // it asks a model, whose definition its worker makes
		}
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		definitions, err := tool.ParseDefinitions(raw)
		require.NoError(t, err)
		for _, x := range definitions {
			sampled(t, x)
		}
		d := of(t, string(body), string(raw))
		require.Empty(t, d.Problems, file)
		require.Empty(t, d.Cut, file)
		require.NotEmpty(t, d.Status, file)
		tried++
	}
	require.GreaterOrEqual(t, tried, 4)
}
