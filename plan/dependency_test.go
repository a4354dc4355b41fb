package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// toolbox is a fixed set of tools.
type toolbox map[string]plan.Tool

func (b toolbox) Lookup(name string) (plan.Tool, bool) {
	t, ok := b[name]
	return t, ok
}

func (b toolbox) Names() []string { return slices.Sorted(maps.Keys(b)) }

// dependentTools are a search whose output is not declared and one whose is, tools that depend on them, and one that
// depends on nothing.
func dependentTools(t testing.TB) toolbox {
	needs := func(name string, fields ...string) []tool.Dependency {
		return []tool.Dependency{{Tool: name, RequiredFields: fields}}
	}
	return toolbox{
		"search": {},
		"find": {Output: schema(t, `{"type":"object","properties":{"count":{"type":"integer"},"query":{"type":"string"},
			"hits":{"type":"array","items":{"type":"object","properties":{"document_id":{"type":"string"},"score":{"type":"number"},"page":{"type":["integer","null"]}}}},
			"extra":{"type":"object"},"open":{"type":"object","properties":{"a":{}},"additionalProperties":true}}}`)},
		"pick":  {},
		"fetch": {DependsOn: needs("search", "document_id")},
		"show":  {DependsOn: needs("search")},
		"load": {DependsOn: needs("find", "document_id"), Input: schema(t, `{"type":"object","properties":{"document_id":{"type":"string"},
			"n":{"type":"number"},"ids":{"type":"array","items":{"type":"string"}}}}`)},
		"orphan": {DependsOn: needs("gone")},
		"both":   {DependsOn: append(needs("search", "a", "b"), needs("find")...)},
	}
}

