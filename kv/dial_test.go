package kv_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
)

// moody is a port before a NATS server that may turn clients away.
type moody struct {
	net.Listener
	to    string
	turn  atomic.Pointer[func(net.Conn)] // nil: they are let through
	taken atomic.Int64                   // how many were turned away

	mu   sync.Mutex
	open []net.Conn
}

func newMoody(t *testing.T, to string) *moody {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &moody{Listener: l, to: to}
	t.Cleanup(func() {
		_ = l.Close()
		m.cut()
	})
	go m.serve()
	return m
}

func (m *moody) serve() {
	for {
		c, err := m.Accept()
		if err != nil {
			return
		}
		turn := m.turn.Load()
		if turn == nil {
			m.through(c)
			continue
		}
		go func() {
			(*turn)(c)
			_ = c.Close()
			m.taken.Add(1)
		}()
	}
}

func (m *moody) through(c net.Conn) {
	far, err := net.Dial("tcp", m.to)
	if err != nil {
		_ = c.Close()
		return
	}
	m.mu.Lock()
	m.open = append(m.open, c, far)
	m.mu.Unlock()
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	}
	go pipe(far, c)
	go pipe(c, far)
}

// cut closes all that were let through.
func (m *moody) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.open {
		_ = c.Close()
	}
	m.open = nil
}

// saying greets as a server does, and then says why it refuses.
func saying(reason string) func(net.Conn) {
	return func(c net.Conn) {
		fmt.Fprintf(c, "INFO {\"server_id\":\"X\",\"version\":\"2.12.0\",\"proto\":1,\"headers\":true,\"max_payload\":1048576,\"auth_required\":true}\r\n")
		r := bufio.NewReader(c)
		_, _ = r.ReadString('\n') // CONNECT
		_, _ = r.ReadString('\n') // PING
		fmt.Fprintf(c, "-ERR '%s'\r\n", reason)
	}
}

func descriptors(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

// A server that turns its clients away, for whatever reason, costs them nothing but time: they keep no goroutine and no
// descriptor of an attempt that failed, and are back once they are let in. This test counts both, so it runs alone.
func TestAttemptsThatFailLeaveNothingBehind(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Log("descriptors are counted on Linux alone")
		return
	}
	for name, turn := range map[string]func(net.Conn){
		"closes":                 func(net.Conn) {},
		"refuses credentials":    saying("Authorization Violation"),
		"has enough connections": saying("maximum connections exceeded"),
	} {
		t.Run(name, func(t *testing.T) {
			srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
			m := newMoody(t, srv.URL()[len("nats://"):])
			const clients = 8
			var all []*nats.Conn
			for range clients {
				nc, err := kv.Connect(within(t, 2*time.Minute), kv.ConnectOptions{URL: "nats://" + m.Addr().String()})
				require.NoError(t, err)
				t.Cleanup(nc.Close)
				all = append(all, nc)
			}
			connected := func() (n int) {
				for _, nc := range all {
					if nc.IsConnected() {
						n++
					}
				}
				return n
			}
			files, goroutines := descriptors(t), runtime.NumGoroutine()
			m.turn.Store(&turn)
			m.cut()
			require.Eventually(t, func() bool { return m.taken.Load() >= 8*clients }, time.Minute, 10*time.Millisecond)
			require.Eventually(t, func() bool { return descriptors(t) <= files && runtime.NumGoroutine() <= goroutines+clients }, 2*time.Minute, 10*time.Millisecond,
				"descriptors: %d before; goroutines: %d before, %d now", files, goroutines, runtime.NumGoroutine())
			m.turn.Store(nil)
			require.Eventually(t, func() bool { return connected() == clients }, 2*time.Minute, 10*time.Millisecond)
		})
	}
}
