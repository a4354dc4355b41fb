package acl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
)

// TestATenantAndAWorkerAreAddedByReloads does what docs/security.md says: the configuration with all users, reloaded
// twice. Of those that were there before nobody is disconnected.
func TestATenantAndAWorkerAreAddedByReloads(t *testing.T) {
	t.Parallel()
	s := &system{t: t, seeds: map[string]string{}, public: map[string]string{}, grants: map[string]*acl.Grant{}}
	sys, dir := acl.System{Keys: map[string]string{}, Shards: 1, Listen: "127.0.0.1:0", StoreDir: "ignored"}, t.TempDir()
	conf := filepath.Join(dir, "nats.conf")
	write := func(specs ...acl.Spec) {
		for _, spec := range specs {
			spec.Shards = 1
			s.admit(&sys, spec, dir)
		}
		require.NoError(t, os.WriteFile(conf, []byte(sys.Config()), 0o600))
	}
	write(acl.Spec{Role: acl.Orchestrator}, acl.Spec{Role: acl.Agent, Tenant: "acme"}, acl.Spec{Role: acl.Worker, Tools: []string{"search"}})
	srv := natstest.Start(t, func(o *embedded.Options) { o.ConfigFile, o.Listen = conf, "127.0.0.1:0" })
	s.urls = []string{srv.URL()}
	s.orchestrate(1)
	s.host("worker-search", "search")
	runs := func(c *client.Client, tool string) {
		t.Helper()
		out, err := c.Run(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"`+tool+`","arguments":{"text":"hi"}}]}`), client.SubmitOptions{})
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, out.Status, "%s", out.JSON())
	}
	acme := s.client("agent-acme", "acme")
	runs(acme, "search")

	write(acl.Spec{Role: acl.Agent, Tenant: "late"}, acl.Spec{Role: acl.Worker, Tools: []string{"fetch"}})
	for range 2 {
		require.NoError(t, srv.Reload())
	}
	s.host("worker-fetch", "fetch")
	late := s.client("agent-late", "late")
	runs(late, "search")
	runs(late, "fetch")
	runs(acme, "fetch")
}
