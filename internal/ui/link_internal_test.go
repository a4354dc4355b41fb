package ui

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
)

// A request that only reads is given up when the connection is lost, whatever it has become of by then; one that changes
// something has its own time, and what it came to is told.
func TestWhatIsUnderWayWhenTheConnectionIsLost(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(srv.Shutdown)
	nc, err := nats.Connect(srv.URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	l := newLink(t.Context(), nc)
	begun, goOn := make(chan struct{}), make(chan struct{})
	slow := func(_ http.ResponseWriter, r *http.Request) (any, error) {
		begun <- struct{}{}
		select {
		case <-r.Context().Done():
			return "half of it", nil
		case <-goOn:
			return "done", nil
		}
	}
	type came struct {
		answer any
		err    error
	}
	ask := func(do endpoint) chan came {
		out := make(chan came, 1)
		go func() {
			answer, err := do(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			out <- came{answer, err}
		}()
		<-begun
		return out
	}
	reads, changes := ask(l.reading(slow)), ask(l.changing(slow))
	away, changed := l.turn(t.Context(), false)
	require.True(t, changed)
	require.WithinDuration(t, time.Now(), away, time.Minute)
	got := <-reads
	require.Nil(t, got.answer)
	require.Equal(t, fault.NoConnection, fault.CodeOf(got.err))
	require.NotEmpty(t, fault.As(got.err).Hint)
	_, err = l.changing(slow)(nil, nil)
	require.Equal(t, fault.NoConnection, fault.CodeOf(err), "nothing begins")
	close(goOn)
	require.Equal(t, came{"done", nil}, <-changes)

	waits, end := context.WithCancel(t.Context())
	end()
	require.False(t, l.wait(waits))
	_, changed = l.turn(t.Context(), true)
	require.True(t, changed)
	require.True(t, l.wait(t.Context()))
	require.NoError(t, l.now().Err())
	require.Nil(t, l.away())
	_, changed = l.turn(t.Context(), true)
	require.False(t, changed, "nobody is told twice")
}
