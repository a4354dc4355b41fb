package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/seal"
)

// roleVariable holds, as JSON, the role that a process of the harness plays.
const roleVariable = "STEPJET_CHAOS_ROLE"

// The kinds of roles.
const (
	roleServer       = "server"
	roleOrchestrator = "orchestrator"
	roleWorker       = "worker"
	roleAgent        = "agent"
	roleHerd         = "herd"
	roleBare         = "bare"
	roleBomber       = "bomber"
	roleLoop         = "loop"
	roleLiving       = "living"
	roleBusy         = "busy"
)

// Role is what one process does.
type Role struct {
	Kind, Name string
	Version    string // of the program; empty: this one
	URL        string // of all servers, separated by commas
	Log        string // the file of events of a worker or agent
	NKey       string // the file of its user's seed; empty: the server asks for none
	Inbox      string // the prefix of its inboxes; empty: the library's

	// Of a server. Disk is an image to be mounted at its folder; empty: the folder is one as any other.
	Server embedded.Options
	Disk   string

	// Of an orchestrator.
	Store      kv.Config
	Grace      time.Duration
	SweepEvery time.Duration

	// Of a worker.
	MaxDeliveries int

	// Keys is the file of the keys that an orchestrator or a worker opens sealed secrets with; "" for none.
	Keys string

	// Of an agent: the kinds of runs, how many at a time, in all (0: until told to end), and its tenant.
	Kinds    []string
	Parallel int
	Runs     int
	Tenant   string
	Reuse    int  // so many run ids are used again and again; 0: each once
	Insist   bool // a run that takes long is submitted again, under its id: its plan may have been lost

	// Client is the number of a client of living runs, from 0.
	Client int

	// Pause is how long the planner of a loop thinks.
	Pause time.Duration

	// Die is when an orchestrator or a worker kills itself; nil: never.
	Die *Point
}

// Main plays the role that the environment names. It reports false where there is none: then this process is the
// harness. A role's process ends when its standard input does, which the harness holds open.
func Main() bool {
	text := os.Getenv(roleVariable)
	if text == "" {
		return false
	}
	var r Role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		panic(err) // the harness wrote it
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(daemon.ExitForced)
	}()
	daemon.TuneGC() // as the programs do
	ctx, stop := daemon.Signals(context.Background(), func() { os.Exit(daemon.ExitForced) })
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	err := r.play(ctx, log)
	stop()
	if err != nil {
		log.Error("the role ended", "error", err)
		os.Exit(daemon.ExitFailed)
	}
	os.Exit(daemon.ExitOK)
	return true
}

// ready tells the harness that the process does its work.
func ready() { fmt.Println("ready") }

func (r *Role) play(ctx context.Context, log *slog.Logger) error {
	if r.Kind == roleServer {
		return r.server(ctx, log)
	}
	switch r.Kind {
	case roleHerd:
		return r.herd(ctx, log)
	case roleBare:
		return r.bare(ctx, log)
	case roleBusy:
		ready()
		for ctx.Err() == nil { // it takes what time the machine gives it
		}
		return nil
	}
	nc, err := r.connect(ctx, log)
	if err != nil {
		return err
	}
	defer nc.Close()
	switch r.Kind {
	case roleOrchestrator:
		keys, err := r.keyring()
		if err != nil {
			return err
		}
		o, err := orchestrator.New(nc, orchestrator.Config{Name: r.Name, Grace: r.Grace, SweepEvery: r.SweepEvery,
			Store: r.Store, SecretsKey: keys, Logger: log})
		if err != nil {
			return err
		}
		go func() { <-o.Ready(); ready() }()
		return o.Run(ctx)
	case roleWorker:
		return r.worker(ctx, nc, log)
	case roleAgent:
		return r.agent(ctx, nc, log)
	case roleBomber:
		return r.bomber(ctx, nc, log)
	case roleLiving:
		return r.lives(ctx, nc, log)
	case roleLoop:
		return r.loop(ctx, nc, log)
	}
	return fault.New(fault.InvalidConfig, "no such role: %s", r.Kind)
}

func (r *Role) keyring() (*seal.Keyring, error) {
	if r.Keys == "" {
		return nil, nil
	}
	return seal.Load(r.Keys)
}

func (r *Role) server(ctx context.Context, log *slog.Logger) error {
	if r.Disk != "" {
		if err := mountDisk(r.Disk, r.Server.Dir); err != nil {
			return err
		}
	}
	r.Server.Logger = log
	srv, err := embedded.Start(r.Server)
	if err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	srv.Shutdown()
	return nil
}

// connect opens the connection, as the programs do; with a Point, through a wire that watches for its moment. A server
// that is not there yet is waited for.
func (r *Role) connect(ctx context.Context, log *slog.Logger) (*nats.Conn, error) {
	o := kv.ConnectOptions{URL: r.URL, Name: r.Name, NKey: r.NKey, InboxPrefix: r.Inbox, Logger: log}
	if r.Die != nil {
		o.InProcess = &tap{urls: r.URL, point: r.Die}
	}
	for {
		nc, err := kv.Connect(ctx, o)
		if err == nil || ctx.Err() != nil {
			return nc, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
