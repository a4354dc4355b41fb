package bench

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Env is what measuring needs of its surroundings.
type Env struct {
	// Command is this program with the arguments before the description of a Role.
	Command []string
	// Dir is a folder for the stores.
	Dir string
	Log *slog.Logger
	// Extra is what stands in the worker's process beside Tool.
	Extra Extra
}

// Extra is for whoever measures more than this package does: the lab.
type Extra struct {
	// Host registers more tools with the worker; Tools is their number, for which a World waits. nil: none.
	Host  func(w *worker.Worker, nc *nats.Conn) error
	Tools int
	// Slots are the worker's beyond Slots.
	Slots int
	// Beside starts what works in the worker's process on a connection of its own, until ctx ends; fail takes what
	// goes wrong afterwards. nil: nothing.
	Beside func(ctx context.Context, nc *nats.Conn, fail func(error)) error
}

// World is a whole Stepjet in one layout.
type World struct {
	Env
	Layout Layout
	// Store is the folder of the servers' stores.
	Store string
	// JS is JetStream as the client's connection sees it, Client is set once Start has returned.
	JS     jetstream.JetStream
	Client *client.Client
	// Idle is the CPU seconds a second with nothing to do, as Rest measured it.
	Idle float64

	ctx    context.Context
	end    context.CancelFunc
	parts  sync.WaitGroup // in this process
	broken chan error     // the end of a part
	srv    *embedded.Server
	url    string
	procs  map[string]*process
	conns  []*nats.Conn
	spent  time.Duration // CPU of processes that ended
	peaks  map[string]float64
}

// NewWorld starts the layout's servers and connects to them.
func NewWorld(ctx context.Context, env Env, l Layout) (w *World, err error) {
	w = &World{
		Env:    env,
		Layout: l,
		broken: make(chan error, 64),
		procs:  map[string]*process{},
		peaks:  map[string]float64{},
	}
	w.ctx, w.end = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	if w.Store, err = os.MkdirTemp(env.Dir, l.Part+"-"); err != nil {
		return w, err
	}
	forgetPeak()
	if err := w.startServers(); err != nil {
		return w, err
	}
	nc, err := w.Connect("client")
	if err != nil {
		return w, err
	}
	w.JS, err = jetstream.New(nc)
	return w, err
}

// Start starts an orchestrator, a worker and a client, and returns when they are ready.
func (w *World) Start() error {
	err := errors.Join(w.StartOrchestrator(RoleOrchestrator), w.StartWorker())
	if err != nil {
		return err
	}
	w.Client, err = w.awaitClient(w.Conn())
	return err
}

// Context ends with the world.
func (w *World) Context() context.Context { return w.ctx }

// Conn returns the client's connection.
func (w *World) Conn() *nats.Conn { return w.conns[0] }

// Connect opens one more connection, which Close closes.
func (w *World) Connect(name string) (*nats.Conn, error) {
	o := kv.ConnectOptions{URL: w.url, Name: name, Logger: w.Log}
	if w.srv != nil {
		o.InProcess = w.srv.InProcess()
	}
	nc, err := kv.Connect(w.ctx, o)
	if err == nil {
		w.conns = append(w.conns, nc)
	}
	return nc, err
}

// StartOrchestrator starts one more.
func (w *World) StartOrchestrator(name string) error {
	if w.Layout.Separate {
		_, err := w.start(Role{Role: RoleOrchestrator, Name: name})
		return err
	}
	nc, err := w.Connect(name)
	if err != nil {
		return err
	}
	w.parts.Go(func() { w.broken <- runOrchestrator(w.ctx, nc, w.Layout, name, w.Log) })
	return nil
}

// StartWorker starts the worker, and what stands beside it.
func (w *World) StartWorker() error {
	if w.Layout.Separate {
		_, err := w.start(Role{Role: RoleWorker, Name: RoleWorker, Beside: w.Extra.Beside != nil})
		return err
	}
	nc, err := w.Connect(RoleWorker)
	if err != nil {
		return err
	}
	worker, err := newWorker(nc, w.Log, w.Extra)
	if err != nil {
		return err
	}
	w.parts.Go(func() { w.broken <- worker.Run(w.ctx) })
	if w.Extra.Beside == nil {
		return nil
	}
	if nc, err = w.Connect("beside the worker"); err != nil {
		return err
	}
	return w.Extra.Beside(w.ctx, nc, func(err error) { w.broken <- err })
}

// awaitClient waits until Stepjet is set up and the tools are there.
func (w *World) awaitClient(nc *nats.Conn) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(w.ctx, 60*time.Second)
	defer cancel()
	for {
		c, err := client.New(ctx, nc, client.Config{})
		if err == nil {
			var tools []tool.Registered
			if tools, err = c.Tools(ctx); err == nil && len(tools) >= 1+w.Extra.Tools {
				return c, nil
			}
			c.Close()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fault.New(fault.NotReady, "the benchmark's programs did not come up"), err)
		case err := <-w.broken:
			return nil, errors.Join(fault.New(fault.Internal, "a part ended before it was ready"), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Records counts those of the ledger that are not purged yet.
func (w *World) Records() (records uint64, err error) {
	for i := range w.Layout.ShardCount() {
		s, err := w.JS.Stream(w.ctx, subjects.LedgerStream(i))
		if err != nil {
			return 0, err
		}
		records += s.CachedInfo().State.Msgs
	}
	return records, nil
}

// look is the pause between two looks at the ledger: looking counts as Stepjet's CPU.
const look = 100 * time.Millisecond

// Purged waits until the ledger is empty: the finished runs are past their grace and gone.
func (w *World) Purged(within time.Duration) error {
	for until := time.Now().Add(within); ; time.Sleep(look) {
		n, err := w.Records()
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(until) {
			return fault.New(fault.Internal, "%d records of finished runs were not purged within %s", n, within)
		}
	}
}

// Close ends all parts and removes the stores.
func (w *World) Close() {
	if w.Client != nil {
		w.Client.Close()
	}
	for _, name := range []string{RoleWorker, RoleOrchestrator, RoleServer} {
		for _, p := range w.procs {
			if p.role.Role == name {
				p.term()
			}
		}
	}
	w.end()
	w.parts.Wait()
	for _, nc := range w.conns {
		nc.Close()
	}
	if w.srv != nil {
		w.srv.Shutdown()
	}
	if w.Store != "" {
		_ = os.RemoveAll(w.Store) // it lies in a temporary folder
	}
}
