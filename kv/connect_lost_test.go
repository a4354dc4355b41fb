package kv_test

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
)

// deaf makes connections; on the one that is held nothing comes back any more.
type deaf struct {
	held  atomic.Bool
	asked chan struct{} // a ping was sent on one that is held
	mu    sync.Mutex
	last  net.Conn
}

func (d *deaf) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = c
	return &deafConn{Conn: c, d: d}, err
}

func (d *deaf) cut() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last.Close()
}

type deafConn struct {
	net.Conn
	d *deaf
}

func (c *deafConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.d.held.Load() && bytes.Contains(b, []byte("PING")) {
		select {
		case c.d.asked <- struct{}{}:
		default:
		}
	}
	return n, err
}

func (c *deafConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.d.held.Load() {
			return n, err
		}
	}
}

// Where a server is lost just while it is asked, the next is asked.
func TestWhoAsksWhetherItIsHeardOutlivesItsServer(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(srv.Shutdown)
	d := &deaf{asked: make(chan struct{}, 1)}
	nc, err := nats.Connect(srv.URL(), nats.SetCustomDialer(d), nats.ReconnectWait(time.Millisecond))
	require.NoError(t, err)
	defer nc.Close()
	s, err := kv.Setup(within(t, 2*time.Minute), nc, kv.Config{})
	require.NoError(t, err)
	defer s.Close()
	d.held.Store(true)
	heard := make(chan error, 1)
	go func() { heard <- s.Heard(within(t, 2*time.Minute)) }()
	<-d.asked
	d.held.Store(false)
	require.NoError(t, d.cut())
	require.NoError(t, receive(t, heard, "the answer"))
	nc.Close()
	require.Error(t, s.Heard(within(t, 2*time.Minute)))
}
