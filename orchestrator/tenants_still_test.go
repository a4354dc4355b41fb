package orchestrator_test

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/subjects"
)

// muffled is a connection to a server whose words can be held back: the process hears all, and is not heard.
type muffled struct {
	nats.InProcessConnProvider
	net.Conn

	mu     sync.Mutex // of what is said
	muted  bool
	unsaid []byte

	ears  sync.Mutex
	heard []byte
}

func (m *muffled) InProcessConn() (_ net.Conn, err error) {
	m.Conn, err = m.InProcessConnProvider.InProcessConn()
	return m, err
}

func (m *muffled) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.muted {
		m.unsaid = append(m.unsaid, b...)
		return len(b), nil
	}
	return m.Conn.Write(b)
}

func (m *muffled) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.ears.Lock()
	defer m.ears.Unlock()
	m.heard = append(m.heard, b[:n]...)
	return n, err
}

func (m *muffled) mute() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.muted = true
}

func (m *muffled) hasHeard(text string) bool {
	m.ears.Lock()
	defer m.ears.Unlock()
	return bytes.Contains(m.heard, []byte(text))
}

// unmute says what was held back.
func (m *muffled) unmute(t *testing.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.muted = false
	_, err := m.Conn.Write(m.unsaid)
	require.NoError(t, err)
}

// TestWhoWasNotHeardStartsNoRunByWhatItKnew: an orchestrator whose renewals don't come through has no member key, so
// whoever declares a tenant doesn't wait for it. It hears of a plan all the same, before it hears of the tenant.
func TestWhoWasNotHeardStartsNoRunByWhatItKnew(t *testing.T) {
	t.Parallel()
	s := start(t)
	conn := &muffled{InProcessConnProvider: s.srv.InProcess()}
	o, err := orchestrator.New(natstest.Connect(t, s.srv, nats.InProcessServer(conn)), s.config)
	require.NoError(t, err)
	s.background(o.Run, o.Ready())
	s.leave()
	s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, "before") // all runs are this one's
	conn.mute()
	s.declare("default")
	run, err := s.client.Submit(ctx(t), []byte(`{"steps":[{"id":"a","tool":"big","arguments":{"bytes":700000}}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return conn.hasHeard(run.ID()) }, patience, time.Millisecond)
	conn.unmute(t)
	s.wait(run)
	head, err := s.store.Archive.HistoryHead(ctx(t), subjects.NewRun("default", run.ID()))
	require.NoError(t, err)
	require.Equal(t, "blobs-default", head.Blob.Bucket)
	require.Zero(t, s.holds(""), "nothing lies where all tenants may read")
}