// What is missing: where it is said, part of the message, and part of the hint. No place means that the plan is fine.
func TestMissingDependency(t *testing.T) {
	t.Parallel()
	tools := dependentTools(t)
	const search, find = `{"id":"s","tool":"search"},`, `{"id":"f","tool":"find"},`
	fetch := func(arguments string) string {
		return steps(search + `{"id":"x","tool":"fetch","arguments":` + arguments + `}`)
	}
	load := func(arguments string) string {
		return steps(find + `{"id":"x","tool":"load","arguments":` + arguments + `}`)
	}
	const missing = "missing_dependency /steps/1/tool"
	for name, c := range map[string]struct{ plan, at, message, hint string }{
		"no such tool":            {steps(`{"id":"x","tool":"orphan"}`), "missing_dependency /steps/0/tool", "", `there is no tool "gone"`},
		"no such step":            {steps(`{"id":"x","tool":"fetch","arguments":{"document_id":"7"}}`), "missing_dependency /steps/0/tool", `"fetch" needs output of "search"`, `add a step that calls "search", and refer to its output, as in "$ref:<id>.document_id"`},
		"nothing taken":           {fetch(`{"document_id":"7"}`), missing, "no reference takes any", `called by: s. Refer to the output, as in "$ref:s.document_id"`},
		"no arguments":            {steps(search + `{"id":"x","tool":"fetch"}`), missing, "", "$ref:s.document_id"},
		"depends_on is no data":   {steps(search + `{"id":"x","tool":"fetch","depends_on":["s"]}`), missing, "", "depends_on alone hands nothing over"},
		"another step's":          {steps(search + `{"id":"p","tool":"pick"},{"id":"x","tool":"fetch","arguments":{"d":"$ref:p.document_id"}}`), "missing_dependency /steps/2/tool", "no reference", ""},
		"order of others":         {steps(search + `{"id":"p","tool":"pick","depends_on":["s"]},{"id":"x","tool":"fetch","arguments":{"d":"$ref:p.document_id"}}`), "missing_dependency /steps/2/tool", "", ""},
		"any output will do":      {steps(search + `{"id":"x","tool":"show","arguments":{}}`), missing, `"show" needs output`, `as in "$ref:s"`},
		"any output is taken":     {steps(search + `{"id":"x","tool":"show","arguments":{"t":"see ${ref:s.title}"}}`), "", "", ""},
		"an output without tool":  {steps(`{"id":"x","tool":"show","arguments":{}}`), "missing_dependency /steps/0/tool", "", `as in "$ref:<id>"`},
		"the field":               {fetch(`{"id":"$ref:s.document_id"}`), "", "", ""},
		"the field in a string":   {steps(search + `{"id":"x","tool":"fetch","arguments":"{\"id\":\"$ref:s.document_id\"}"}`), "", "", ""},
		"the field, deep":         {fetch(`{"id":["$ref:s.results[0].document_id"]}`), "", "", ""},
		"the field, on the way":   {fetch(`{"id":"$ref:s.document_id.value"}`), "", "", ""},
		"the field in a template": {fetch(`{"url":"https://x/${ref:s.results[0].document_id}"}`), "", "", ""},
		"the field among others":  {fetch(`{"id":"$ref:s.document_id || $ref:s.title"}`), "", "", ""},
		"the field as an object":  {fetch(`{"id":{"$ref":"s.document_id"}}`), "", "", ""},
		"under its own name":      {fetch(`{"document_id":"$ref:s.first"}`), "", "", ""},
		"under its name, deep":    {fetch(`{"x":[{"document_id":["$ref:s.first"]}]}`), "", "", ""},
		"the whole output":        {fetch(`{"x":"$ref:s"}`), "", "", ""},
		"all arguments":           {fetch(`{"$ref":"s"}`), "", "", ""},
		"an item of it":           {fetch(`{"x":"$ref:s[0]"}`), "", "", ""},
		"an item of a list":       {fetch(`{"x":"$ref:s.best[0]"}`), "", "", ""},
		"a list":                  {fetch(`{"x":"$ref:s.documents"}`), "", "", ""},
		"another field":           {fetch(`{"x":"$ref:s.title"}`), missing, `"fetch" needs "document_id" of what "search" returns; taken is only $ref:s.title`, `"$ref:s.document_id"`},
		"other fields":            {fetch(`{"x":"$ref:s.title","y":"${ref:s.results[0].score} of 1"}`), missing, "$ref:s.title, $ref:s.results[0].score", ""},
		"two steps, one good":     {steps(search + `{"id":"s2","tool":"search"},{"id":"x","tool":"fetch","arguments":{"a":"$ref:s.title","b":"$ref:s2.document_id"}}`), "", "", ""},
		"through another step":    {steps(search + `{"id":"p","tool":"pick","arguments":{"from":"$ref:s"}},{"id":"x","tool":"fetch","arguments":{"d":"$ref:p.id"}}`), "", "", ""},
		"through two":             {steps(search + `{"id":"p","tool":"pick","arguments":{"from":"$ref:s"}},{"id":"q","tool":"pick","arguments":{"from":"$ref:p"}},{"id":"x","tool":"fetch","arguments":{"d":"$ref:q"}}`), "", "", ""},
		"forward":                 {steps(`{"id":"x","tool":"fetch","arguments":{"d":"$ref:p"}},{"id":"p","tool":"pick","arguments":{"from":"$ref:s.a"}},{"id":"s","tool":"search"}`), "", "", ""},
		"another, and through":    {steps(search + `{"id":"p","tool":"pick","arguments":{"from":"$ref:s"}},{"id":"x","tool":"fetch","arguments":{"d":"$ref:p.id","t":"$ref:s.title"}}`), "", "", ""},
		"broken references":       {fetch(`{"x":"$ref:S.document_id"}`), "unknown_ref /steps/1/arguments/x", "", ""},
		"broken arguments":        {fetch(`"$ref:s"`), "invalid_arguments /steps/1/arguments", "", ""},
		"broken upstream":         {steps(`{"id":"p","tool":"pick","arguments":{"x":"$ref:sss"}},{"id":"x","tool":"fetch","arguments":{"d":"$ref:p.id"}}`), "unknown_ref /steps/0/arguments/x", "", ""},
		"for each":                {steps(search + `{"id":"x","tool":"fetch","for_each":{"in":"$ref:s.results"},"arguments":{"d":"$ref:item.document_id"}}`), "", "", ""},
		"for each, whole item":    {steps(search + `{"id":"x","tool":"fetch","for_each":{"in":"$ref:s.ids"},"arguments":{"d":"$ref:item"}}`), "", "", ""},
		"for each, other field":   {steps(search + `{"id":"x","tool":"fetch","for_each":{"in":"$ref:s.results"},"arguments":{"d":"$ref:item.title"}}`), missing, `taken is only $ref:s.results`, `"$ref:s.document_id"`},
		"for each, item unused":   {steps(search + `{"id":"x","tool":"fetch","for_each":{"in":"$ref:s.results"},"arguments":{"d":"7"}}`), missing, "", ""},
		"for each, array":         {steps(search + `{"id":"x","tool":"fetch","for_each":{"in":[{"d":"$ref:s.document_id"}]},"arguments":{"d":"$ref:item.d"}}`), "", "", ""},
		"for each, through":       {steps(search + `{"id":"p","tool":"pick","arguments":{"x":"$ref:s"}},{"id":"x","tool":"fetch","for_each":{"in":"$ref:p"},"arguments":{"d":"$ref:item"}}`), "", "", ""},
		"for each, no list":       {steps(search + `{"id":"x","tool":"fetch","for_each":{"in":5},"arguments":{"d":"$ref:item"}}`), "invalid_value /steps/1/for_each/in", "", ""},
		"many searches":           {steps(`{"id":"s","tool":"search","for_each":{"in":[1]}},{"id":"x","tool":"fetch","arguments":{"d":"$ref:s[0].data.document_id"}}`), "", "", ""},
		"many searches, all":      {steps(`{"id":"s","tool":"search","for_each":{"in":[1]}},{"id":"x","tool":"fetch","for_each":{"in":"$ref:s"},"arguments":{"d":"$ref:item.data.document_id"}}`), "", "", ""},
		"many searches, title":    {steps(`{"id":"s","tool":"search","for_each":{"in":[1]}},{"id":"x","tool":"fetch","arguments":{"d":"$ref:s[0].data.title"}}`), missing, "", `"$ref:s[0].data.document_id"`},
		"many searches, status":   {steps(`{"id":"s","tool":"search","for_each":{"in":[1]}},{"id":"x","tool":"fetch","arguments":{"d":"$ref:s[0].status"}}`), missing, "", ""},
		"many finds, each":        {steps(`{"id":"f","tool":"find","for_each":{"in":[1]}},{"id":"x","tool":"load","for_each":{"in":"$ref:f"},"arguments":{"document_id":"$ref:item.data.hits[0].document_id"}}`), "", "", ""},
		"many finds, each wrong":  {steps(`{"id":"f","tool":"find","for_each":{"in":[1]}},{"id":"x","tool":"load","for_each":{"in":"$ref:f"},"arguments":{"document_id":"$ref:item.data.document_id"}}`), "warning impossible_ref /steps/1/arguments/document_id", `what "find" returns has no key "document_id" by its output schema`, `did you mean "$ref:item.data.hits[0].document_id"?`},
		"many finds, hits of one": {steps(`{"id":"f","tool":"find","for_each":{"in":[1]}},{"id":"x","tool":"load","for_each":{"in":"$ref:f[0].data.hits"},"arguments":{"document_id":"$ref:item.document_id"}}`), "", "", ""},
		"many finds, all entries": {steps(`{"id":"f","tool":"find","for_each":{"in":[1]}},{"id":"x","tool":"load","arguments":{"ids":"$ref:f"}}`), "", "", ""},
		"many finds, whole entry": {steps(`{"id":"f","tool":"find","for_each":{"in":[1]}},{"id":"x","tool":"load","for_each":{"in":"$ref:f"},"arguments":{"x":"$ref:item"}}`), "", "", ""},
		"several dependencies":    {steps(search + find + `{"id":"x","tool":"both","arguments":{"a":"$ref:s.a","b":"$ref:s.b","f":"$ref:f"}}`), "", "", ""},
		"one of two fields":       {steps(search + find + `{"id":"x","tool":"both","arguments":{"v":"$ref:s.a","f":"$ref:f"}}`), "missing_dependency /steps/2/tool", `needs "b"`, ""},
		"one of two tools":        {steps(search + find + `{"id":"x","tool":"both","arguments":{"v":"$ref:s"}}`), "missing_dependency /steps/2/tool", `output of "find"`, ""},
		"declared":                {load(`{"document_id":"$ref:f.hits[0].document_id"}`), "", "", ""},
		"declared, example":       {load(`{"document_id":"7"}`), missing, "", `as in "$ref:f.hits[0].document_id"`},
		"declared, open":          {load(`{"document_id":"$ref:f.open.b"}`), "", "", ""},
		"declared, anything":      {load(`{"document_id":"$ref:f.extra.b"}`), "", "", ""},
		"declared scalar":         {load(`{"n":"$ref:f.count"}`), missing, "", "$ref:f.hits[0].document_id"},
		"declared container":      {load(`{"x":"$ref:f.hits"}`), "", "", ""},
		"not declared":            {load(`{"document_id":"$ref:f.hits[0].docment_id"}`), "warning impossible_ref /steps/1/arguments/document_id", `$ref:f.hits[0].docment_id: hits[0] of what "find" returns has no key "docment_id"`, `did you mean "$ref:f.hits[0].document_id"?`},
		"not declared there":      {load(`{"document_id":"$ref:f.document_id"}`), "warning impossible_ref /steps/1/arguments/document_id", `what "find" returns has no key "document_id"`, `did you mean "$ref:f.hits[0].document_id"?`},
		"not declared anywhere":   {load(`{"document_id":"$ref:f.zzzzzzzz"}`), "warning impossible_ref /steps/1/arguments/document_id", "", "there are: count, extra, hits, open, query"},
		"not declared, in text":   {load(`{"document_id":"x ${ref:f.docid}"}`), "warning impossible_ref /steps/1/arguments/document_id", "", ""},
		"not declared, or else":   {load(`{"document_id":"$ref:f.docid || $ref:f.hits[0].document_id"}`), "", "", ""},
		"into a scalar":           {load(`{"document_id":"$ref:f.query.document_id"}`), "impossible_ref /steps/1/arguments/document_id", "query of what \"find\" returns is a string and has no key", "hits[0].document_id"},
		"key into an array":       {load(`{"document_id":"$ref:f.hits.document_id"}`), "impossible_ref /steps/1/arguments/document_id", "hits of what \"find\" returns is an array and has no key", "hits[0].document_id"},
		"index into an object":    {load(`{"document_id":"$ref:f[0].document_id"}`), "impossible_ref /steps/1/arguments/document_id", "has no item 0", ""},
		"type":                    {load(`{"document_id":"$ref:f.count"}`), "impossible_ref /steps/1/arguments/document_id", `$ref:f.count is an integer, as "find" declares, but "load" takes a string here`, "${ref:f.count}"},
		"type of an item":         {load(`{"document_id":"$ref:f.query","ids":["$ref:f.hits[0]"]}`), "impossible_ref /steps/1/arguments/ids/0", "", `write "$ref:f.hits[0].document_id"`},
		"integer is a number":     {load(`{"document_id":"$ref:f.query","n":"$ref:f.count"}`), "", "", ""},
		"one of its types":        {load(`{"document_id":"$ref:f.query","n":"$ref:f.hits[0].page"}`), "", "", ""},
		"types, into text":        {load(`{"document_id":"no. ${ref:f.count}"}`), "", "", ""},
		"types, for each":         {steps(find + `{"id":"x","tool":"load","for_each":{"in":"$ref:f.hits"},"arguments":{"document_id":"$ref:item.score"}}`), "impossible_ref /steps/1/arguments/document_id", `$ref:item.score is a number`, ""},
		"not declared, for each":  {steps(find + `{"id":"x","tool":"load","for_each":{"in":"$ref:f.hits"},"arguments":{"document_id":"$ref:item.id"}}`), "warning impossible_ref /steps/1/arguments/document_id", `hits[0] of what "find" returns has no key "id"`, ""},
		"declared, for each":      {steps(find + `{"id":"x","tool":"load","for_each":{"in":"$ref:f.hits"},"arguments":{"document_id":"$ref:item.document_id"}}`), "", "", ""},
		"many finds":              {steps(`{"id":"f","tool":"find","for_each":{"in":[1]}},{"id":"x","tool":"load","arguments":{"document_id":"$ref:f[0].data.hits[0].id"}}`), "warning impossible_ref /steps/1/arguments/document_id", "hits[0] of what", ""},
		"not only dependents":     {steps(find + `{"id":"p","tool":"pick","arguments":{"x":"$ref:f.query.nope"}}`), "impossible_ref /steps/1/arguments/x", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := plan.Parse([]byte(c.plan), tools)
			if at, is := strings.CutPrefix(c.at, "warning "); is {
				require.Equal(t, []string{at}, found(r.Warnings))
				require.Contains(t, r.Warnings[0].Message, c.message)
				require.Contains(t, r.Warnings[0].Hint, c.hint)
				c.at = ""
			}
			if c.at == "" {
				require.Empty(t, r.Problems)
				return
			}
			require.Equal(t, []string{c.at}, found(r.Problems), "%v", r.Problems)
			require.Contains(t, r.Problems[0].Message, c.message)
			require.Contains(t, r.Problems[0].Hint, c.hint)
		})
	}
}

