// Package observer hands what happens to an observe.Observer, so that nothing which that does reaches back to whoever
// tells it: events wait in a bounded queue, and a goroutine hands them out.
package observer

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/observe"
)

// Bounds of what waits for an observer, and of how long its end is waited for.
const (
	maxEvents = 1 << 14
	maxBytes  = 64 << 20
	patience  = time.Second
	sayEvery  = time.Minute
)

// Event is about how many bytes an event takes that holds no document.
const Event = 512

// Queue hands events to an observer, one at a time and in their order. The nil queue is that of no observer; it takes
// Close and nothing else, so that whoever has nobody to tell makes no event.
type Queue struct {
	to   observe.Observer
	log  *slog.Logger
	said time.Time // when the log was last told of what was lost; of the goroutine alone

	waiting chan event
	bytes   atomic.Int64 // that wait
	lost    atomic.Int64 // events
	closing sync.Once
	closed  chan struct{}
	done    chan struct{}
}

type event struct {
	bytes int64
	tell  func(observe.Observer)
}

// New begins to hand out events; for no observer it returns nil. Close it.
func New(to observe.Observer, log *slog.Logger) *Queue {
	if to == nil {
		return nil
	}
	q := &Queue{
		to: to, log: log, waiting: make(chan event, maxEvents), closed: make(chan struct{}), done: make(chan struct{}),
	}
	go q.run()
	return q
}

// Tell puts an event of about so many bytes behind the others. It never blocks; where there is no room the event is
// lost.
func (q *Queue) Tell(bytes int64, tell func(observe.Observer)) {
	if q.bytes.Add(bytes) <= maxBytes {
		select {
		case q.waiting <- event{bytes, tell}:
			return
		default:
		}
	}
	q.bytes.Add(-bytes)
	q.lost.Add(1)
}

// Close lets the observer have what waits for it, for a second at most. What is told from now on is lost.
func (q *Queue) Close() {
	if q == nil {
		return
	}
	q.closing.Do(func() { close(q.closed) })
	select {
	case <-q.done:
	case <-time.After(patience):
		q.log.Warn("the observer is too slow, and left with what it has not taken yet", "events", len(q.waiting))
	}
}

func (q *Queue) run() {
	defer close(q.done) // also where the observer ends this goroutine
	for {
		select {
		case e := <-q.waiting:
			q.hand(e)
			continue
		case <-q.closed:
		}
		for range len(q.waiting) { // and not what comes meanwhile
			q.hand(<-q.waiting)
		}
		q.sayLost()
		return
	}
}

func (q *Queue) hand(e event) {
	defer q.bytes.Add(-e.bytes)
	defer func() {
		if v := recover(); v != nil {
			q.log.Error("an observer panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	e.tell(q.to)
	if q.lost.Load() > 0 && time.Since(q.said) >= sayEvery {
		q.sayLost()
	}
}

func (q *Queue) sayLost() {
	if n := q.lost.Swap(0); n > 0 {
		q.said = time.Now()
		q.log.Warn("the observer is too slow: events were lost", "events", n)
	}
}
