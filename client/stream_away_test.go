package client_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

// cable is what lies between a client and its server, and can be cut.
type cable struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	cut      bool
	ends     []net.Conn
	left     sync.WaitGroup
}

func layCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{listener: l, to: to}
	c.left.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			c.carry(near)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.set(true)
		c.left.Wait()
	})
	return c
}

func (c *cable) carry(near net.Conn) {
	far, err := net.Dial("tcp", c.to)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.cut {
		_ = near.Close()
		if err == nil {
			_ = far.Close()
		}
		return
	}
	c.ends = append(c.ends, near, far)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		c.left.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = way[0].Close(), way[1].Close()
		})
	}
}

// set cuts the cable, or mends it.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, end := range c.ends {
		_ = end.Close()
	}
	c.ends = nil
}

// hears is a log that tells when something was said.
type hears struct {
	slog.Handler
	what string
	said chan struct{}
}

func (h hears) Enabled(context.Context, slog.Level) bool { return true }

func (h hears) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.what {
		select {
		case h.said <- struct{}{}:
		default:
		}
	}
	return nil
}

// TestOutageInMidStream: the text waits until somebody answers, for as long as its run is open.
func TestOutageInMidStream(t *testing.T) {
	t.Parallel()
	stack, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	withTools(t.Context(), t, stack)
	address := stack.URL()[len("nats://"):]
	for run, openFor := range map[string]time.Duration{"waits": time.Minute, "late": time.Second} {
		t.Run(run, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience) // from where it begins: others may go first
			t.Cleanup(cancel)
			again := hears{slog.DiscardHandler, "nobody takes what is written of a plan; it is sent again", make(chan struct{}, 1)}
			c := layCable(t, address)
			nc, err := nats.Connect("nats://secret@"+c.listener.Addr().String(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			cl, err := client.New(ctx, nc, client.Config{Logger: slog.New(again)})
			require.NoError(t, err)
			t.Cleanup(cl.Close)
			a := stream(ctx, t, cl, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: run}, OpenFor: openFor})
			a.write(`{"steps":[` + keep("a", ""))
			<-a.begun
			if run == "waits" {
				a.sees("a")
			}
			c.set(true)
			a.write(`,` + keep("b", "a"))
			if run == "late" {
				<-a.done
				f, details := a.broken(fault.NoConnection)
				require.Contains(t, f.Message, "the connection to nats://"+c.listener.Addr().String()+" is lost; it isn't known")
				require.NotEmpty(t, f.Hint)
				require.Equal(t, wire.StreamDetails{Run: run, Began: []string{"a", "b"}}, details, "also what may not have come there")
				return
			}
			select {
			case <-again.said:
			case <-a.done:
				require.NoError(t, a.err)
			}
			c.set(false)
			a.sees("a", "b")
			a.write(`]}`)
			out := a.outcome()
			require.Equal(t, outcome.Succeeded, out.Status)
			require.Len(t, out.Results, 2)
		})
	}
}

// TestTheSameTextTwice: the slower of two lacks nothing where the other was done before, wherever in its text it stands.
func TestTheSameTextTwice(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	text := []string{`{"steps":[` + keep("a", ""), `,` + keep("b", "a"), `,` + keep("z", "b"), `],"output":{"last":"$ref:z.step"}}`}
	for run, seen := range map[string]int{"one": 1, "two": 2, "three": 3} {
		o := client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: run}}
		slow := stream(ctx, t, c, o)
		for i, part := range text[:seen] {
			slow.write(part)
			slow.sees([]string{"a", "b", "z"}[i])
		}
		quick := stream(ctx, t, c, o)
		for _, part := range text {
			quick.write(part)
		}
		out := quick.outcome()
		require.JSONEq(t, `{"last":"z"}`, string(out.Output))
		for _, part := range text[seen:] {
			slow.write(part)
		}
		require.Equal(t, string(out.JSON()), string(slow.outcome().JSON()), run)
	}
	require.Len(t, d.all(), 9)

	// What another one added of the text is not added twice while the run goes on.
	o := client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "still"}}
	slow := stream(ctx, t, c, o)
	slow.write(`{"steps":[{"id":"h","tool":"hold"},` + keep("a", ""))
	slow.sees("a")
	_, err := c.Amend(ctx, "still", client.Amendment{Revision: slow.sees("a").Revision, Add: []json.RawMessage{json.RawMessage(keep("b", "a"))}})
	require.NoError(t, err)
	slow.sees("b")
	slow.write(`,` + keep("b", "a") + `,` + keep("z", "b"))
	slow.sees("z")
	require.NoError(t, cancelled(c.Cancel(ctx, "still", "test")))
}
