package orchestrator

import (
	"context"
	"sync"
	"time"
)

// jobs does what must wait for I/O, beside the loop, a bounded number at once and the rest in the order they came.
type jobs struct {
	ctx context.Context

	mu      sync.Mutex
	queue   []func(context.Context)
	working int
	idle    chan struct{} // closed when closing and no job is left
	closing bool
}

const maxJobs = 64

func newJobs(ctx context.Context) *jobs {
	return &jobs{ctx: ctx, idle: make(chan struct{})}
}

func (j *jobs) add(do func(context.Context)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closing && j.working == 0 {
		return
	}
	j.queue = append(j.queue, do)
	if j.working < maxJobs {
		j.working++
		go j.work()
	}
}

func (j *jobs) work() {
	for {
		j.mu.Lock()
		if len(j.queue) == 0 || j.ctx.Err() != nil {
			j.working--
			if j.closing && j.working == 0 {
				close(j.idle)
			}
			j.mu.Unlock()
			return
		}
		do := j.queue[0]
		j.queue[0] = nil
		j.queue = j.queue[1:]
		j.mu.Unlock()
		do(j.ctx)
	}
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
	j.mu.Unlock()
	if none {
		return
	}
	select {
	case <-j.idle:
	case <-time.After(patience):
	}
}
