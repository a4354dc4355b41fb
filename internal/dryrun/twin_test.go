package dryrun_test

import (
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
	"github.com/stepjet/stepjet/tool"
)

var cases = flag.Int("cases", 1_000, "random plans that are compared with the twin")

// Where every tool returns what its example says, a dry run comes to what the run comes to: random plans are given to
// the twin of the engine, whose tools return just that.
func TestADryRunOfExamplesIsTheRun(t *testing.T) {
	t.Parallel()
	values := []string{
		`{"a":{"b":[1,2.50,{"c":null}]},"items":[{"url":"x"},{"url":"y"}],"k":"v"}`, `[{"a":1},{"a":[2,3]},"z"]`, `"text"`, `7`, `null`, `[]`, `{}`,
	}
	refused, failed, listed := 0, 0, 0
	for seed := range int64(*cases) {
		rng := rand.New(rand.NewSource(seed))
		c := reference.Generate(rng, reference.Options{NoFailures: true, ForEach: true})
		returned, all := map[string]string{}, []dryrun.Tool(nil)
		for _, name := range slices.Sorted(maps.Keys(c.Contracts)) {
			own := c.Contracts[name]
			returned[name] = values[(int(seed)+len(returned))%len(values)]
			d := &tool.Definition{Name: name, OutputSchema: json.RawMessage(fmt.Sprintf(`{"examples":[%s]}`, returned[name]))}
			contract, err := d.Contract()
			require.NoError(t, err)
			if own.PartialSuccess {
				contract.ErrorPropagation = tool.PartialSuccess
			}
			all = append(all, dryrun.Tool{Definition: d, Contract: contract})
		}
		d, err := dryrun.Of(c.Plan, all)
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
		require.Equal(t, want.Status, string(d.Status), what)
		for _, s := range d.Steps {
			w := want.Steps[s.ID]
			require.Equal(t, w.Status, string(s.Status), "%s of %s", s.ID, what)
			if w.Arguments != nil && s.Calls > 0 {
				require.Equal(t, string(w.Arguments), string(s.Arguments), "%s of %s", s.ID, what)
			}
			if len(w.Items) > 0 && w.Items[0].Arguments != nil {
				listed++
				require.Equal(t, string(w.Items[0].Arguments), string(s.Arguments), "%s of %s", s.ID, what)
			}
		}
		require.Len(t, d.Errors, len(want.Errors), what)
		for i, e := range want.Errors {
			failed++
			require.Equal(t, e.Step+" "+e.Code, d.Errors[i].Step+" "+string(d.Errors[i].Code), what)
		}
		require.Len(t, d.Results, len(want.Results), what)
		for i, r := range want.Results {
			require.Equal(t, r.Step, d.Results[i].Step, what)
			got := d.Results[i].JSON
			if want.Steps[r.Step].Items != nil { // an outcome has the entries within an object
				var all struct{ Results json.RawMessage }
				require.NoError(t, json.Unmarshal(got, &all))
				got = all.Results
			}
			require.JSONEq(t, string(r.JSON), string(got), what)
		}
	}
	t.Log(refused, failed, listed)
	require.Less(t, refused, *cases/10)
	require.Greater(t, failed, *cases/10)
	require.Greater(t, listed, *cases/100)
}
