package acl_test

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// populate leaves something of everything: a finished run with a large result, dead letters, an override, a run that waits for an approval, and one of
// another tenant that waits for its retry. Then everybody stops, so that nothing changes by itself.
func (s *system) populate() (waiting *client.Run) {
	t := s.t
	t.Helper()
	stop := []func(){s.orchestrating(1), s.hosting("worker-search", "search"), s.hosting("worker-crm_2Fget-fetch", "crm/get", "fetch")}
	for _, tenant := range []string{"acme", "other"} {
		c := s.client("agent-"+tenant, tenant)
		o, err := c.Run(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"fetch","arguments":{"size":700000}}]}`), client.SubmitOptions{Run: "done"})
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, o.Status, "%.500s", o.JSON())
		o, err = c.Run(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"fetch","arguments":{"fail":"always"},"retry":{"max_attempts":1}}]}`), client.SubmitOptions{Run: "dead"})
		require.NoError(t, err)
		require.Equal(t, outcome.Failed, o.Status)
		require.Eventually(t, func() bool {
			letters, err := c.DeadLetters(s.ctx(), client.DeadOptions{})
			return err == nil && len(letters) == 1
		}, 2*time.Minute, 20*time.Millisecond)
		_, err = c.Submit(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"fetch","approval":true,"arguments":{"text":"x"}}]}`), client.SubmitOptions{Run: "asked"})
		require.NoError(t, err)
		s.waits(c, "asked", 1)
	}
	c := s.client("agent-other", "other")
	waiting, err := c.Submit(s.ctx(), []byte(`{"steps":[
		{"id":"a","tool":"fetch","arguments":{"fail":"once","text":"genuine"},"retry":{"max_attempts":3,"backoff":{"strategy":"constant","initial_ms":8000}}}]}`),
		client.SubmitOptions{Run: "waiting"})
	require.NoError(t, err)
	js, err := jetstream.New(s.connect("doctor"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		st, err := js.Stream(s.ctx(), subjects.StepsStream(0))
		require.NoError(t, err)
		_, err = st.GetLastMsgForSubject(s.ctx(), "sched.>")
		return err == nil
	}, 2*time.Minute, 20*time.Millisecond, "the retry is scheduled")
	for _, f := range stop {
		f()
	}
	return waiting
}

// stored is one message of a stream, as a digest.
type stored struct {
	stream, subject string
	sequence        uint64
	digest          [sha256.Size]byte
}

// all returns everything that the streams hold, but for the keys of orchestrators, which expire.
func (s *system) all(nc *nats.Conn) map[stored]bool {
	s.t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(s.t, err)
	found := map[stored]bool{}
	for name := range js.StreamNames(s.ctx()).Name() {
		st, err := js.Stream(s.ctx(), name)
		require.NoError(s.t, err)
		info := st.CachedInfo()
		switch {
		case name == subjects.BucketStream(subjects.MembersBucket) || info.State.Msgs == 0:
		case info.Config.Retention == jetstream.WorkQueuePolicy: // it has a consumer for each tool and takes no other
			for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
				if m, err := st.GetMsg(s.ctx(), seq); err == nil {
					found[stored{name, m.Subject, seq, digest(m.Header, m.Data)}] = true
				}
			}
		default:
			s.read(nc, name, func(m *nats.Msg, seq uint64) { found[stored{name, m.Subject, seq, digest(m.Header, m.Data)}] = true })
		}
	}
	return found
}

func digest(h nats.Header, body []byte) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%v %s", h, body))
}

// read gives all messages of a stream.
func (s *system) read(nc *nats.Conn, stream string, each func(m *nats.Msg, seq uint64)) {
	s.t.Helper()
	js, err := nc.JetStream()
	require.NoError(s.t, err)
	sub, err := js.SubscribeSync("", nats.BindStream(stream), nats.OrderedConsumer(), nats.DeliverAll())
	require.NoError(s.t, err)
	defer func() { _ = sub.Unsubscribe() }()
	for {
		m, err := sub.NextMsg(2 * time.Minute)
		require.NoError(s.t, err)
		meta, err := m.Metadata()
		require.NoError(s.t, err)
		each(m, meta.Sequence.Stream)
		if meta.NumPending == 0 {
			return
		}
	}
}
