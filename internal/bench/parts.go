package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Grace is the grace of finished runs in the benchmarks, short enough that purging is in its steady state.
const Grace = 5 * time.Second

// Slots are the worker's concurrent executions.
const Slots = 256

func newWorker(nc *nats.Conn, log *slog.Logger) (*worker.Worker, error) {
	w, err := worker.New(nc, worker.Config{Name: "bench", Slots: Slots, Logger: log})
	if err != nil {
		return nil, err
	}
	def := &tool.Definition{
		Name: Tool, Description: "Gives back its arguments.",
		Orchestration: &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 4096},
	}
	return w, w.HandleRaw(def, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		return worker.Output{Body: args}, nil
	})
}

func orchestratorConfig(log *slog.Logger) orchestrator.Config {
	return orchestrator.Config{Name: "bench", Grace: Grace, Logger: log, Store: kv.Config{StepsAsync: true}}
}

// Embedded measures everything in this process, without sockets.
func Embedded(ctx context.Context, dir string, syncAlways bool, cfg Config, log *slog.Logger) (Mode, error) {
	mode := Mode{Name: "embedded: one process"}
	cfg = cfg.withDefaults()
	floor, err := Floor(ctx, filepath.Join(dir, "floor"), syncAlways, cfg.Rounds)
	if err != nil {
		return mode, err
	}
	for _, r := range floor {
		cfg.Progress(r.String())
	}
	srv, err := embedded.Start(embedded.Options{Dir: filepath.Join(dir, "jetstream"), SyncAlways: syncAlways})
	if err != nil {
		return mode, err
	}
	defer srv.Shutdown()
	connect := func(name string) (*nats.Conn, error) {
		return kv.Connect(ctx, kv.ConnectOptions{InProcess: srv.InProcess(), Name: name, Logger: log})
	}
	var conns [3]*nats.Conn
	for i, name := range []string{"orchestrator", "worker", "client"} {
		if conns[i], err = connect(name); err != nil {
			return mode, err
		}
		defer conns[i].Close()
	}
	ctx, cancel := context.WithCancel(ctx)
	orc, err := orchestrator.New(conns[0], orchestratorConfig(log))
	if err != nil {
		cancel()
		return mode, err
	}
	w, err := newWorker(conns[1], log)
	if err != nil {
		cancel()
		return mode, err
	}
	ended := make(chan error, 2)
	go func() { ended <- orc.Run(ctx) }()
	go func() { ended <- w.Run(ctx) }()
	defer func() { cancel(); <-ended; <-ended }()
	for _, ready := range []<-chan struct{}{orc.Ready(), w.Ready()} {
		select {
		case <-ready:
		case err := <-ended:
			ended <- err
			return mode, errors.Join(fault.New(fault.Internal, "a part ended before it was ready"), err)
		}
	}
	c, err := client.New(ctx, conns[2], client.Config{})
	if err != nil {
		return mode, err
	}
	defer c.Close()
	self := os.Getpid()
	results, err := Measure(ctx, c, cfg, func() time.Duration { return CPU(self) })
	mode.Results = append(floor, results...)
	mode.PeakMB = map[string]float64{"all in one": PeakMB(self)}
	return mode, err
}

// Role runs one part in a process of its own, until ctx ends.
func Role(ctx context.Context, role, url, dir string, log *slog.Logger) error {
	if role == "server" {
		srv, err := embedded.Start(embedded.Options{Dir: dir, Listen: "127.0.0.1:0", SyncAlways: os.Getenv("STEPJET_BENCH_SYNC") == "always"})
		if err != nil {
			return err
		}
		defer srv.Shutdown()
		fmt.Println(srv.URL()) // the parent reads it
		<-ctx.Done()
		return nil
	}
	daemon.TuneGC() // as the programs do
	nc, err := kv.Connect(ctx, kv.ConnectOptions{URL: url, Name: role, Logger: log})
	if err != nil {
		return err
	}
	defer nc.Close()
	switch role {
	case "orchestrator":
		orc, err := orchestrator.New(nc, orchestratorConfig(log))
		if err != nil {
			return err
		}
		return orc.Run(ctx)
	case "worker":
		w, err := newWorker(nc, log)
		if err != nil {
			return err
		}
		return w.Run(ctx)
	}
	return fault.New(fault.InvalidConfig, "no such role: %s", role)
}

// Processes measures with server, orchestrator and worker as processes of their own, over TCP on the loopback. command
// is the program and its arguments before role, url and folder.
func Processes(ctx context.Context, command []string, dir string, syncAlways bool, cfg Config, log *slog.Logger) (Mode, error) {
	mode := Mode{Name: "separate processes over TCP", PeakMB: map[string]float64{}}
	parts := map[string]*exec.Cmd{}
	forgetPeak()
	defer func() {
		for _, name := range []string{"worker", "orchestrator", "server"} {
			if p := parts[name]; p != nil {
				_ = p.Process.Signal(syscall.SIGTERM)
				_ = p.Wait()
			}
		}
	}()
	url := ""
	for _, name := range []string{"server", "orchestrator", "worker"} {
		args := append(append([]string{}, command[1:]...), name, url, filepath.Join(dir, "jetstream"))
		p := exec.CommandContext(ctx, command[0], args...)
		p.Stderr = os.Stderr
		if syncAlways {
			p.Env = append(os.Environ(), "STEPJET_BENCH_SYNC=always")
		}
		out, err := p.StdoutPipe()
		if err != nil {
			return mode, err
		}
		if err := p.Start(); err != nil {
			return mode, err
		}
		parts[name] = p
		if name == "server" {
			line := make([]byte, 256)
			n, err := out.Read(line)
			if err != nil {
				return mode, fault.Wrap(fault.Internal, err, "starting the server's process")
			}
			url = strings.TrimSpace(string(line[:n]))
		}
	}
	nc, err := kv.Connect(ctx, kv.ConnectOptions{URL: url, Name: "client", Logger: log})
	if err != nil {
		return mode, err
	}
	defer nc.Close()
	c, err := awaitClient(ctx, nc)
	if err != nil {
		return mode, err
	}
	defer c.Close()
	pids := map[string]int{"client": os.Getpid()}
	for name, p := range parts {
		pids[name] = p.Process.Pid
	}
	mode.Results, err = Measure(ctx, c, cfg, func() (total time.Duration) {
		for _, pid := range pids {
			total += CPU(pid)
		}
		return total
	})
	for name, pid := range pids {
		mode.PeakMB[name] = PeakMB(pid)
	}
	return mode, err
}

// awaitClient waits until the other processes have set Stepjet up and the tool is there.
func awaitClient(ctx context.Context, nc *nats.Conn) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		c, err := client.New(ctx, nc, client.Config{})
		if err == nil {
			var tools []kv.Tool
			if tools, err = c.Tools(ctx); err == nil && len(tools) > 0 {
				return c, nil
			}
			c.Close()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fault.New(fault.NotReady, "the benchmark's processes did not come up"), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
