package worker

import (
	"context"
	"sync"
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
)

// clock is what the worker knows of the servers' time, by which the deadlines of steps count. Its own clock may be
// wrong by minutes, or be set at any moment, so it has no say. What is heard: when each step was stored that comes,
// which may be long ago, and every now and then what the server says when it is asked (tellTime). Where nobody may ask,
// a step that waited long may begin that much after its Stepjet-Start-By, but none is refused in vain; and its owner
// decides it in time all the same.
type clock struct {
	began time.Time // of this worker: the zero of its monotonic time

	mu    sync.Mutex
	heard kv.RecentTime
}

func newClock() *clock { return &clock{began: time.Now().Add(-1)} } // so that no moment since is 0

// since returns a moment by the monotonic clock.
func (c *clock) since(now time.Time) int64 { return int64(now.Sub(c.began)) }

// hear takes a time that a server told, and when it came.
func (c *clock) hear(told, came time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard.Heard(told, came.Sub(c.began))
}

// at returns the servers' time at a moment of this process.
func (c *clock) at(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if best := c.heard.Best(); best.Known() {
		return best.At(now.Sub(c.began))
	}
	return now // nothing was heard of any server
}

// until returns how long it is from a moment of this process to a time of the servers.
func (c *clock) until(at, now time.Time) time.Duration { return at.Sub(c.at(now)) }

// tellTime asks the server that hands out a tool's steps for its time.
func (e *engine) tellTime(ctx context.Context, f *feed) {
	at, err := e.store.Queue.ConsumerTime(ctx, tool.Registered{Name: f.tool.def.Name, Shard: f.shard})
	if err != nil || at.IsZero() {
		e.log.Debug("the server's time can't be asked for", "tool", f.tool.def.Name, "error", err)
		return
	}
	e.clock.hear(at, time.Now())
}
