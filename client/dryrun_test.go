package client_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
)

func (w *world) register(definition string) {
	w.t.Helper()
	_, err := w.store.Registry.Register(w.ctx(), []byte(definition))
	require.NoError(w.t, err)
}

// messages counts what was ever stored in each stream.
func (w *world) messages() map[string]uint64 {
	w.t.Helper()
	js, err := jetstream.New(w.nc)
	require.NoError(w.t, err)
	all := map[string]uint64{}
	streams := js.ListStreams(w.ctx())
	for s := range streams.Info() {
		all[s.Config.Name] = s.State.LastSeq
	}
	require.NoError(w.t, streams.Err())
	require.NotEmpty(w.t, all)
	return all
}

const fetchTool = `{"name":"fetch","inputSchema":{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]},
	"outputSchema":{"type":"object","examples":[{"text":"Hello"}]},"x-orchestration":{"max_concurrency":5,"retry":{"max_attempts":4},"timeout_ms":9000}}`

// A dry run reads the registry, and leaves nothing anywhere: no message is stored, and none is published but requests
// that read.
func TestADryRunPublishesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(fetchTool)
	var mu sync.Mutex
	var published []string
	watcher := natstest.Connect(t, w.srv)
	_, err := watcher.Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(m.Reply, "$JS.ACK.") { // what a consumer hands out has the subject that it was published on
			published = append(published, m.Subject)
		}
	})
	require.NoError(t, err)
	require.NoError(t, watcher.Flush())
	before := w.messages()
	d, err := w.client.DryRun(w.ctx(), []byte(`{"steps":[{"id":"a","tool":"fetch","for_each":{"in":["x","y"]},"arguments":{"url":"$ref:item"}}]}`))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, d.Status)
	require.Equal(t, 2, d.Calls)
	require.Equal(t, before, w.messages())
	require.NoError(t, watcher.Flush())
	mu.Lock()
	defer mu.Unlock()
	reads := 0
	for _, subject := range published {
		switch {
		case strings.HasPrefix(subject, "_INBOX."), strings.HasPrefix(subject, "$JS.EVENT."), strings.HasPrefix(subject, "$JS.API.STREAM.LIST"):
			// answers, the server's own, and the test's
		default:
			reads++
			require.Regexp(t, `^\$JS\.API\.(DIRECT\.GET|STREAM\.INFO|CONSUMER\.(CREATE|DELETE))\.`, subject)
		}
	}
	require.NotZero(t, reads)
	runs, err := w.client.List(w.ctx(), client.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, runs)
}

// What counts is the registry, with what an operator and what the client's own tenant override.
func TestADryRunGoesByTheContractsThatCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(fetchTool)
	w.register(`{"name":"theirs","inputSchema":{"type":"object"},"tenants":["acme"]}`)
	_, err := w.store.Registry.Override(w.ctx(), "fetch", []byte(`{"x-orchestration":{"max_concurrency":2}}`))
	require.NoError(t, err)
	_, err = w.store.Registry.TenantOverride(w.ctx(), "acme", "fetch", []byte(`{"x-orchestration":{"retry":{"max_attempts":2},"timeout_ms":1000}}`))
	require.NoError(t, err)
	body := []byte(`{"steps":[{"id":"a","tool":"fetch","for_each":{"in":["x","y","z"]},"arguments":{"url":"$ref:item"}},{"id":"b","tool":"theirs"}]}`)
	d, err := w.newClient(client.Config{Tenant: "acme"}).DryRun(w.ctx(), body)
	require.NoError(t, err)
	require.Empty(t, d.Problems)
	require.Equal(t, outcome.DryTool{
		Tool: "fetch", Calls: 3, AtOnce: 3, Limit: 2, MaxAttempts: 2, TimeoutMS: 1000, Returns: []byte(`{"text":"Hello"}`), From: outcome.FromExample,
	}, d.Tools[0])
	require.Equal(t, outcome.NoticeLimit, d.Notices[0].Kind)
	d, err = w.client.DryRun(w.ctx(), body)
	require.NoError(t, err)
	require.Equal(t, fault.UnknownTool, d.Problems[0].Code, "a tool of another tenant's")
	d, err = w.client.DryRun(w.ctx(), []byte(strings.Replace(string(body), "theirs", "fetch", 1)))
	require.NoError(t, err)
	require.Equal(t, fault.InvalidArguments, d.Problems[0].Code)
	require.Empty(t, d.Tools)
	_, err = w.client.DryRun(w.ctx(), make([]byte, w.nc.MaxPayload()+1))
	require.Equal(t, fault.MessageTooLarge, fault.CodeOf(err))
}
