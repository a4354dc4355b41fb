package dryrun_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dryrun"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
)

var cases = flag.Int("cases", 1_000, "random plans that are compared with the twin")

// values are what tools return, each as it is written out again.
var values = []string{
	`{"a":{"b":[1,2.50,{"c":null}]},"items":[{"url":"x"},{"url":"y"}],"k":"v"}`,
	`[{"a":1},{"a":[2,3]},"z"]`, `"text"`, `7`, `null`, `[]`, `{}`,
}

// exampleTools are the tools of a case, each with one value as its example, and those values.
func exampleTools(t *testing.T, seed int64, c reference.Case) (all []dryrun.Tool, returned map[string]string) {
	t.Helper()
	returned = map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(c.Contracts)) {
		returned[name] = values[(int(seed)+i)%len(values)]
		schema := json.RawMessage(fmt.Sprintf(`{"examples":[%s]}`, returned[name]))
		d := &tool.Definition{Name: name, OutputSchema: schema}
		contract, err := d.Contract()
		require.NoError(t, err)
		if c.Contracts[name].PartialSuccess {
			contract.ErrorPropagation = tool.PartialSuccess
		}
		all = append(all, dryrun.Tool{Definition: d, Contract: contract})
	}
	return all, returned
}

// Where every tool returns what its example says, a dry run comes to what the run comes to: random plans are given to
// the twin of the engine, whose tools return just that.
func TestADryRunOfExamplesIsTheRun(t *testing.T) {
	t.Parallel()
	refused, failed, listed := 0, 0, 0
	for seed := range int64(*cases) {
		c := reference.Generate(rand.New(rand.NewSource(seed)), reference.Options{NoFailures: true, ForEach: true, Second: seed%2 > 0, Codes: true})
		tools, returned := exampleTools(t, seed, c)
		d, err := dryrun.Of(c.Plan, tools, nil)
		require.NoError(t, err)
		if !d.Valid() { // a list goes into an object, as the plan alone says
			require.Equal(t, fault.ImpossibleRef, d.Problems[0].Code, "seed %d: %s", seed, c.Plan)
			refused++
			continue
		}
		want, err := reference.Run(c.Plan, c.Contracts, func(_, name string, _ []byte, _ int) reference.Reply {
			return reference.Reply{Body: []byte(returned[name])}
		})
		require.NoError(t, err)
		what := fmt.Sprintf("seed %d: %s", seed, c.Plan)
		require.Empty(t, d.Cut, what)
		listed += requireSameSteps(t, what, want, d)
		requireSameOutcome(t, what, want, d)
		failed += len(want.Errors)
	}
	t.Log(refused, failed, listed)
	require.Less(t, refused, *cases/10)
	require.Greater(t, failed, *cases/10)
	require.Greater(t, listed, *cases/100)
}

// requireSameSteps compares where steps stand and what they were called with, and counts those with items.
func requireSameSteps(t *testing.T, what string, want *reference.Result, d *outcome.DryRun) (listed int) {
	t.Helper()
	for _, s := range d.Steps {
		w := want.Steps[s.ID]
		require.Equal(t, w.Status, string(s.Status), "%s of %s", s.ID, what)
		arguments := w.Arguments
		if len(w.Items) > 0 {
			listed++
			arguments = w.Items[0].Arguments
		}
		if arguments != nil && s.Calls > 0 {
			require.Equal(t, string(arguments), string(s.Arguments), "%s of %s", s.ID, what)
		}
	}
	return listed
}

func requireSameOutcome(t *testing.T, what string, want *reference.Result, d *outcome.DryRun) {
	t.Helper()
	require.Equal(t, want.Status, string(d.Status), what)
	require.Len(t, d.Errors, len(want.Errors), what)
	for i, e := range want.Errors {
		require.Equal(t, e.Step+" "+e.Code, d.Errors[i].Step+" "+string(d.Errors[i].Code), what)
	}
	require.Len(t, d.Results, len(want.Results), what)
	for i, r := range want.Results {
		require.Equal(t, r.Step, d.Results[i].Step, what)
		got := d.Results[i].JSON
		if got[0] == '{' && r.JSON[0] == '[' { // an outcome has the entries within an object
			var all struct{ Results json.RawMessage }
			require.NoError(t, json.Unmarshal(got, &all))
			got = all.Results
		}
		require.Equal(t, anyOf(t, r.JSON), anyOf(t, got), what)
	}
}

// anyOf reads JSON with the exact digits of its numbers.
func anyOf(t *testing.T, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&v), "%s", raw)
	return v
}
