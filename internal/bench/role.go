package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// The roles of processes.
const (
	RoleServer       = "server"
	RoleOrchestrator = "orchestrator"
	RoleWorker       = "worker"
)

// Role is what a process of its own is told: one JSON document as its argument.
type Role struct {
	Role, Name string
	Layout     Layout
	URL        string   // of the server; not for a server
	Dir        string   // of a server's store
	Route      string   // of a server in a cluster, and
	Routes     []string // those of all its members
	Beside     bool     // of a worker: whether Extra.Beside is wanted
}

// ParseRole reads a description of a role. Errors: invalid_config.
func ParseRole(description string) (r Role, err error) {
	if err := json.Unmarshal([]byte(description), &r); err != nil {
		return r, fault.Wrap(fault.InvalidConfig, err, "reading what to do")
	}
	return r, nil
}

// heapWord is what a parent writes to a process that is to say how much its heap keeps.
const heapWord = "heap"

// listen does what the parent says on the standard input, until that closes.
func listen() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == heapWord {
			fmt.Println(heapWord, Heap())
		}
	}
}

// Heap is how many bytes this process's heap keeps, once what nobody needs is gone.
func Heap() uint64 {
	var m runtime.MemStats
	for range 2 { // what has a finalizer or lies in a pool takes two
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Run runs the role in a process of its own, until ctx ends or the parent is gone, which closes the standard input.
func (r Role) Run(ctx context.Context, log *slog.Logger, extra Extra) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		listen()
		cancel()
	}()
	if r.Role == RoleServer {
		return r.serve(ctx)
	}
	daemon.TuneGC() // as the programs do
	nc, err := r.connect(ctx, r.Name, log)
	if err != nil {
		return err
	}
	defer nc.Close()
	if r.Role == RoleOrchestrator {
		return runOrchestrator(ctx, nc, r.Layout, r.Name, log)
	}
	if r.Beside {
		beside, err := r.connect(ctx, "beside the worker", log)
		if err != nil {
			return err
		}
		defer beside.Close()
		if err := extra.Beside(ctx, beside, func(err error) { log.Error("beside the worker", "error", err) }); err != nil {
			return err
		}
	}
	w, err := newWorker(nc, log, extra)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func (r Role) connect(ctx context.Context, name string, log *slog.Logger) (*nats.Conn, error) {
	return kv.Connect(ctx, kv.ConnectOptions{URL: r.URL, Name: name, Logger: log})
}

func (r Role) serve(ctx context.Context) error {
	o := embedded.Options{Dir: r.Dir, Listen: "127.0.0.1:0", SyncAlways: r.Layout.Always, Name: r.Name}
	if r.Route != "" {
		o.Cluster, o.ClusterListen, o.Routes = "bench", strings.TrimPrefix(r.Route, "nats://"), r.Routes
	}
	srv, err := embedded.Start(o)
	if err != nil {
		return err
	}
	defer srv.Shutdown()
	fmt.Println(srv.URL()) // the parent reads it
	if r.Route != "" {
		go func() {
			for !srv.LeadsCluster(r.Layout.Replicas()) && ctx.Err() == nil {
				time.Sleep(20 * time.Millisecond)
			}
			fmt.Println("leads")
		}()
	}
	<-ctx.Done()
	return nil
}

func runOrchestrator(ctx context.Context, nc *nats.Conn, l Layout, name string, log *slog.Logger) error {
	orc, err := orchestrator.New(nc, orchestrator.Config{Name: name, Grace: Grace, Logger: log, Store: l.Store()})
	if err != nil {
		return err
	}
	return orc.Run(ctx)
}

// newWorker hosts the tools that shapes call.
func newWorker(nc *nats.Conn, log *slog.Logger, extra Extra) (*worker.Worker, error) {
	w, err := worker.New(nc, worker.Config{Name: "bench", Slots: Slots + extra.Slots, Logger: log})
	if err != nil {
		return nil, err
	}
	d := &tool.Definition{
		Name: Tool, Orchestration: &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: toolLimit},
	}
	if err := w.HandleRaw(d, echo); err != nil || extra.Host == nil {
		return w, err
	}
	return w, extra.Host(w, nc)
}

func echo(_ context.Context, args json.RawMessage) (worker.Output, error) {
	return worker.Output{Body: args}, nil
}
