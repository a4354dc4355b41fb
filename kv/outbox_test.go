package kv

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnOutboxWritesEverythingInOrder(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	b := newOutbox(near)
	var want bytes.Buffer
	for i := range 5000 { // nobody reads yet: no write waits
		n, err := b.Write(strconv.AppendInt(nil, int64(i), 10))
		require.NoError(t, err)
		want.WriteString(strconv.Itoa(i))
		require.Equal(t, len(strconv.Itoa(i)), n)
	}
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(far)
		got <- all
	}()
	require.NoError(t, b.Close()) // sees it all off
	require.Equal(t, want.String(), string(<-got))
	_, err := b.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestAnOutboxHoldsBackWhoWritesMoreThanFits(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer far.Close()
	b := newOutbox(near)
	written, ended := make(chan int, 100), make(chan error, 1)
	go func() {
		for {
			n, err := b.Write(make([]byte, outboxRoom/2))
			if err != nil {
				ended <- err
				return
			}
			written <- n
		}
	}()
	full := func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.waiting) >= outboxRoom
	}
	require.Eventually(t, full, 5*time.Second, time.Millisecond)
	require.Less(t, len(written), 5) // half a room may be under way besides
	began := time.Now()
	require.NoError(t, b.Close()) // though nobody reads
	require.Less(t, time.Since(began), 5*time.Second)
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

func TestAnOutboxSaysWhyItCannotWrite(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	b := newOutbox(near)
	require.NoError(t, far.Close())
	_, err := b.Write([]byte("lost"))
	require.NoError(t, err)
	<-b.done
	_, err = b.Write([]byte("refused"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	_, err = b.Read(make([]byte, 1)) // so that nats.go notices
	require.Error(t, err)
	require.NoError(t, b.Close())
}
