package kv

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

type hears struct{ got []ack }

func (h *hears) acked(a ack) { h.got = append(h.got, a) }

// What an answer to a batch says of its members: all written if it says so of as many, otherwise nothing.
func TestWhatTheAnswerToABatchMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		a       ack
		written bool
	}{
		{"stored", ack{seq: 12, count: 3}, true},
		{"by a server that stores them one by one", ack{seq: 12}, false},
		{"fewer", ack{seq: 12, count: 2}, false},
		{"duplicate", ack{seq: 12, count: 3, duplicate: true}, false},
		{"a member was decided", ack{code: codeWrongLastSequence}, false},
		{"full", ack{code: codeStoreFailed}, false},
		{"no answer", ack{err: errNoAnswer}, false},
		{"not sent", ack{err: nats.ErrMaxPayload}, false},
	} {
		g := &group{batched: 3}
		b := &batch{g: g}
		var to hears
		for range 3 {
			b.members = append(b.members, queued{&nats.Msg{Header: nats.Header{headerBatch: {"x"}}}, &to})
		}
		b.acked(c.a)
		require.Len(t, to.got, 3, c.what)
		for i, a := range to.got {
			if c.written {
				require.Equal(t, ack{seq: uint64(10 + i)}, a, c.what)
				continue
			}
			require.Equal(t, isUnknown, verdictOf(a, false, false), c.what)
			require.True(t, errors.Is(a.err, errApart), c.what)
			require.Empty(t, b.members[i].msg.Header, c.what) // it goes on by itself
		}
	}
}

func TestFewGoByThemselvesAndTheOthersTogether(t *testing.T) {
	t.Parallel()
	g := &group{}
	line := func(n int) {
		for range n {
			g.line.push(queued{})
		}
	}
	require.Empty(t, g.take())
	line(few + 5)
	g.alone = 1
	require.Empty(t, g.take(), "a batch waits for those that go by themselves")
	g.alone = 0
	require.Len(t, g.take(), few+5)
	line(most + few)
	require.Empty(t, g.take(), "one batch at a time")
	g.batched = 0
	require.Len(t, g.take(), most)
	g.batched = 0
	g.line.first(few)
	line(few - 1)
	for i := range few - 1 {
		require.Len(t, g.take(), 1, i)
	}
	require.Equal(t, few-1, g.alone)
	line(few - 1)
	require.Len(t, g.take(), 1)
	require.Empty(t, g.take(), "as many as that go by themselves at most")
	g.never, g.alone = true, few
	line(few)
	require.Len(t, g.take(), 1)
}
