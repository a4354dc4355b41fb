package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const groupFiles = "testdata/groups/"

// What is done with groups of tools on a real server: whoever looks sees which provider counts, and a run with permissions
// is bound to them.
func TestGroups(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	var b strings.Builder
	run := func(args ...string) {
		stdout, stderr, code := execute(t, data, "", args...)
		fmt.Fprintf(&b, "$ stepjet %s\n%s%s--- exit code %d\n\n", strings.Join(args, " "), stderr, stdout, code)
	}
	run("groups", "list")
	run("groups", "list", "-o", "json")
	run("groups", "apply", groupFiles+"wrong.json")
	run("groups", "list")
	run("groups", "apply", groupFiles+"groups.json")
	run("groups", "list")
	run("groups", "show", "math")
	run("groups", "show", "math", "-o", "json")
	run("groups", "show", "web")
	run("groups", "remove", "math")
	run("groups", "remove", "math", "cloud")
	run("groups", "list")
	golden(t, "groups", b.String())

	const plan = `{"steps":[{"id":"a","tool":"text_concat","arguments":{"parts":["x","y"]}},{"id":"b","tool":"add","arguments":{"a":1,"b":2}}]}`
	for _, c := range []struct {
		command, permissions string
		code                 int
	}{{"run", "", 0}, {"run", "files,other", 0}, {"run", "internet", 2}, {"run", "none", 2}, {"submit", "none", 2}, {"submit", "files", 0}, {"run", "a b", 2}} {
		args := []string{c.command, "-q", "-"}
		if c.permissions != "" {
			args = append(args, "--permissions", c.permissions)
		}
		stdout, stderr, code := execute(t, data, plan, args...)
		require.Equal(t, c.code, code, "%v: %s%s", c, stdout, stderr)
	}
	stdout, stderr, code := execute(t, data, plan, "run", "--permissions", "none", "-o", "json", "-")
	require.Equal(t, 2, code)
	require.Contains(t, stdout+stderr, `"code":"not_permitted","path":"/steps/0/tool"`)
}
