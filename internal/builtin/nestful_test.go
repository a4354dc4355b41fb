package builtin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type nestfulPlan struct {
	Name string `json:"name"`
	Plan struct {
		Steps []struct {
			ID        string                     `json:"id"`
			Tool      string                     `json:"tool"`
			Arguments map[string]json.RawMessage `json:"arguments"`
		} `json:"steps"`
		Output []string `json:"output_steps"`
	} `json:"plan"`
	Answer json.Number `json:"answer"`
}

// run evaluates the plan one step after the other. It knows one kind of reference, the one these plans use.
func (p nestfulPlan) run(t *testing.T) string {
	results := map[string]json.RawMessage{}
	for _, step := range p.Plan.Steps {
		args := map[string]json.RawMessage{}
		for name, v := range step.Arguments {
			var ref string
			if json.Unmarshal(v, &ref) == nil {
				id, ok := strings.CutSuffix(strings.TrimPrefix(ref, "$ref:"), ".result")
				require.True(t, ok, ref)
				v = results[id]
			}
			args[name] = v
		}
		raw, err := json.Marshal(args)
		require.NoError(t, err)
		tool, ok := nestfulTool(step.Tool)
		require.True(t, ok, step.Tool)
		out, err := tool.Run(context.Background(), Call{Args: raw})
		require.NoError(t, err, "%s: %s(%s)", p.Name, step.Tool, raw)
		var o struct{ Result json.RawMessage }
		require.NoError(t, json.Unmarshal(out, &o))
		results[step.ID] = o.Result
	}
	return string(results[p.Plan.Output[0]])
}

// right is the rule by which the published answers are compared: a relative error of at most 1e-6, or equal once
// rounded to the decimals of the answer.
func right(t *testing.T, got string, answer json.Number) bool {
	x, err := strconv.ParseFloat(got, 64)
	require.NoError(t, err)
	want, err := answer.Float64()
	require.NoError(t, err)
	if math.Abs(x-want) <= 1e-6*math.Abs(want) {
		return true
	}
	_, decimals, _ := strings.Cut(answer.String(), ".")
	scale := math.Pow(10, float64(len(decimals)))
	return math.Round(x*scale) == math.Round(want*scale)
}

func TestEveryNestfulPlanGivesItsPublishedAnswer(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/nestful/plans.jsonl")
	require.NoError(t, err)
	lines, steps := 0, 0
	for scan := bufio.NewScanner(bytes.NewReader(data)); scan.Scan(); lines++ {
		var p nestfulPlan
		require.NoError(t, json.Unmarshal(scan.Bytes(), &p))
		got := p.run(t)
		require.True(t, right(t, got, p.Answer), "%s: %s instead of %s", p.Name, got, p.Answer)
		steps += len(p.Plan.Steps)
	}
	require.Equal(t, 128, lines)
	require.Equal(t, 600, steps)
}

func TestEveryNestfulToolIsThere(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/nestful/tools.json")
	require.NoError(t, err)
	var tools []struct {
		Name  string
		Arity []int
		Args  [][]string `json:"argument_names"`
	}
	require.NoError(t, json.Unmarshal(data, &tools))
	require.Len(t, tools, 17)
	require.Len(t, Group("nestful"), 17)
	for _, want := range tools {
		tool, ok := nestfulTool(want.Name)
		require.True(t, ok, want.Name)
		require.Equal(t, "nestful", tool.Group)
		var schema struct {
			Properties map[string]struct{ Type string }
			Required   []string
		}
		require.NoError(t, json.Unmarshal(tool.Definition.InputSchema, &schema))
		require.Equal(t, want.Args[0], schema.Required)
		require.Len(t, schema.Properties, want.Arity[0])
	}
}
