package acl_test

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// keepsToRates writes and reads the rate of a language model that a worker hosts, and none of another tool.
func (s *system) keepsToRates() {
	t := s.t
	t.Helper()
	store, err := kv.Open(s.ctx(), s.connect("worker-search"))
	require.NoError(t, err)
	defer store.Close()
	ok, err := store.Queue.SetRate(s.ctx(), "search", "large", []byte("{}"), 0)
	require.NoError(t, err)
	require.True(t, ok)
	require.Eventually(t, func() bool { // a replica may see it later
		rate, at, _, err := store.Queue.Rate(s.ctx(), "search", "large")
		return err == nil && string(rate) == "{}" && !at.IsZero()
	}, 2*time.Minute, 20*time.Millisecond)
	ok, err = store.Queue.SetRate(s.ctx(), "search", "large", []byte("{}"), 0)
	require.NoError(t, err)
	require.False(t, ok, "another was faster")
	bad, err := kv.Open(s.ctx(), s.trespass("worker-search"))
	require.NoError(t, err)
	defer bad.Close()
	_, err = bad.Queue.SetRate(s.ctx(), "fetch", "large", []byte("{}"), 0)
	require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
}

// gathers takes the lease of a batch tool, and hears of it on another connection of its user.
func (s *system) gathers() {
	t := s.t
	t.Helper()
	one, other := s.connect("worker-search"), s.connect("worker-search")
	store, err := kv.Open(s.ctx(), one)
	require.NoError(t, err)
	defer store.Close()
	sub, err := other.SubscribeSync(subjects.Gather("search"))
	require.NoError(t, err)
	require.NoError(t, other.FlushWithContext(s.ctx()))
	var seq uint64
	var m *nats.Msg
	require.Eventually(t, func() bool { // the other connection's server may tell this one of its interest later; a holder renews
		var ok bool
		if seq, ok, err = store.Queue.Gather(s.ctx(), "search", wire.Gathering{ID: "one"}, seq); err != nil || !ok {
			_, seq, err = store.Queue.Gathers(s.ctx(), "search")
			return false
		}
		m, err = sub.NextMsg(time.Second)
		return err == nil
	}, 2*time.Minute, 10*time.Millisecond, "others of the tool don't hear of it: %v", &err)
	heard, ok := wire.ParseGathering(m.Header, m.Data)
	require.True(t, ok)
	require.Equal(t, "one", heard.ID)
	require.Eventually(t, func() bool { // a replica may see it later
		_, now, err := store.Queue.Gathers(s.ctx(), "search")
		return err == nil && (now == seq || now == 0) // it may be over already
	}, 2*time.Minute, 20*time.Millisecond)
	bad, err := kv.Open(s.ctx(), s.trespass("worker-search"))
	require.NoError(t, err)
	defer bad.Close()
	_, _, err = bad.Queue.Gather(s.ctx(), "fetch", wire.Gathering{ID: "one"}, 0)
	require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
}

// rollsOut registers another definition of a tool, as a newer worker does. The one that is there reads it under its
// role, since it holds results against it.
func (s *system) rollsOut(c *client.Client) {
	t := s.t
	t.Helper()
	store, err := kv.Open(s.ctx(), s.connect("worker-search"))
	require.NoError(t, err)
	defer store.Close()
	newer, err := store.Requests.RequestRegister(s.ctx(), []byte(`{"name":"search","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["hits"]}}`))
	require.NoError(t, err)
	var f fault.Error
	require.Eventually(t, func() bool { // the orchestrator may hear of it a moment later
		o, err := c.Run(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"search","arguments":{"text":"hi"}}]}`), client.SubmitOptions{})
		require.NoError(t, err)
		if len(o.Errors) == 0 {
			return false
		}
		f.Code, f.Message = o.Errors[0].Code, o.Errors[0].Message
		return true
	}, 2*time.Minute, 20*time.Millisecond)
	require.Equal(t, fault.ToolTerminal, f.Code)
	require.Contains(t, f.Message, "hits")
	require.Contains(t, f.Message, newer.Digest)
}
