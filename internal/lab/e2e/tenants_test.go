package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
)

// flat is a text without its indents.
func flat(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// TestADeclaredTenantsLargeValuesAreItsOwn does what docs/security.md says, with the real programs: a tenant is
// declared, a plan has a result of a megabyte, its agent and its viewer read the outcome, and another tenant's users
// are refused.
func TestADeclaredTenantsLargeValuesAreItsOwn(t *testing.T) {
	t.Parallel()
	keys, tools := filepath.Join(t.TempDir(), "keys"), filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte(`{"tools":[{"builtin":"echo"}]}`), 0o600))
	code, conf, said := once(t, "", "stepjet", "acl", "system", "--declared", "acme", "--declared", "beta", "--tool", "echo", "--keys", keys)
	require.Zero(t, code, said)
	require.Contains(t, said, "stepjet tenant add acme")
	url := secured(t, conf)
	as := func(user string, more ...string) []string {
		return append([]string{"--nkey", filepath.Join(keys, user+".nk"), "--inbox-prefix", "_INBOX." + user}, more...)
	}
	stepjet := func(user string, args ...string) (code int, out, said string) {
		return once(t, url, "stepjet", append(args, as(user)...)...)
	}
	begin(t, url, "orchestrator", as("orchestrator")...).says("ready")
	begin(t, url, "toolworker", as("worker-echo", "--tools", tools)...).says("ready")
	for _, tenant := range []string{"acme", "beta"} {
		code, out, said := stepjet("doctor", "tenant", "add", tenant, "--keys", keys)
		require.Zero(t, code, said)
		printed, _, ok := strings.Cut(strings.TrimPrefix(out, "# Among the accounts:\n"), "\n\n#")
		require.True(t, ok, out)
		require.Contains(t, flat(conf), flat(printed), "what is printed for the tenant is what is in force")
	}

	text := strings.Repeat("x", 1_000_000)
	plan := planFile(t, `{"steps":[{"id":"a","tool":"echo","arguments":{"text":"`+text+`"}}]}`)
	code, out, said := stepjet("agent-acme", "run", "-o", "json", "--run", "large", "--tenant", "acme", plan)
	require.Zero(t, code, said)
	require.Contains(t, out, text)
	code, out, said = stepjet("viewer-acme", "get", "-o", "json", "large", "--tenant", "acme")
	require.Zero(t, code, said)
	require.Contains(t, out, text)
	var doc outcome.Run
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.Equal(t, outcome.Succeeded, doc.Status)

	code, out, said = stepjet("doctor", "tenant", "list", "-o", "json")
	require.Zero(t, code, said)
	var held []struct {
		Tenant string
		Bytes  int
	}
	require.NoError(t, json.Unmarshal([]byte(out), &held))
	require.Len(t, held, 2)
	require.Greater(t, held[0].Bytes, 3_000_000, "arguments, result and document")
	require.Zero(t, held[1].Bytes)

	for _, user := range []string{"agent-beta", "viewer-beta", "operator-beta", "operator"} {
		option, err := nats.NkeyOptionFromSeed(filepath.Join(keys, user+".nk"))
		require.NoError(t, err)
		refused := make(chan error, 100)
		nc, err := nats.Connect(url, option, nats.CustomInboxPrefix("_INBOX."+user), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		require.NoError(t, err)
		for _, subject := range []string{"$JS.API.STREAM.INFO.OBJ_blobs-acme", "$JS.API.DIRECT.GET.OBJ_blobs-acme", "$JS.API.DIRECT.GET.OBJ_blobs-acme.$O.blobs-acme.C.x", "$JS.API.STREAM.INFO.OBJ_blobs"} {
			require.NoError(t, nc.PublishRequest(subject, nc.NewInbox(), []byte(`{"seq":1,"next_by_subj":"$O.blobs-acme.C.>","batch":10}`)))
			select {
			case err := <-refused:
				require.ErrorContains(t, err, "Permissions Violation", "%s on %s", user, subject)
			case <-time.After(2 * time.Minute):
				require.Fail(t, "not refused", "%s on %s", user, subject)
			}
		}
		nc.Close()
	}
	code, _, said = stepjet("doctor", "tenant", "remove", "acme")
	require.NotZero(t, code)
	require.Regexp(t, "go on, or ended within the last minute|--force", said)
	code, _, said = stepjet("doctor", "tenant", "remove", "beta")
	require.Zero(t, code, said)
}
