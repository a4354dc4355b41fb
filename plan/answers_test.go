package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/builtin"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// leastShare is the least share of answers to broken plans that contain what to write. The others may be mended as
// well, by a model that knows better.
const leastShare = 0.95

// leastOfKind is the least share of any one kind of mistake.
const leastOfKind = 0.75

// TestAnAnswerSaysWhatToWrite breaks good plans the way models break them, and looks into the answer, as a model sees
// it, for the very text that was right.
func TestAnAnswerSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	good := goodPlans(t)
	require.GreaterOrEqual(t, len(good), 60)
	asked, told := map[string]int{}, map[string]int{}
	misses := map[string]string{}
	for _, g := range good {
		_, r := plan.Parse(g.body(), g.tools)
		require.Empty(t, r.Problems, "%s is a good plan", g.name)
		for _, m := range mistakes {
			b := g.clone(t)
			want := m.breaks(b)
			if want == "" {
				continue // there is nothing of that kind in this plan
			}
			asked[m.name]++
			p, r := plan.Parse(b.body(), b.tools)
			answer := asModelSees(t, p, r)
			if p == nil && strings.Contains(answer, want) {
				told[m.name]++
			} else if misses[m.name] == "" {
				misses[m.name] = fmt.Sprintf("%s: wanted %s in\n%s", b.name, want, answer)
			}
		}
	}
	all, right := 0, 0
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		t.Logf("%-32s %4d of %4d", name, told[name], asked[name])
		if m := misses[name]; m != "" {
			t.Logf("    %s", m)
		}
		all, right = all+asked[name], right+told[name]
	}
	t.Logf("%d of %d answers (%.1f %%) contain what to write", right, all, 100*float64(right)/float64(all))
	require.Len(t, asked, len(mistakes), "every kind was tried")
	for name, n := range asked {
		require.GreaterOrEqual(t, float64(told[name]), leastOfKind*float64(n), name)
	}
	require.GreaterOrEqual(t, float64(right), leastShare*float64(all))
}

// asModelSees returns the messages and hints of what goes to a model, as plain text.
func asModelSees(t *testing.T, p *plan.Plan, r plan.Report) string {
	t.Helper()
	if p != nil {
		return "(accepted)"
	}
	o := outcome.Outcome{Run: "r", Status: outcome.Rejected, Problems: r.Problems, Warnings: r.Warnings}
	var seen outcome.Outcome
	require.NoError(t, json.Unmarshal(o.ForModel(), &seen))
	var b strings.Builder
	for _, x := range seen.Problems {
		fmt.Fprintf(&b, "%s %s (%s): %s\n    hint: %s\n", x.Code, x.Path, x.Step, x.Message, x.Hint)
	}
	return b.String()
}

// broken is a plan to be broken, decoded.
type broken struct {
	name  string
	doc   map[string]any
	tools catalogOfAll
}

func (b *broken) body() []byte { return jsonOf(b.doc) }

// jsonOf writes JSON as models do, without escapes for HTML.
func jsonOf(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (b *broken) clone(t *testing.T) *broken {
	t.Helper()
	return &broken{b.name, asMap(t, b.body()), b.tools}
}

func asMap(t *testing.T, raw []byte) (doc map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&doc))
	return doc
}

func (b *broken) steps() (all []map[string]any) {
	list, _ := b.doc["steps"].([]any)
	for _, s := range list {
		if m, ok := s.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// catalogOfAll is a set of tools with both of their schemas.
type catalogOfAll struct {
	tools map[string]plan.Tool
	raw   map[string]json.RawMessage // the input schemas as they are written
}

func newCatalogOfAll() catalogOfAll {
	return catalogOfAll{map[string]plan.Tool{}, map[string]json.RawMessage{}}
}

func (c catalogOfAll) Lookup(name string) (plan.Tool, bool) {
	t, ok := c.tools[name]
	return t, ok
}

func (c catalogOfAll) Names() []string { return slices.Collect(maps.Keys(c.tools)) }

func (c catalogOfAll) add(t *testing.T, list ...*tool.Definition) catalogOfAll {
	t.Helper()
	for _, d := range list {
		in, err := d.Input()
		require.NoError(t, err)
		out, err := d.Output()
		require.NoError(t, err)
		contract, err := d.Contract()
		require.NoError(t, err)
		c.raw[d.Name] = d.InputSchema
		c.tools[d.Name] = plan.Tool{Input: in, Output: out, DependsOn: contract.DependsOn}
	}
	return c
}

// declared is what a tool declares of its arguments, as far as these tests go by it.
type declared struct {
	Properties map[string]struct {
		Type any
		Enum []any
	}
	Required []string
	Closed   *bool `json:"additionalProperties"`
}

func (c catalogOfAll) kindOf(name, key string) string {
	var d declared
	if json.Unmarshal(c.raw[name], &d) != nil || d.Closed == nil || *d.Closed {
		return ""
	}
	p, known := d.Properties[key]
	switch {
	case !known || p.Type == nil && p.Enum == nil:
		return ""
	case p.Enum != nil:
		return "enum"
	case !slices.Contains(d.Required, key):
		return ""
	case p.Type == "number" || p.Type == "integer":
		return "number"
	}
	return "other"
}

// goodPlans returns sixty plans: of the NESTFUL data set, which need declared types, of models in the wild, whose tools
// declare nothing, and the examples, with all kinds of arguments.
func goodPlans(t *testing.T) (all []*broken) {
	t.Helper()
	nestful, plain, own := newCatalogOfAll(), newCatalogOfAll(), newCatalogOfAll()
	for _, x := range builtin.Group("nestful") {
		nestful.add(t, x.Definition)
	}
	for _, x := range slices.Concat(builtin.All(), builtin.Group("demo")) {
		own.add(t, x.Definition)
	}
	var names []string
	raw, err := os.ReadFile("testdata/wild/tools.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &names))
	for _, n := range names {
		plain.tools[n] = plan.Tool{}
	}
	take := func(file string, most int, tools catalogOfAll) {
		n := 0
		for _, c := range readCorpus(t, file) {
			if p, _ := plan.Parse(c.body(t), tools); p != nil && p.Depth > 1 && n < most {
				all = append(all, &broken{c.Name, asMap(t, c.body(t)), tools})
				n++
			}
		}
	}
	take("../internal/builtin/testdata/nestful/plans.jsonl", 30, nestful)
	take("testdata/wild/plans.jsonl", 20, plain)
	for _, pattern := range []string{"../examples/plans/*.json", "../examples/*/plan.json", "testdata/answers/*.json"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			if filepath.Base(file) == "tools.json" {
				continue
			}
			with := own
			if defs, err := os.ReadFile(filepath.Join(filepath.Dir(file), "tools.json")); err == nil {
				list, err := tool.ParseDefinitions(defs)
				require.NoError(t, err)
				with = newCatalogOfAll().add(t, list...)
			}
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			doc := asMap(t, raw)
			if doc["steps"] == nil {
				continue // calls with a state: the mistakes are those of steps
			}
			if p, _ := plan.Parse(raw, with); p != nil { // that of another language's worker has a tool of its own
				all = append(all, &broken{file, doc, with})
			}
		}
	}
	slices.SortFunc(all, func(a, b *broken) int { return strings.Compare(a.name, b.name) })
	return all
}
