package wire

import (
	"crypto/sha256"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Starts reads the records of starts, those of the same bytes once: runs that were frozen the same tools have one together, which
// nobody may change. To read one is most of what it takes to go on with a small run that an earlier owner began, and what stands
// in it is a good part of what a run keeps that waits. The zero value is ready to be used, by several goroutines.
type Starts struct {
	mu   sync.RWMutex
	last map[[sha256.Size]byte]*Start
}

// mostStarts and longestStart bound what is remembered.
const (
	mostStarts   = 1024
	longestStart = 16 << 10
)

// Parse is ParseStart.
func (all *Starts) Parse(h nats.Header, body []byte) (*Start, *outcome.Handle, error) {
	if len(body) > longestStart || get(h, subjects.HeaderHandle) != "" {
		return ParseStart(h, body)
	}
	key := sha256.Sum256(body)
	all.mu.RLock()
	s := all.last[key]
	all.mu.RUnlock()
	if s != nil {
		return s, nil, nil
	}
	s, _, err := ParseStart(h, body)
	if err != nil || s.Reuse != nil || s.Rejected() { // no other is like it
		return s, nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.last == nil || len(all.last) >= mostStarts {
		all.last = map[[sha256.Size]byte]*Start{}
	}
	all.last[key] = s
	return s, nil, nil
}
