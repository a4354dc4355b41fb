// Package dev assembles a whole Stepjet in one process: a NATS server with JetStream, an orchestrator and a toolworker.
// "stepjet dev" runs it, and the commands that are given no server use it.
//
// Safety: a data folder belongs to one process at a time, by a lock that the operating system releases when the process
// ends, however it ends. What was accepted lies in that folder, so a process that is killed goes on where it was when
// the next one starts. Others that want the same folder join the process that has it (Join), and one of them takes it
// over when that process ends: so all of them see one ledger, and a run id runs once. Liveness: Start returns when
// plans can be submitted and every tool is registered. Failure: a part that ends by itself ends the whole, and Done
// says why.
package dev

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/worker"
)

// Options say what to run. The zero value keeps its data in a temporary folder, opens no port and hosts the built-in
// tools.
type Options struct {
	// Dir is the data folder; it is created if absent. Empty: a temporary one, removed by Stop.
	Dir string
	// Listen is the address "host:port" to take connections on; port 0 picks a free one. Empty: none.
	Listen string
	// Tools is a tools file for the toolworker; empty: the built-in tools.
	Tools string
	// More hosts further tools on the same worker; nil for none.
	More func(*worker.Worker) error
	// NoWorker leaves the toolworker out.
	NoWorker bool
	// Slots is how many executions of each tool run at a time; 0: the worker's default.
	Slots int
	// Store says how streams are created in a new folder; its AckWait and Logger are dev's own.
	Store kv.Config
	// SecretsKey opens the secrets of runs; nil: they are not sealed.
	SecretsKey *seal.Keyring
	// SyncAlways flushes every write to the disk before it is acknowledged.
	SyncAlways bool
	// Logger takes what the parts log; nil: nothing is logged.
	Logger *slog.Logger
}

// Stack is a running Stepjet.
type Stack struct {
	options Options
	lock    *os.File
	server  *embedded.Server
	orch    *part
	work    *host
	door    *door
	failed  chan error

	stop sync.Once
}

// part is one program of the stack, on a connection of its own.
type part struct {
	name   string
	nc     *nats.Conn
	cancel context.CancelFunc
	done   chan struct{}
}

// Start runs everything and returns when it is ready. Errors: InvalidConfig where the folder, the address or the tools
// file can't be used (InUse tells a folder that another process has), and those of the parts.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Stack{options: o, failed: make(chan error, 2)}
	if err := s.start(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// StartWhenFree is Start, for a folder that another process may have just now: it waits until that one ends, unless it
// listens for everybody, as another "stepjet dev" does. waiting is called once before it waits.
func StartWhenFree(ctx context.Context, o Options, waiting func()) (*Stack, error) {
	for told := false; ; told = true {
		s, err := Start(ctx, o)
		if err == nil || !InUse(err) {
			return s, err
		}
		if url, running := Running(o.Dir); running {
			return nil, fault.Wrap(fault.InvalidConfig, errInUse, "a Stepjet at "+url+" has the data folder "+o.Dir).
				WithHint("the other commands use it without being told; for one beside it name another folder with --data")
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lookEvery):
		}
	}
}

func (s *Stack) start(ctx context.Context) (err error) {
	o := s.options
	if o.Dir != "" {
		if s.lock, err = lock(o.Dir); err != nil {
			return err
		}
		_ = os.Remove(filepath.Join(o.Dir, addressFile)) // of a process that was killed
	}
	var tools *hosted.File // what is wrong with them is found before the server is there
	if !o.NoWorker {
		if tools, err = o.tools(); err != nil {
			return err
		}
		defer func() {
			if s.work == nil { // it has not come to them
				tools.Close()
			}
		}()
	}
	s.server, err = embedded.Start(embedded.Options{Dir: o.Dir, Listen: o.Listen, SyncAlways: o.SyncAlways,
		Logger: o.Logger})
	if err != nil {
		return err
	}
	if err := s.startOrchestrator(ctx); err != nil {
		return err
	}
	if !o.NoWorker {
		if s.work, err = startHost(ctx, s.Connect, o, tools, s.failed); err != nil {
			return err
		}
	}
	if o.Dir == "" {
		return nil
	}
	return s.publish()
}

// publish leaves in the data folder how others reach this process: at its address, or through a socket of the file
// system.
func (s *Stack) publish() (err error) {
	a := address{URL: s.URL(), PID: os.Getpid()}
	if a.URL == "" {
		if s.door, err = openDoor(s.server.InProcess()); err != nil {
			return fault.Wrap(fault.InvalidConfig, err, "opening a socket for other commands")
		}
		a.Socket = s.door.path()
	}
	if err := a.write(s.options.Dir); err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "writing to the data folder")
	}
	return nil
}

// lease is short because all workers run on this machine: after a kill their steps are taken up again that soon.
const lease = 5 * time.Second

func (s *Stack) startOrchestrator(ctx context.Context) error {
	nc, err := s.Connect(ctx, "orchestrator")
	if err != nil {
		return err
	}
	store := s.options.Store
	store.AckWait, store.Logger = lease, s.options.Logger
	orch, err := orchestrator.New(nc, orchestrator.Config{Name: "dev", Logger: s.options.Logger, Store: store,
		SecretsKey: s.options.SecretsKey})
	if err != nil {
		nc.Close()
		return err
	}
	s.orch = runPart("orchestrator", nc, orch.Run, s.failed)
	return await(ctx, orch.Ready(), s.failed)
}

// runPart starts a part, which lives until it is ended.
func runPart(name string, nc *nats.Conn, do func(context.Context) error, failed chan<- error) *part {
	ctx, cancel := context.WithCancel(context.Background())
	p := &part{name: name, nc: nc, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		err := do(ctx)
		if ctx.Err() == nil {
			if err == nil {
				err = fault.New(fault.Internal, "it ended by itself")
			}
			failed <- fmt.Errorf("%s: %w", name, err)
		}
	}()
	return p
}

func await(ctx context.Context, ready <-chan struct{}, failed <-chan error) error {
	select {
	case <-ready:
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Connect opens a connection within the process; the caller closes it.
func (s *Stack) Connect(ctx context.Context, name string) (*nats.Conn, error) {
	return kv.Connect(ctx, kv.ConnectOptions{InProcess: s.server.InProcess(), Name: "stepjet " + name,
		Logger: s.options.Logger})
}

// URL returns the address that others connect to; "" without Listen.
func (s *Stack) URL() string { return s.server.URL() }

// Dir returns the data folder; "" for a temporary one.
func (s *Stack) Dir() string { return s.options.Dir }

// Done returns the error of a part that ended by itself; it is never closed.
func (s *Stack) Done() <-chan error { return s.failed }

// Stop ends the worker, which finishes what it has begun, then the orchestrator, then the server. Runs that are not
// over go on when the next Stack starts on the same folder.
func (s *Stack) Stop() {
	s.stop.Do(func() {
		if s.lock != nil { // before all else, so that nobody joins what is about to end
			_ = os.Remove(filepath.Join(s.options.Dir, addressFile)) // it may not be there
		}
		s.work.end()
		s.orch.end()
		s.door.close()
		if s.server != nil {
			s.server.Shutdown()
		}
		if s.lock != nil {
			_ = s.lock.Close() // which unlocks it
		}
	})
}

// end stops a part and waits until it is over; a part that was never started has none.
func (p *part) end() {
	if p == nil {
		return
	}
	p.cancel()
	<-p.done
	p.nc.Close()
}
