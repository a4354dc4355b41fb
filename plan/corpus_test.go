package plan_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// catalog is a fixed set of tools, by their input schemas; outputs are schemas of what some of them return.
type catalog map[string]*tool.Schema

var outputs = map[string]string{
	"make_pair": `{"type":"object","properties":{"n":{"type":"number"},"label":{"type":"string"}},"additionalProperties":false}`,
	"shout":     `{"type":"string"}`,
}

func (c catalog) Lookup(name string) (plan.Tool, bool) {
	s, ok := c[name]
	t := plan.Tool{Input: s}
	if raw := outputs[name]; raw != "" {
		t.Output, _ = tool.CompileSchema([]byte(raw))
	}
	return t, ok
}

func (c catalog) Names() []string {
	var names []string
	for n := range c {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func schema(t testing.TB, raw string) *tool.Schema {
	t.Helper()
	s, err := tool.CompileSchema([]byte(raw))
	require.NoError(t, err)
	return s
}

// corpusTools are the tools that the corpus of plans is written for.
func corpusTools(t testing.TB) catalog {
	return catalog{
		"echo":        schema(t, `{"type":"object"}`),
		"add":         schema(t, `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`),
		"get_weather": schema(t, `{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}`),
		"make_pair":   schema(t, `{"type":"object"}`),
		"shout":       schema(t, `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	}
}

// codes returns the set of problem codes, sorted.
func codes(problems []fault.Problem) []string {
	list := []string{}
	for _, p := range problems {
		list = append(list, string(p.Code))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// corpusCase is one line of a corpus. Expect is "accepted" or the codes of the problems.
type corpusCase struct {
	Name   string          `json:"name"`
	Plan   json.RawMessage `json:"plan"`
	Base64 []byte          `json:"plan_b64"`
	Expect json.RawMessage `json:"expect"`
}

func (c corpusCase) expected(t *testing.T) []string {
	t.Helper()
	if string(c.Expect) == `"accepted"` {
		return []string{}
	}
	var list []string
	require.NoError(t, json.Unmarshal(c.Expect, &list))
	require.NotEmpty(t, list)
	slices.Sort(list)
	return list
}

// body returns the bytes of the plan: text in a JSON string, base64, or the JSON itself.
func (c corpusCase) body(t *testing.T) []byte {
	t.Helper()
	if c.Plan == nil {
		return c.Base64
	}
	if c.Plan[0] == '"' {
		var s string
		require.NoError(t, json.Unmarshal(c.Plan, &s))
		return []byte(s)
	}
	return c.Plan
}

func readCorpus(t *testing.T, file string) []corpusCase {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []corpusCase
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var c corpusCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		all = append(all, c)
	}
	require.NoError(t, lines.Err())
	return all
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	all := readCorpus(t, "testdata/corpus/plans.jsonl")
	require.NotEmpty(t, all)
	tools := corpusTools(t)
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			p, report := plan.Parse(c.body(t), tools)
			want, got := c.expected(t), codes(report.Problems)
			if len(want) == 0 {
				require.Empty(t, report.Problems)
				require.NotNil(t, p)
				return
			}
			require.Nil(t, p)
			require.Equal(t, want, got, "%v", report.Problems)
		})
	}
}

func TestWildPlans(t *testing.T) {
	t.Parallel()
	all := readCorpus(t, "testdata/wild/plans.jsonl")
	require.Len(t, all, 329)
	raw, err := os.ReadFile("testdata/wild/tools.json")
	require.NoError(t, err)
	var names []string
	require.NoError(t, json.Unmarshal(raw, &names))
	tools := catalog{}
	for _, n := range names {
		tools[n] = schema(t, ``)
	}
	for _, c := range all {
		p, report := plan.Parse(c.body(t), tools)
		want := c.expected(t)
		require.Equal(t, want, codes(report.Problems), "%s: %v", c.Name, report.Problems)
		require.Equal(t, len(want) == 0, p != nil, c.Name)
	}
}

// A helper above decodes base64 by way of []byte; this makes sure that it is standard base64.
func TestCorpusBytesAreNotUTF8(t *testing.T) {
	t.Parallel()
	for _, c := range readCorpus(t, "testdata/corpus/plans.jsonl") {
		if c.Name == "bom" {
			require.Equal(t, "77u/", base64.StdEncoding.EncodeToString(c.body(t)[:3]))
			return
		}
	}
	t.Fatal("no case named bom")
}
