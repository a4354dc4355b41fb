package models

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/worker"
)

// shared is the bucket of rates. It is opened when it is first asked, since a worker may start before Stepjet is set
// up.
type shared struct {
	nc *nats.Conn

	mu    sync.Mutex
	store *kv.Store
}

func (s *shared) queue(ctx context.Context) (*kv.Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		store, err := kv.Open(ctx, s.nc)
		if err != nil {
			return nil, err
		}
		s.store = store
	}
	return s.store.Queue, nil
}

// Rate is described at kv.Queue.
func (s *shared) Rate(ctx context.Context, tool, model string) ([]byte, time.Time, uint64, error) {
	q, err := s.queue(ctx)
	if err != nil {
		return nil, time.Time{}, 0, err
	}
	return q.Rate(ctx, tool, model)
}

// SetRate is described at kv.Queue.
func (s *shared) SetRate(ctx context.Context, tool, model string, rate []byte, seq uint64) (bool, error) {
	q, err := s.queue(ctx)
	if err != nil {
		return false, err
	}
	return q.SetRate(ctx, tool, model, rate, seq)
}

// close closes it; a nil one is of models without rates.
func (s *shared) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store != nil {
		s.store.Close()
	}
}

// sharing is a worker that closes the bucket of rates behind itself.
type sharing struct {
	*worker.Worker
	rates *shared
}

// Run runs the worker.
func (s *sharing) Run(ctx context.Context) error {
	defer s.rates.close()
	return s.Worker.Run(ctx)
}
