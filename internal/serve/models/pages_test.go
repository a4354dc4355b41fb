package models

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
)

var block = regexp.MustCompile("(?s)\n```json\n(.*?)\n```")

// TestTheBlocksOfThePages copies what docs/agents.md and docs/models.md show as JSON, as a reader would: the definition is
// applied and its agent called, plans and requests are run, entries are put into a definition. What is elided stands for
// anything. A block that nobody tries fails.
func TestTheBlocksOfThePages(t *testing.T) {
	t.Parallel()
	c, said := world(t, 1, `},"large":{"id":"l"`, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	store, err := kv.Open(ctx, said.nc)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	object := func(text string) string {
		text = strings.ReplaceAll(text, "{…}", "{}")
		var o map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &o), text)
		return text
	}
	asks := func(id, tool, arguments string) {
		out := run(t, c, `{"id":"`+id+`","tool":"`+tool+`","arguments":`+arguments+`}`)
		require.Equal(t, outcome.Succeeded, out.Status, "%v %v", out.Problems, out.Errors)
		got, _ := out.Results.Get(id)
		require.Contains(t, string(got), "the Aare")
	}
	tries := []struct {
		begins string
		try    func(text string)
	}{
		{`{"tools": [{`, func(text string) {
			f, err := parse([]byte(text), func(name string) (string, bool) { return key, name == "OPENAI_API_KEY" })
			require.NoError(t, err)
			f.close()
		}},
		{`{"steps": [`, func(text string) {
			out, err := c.Run(ctx, []byte(text), client.SubmitOptions{})
			require.NoError(t, err)
			require.Equal(t, outcome.Succeeded, out.Status, "%v %v", out.Problems, out.Errors)
		}},
		{`{"name": "researcher"`, func(text string) {
			for _, name := range []string{"search", "analyze"} {
				_, err := store.Requests.RequestRegister(ctx, []byte(`{"name":"`+name+`","inputSchema":{"type":"object"}}`))
				require.NoError(t, err)
			}
			_, err := c.ApplyTemplate(ctx, []byte(text))
			require.NoError(t, err)
			asks("a", "researcher", `{"topic":"tides"}`)
		}},
		{`{"tool": "get_order"`, func(text string) {
			_, report := agent.Parse([]byte(`{"name":"a","inputSchema":{"type":"object","properties":{"who":{}}},"agent":{"planner":{"tool":"model"},"tools":["check",`+text+`],
				"states":{"initial":"OPEN","final":["OPEN"]}}}`), nil)
			require.Empty(t, report.Problems, text)
		}},
		{`{"instructions": `, func(text string) { asks("m", "model", `{"model":"small",`+object(text)[1:]) }},
		{`{"on": "result", "agent"`, func(text string) { object(text) }},
		{`{"part": {`, func(text string) { object(text) }},
	}
	tried := map[string]int{}
	for _, page := range []string{"agents.md", "models.md"} {
		text, err := os.ReadFile("../../../docs/" + page)
		require.NoError(t, err)
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			known := false
			for _, x := range tries {
				if strings.HasPrefix(m[1], x.begins) {
					known = true
					tried[x.begins]++
					x.try(m[1])
				}
			}
			require.True(t, known, "%s has a block that nobody tries:\n%s", page, m[1])
		}
	}
	require.Len(t, tried, len(tries), "%v", tried)
}
