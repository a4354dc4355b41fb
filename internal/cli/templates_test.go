package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
)

const templateFiles = "testdata/templates/"

// What is done with templates, without a server and on a real one.
func TestTemplates(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, args := range [][]string{
		{"templates", "apply", "--dry-run", templateFiles + "flaws.json", templateFiles + "share.json"},
		{"templates", "save"}, {"templates", "save", "x"}, {"templates", "save", "x", "--from", "r", "--input", "a.b"},
		{"validate", "--tools", templateFiles + "share.json", templateFiles + "plan.json"},
		{"graph", templateFiles + "plan.json"},
	} {
		b.WriteString(transcript(t, "", args...))
	}
	for _, name := range []string{"apply", "save", "list", "show"} {
		text, _, _ := strings.Cut(transcript(t, "", "templates", name, "--help"), "\nGlobal Flags:")
		b.WriteString(text + "\n")
	}
	data := folder(t)
	developing(t, data)
	run := func(args ...string) (stdout string) {
		stdout, stderr, code := execute(t, data, "", args...)
		fmt.Fprintf(&b, "$ stepjet %s\n%s%s--- exit code %d\n\n", strings.Join(args, " "), stderr, stdout, code)
		return stdout
	}
	run("templates", "list")
	run("templates", "apply", templateFiles+"share.json")
	run("templates", "apply", templateFiles+"share.json")
	run("templates", "list")
	run("templates", "show", "share")
	run("templates", "show", "divide")
	run("tools", "call", "-q", "share", `{"total": 9, "people": 2}`)
	run("validate", templateFiles+"plan.json")
	golden(t, "templates", b.String())

	out := func(stdin string, args ...string) string {
		stdout, stderr, code := execute(t, data, stdin, args...)
		require.Zero(t, code, stderr+stdout)
		return stdout
	}
	require.Contains(t, out(`{"template": "share", "input": {"total": 10, "people": 4}}`, "run", "-q", "-o", "json", "-"), `"output":{"each":2.5}`)
	require.Contains(t, out("", "run", "--run", "bills", "-q", "-o", "json", templateFiles+"plan.json"), `"rest":[2.5,5.625]`)
	shown := out("", "get", "bills")
	require.Contains(t, shown, "rest/each")
	require.Contains(t, shown, "share_all")
	require.Contains(t, out("", "run", "--dry-run", "-o", "json", templateFiles+"plan.json"), `"dinner/part"`)

	out("", "templates", "save", "evening", "--from", "bills", "--input", "dinner.total=dinner", "--input", "dinner.people=people", "--description", "An evening.")
	var all []tool.Definition
	require.NoError(t, json.Unmarshal([]byte(out("", "templates", "list", "-o", "json")), &all))
	require.Equal(t, "evening", all[0].Name)
	require.Contains(t, string(all[0].Plan), `{"total":"$input.dinner","people":"$input.people"}`, "in their order")
	require.Contains(t, out(`{"template": "evening", "input": {"dinner": 8, "people": 2}}`, "run", "-q", "-o", "json", "-"), `"rest":[2.5,1]`)
	require.Contains(t, out("", "templates", "save", "bare", "--from", "bills", "--print"), `"plan": {`)
	_, stderr, code := execute(t, data, "", "templates", "save", "not", "--from", "bills", "--input", "rest.bills[1]=x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "that is no constant")
}
