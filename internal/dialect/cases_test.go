package dialect_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

var rewrite = flag.Bool("rewrite", false, "write what the cases come to; then look at the diff")

const (
	casesFile = "testdata/cases.txt"
	titled    = "\n== "
	answered  = "\n=>\n"
)

// Each case is what somebody submits, and what becomes of it.
func TestCases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(casesFile)
	require.NoError(t, err)
	head, rest, _ := strings.Cut(string(text), titled)
	out := head
	for _, one := range strings.Split(rest, titled) {
		title, body, _ := strings.Cut(one, "\n")
		body, _, _ = strings.Cut(body, answered)
		body = strings.TrimSpace(body)
		out += titled + title + "\n" + body + answered + answer(t, title, body) + "\n"
	}
	out = strings.TrimRight(out, "\n") + "\n"
	if *rewrite {
		require.NoError(t, os.WriteFile(casesFile, []byte(out), 0o600))
	}
	require.Equal(t, string(text), out)
}

// answer tells the compiled plan step by step, or what is wrong.
func answer(t *testing.T, title, body string) string {
	t.Helper()
	p, report := plan.Parse([]byte(body), known(strings.Contains(title, "of the compiled plan")))
	var b strings.Builder
	tell := func(kind string, all []fault.Problem) {
		for _, x := range all {
			fmt.Fprintf(&b, "%s %s at %s", kind, x.Code, strings.Join(append([]string{x.Path}, x.Paths[min(1, len(x.Paths)):]...), " "))
			if x.Step != "" {
				fmt.Fprintf(&b, " (%s)", x.Step)
			}
			fmt.Fprintf(&b, ": %s\n  hint: %s\n", x.Message, x.Hint)
		}
	}
	tell("problem", report.Problems)
	tell("warning", report.Warnings)
	if p == nil {
		return b.String()
	}
	require.Equal(t, plan.Language2, p.Needs()[0], "who does not know the dialect leaves its runs alone")
	var compiled map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(plan.Compiled([]byte(body)), &compiled))
	var steps []json.RawMessage
	require.NoError(t, json.Unmarshal(compiled["steps"], &steps))
	for _, s := range steps {
		b.Write(append(s, '\n'))
	}
	for i := range p.Steps {
		if held := p.Steps[i].Held; held != nil {
			fmt.Fprintf(&b, "%s is held against %s\n", p.Steps[i].ID, held)
		}
	}
	delete(compiled, "steps")
	if len(compiled) > 0 {
		var options bytes.Buffer
		e := json.NewEncoder(&options)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(compiled))
		b.Write(options.Bytes())
	}
	return b.String()
}

// known are the tools of one case; the others know none, so that any does.
func known(yes bool) plan.Catalog {
	if !yes {
		return nil
	}
	return tools{}
}

type tools struct{}

var toolSchemas = map[string][2]string{
	"get_weather": {
		`{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}`,
		`{"type":"object","properties":{"temperature":{"type":"number"}},"required":["temperature"],"additionalProperties":false}`,
	},
	"add": {
		`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`,
		`{"type":"object","properties":{"result":{"type":"number"}}}`,
	},
}

func (tools) Lookup(name string) (t plan.Tool, ok bool) {
	s, ok := toolSchemas[name]
	if ok {
		t.Input, _ = tool.CompileSchema([]byte(s[0]))
		t.Output, _ = tool.CompileSchema([]byte(s[1]))
	}
	return t, ok
}

func (tools) Names() []string { return []string{"add", "get_weather"} }
