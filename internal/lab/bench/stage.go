package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/worker"
)

// contractsGrace is the grace of finished runs where contracts are measured.
const contractsGrace = 5 * time.Second

// stage is a server and an orchestrator in this process.
type stage struct {
	ctx   context.Context
	srv   *embedded.Server
	log   *slog.Logger
	conns []*nats.Conn
	end   context.CancelFunc
	parts sync.WaitGroup
	ended chan error
}

func newStage(ctx context.Context, dir string, log *slog.Logger) (*stage, error) {
	srv, err := embedded.Start(embedded.Options{Dir: filepath.Join(dir, "jetstream")})
	if err != nil {
		return nil, err
	}
	s := &stage{srv: srv, log: log, ended: make(chan error, 64)}
	s.ctx, s.end = context.WithCancel(ctx)
	nc, err := s.connect()
	if err != nil {
		return s, err
	}
	orc, err := orchestrator.New(nc, orchestrator.Config{Name: "bench", Grace: contractsGrace, Logger: log,
		Store: kv.Config{StepsAsync: true}})
	if err != nil {
		return s, err
	}
	return s, s.run(orc.Run, orc.Ready())
}

func (s *stage) connect() (*nats.Conn, error) {
	nc, err := kv.Connect(s.ctx, kv.ConnectOptions{InProcess: s.srv.InProcess(), Name: "bench", Logger: s.log})
	if err == nil {
		s.conns = append(s.conns, nc)
	}
	return nc, err
}

func (s *stage) run(part func(context.Context) error, ready <-chan struct{}) error {
	s.parts.Go(func() { s.ended <- part(s.ctx) })
	select {
	case <-ready:
		return nil
	case err := <-s.ended:
		return errors.Join(fault.New(fault.Internal, "a part ended before it was ready"), err)
	}
}

func (s *stage) worker(name string, slots int, host func(*worker.Worker) error) error {
	nc, err := s.connect()
	if err != nil {
		return err
	}
	w, err := worker.New(nc, worker.Config{Name: name, Slots: slots, Logger: s.log})
	if err != nil {
		return err
	}
	if err := host(w); err != nil {
		return err
	}
	return s.run(w.Run, w.Ready())
}

// staff starts so many workers, alike but for their names, and gives an agent, to be closed.
func (s *stage) staff(workers int, name string, slots int, host func(*worker.Worker) error) (*client.Client, error) {
	for i := range workers {
		if err := s.worker(fmt.Sprintf("%s%d", name, i), slots, host); err != nil {
			return nil, err
		}
	}
	return s.client("")
}

func (s *stage) client(tenant string) (*client.Client, error) {
	nc, err := s.connect()
	if err != nil {
		return nil, err
	}
	return client.New(s.ctx, nc, client.Config{Tenant: tenant})
}

func (s *stage) close() {
	s.end()
	s.parts.Wait()
	for _, nc := range s.conns {
		nc.Close()
	}
	s.srv.Shutdown()
}
