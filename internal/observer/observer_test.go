package observer_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/observer"
	"github.com/stepjet/stepjet/observe"
)

// ids is an observer that writes down the runs that it is told of, after whatever it does before.
type ids struct {
	observe.None
	before func(id string)
	all    []string
}

func (o *ids) OnOpen(e observe.Open) {
	o.before(e.ID)
	o.all = append(o.all, e.ID)
}

func open(id string) func(observe.Observer) {
	return func(o observe.Observer) { o.OnOpen(observe.Open{Run: observe.Run{ID: id}}) }
}

// written is a log to look into.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func TestEventsComeInOrderAndAllOfThem(t *testing.T) {
	t.Parallel()
	o := &ids{before: func(string) {}}
	q := observer.New(o, slog.New(slog.DiscardHandler))
	var want []string
	for i := range 1000 {
		want = append(want, string(rune('a'+i%26)))
		q.Tell(observer.Event, open(want[i]))
	}
	q.Close()
	q.Close()
	require.Equal(t, want, o.all)
}

func TestAPanicIsOneEventsEnd(t *testing.T) {
	t.Parallel()
	var log written
	o := &ids{before: func(id string) {
		if id == "b" {
			panic("oh no")
		}
	}}
	q := observer.New(o, slog.New(slog.NewTextHandler(&log, nil)))
	for _, id := range []string{"a", "b", "c"} {
		q.Tell(observer.Event, open(id))
	}
	q.Close()
	require.Equal(t, []string{"a", "c"}, o.all)
	require.Contains(t, log.String(), "oh no")
	require.Contains(t, log.String(), "observer_test.go", "where it was")
}

// Who tells never waits: what there is no room for is lost, and the log says how much.
func TestASlowObserverLosesEvents(t *testing.T) {
	t.Parallel()
	for name, bytes := range map[string]int64{"events": 1, "bytes": 16 << 20} {
		var log written
		begun, free := make(chan struct{}, 1<<16), make(chan struct{})
		o := &ids{before: func(string) {
			begun <- struct{}{}
			<-free
		}}
		q := observer.New(o, slog.New(slog.NewTextHandler(&log, nil)))
		q.Tell(bytes, open("first"))
		<-begun // it is at the first, which counts as waiting until it is over
		const told = 20_000
		for range told {
			q.Tell(bytes, open("more"))
		}
		close(free)
		q.Close()
		most := map[string]int{"events": 1 << 14, "bytes": 3}[name]
		require.Len(t, o.all, 1+most, name)
		require.Contains(t, log.String(), "events were lost", name)
	}
}

func TestAStuckObserverIsLeft(t *testing.T) {
	t.Parallel()
	var log written
	free, gone := make(chan struct{}), make(chan struct{})
	o := &ids{before: func(id string) {
		<-free
		if id == "b" {
			close(gone)
		}
	}}
	q := observer.New(o, slog.New(slog.NewTextHandler(&log, nil)))
	q.Tell(observer.Event, open("a"))
	q.Tell(observer.Event, open("b"))
	began := time.Now()
	q.Close()
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Contains(t, log.String(), "too slow")
	close(free)
	<-gone
}

func TestNobodyObserves(t *testing.T) {
	t.Parallel()
	q := observer.New(nil, nil)
	require.Nil(t, q)
	q.Close()
}
