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
	"github.com/stepjet/stepjet/internal/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// cutter stands between a store and its server and cuts the connection once, where a text passes by.
type cutter struct {
	net.Listener
	server      string
	text        []byte
	toServer    bool
	armed, done atomic.Bool
}

func newCutter(t testing.TB, srv *embedded.Server, text string, toServer bool) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{Listener: l, server: srv.URL()[len("nats://"):], text: []byte(text), toServer: toServer}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", c.server)
			if err != nil {
				_ = in.Close()
				continue
			}
			all.Go(func() { c.copy(out, in, toServer) })
			all.Go(func() { c.copy(in, out, !toServer) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return c
}

// copy passes on what comes, byte by byte where it looks for the text: what precedes it arrives.
func (c *cutter) copy(to, from net.Conn, look bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if at := bytes.Index(buf[:n], c.text); look && at >= 0 && c.armed.Load() && c.done.CompareAndSwap(false, true) {
			_, _ = to.Write(buf[:at])
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// A connection that is lost while a batch is on its way, or its answer, loses and doubles nothing.
func TestABatchThatIsCutIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text     string
		toServer bool
	}{
		"on its way": {"Nats-Batch-Sequence: 9\r\n", true},
		"its commit": {"Nats-Batch-Commit: 1\r\n", true},
		"its answer": {`"batch":"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := natstest.Start(t, flushing)
			setupOn(t, srv, together)
			cut := newCutter(t, srv, c.text, c.toServer)
			nc, err := nats.Connect("nats://"+cut.Addr().String(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			s, err := kv.Open(within(t, 10*time.Second), nc)
			require.NoError(t, err)
			t.Cleanup(s.Close)
			cut.armed.Store(true)
			all := records(subjects.NewRun("t", "r"), 400)
			for i, h := range createAll(t, s, all) {
				stands(t, s, all[i], h)
			}
			require.True(t, cut.done.Load())
			last, err := s.LastSequence(within(t, 5*time.Second), 0)
			require.NoError(t, err)
			require.EqualValues(t, len(all), last)
		})
	}
}
