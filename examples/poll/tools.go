package main

import (
	"context"
	"sync"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Job names an export.
type Job struct {
	Job string `json:"job"`
}

// Table is what is exported.
type Table struct {
	Table string `json:"table"`
}

// State is how far an export is: running, or done with a file.
type State struct {
	State string `json:"state"`
	File  string `json:"file,omitempty"`
}

// Loaded is what load returns.
type Loaded struct {
	Loaded string `json:"loaded"`
}

// exports are those that were started. Each is done when it is looked at for the third time.
type exports struct {
	mu    sync.Mutex
	looks map[string]int
}

func (e *exports) start(_ context.Context, in Table) (Job, error) {
	return Job{"export-" + in.Table}, nil
}

func (e *exports) status(_ context.Context, in Job) (State, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.looks[in.Job]++; e.looks[in.Job] < 3 {
		return State{State: "running"}, nil
	}
	return State{"done", in.Job + ".csv"}, nil
}

func load(_ context.Context, in State) (Loaded, error) { return Loaded{in.File}, nil }

func newExports() *exports { return &exports{looks: map[string]int{}} }

// host adds the tools to a worker, under their definitions.
func (e *exports) host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "start_export", e.start, worker.DefinedBy(defs...))
	worker.Handle(w, "export_status", e.status, worker.DefinedBy(defs...))
	worker.Handle(w, "load", load, worker.DefinedBy(defs...))
}
