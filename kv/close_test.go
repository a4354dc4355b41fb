package kv_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
)

// Not parallel: it looks at all goroutines of the process.
func TestCloseLeavesNoGoroutineBehind(t *testing.T) {
	srv := natstest.Start(t)
	own := func() (stacks []string) {
		buf := make([]byte, 4<<20)
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "stepjet/kv.(") {
				stacks = append(stacks, stack)
			}
		}
		return stacks
	}
	for i := range 3 {
		nc := natstest.Connect(t, srv)
		s, err := kv.Setup(within(t, 2*time.Minute), nc, kv.Config{})
		require.NoError(t, err)
		tool := register(t, s, "tool", 5)
		p, got := pull(t, s, tool, 5)
		reading, err := s.Ledger.Follow(context.Background(), 0, allPartitions(), kv.Since{}, func(kv.Entry) {}, nil, nil)
		require.NoError(t, err)
		m, err := s.Members.Join(within(t, 2*time.Minute), "me", func([]kv.Member) {})
		require.NoError(t, err)
		dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", strconv.Itoa(i))})
		require.NoError(t, receive(t, got, "a step").Ack())
		require.NotEmpty(t, own())
		p.Drain(within(t, 2*time.Minute))
		reading.Stop()
		m.Leave()
		s.Close()
		ended(t, own)
		nc.Close()
	}
	for range 20 { // also when nobody stops anything but the store
		nc := natstest.Connect(t, srv)
		s, err := kv.Open(within(t, 2*time.Minute), nc)
		require.NoError(t, err)
		_, err = s.Ledger.Follow(context.Background(), 0, allPartitions(), kv.Since{}, func(kv.Entry) {}, nil, nil)
		require.NoError(t, err)
		_, err = s.Queue.Pull(context.Background(), tool.Registered{Name: "tool"}, 5, func(*kv.Delivery) {})
		require.NoError(t, err)
		_, err = s.Members.Join(within(t, 2*time.Minute), nc.NewInbox()[7:], func([]kv.Member) {})
		require.NoError(t, err)
		s.Close()
		ended(t, own)
		nc.Close()
	}
}

// ended waits for goroutines that are just returning.
func ended(t *testing.T, own func() []string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(own()) == 0 }, 2*time.Minute, 5*time.Millisecond, "goroutines of the store go on")
}
