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
	got := make([]byte, want.Len())
	_, err := io.ReadFull(far, got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want.Bytes(), got))
	rest := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(far)
		rest <- all
	}()
	_, err = b.Write([]byte("last words"))
	require.NoError(t, err)
	require.NoError(t, b.Close()) // sees them off
	require.Equal(t, "last words", string(<-rest))
	_, err = b.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestLargeWritesKeepTheirPlaceAmongSmallOnes(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	b := newOutbox(near)
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(far)
		got <- all
	}()
	var want bytes.Buffer
	for i := range 500 {
		p := bytes.Repeat([]byte{byte(i)}, 1+i%7)
		if i%20 == 19 {
			p = bytes.Repeat([]byte{byte(i)}, outboxLarge+i)
		}
		n, err := b.Write(p)
		require.NoError(t, err)
		require.Len(t, p, n)
		want.Write(p)
		clear(p) // it is the caller's again
	}
	require.NoError(t, b.Close())
	require.True(t, bytes.Equal(want.Bytes(), <-got))
}

func TestAnOutboxHoldsBackWhoWritesMoreThanFits(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer far.Close()
	b := newOutbox(near)
	written, ended := make(chan int, 1000), make(chan error, 1)
	go func() {
		for {
			n, err := b.Write(make([]byte, outboxLarge-1))
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
	require.Eventually(t, full, 2*time.Minute, time.Millisecond)
	require.Less(t, len(written), 2*outboxRoom/(outboxLarge-1)+4) // as much may be under way besides
	require.NoError(t, b.Close())                                 // though nobody reads
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

func TestClosingAnOutboxEndsALargeWrite(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer far.Close()
	b := newOutbox(near)
	ended := make(chan error, 1)
	go func() {
		_, err := b.Write(make([]byte, 4*outboxLarge))
		ended <- err
	}()
	_, err := io.ReadFull(far, make([]byte, outboxLarge)) // it is under way, and nobody reads on
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.Error(t, <-ended)
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
