package acl_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/worker"
)

// TestCellsShareNothing has two cells under their printed accounts on one server, with a tenant in both. Each has its own
// registry and its own runs. One id in both is two runs: that is why a client belongs to one cell for as long as it lives.
func TestCellsShareNothing(t *testing.T) {
	t.Parallel()
	s := &system{t: t, seeds: map[string]string{}, grants: map[string]*acl.Grant{}, public: map[string]string{}}
	dir, text := t.TempDir(), "accounts {\n"
	for _, cell := range []string{"eu", "us"} {
		sys := acl.System{Cell: cell, Keys: map[string]string{}}
		for _, spec := range []acl.Spec{{Role: acl.Orchestrator}, {Role: acl.Agent, Tenant: "acme"}, {Role: acl.Worker, Tools: []string{"here"}}} {
			spec.Cell = cell
			s.admit(&sys, spec, dir)
		}
		text += sys.Cellular()
	}
	conf := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(conf, []byte(text+"}\n"), 0o600))
	s.urls = []string{natstest.Start(t, func(o *embedded.Options) { o.ConfigFile, o.Listen = conf, "127.0.0.1:0" }).URL()}
	clients := map[string]*client.Client{}
	for _, cell := range []string{"eu", "us"} {
		o, err := orchestrator.New(s.connect("orchestrator-"+cell), orchestrator.Config{Logger: s.log("orchestrator-" + cell)})
		require.NoError(t, err)
		s.run(o)
		w, err := worker.New(s.connect("worker-here-"+cell), worker.Config{Logger: s.log("worker-here-" + cell)})
		require.NoError(t, err)
		worker.Handle(w, "here", func(context.Context, struct{}) (string, error) { return cell, nil })
		s.run(w)
		clients[cell], err = client.New(s.ctx(), s.connect("agent-acme-"+cell), client.Config{Tenant: "acme"})
		require.NoError(t, err)
		t.Cleanup(clients[cell].Close)
	}
	for cell, c := range clients {
		o, err := c.Run(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"here","arguments":{}}]}`), client.SubmitOptions{Run: "same"})
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
		require.Equal(t, `"`+cell+`"`, string(o.Results[0].JSON))
		_, err = c.Submit(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"here","arguments":{}}]}`), client.SubmitOptions{Run: "only-" + cell})
		require.NoError(t, err)
	}
	_, err := clients["us"].Get(s.ctx(), "only-eu")
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "%v", err)
	_, err = kv.Connect(s.ctx(), kv.ConnectOptions{URL: s.urls[0], NKey: s.seeds["agent-acme-eu"]})
	require.NoError(t, err, "where the user is known, whatever cell its server is in")
}

func TestACellHasItsNameInAllThatServersKnow(t *testing.T) {
	t.Parallel()
	g, err := acl.New(acl.Spec{Role: acl.Worker, Tools: []string{"search"}, Cell: "eu"})
	require.NoError(t, err)
	require.Equal(t, "worker-search-eu", g.User)
	require.Equal(t, "_INBOX.worker-search-eu", g.Inbox)
	require.Contains(t, g.Publishes(), "beat.worker-search-eu.*", "it speaks for the workers of its own user")
	text := acl.System{Cell: "eu", Grants: []*acl.Grant{g}}.Cellular()
	require.Contains(t, text, `"STEPJET-eu" {`)
	require.Contains(t, text, `account: "STEPJET-eu"`)
	require.NotContains(t, strings.ReplaceAll(text, `"STEPJET-eu"`, ""), `"STEPJET"`)
	for _, name := range []string{"e u", "e.u", strings.Repeat("x", 65)} {
		_, err = acl.New(acl.Spec{Role: acl.Orchestrator, Cell: name})
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), name)
	}
}
