package orchestrator

import (
	"context"
	"sync"
	"time"
)

// jobs does what must wait for I/O, beside the loop, a bounded number at once and the rest in the order they came. Its
// goroutines stay: their stacks have grown already, and growing anew for each job was a sixteenth of the
// orchestrator's CPU.
type jobs struct {
	ctx context.Context

	mu      sync.Mutex
	queue   []func(context.Context)
	more    sync.Cond // a job came, or closing began
	working int       // goroutines
	idle    int       // of them, those that wait and are not called yet
	gone    chan struct{}
	closing bool
}

const maxJobs = 64

func newJobs(ctx context.Context) *jobs {
	j := &jobs{ctx: ctx, gone: make(chan struct{})}
	j.more.L = &j.mu
	context.AfterFunc(ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.wakeAll()
	})
	return j
}

// wakeAll lets the idle see that they are to end. j.mu is held.
func (j *jobs) wakeAll() {
	j.idle = 0
	j.more.Broadcast()
}

func (j *jobs) add(do func(context.Context)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closing && j.working == 0 {
		return
	}
	j.queue = append(j.queue, do)
	switch {
	case j.idle > 0:
		j.idle--
		j.more.Signal()
	case j.working < maxJobs:
		j.working++
		go j.work()
	}
}

func (j *jobs) work() {
	for do := j.next(); do != nil; do = j.next() {
		do(j.ctx)
	}
}

// next waits for a job; nil: the goroutine is to end.
func (j *jobs) next() (do func(context.Context)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) == 0 && !j.closing && j.ctx.Err() == nil {
		j.idle++
		j.more.Wait() // who calls it takes it off idle
	}
	if len(j.queue) == 0 || j.ctx.Err() != nil {
		j.working--
		if j.closing && j.working == 0 {
			close(j.gone)
		}
		return nil
	}
	do, j.queue[0] = j.queue[0], nil
	j.queue = j.queue[1:]
	return do
}

func (j *jobs) together(n int) (done, wait func()) {
	var left sync.WaitGroup
	left.Add(n)
	return left.Done, left.Wait
}

// close waits until all jobs are done, at most for patience.
func (j *jobs) close(patience time.Duration) {
	j.mu.Lock()
	j.closing = true
	none := j.working == 0
	j.wakeAll()
	j.mu.Unlock()
	if none {
		return
	}
	select {
	case <-j.gone:
	case <-time.After(patience):
	}
}
