package catalog_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// tools is a catalog of plans.
type tools map[string]plan.Tool

func (c tools) Lookup(name string) (plan.Tool, bool) {
	t, ok := c[name]
	return t, ok
}

func (c tools) Names() (names []string) {
	for n := range c {
		names = append(names, n)
	}
	return names
}

func catalogOf(t *testing.T, list []*tool.Definition) tools {
	c := tools{}
	for _, d := range list {
		in, err := d.Input()
		require.NoError(t, err)
		out, err := d.Output()
		require.NoError(t, err)
		contract, err := d.Contract()
		require.NoError(t, err)
		c[d.Name] = plan.Tool{Input: in, Output: out, DependsOn: contract.DependsOn}
	}
	return c
}

func planSchema(t *testing.T, list []*tool.Definition, o catalog.Options) *tool.Schema {
	t.Helper()
	raw, err := catalog.PlanSchema(list, o)
	require.NoError(t, err)
	s, err := tool.CompileSchema(raw)
	require.NoError(t, err)
	return s
}

// The worked example is a good plan over the tools that it is written for, and fits the schema over them.
func TestTheExampleIsAGoodPlan(t *testing.T) {
	t.Parallel()
	list := definitions(t, "testdata/example.json")
	p, report := plan.Parse([]byte(catalog.Example), catalogOf(t, list))
	require.Empty(t, report.Problems)
	require.Empty(t, report.Warnings)
	require.Len(t, p.Steps, 5)
	require.Empty(t, planSchema(t, list, catalog.Options{}).Check([]byte(catalog.Example), nil))
	require.Contains(t, catalog.Guide(list), catalog.Example)
}

// A plan of the state dialect fits the schema of plans, and what its parser refuses at once does not.
func TestTheSchemaTakesTheStateDialect(t *testing.T) {
	t.Parallel()
	const good = `{"calls": [{"_tool": "a", "x": "†input.x", "_outputPath": "†state.y || †state.error"}, {"_tool": "b", "y": "†state.y", "_after": "a"}],
		"input": {"x": 1}, "state": {"initial": {"y": 2}}, "timeout": "1m"}`
	s := planSchema(t, nil, catalog.Options{})
	_, report := plan.Parse([]byte(good), nil)
	require.Empty(t, report.Problems)
	require.Empty(t, s.Check([]byte(good), nil))
	for _, bad := range []string{`{"calls": []}`, `{"calls": [{"x": 1}]}`, `{"calls": [{"_tool": 1}]}`, `{"input": 1}`} {
		require.NotEmpty(t, s.Check([]byte(bad), nil), bad)
		_, report := plan.Parse([]byte(bad), nil)
		require.NotEmpty(t, report.Problems, bad)
	}
}

// The conditions that the guide shows are in the grammar, and its example deals with a failure.
func TestTheGuidesConditionsAreInTheGrammar(t *testing.T) {
	t.Parallel()
	p, report := plan.Parse([]byte(catalog.Example), nil)
	require.Empty(t, report.Problems)
	require.Equal(t, 2, p.Language)
	require.True(t, p.Regarded(3), "its failure is named")
	for _, condition := range []string{`$ref:a.total > 100 and not ($ref:a.country in ['DE'])`, `$ref:a.total > 100 and $status:b == 'succeeded'`} {
		body, err := json.Marshal(map[string]any{"steps": []any{map[string]string{"id": "a", "tool": "t"}, map[string]string{"id": "b", "tool": "t"}, map[string]string{"id": "c", "tool": "t", "if": condition}}})
		require.NoError(t, err)
		_, report := plan.Parse(body, nil)
		require.Empty(t, report.Problems, condition)
	}
	require.Contains(t, catalog.Guide(nil), `"if": "$ref:a.total > 100 and not ($ref:a.country in ['DE'])"`)
}

// Every reference that the guide shows is in the grammar.
func TestTheGuidesReferencesAreInTheGrammar(t *testing.T) {
	t.Parallel()
	guide := catalog.Guide(nil)
	require.LessOrEqual(t, len(guide), 3_500, "a model reads it again and again")
	require.Contains(t, guide, "EXAMPLES (their tools are made up: call those that you have)", "whatever tools stand below, those of the examples may not")
	for _, text := range []string{
		`"$ref:ID.items[*].name"`, `"$ref:ID.result"`, `"$ref:ID[*].data"`, `"$ref:ID"`, `"$ref:ID.field.inner"`, `"$ref:ID.items[0].name"`, `"$ref:ID[\"any key\"]"`, `"$ref:a.x || $ref:b.y || \"none\""`, `"Dear ${ref:user.name}"`, `"$$ref:a"`,
		`"$ref:ID[0].data"`, `"$status:ID"`, `"$error:ID"`,
	} {
		if text != `"$$ref:a"` {
			require.Contains(t, guide, text, "the guide shows it")
		}
		body := `{"steps":[{"id":"ID","tool":"t"},{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"user","tool":"t"},{"id":"z","tool":"t","arguments":{"x":` + text + `}}]}`
		_, report := plan.Parse([]byte(body), nil)
		require.Empty(t, report.Problems, text)
	}
}