// Thousands of steps that miss what they depend on cost no more than the plan's size.
func TestMissingDependenciesAreCheap(t *testing.T) {
	t.Parallel()
	tools := dependentTools(t)
	for name, body := range map[string]string{
		"no search":     steps(repeat(9_000, `{"id":"s%d","tool":"fetch"}`)),
		"many searches": steps(repeat(9_000, `{"id":"s%d","tool":"search"}`) + "," + repeat(1_000, `{"id":"f%d","tool":"fetch"}`)),
		"wrong fields":  steps(`{"id":"s","tool":"search"},` + repeat(9_000, `{"id":"f%d","tool":"fetch","arguments":{"x":"$ref:s.t"}}`)),
		"undeclared":    steps(`{"id":"s","tool":"find"},` + repeat(9_000, `{"id":"f%d","tool":"load","arguments":{"x":"$ref:s.query.t%d"}}`)),
		"one long list": steps(`{"id":"s","tool":"search"},` + repeat(60, `{"id":"f%d","tool":"fetch","for_each":{"in":[`+repeat(128, `"$ref:s.t"`)+`]},"arguments":{"x":[`+repeat(128, `"$ref:item.t"`)+`]}}`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Less(t, len(body), plan.MaxBytes)
			start := time.Now()
			p, r := plan.Parse([]byte(body), tools)
			require.Less(t, time.Since(start), 20*time.Second) // a tenth of a second and less, without the race detector and other load
			if name == "one long list" {
				require.NotNil(t, p, "what goes through a list that is put together may be anything")
				return
			}
			require.Nil(t, p)
			if name == "undeclared" {
				require.Equal(t, []string{"impossible_ref"}, codes(r.Problems))
			} else {
				require.Equal(t, []string{"missing_dependency"}, codes(r.Problems))
			}
			require.LessOrEqual(t, len(r.Problems), plan.MaxProblems+1)
		})
	}
}

// Without a catalog nobody knows what depends on what.
func TestNoDependenciesWithoutTools(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte(steps(`{"id":"x","tool":"fetch"}`)), nil)
	require.Empty(t, r.Problems)
}

// Cycles are found all the same, and what depends within them goes round without an end.
func TestDependenciesInCycles(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"fetch","arguments":{"x":"$ref:b"}},{"id":"b","tool":"pick","arguments":{"x":"$ref:a"}}`)), dependentTools(t))
	require.Equal(t, []string{"missing_dependency /steps/0/tool", "cycle /steps/0/arguments/x"}, found(r.Problems))
}

// dependentLarge returns a search, and n steps that each fetch by way of the one before.
func dependentLarge(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"id":"s0","tool":"search"}`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `,{"id":"s%d","tool":"fetch","arguments":{"document_id":"$ref:s%d.document_id"}}`, i, i-1)
	}
	return []byte(steps(b.String()))
}

func BenchmarkParseDependent10000(b *testing.B) {
	tools, body := dependentTools(b), dependentLarge(10_000)
	b.ReportAllocs()
	for b.Loop() {
		if p, r := plan.Parse(body, tools); p == nil {
			b.Fatal(r.Problems)
		}
	}
}
