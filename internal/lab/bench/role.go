package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
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
	roleServer       = "server"
	roleOrchestrator = "orchestrator"
	roleWorker       = "worker"
)

// role is what a process of its own is told: one JSON document as its argument.
type role struct {
	Role, Name string
	Layout     Layout
	URL        string   // of the server; not for a server
	Dir        string   // of a server's store
	Route      string   // of a server in a cluster, and
	Routes     []string // those of all its members
	Profiles   Profiles
	NoFloor    bool
}

// Profiles says where each process writes its profiles: <folder>/<name>.pprof. Empty: nowhere.
type Profiles struct{ CPU, Memory string }

// begin starts profiling; end writes what there is.
func (p Profiles) begin(name string) (end func() error, err error) {
	if p.CPU != "" {
		f, err := create(p.CPU, name+".cpu.pprof")
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
	}
	return func() error {
		if p.CPU != "" {
			pprof.StopCPUProfile()
		}
		if p.Memory == "" {
			return nil
		}
		f, err := create(p.Memory, name+".mem.pprof")
		if err != nil {
			return err
		}
		defer f.Close()
		return pprof.Lookup("allocs").WriteTo(f, 0)
	}, nil
}

func create(dir, name string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(dir, name))
}

// Role runs one part in a process of its own, until ctx ends or the parent is gone, which closes the standard input.
func Role(ctx context.Context, spec string, log *slog.Logger) error {
	var r role
	if err := json.Unmarshal([]byte(spec), &r); err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "reading what to do")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends, that is what counts
		cancel()
	}()
	end, err := r.Profiles.begin(r.Layout.Part + "-" + r.Name)
	if err != nil {
		return err
	}
	defer func() {
		if err := end(); err != nil {
			log.Error("no profile", "error", err)
		}
	}()
	if r.Role == roleServer {
		return r.serve(ctx)
	}
	daemon.TuneGC() // as the programs do
	connect := func(name string) (*nats.Conn, error) {
		return kv.Connect(ctx, kv.ConnectOptions{URL: r.URL, Name: name, Logger: log})
	}
	nc, err := connect(r.Name)
	if err != nil {
		return err
	}
	defer nc.Close()
	if r.Role == roleOrchestrator {
		return runOrchestrator(ctx, nc, r.Layout, r.Name, log)
	}
	if !r.NoFloor {
		bare, err := connect("floor")
		if err != nil {
			return err
		}
		defer bare.Close()
		if err := workFloor(ctx, bare, func(err error) { log.Error("the floor's worker", "error", err) }); err != nil {
			return err
		}
	}
	w, err := newWorker(nc, log)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func (r role) serve(ctx context.Context) error {
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
			for !srv.LeadsCluster(r.Layout.nodes()) && ctx.Err() == nil {
				time.Sleep(20 * time.Millisecond)
			}
			fmt.Println("leads")
		}()
	}
	<-ctx.Done()
	return nil
}

func runOrchestrator(ctx context.Context, nc *nats.Conn, l Layout, name string, log *slog.Logger) error {
	orc, err := orchestrator.New(nc, orchestrator.Config{Name: name, Grace: Grace, Logger: log, Store: l.store()})
	if err != nil {
		return err
	}
	return orc.Run(ctx)
}

// newWorker hosts the tools that the shapes call.
func newWorker(nc *nats.Conn, log *slog.Logger) (*worker.Worker, error) {
	w, err := worker.New(nc, worker.Config{Name: "bench", Slots: Slots + gatedLimit, Logger: log})
	if err != nil {
		return nil, err
	}
	gated, err := gated(nc)
	if err != nil {
		return nil, err
	}
	for name, h := range map[string]worker.Handler{Tool: taking(0), flakyTool: flaky, bulkTool: bulk(), gatedTool: gated} {
		d := definition(name, toolLimit)
		switch name {
		case gatedTool:
			d = definition(name, gatedLimit)
			d.Orchestration.TimeoutMS = time.Hour.Milliseconds()
		case flakyTool:
			d.Orchestration.Retry = &tool.Retry{MaxAttempts: 3}
			d.Orchestration.Backoff = &tool.Backoff{Strategy: tool.Constant, Initial: retryPause, Max: retryPause}
		}
		if err := w.HandleRaw(d, h); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// gated holds executions until a message comes on the gate's subject, and none from then on.
func gated(nc *nats.Conn) (worker.Handler, error) {
	open := make(chan struct{})
	var once sync.Once
	if _, err := nc.Subscribe(gate, func(*nats.Msg) { once.Do(func() { close(open) }) }); err != nil {
		return nil, err
	}
	return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		select {
		case <-open:
			return worker.Output{Body: args}, nil
		case <-ctx.Done():
			return worker.Output{}, context.Cause(ctx)
		}
	}, nil
}

// flaky fails the first attempt of one step in ten, the same ones always.
func flaky(ctx context.Context, args json.RawMessage) (worker.Output, error) {
	info, _ := worker.InfoFrom(ctx)
	h := fnv.New32a()
	_, _ = h.Write([]byte(info.Key)) // it can't fail
	if info.Attempt == 1 && h.Sum32()%failOneIn == 0 {
		return worker.Output{}, fault.New(fault.ToolFailed, "one in ten")
	}
	return worker.Output{Body: args}, nil
}

// bulk gives results of the sizes asked for, each made once.
func bulk() worker.Handler {
	var made sizes
	return func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		var in struct{ Bytes int }
		if err := json.Unmarshal(args, &in); err != nil {
			return worker.Output{}, err
		}
		return worker.Output{Body: made.of(in.Bytes)}, nil
	}
}