// Whatever the parser accepts, the schema accepts: so they can't drift apart.
func TestTheSchemaAcceptsEveryGoodPlan(t *testing.T) {
	t.Parallel()
	s := planSchema(t, nil, catalog.Options{})
	n := 0
	check := func(where string, body []byte) {
		if _, report := plan.Parse(body, nil); len(report.Problems) > 0 {
			return
		}
		n++
		require.Empty(t, s.Check(body, nil), "%s: %.500s", where, body)
	}
	files, err := filepath.Glob("../examples/plans/*.json")
	require.NoError(t, err)
	more, err := filepath.Glob("../examples/*/plan.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range append(files, more...) {
		body, err := os.ReadFile(f)
		require.NoError(t, err)
		check(f, body)
	}
	corpora, err := filepath.Glob("../plan/testdata/*/plans.jsonl")
	require.NoError(t, err)
	require.Len(t, corpora, 2)
	for _, f := range append(corpora, "../internal/builtin/testdata/nestful/plans.jsonl") {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var c struct{ Plan json.RawMessage }
			require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
			var text string
			if json.Unmarshal(c.Plan, &text) == nil {
				c.Plan = json.RawMessage(text)
			}
			check(f, c.Plan)
		}
	}
	require.Greater(t, n, 200)
	t.Log(n, "plans")
}

// And what the schema offers, the parser knows: every property, with every word of its enumeration.
func TestTheParserKnowsWhatTheSchemaOffers(t *testing.T) {
	t.Parallel()
	for _, o := range []catalog.Options{{}, {Strict: true}} {
		raw, err := catalog.PlanSchema(nil, o)
		require.NoError(t, err)
		var s node
		require.NoError(t, json.Unmarshal(raw, &s))
		s.each("", func(at string, n node) {
			for _, value := range n.samples() {
				body := place(at, value)
				_, report := plan.Parse([]byte(body), nil)
				require.Empty(t, report.Problems, body)
				require.Empty(t, report.Warnings, body)
			}
		})
	}
}

// node is what these tests read of a JSON Schema.
type node struct {
	Type       json.RawMessage
	Enum       []json.RawMessage
	Properties map[string]node
	Items      *node
}

// each visits the properties below a plan, by their path: "timeout", "steps.retry.max_attempts".
func (n node) each(at string, visit func(string, node)) {
	for name, p := range n.Properties {
		below := strings.TrimPrefix(at+"."+name, ".")
		if strings.HasPrefix(at, "steps.agent") { // which stands beside no tool, and has a schema of its own
			continue
		}
		if below != "steps" && name != "id" && name != "tool" && name != "partial" { // which stands beside a plan alone
			visit(below, p)
		}
		p.each(below, visit)
		if p.Items != nil {
			p.Items.each(below, visit)
		}
	}
}

// samples returns values that the schema of a property allows.
func (n node) samples() (values []string) {
	for _, e := range n.Enum {
		values = append(values, string(e))
	}
	if strings.Contains(string(n.Type), "null") {
		values = append(values, "null")
	}
	if strings.Contains(string(n.Type), "boolean") {
		values = append(values, "true", "false")
	}
	if strings.Contains(string(n.Type), "integer") {
		values = append(values, "1", "2")
	}
	return values
}

// place writes a plan with a value at a property's path.
func place(at, value string) string {
	path := strings.Split(at, ".")
	for i := len(path) - 1; i >= 0; i-- {
		switch path[i] {
		case "steps":
			calls := `"tool":"t",`
			if strings.HasPrefix(value, `{"plan":{`) {
				calls = ""
			}
			value = fmt.Sprintf(`{"steps":[{"id":"a",%s%s}]}`, calls, value[1:len(value)-1])
			if i == 0 {
				return value
			}
			continue
		case "plan":
			if value != "null" && !strings.Contains(value, `"steps"`) {
				value = `{"steps":[{"id":"a","tool":"t"}],` + value[1:]
			}
		case "in", "for_each":
			if i == len(path)-1 && path[i] == "in" {
				continue
			}
			if !strings.Contains(value, `"in"`) && value != "null" {
				value = `{"in":[1],` + value[1:]
			}
		}
		value = fmt.Sprintf(`{%q:%s}`, path[i], value)
	}
	return `{"steps":[{"id":"a","tool":"t"}],` + value[1:]
}

func TestTheEnumerationOfTools(t *testing.T) {
	t.Parallel()
	var list []*tool.Definition
	for i := range catalog.MaxEnum + 1 {
		list = append(list, &tool.Definition{Name: fmt.Sprint("area.of.a.tool.with.a.name.that.is.rather.long/tool", i)})
	}
	known := []byte(`{"steps":[{"id":"a","tool":"area.of.a.tool.with.a.name.that.is.rather.long/tool7"}]}`)
	unknown := []byte(`{"steps":[{"id":"a","tool":"other"}]}`)
	most := planSchema(t, list[:catalog.MaxEnum], catalog.Options{})
	require.Empty(t, most.Check(known, nil))
	require.NotEmpty(t, most.Check(unknown, nil), "up to 300 tools are listed")
	require.Empty(t, planSchema(t, list, catalog.Options{}).Check(unknown, nil), "more are not")
	strict, err := catalog.PlanSchema(list[:catalog.MaxEnum], catalog.Options{Strict: true})
	require.NoError(t, err)
	require.NotContains(t, string(strict), "rather.long", "OpenAI bounds the characters of a strict enumeration")

	within := append(list[:1:1], &tool.Definition{Name: plan.RecursiveTool})
	require.NotEmpty(t, planSchema(t, within, catalog.Options{}).Check([]byte(`{"steps":[{"id":"a","tool":"execute_tool_plan"}]}`), nil))
	require.NotContains(t, catalog.Guide(within), "\n- execute_tool_plan(")
}
