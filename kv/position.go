package kv

import (
	"slices"
	"sync"
)

// position is how far a cursor has come, and who waits for that.
type position struct {
	mu      sync.Mutex
	at      uint64
	waiting []waiter
}

type waiter struct {
	seq  uint64
	done chan struct{}
}

func (p *position) get() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

func (p *position) advance(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq <= p.at {
		return
	}
	p.at = seq
	if len(p.waiting) == 0 {
		return
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiter) bool {
		if w.seq > seq {
			return false
		}
		close(w.done)
		return true
	})
}

// wait gives a channel that is closed once the position is at seq or beyond.
func (p *position) wait(seq uint64) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := make(chan struct{})
	if seq <= p.at {
		close(done)
	} else {
		p.waiting = append(p.waiting, waiter{seq, done})
	}
	return done
}

func (p *position) forget(done chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiter) bool { return w.done == done })
}
