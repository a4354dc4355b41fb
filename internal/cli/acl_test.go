package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
)

func TestAccessOfARole(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := command(t, "", "acl", "worker", "--tool", "search", "--tool", "crm/get,fetch")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"$JS.API.CONSUMER.MSG.NEXT.*.crm=2Fget"`)
	require.Contains(t, stdout, `{ service: "$KV.runs_0.*.*.*.*.step.fetch.*.*", accounts: ["worker-crm_2Fget-fetch-search"] }`)
	require.Contains(t, stdout, "$STEPJET_PASSWORD_WORKER_CRM_2FGET_FETCH_SEARCH")

	stdout, stderr, code = command(t, "", "acl", "agent", "--tenant", "acme", "--form", "user", "--shards", "4")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"plan.in.*.acme.*"`)
	require.Contains(t, stdout, `"$JS.API.DIRECT.GET.KV_runs_3.$KV.runs_3.*.acme.*.plan"`)
	require.NotContains(t, stdout, "imports")
	require.Contains(t, stderr, "note:")

	stdout, _, code = command(t, "", "acl", "orchestrator")
	require.Zero(t, code)
	publishes, _, both := strings.Cut(stdout, "subscribe:")
	require.True(t, both, stdout)
	require.NotContains(t, publishes, "plan.submit.*.*", "it submits nothing")

	stdout, _, code = command(t, "", "acl", "viewer", "-o", "json")
	require.Zero(t, code)
	var grant struct {
		User, Role string
		Inbox      string `json:"inbox_prefix"`
		Listens    []string
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &grant))
	require.Equal(t, "viewer-default viewer _INBOX.viewer-default event.default.*.* notify.default.*.* sink.default.>",
		strings.Join(append([]string{grant.User, grant.Role, grant.Inbox}, grant.Listens...), " "))
}

func TestAccessThatIsNone(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"none is named":           {"worker"},
		"no name of a tool":       {"worker", "--tool", "a b"},
		"account or user":         {"agent", "--form", "nsc"},
		"is no tenant":            {"agent", "--tenant", "a.b"},
		"divides 64":              {"system", "--shards", "3"},
		"two users would be":      {"system", "--tool", "a", "--tool", "a"},
		"there is no command":     {"king"},
		"the key ":                {"viewer", "--keys", broken(t)},
		"making the folder of ke": {"viewer", "--keys", filepath.Join(broken(t), "viewer-default.nk")},
	} {
		_, stderr, code := command(t, "", append([]string{"acl"}, args...)...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, says)
	}
}

// broken returns a folder in which a key is none.
func broken(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "viewer-default.nk"), []byte("no seed"), 0o600))
	return dir
}

// TestAServerTakesTheWholeConfiguration also where it has shards, whose mapping it then does.
func TestAServerTakesTheWholeConfiguration(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys")
	for _, shards := range []string{"1", "8"} {
		stdout, stderr, code := command(t, "", "acl", "system", "--tenant", "acme", "--tenant", "beta", "--tool", "a", "--tool", "b,c/d", "--shards", shards, "--keys", keys)
		require.Zero(t, code, stderr)
		require.Contains(t, stderr, "--inbox-prefix _INBOX.worker-b-c_2Fd")
		file := filepath.Join(t.TempDir(), "nats.conf")
		require.NoError(t, os.WriteFile(file, []byte(stdout), 0o600))
		srv, err := embedded.Start(embedded.Options{ConfigFile: file, Dir: t.TempDir()})
		require.NoError(t, err)
		srv.Shutdown()
	}
	found, err := os.ReadDir(keys)
	require.NoError(t, err)
	for _, f := range found {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
	}
	require.Len(t, found, 13)
}
