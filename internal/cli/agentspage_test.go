package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/modelscript"
)

// TestTheCommandOfThePageOfAgents types the command of docs/agents.md beside the definition of docs/agents.md, with the tools
// that it names, and a script in the model's place.
func TestTheCommandOfThePageOfAgents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/agents.md")
	require.NoError(t, err)
	definition := regexp.MustCompile("(?s)\n```json\n(\\{\"name\": \"researcher\".*?)\n```").FindSubmatch(text)
	require.NotNil(t, definition)
	typed := regexp.MustCompile("\n```\nstepjet (agents run .*?) --input '(.*)'\n```").FindSubmatch(text)
	require.NotNil(t, typed)
	data := folder(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	s := modelscript.Start(0, modelscript.Turn{Text: "The moon."})
	t.Cleanup(s.Close)
	developing(t, data)
	_, errs, code := execute(t, data, "", "tools", "apply", file("tools.json",
		`{"tools":[{"name":"search","inputSchema":{"type":"object"}},{"name":"analyze","inputSchema":{"type":"object"}}]}`))
	require.Zero(t, code, errs)
	words := strings.Fields(string(typed[1]))
	for i, w := range words {
		if w == "researcher.json" {
			words[i] = file(w, string(definition[1]))
		}
	}
	p := startIn(t, environment("ollama", s), data, "", append(words, "--input", string(typed[2]))...)
	require.Zero(t, p.end(t), "%v", &p.errs)
	require.Contains(t, p.out.String(), `"agent": "The moon."`)
	require.Contains(t, p.errs.String(), "1 round, 1 call of the planner")
}
