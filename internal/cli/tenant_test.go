package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestATenantIsDeclaredAndRemoved from its bucket to the permissions that are printed, and says what it would take
// away.
func TestATenantIsDeclaredAndRemoved(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	_, stderr, code := execute(t, data, "", "tenant", "list")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "no tenant has a bucket of its own")
	for _, args := range [][]string{{"tenant", "remove", "acme"}, {"tenant", "add", "a.b"}} {
		_, stderr, code = execute(t, data, "", args...)
		require.NotZero(t, code, args)
		require.Regexp(t, "has no bucket of its own|is no tenant", stderr)
	}
	stdout, stderr, code := execute(t, data, "", "tenant", "add", "acme")
	require.Zero(t, code, stderr)
	agent, _, _ := command(t, "", "acl", "agent", "--declared", "acme")
	own, _, _ := strings.Cut(strings.TrimPrefix(agent, "# Among the accounts:\n"), "\n\n#")
	require.Contains(t, stdout, own, "as stepjet acl prints it")
	require.NotContains(t, stdout, "OBJ_blobs\"", "nothing of the bucket that is shared")
	require.Contains(t, stderr, "all orchestrators know of it")
	require.Contains(t, stderr, "--declared acme")
	stdout, stderr, code = execute(t, data, "", "tenant", "add", "acme", "--form", "user", "-o", "json")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "has its bucket already")
	var grants []struct{ User string }
	require.NoError(t, json.Unmarshal([]byte(stdout), &grants))
	require.Len(t, grants, 4)

	plan := `{"steps":[{"id":"a","tool":"echo","arguments":{"text":"` + strings.Repeat("x", 700_000) + `"}}]}`
	_, stderr, code = execute(t, data, plan, "run", "--tenant", "acme", "--run", "r", "-")
	require.Zero(t, code, stderr)
	stdout, _, code = execute(t, data, "", "get", "r", "--tenant", "acme", "--outcome", "-o", "json")
	require.Zero(t, code)
	require.Greater(t, len(stdout), 700_000)
	stdout, stderr, code = execute(t, data, "", "tenant", "list")
	require.Zero(t, code, stderr)
	require.Regexp(t, `acme +blobs-acme +\S+Z +\d\.\d MiB`, stdout, "arguments, result and outcome, and what a second try left of them")
	_, stderr, code = execute(t, data, "", "tenant", "remove", "acme", "--force")
	require.NotZero(t, code, "its run has ended a moment ago")
	require.Contains(t, stderr, "runs of the tenant acme go on, or ended within the last minute: 1")
}

// TestACommandToTypeNextHasItsTenant, that of the environment too: it may be typed elsewhere.
func TestACommandToTypeNextHasItsTenant(t *testing.T) {
	t.Parallel()
	for tenant, want := range map[string][]string{"acme": {"--tenant", "acme"}, "default": nil, "": nil} {
		a := &app{env: Env{Getenv: func(string) string { return tenant }}}
		a.flags.tenant = a.defaultTenant()
		require.Equal(t, want, argumentsOf(a))
	}
	other := &app{env: Env{Getenv: func(string) string { return "acme" }}}
	other.flags.tenant = "default"
	require.Equal(t, []string{"--tenant", "default"}, argumentsOf(other), "the environment has another one")
	for _, show := range []func(doc *outcome.Run) string{
		func(doc *outcome.Run) string {
			a, out, _ := paper("text")
			a.flags.tenant = "acme"
			require.NoError(t, a.showRun(doc, false))
			return out.String()
		},
		func(doc *outcome.Run) string {
			a, _, errs := paper("text")
			a.flags.tenant = "acme"
			a.tellRounds(doc, agents.NoBlob)
			return errs.String()
		},
		func(*outcome.Run) string {
			a, out, _ := paper("text")
			a.flags.tenant = "acme"
			(&lines{w: out, where: asTyped(argumentsOf(a))}).event(client.Event{Kind: subjects.EventQuestion, Run: "helped", Step: "pay"})
			return out.String()
		},
	} {
		doc := helped()
		for range 9 {
			doc.Steps[0].Steps[1].Said = append(doc.Steps[0].Steps[1].Said, outcome.Said{ID: "m"})
		}
		require.Regexp(t, `stepjet [a-z ]*helped .* --tenant acme`, show(doc))
	}
	a, out, _ := paper("text")
	a.flags.tenant = "acme"
	require.NoError(t, asking{a}.writeQuestion(&outcome.Question{Run: "r", Step: subjects.RootScope, Kind: outcome.Approval, Digest: "d"}))
	require.Contains(t, out.String(), "stepjet get r --tenant acme, stepjet graph r --tenant acme\n")
	require.Regexp(t, `stepjet approve r \S+ --tenant acme, or stepjet reject r \S+ --tenant acme\n`, out.String())
}
