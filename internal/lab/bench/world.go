package bench

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
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
)

// Env is what measuring needs of its surroundings.
type Env struct {
	// Command is this program with the arguments before the description of a role.
	Command []string
	// Dir is a folder for the stores.
	Dir      string
	Log      *slog.Logger
	Profiles Profiles
	// Stdin is where "go test -bench" writes to.
	Stdin io.Reader
	// Progress takes one line for each measurement.
	Progress func(line string)
}

// world is a whole Stepjet in one layout, and the floor's worker beside it.
type world struct {
	Env
	layout  Layout
	noFloor bool
	dir     string

	ctx      context.Context
	end      context.CancelFunc
	parts    sync.WaitGroup // in this process
	broken   chan error     // the end of a part
	srv      *embedded.Server
	url      string
	procs    map[string]*process
	conns    []*nats.Conn
	profiled func() error  // ends the profiling of this process
	spent    time.Duration // CPU of processes that ended
	idle     float64       // CPU seconds a second with nothing to do
	peaks    map[string]float64

	client *client.Client
	js     jetstream.JetStream
}

// newWorld starts server, orchestrator, worker and a client.
func newWorld(ctx context.Context, env Env, l Layout, noFloor bool) (w *world, err error) {
	w = &world{Env: env, layout: l, noFloor: noFloor, broken: make(chan error, 64), procs: map[string]*process{}, peaks: map[string]float64{}}
	w.ctx, w.end = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.dir, err = os.MkdirTemp(env.Dir, l.Part+"-"); err != nil {
		return w, err
	}
	forgetPeak()
	name := "client"
	if !l.Separate {
		name = "all"
	}
	if w.profiled, err = env.Profiles.begin(l.Part + "-" + name); err != nil {
		return w, err
	}
	if err := w.startServers(); err != nil {
		return w, err
	}
	nc, err := w.connect("client")
	if err != nil {
		return w, err
	}
	if w.js, err = jetstream.New(nc); err != nil {
		return w, err
	}
	if !noFloor {
		if err := errors.Join(setUpFloor(w.ctx, nc, l), w.gather(true)); err != nil {
			return w, err
		}
	}
	if err := errors.Join(w.startOrchestrator("orchestrator"), w.startWorker()); err != nil {
		return w, err
	}
	if w.client, err = w.awaitClient(nc); err != nil {
		return w, err
	}
	return w, w.gather(false)
}

func (w *world) connect(name string) (*nats.Conn, error) {
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

// startOrchestrator starts one more.
func (w *world) startOrchestrator(name string) error {
	if w.layout.Separate {
		_, err := w.start(role{Role: roleOrchestrator, Name: name})
		return err
	}
	nc, err := w.connect(name)
	if err != nil {
		return err
	}
	w.parts.Go(func() { w.broken <- runOrchestrator(w.ctx, nc, w.layout, name, w.Log) })
	return nil
}

func (w *world) startWorker() error {
	if w.layout.Separate {
		_, err := w.start(role{Role: roleWorker, Name: roleWorker})
		return err
	}
	nc, err := w.connect(roleWorker)
	if err != nil {
		return err
	}
	worker, err := newWorker(nc, w.Log)
	if err != nil {
		return err
	}
	w.parts.Go(func() { w.broken <- worker.Run(w.ctx) })
	if w.noFloor {
		return nil
	}
	if nc, err = w.connect("floor's worker"); err != nil {
		return err
	}
	return workFloor(w.ctx, nc, func(err error) { w.broken <- err })
}

// awaitClient waits until Stepjet is set up and the tools are there.
func (w *world) awaitClient(nc *nats.Conn) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(w.ctx, 60*time.Second)
	defer cancel()
	for {
		c, err := client.New(ctx, nc, client.Config{})
		if err == nil {
			var tools []kv.Tool
			if tools, err = c.Tools(ctx); err == nil && len(tools) >= 4 {
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

// usage is the CPU time that all processes have used, those that ended included.
func (w *world) usage() time.Duration {
	total := w.spent + CPU(os.Getpid())
	for _, p := range w.procs {
		total += CPU(p.pid())
	}
	return total
}

// memory notes the most resident memory so far, in MiB, by process.
func (w *world) memory() map[string]float64 {
	name := "all in one"
	if w.layout.Separate {
		name = "client"
	}
	all := maps.Clone(w.peaks)
	all[name] = PeakMB(os.Getpid())
	for name, p := range w.procs {
		all[name] = max(all[name], PeakMB(p.pid()))
	}
	return all
}

// resident is the memory that each process holds now, in MiB.
func (w *world) resident() map[string]float64 {
	all := map[string]float64{}
	for name, p := range w.procs {
		all[name] = ResidentMB(p.pid())
	}
	return all
}

// ledger counts the records that are not purged yet.
func (w *world) ledger() (records uint64, err error) {
	for i := range w.layout.shards() {
		s, err := w.js.Stream(w.ctx, subjects.LedgerStream(i))
		if err != nil {
			return 0, err
		}
		records += s.CachedInfo().State.Msgs
	}
	return records, nil
}

// look is the pause between two looks at the ledger: looking counts as Stepjet's CPU.
const look = 100 * time.Millisecond

// purged waits until the ledger is empty: the finished runs are past their grace and gone.
func (w *world) purged(within time.Duration) error {
	for until := time.Now().Add(within); ; time.Sleep(look) {
		n, err := w.ledger()
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(until) {
			return fault.New(fault.Internal, "%d records of finished runs were not purged within %s", n, within)
		}
	}
}

func (w *world) close() {
	if w.profiled != nil {
		if err := w.profiled(); err != nil {
			w.Log.Error("no profile", "error", err)
		}
	}
	if w.client != nil {
		w.client.Close()
	}
	for _, name := range []string{roleWorker, roleOrchestrator, roleServer} {
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
	if w.dir != "" {
		_ = os.RemoveAll(w.dir) // it lies in a temporary folder
	}
}
