package exampletest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stepjet/stepjet/worker"
)

// Meter counts every call of every tool of a World, over all its workers.
type Meter struct {
	mu      sync.Mutex
	tools   map[string]Usage
	changed chan struct{} // closed with the next change
}

// Usage is how a tool was called.
type Usage struct {
	Calls int // executions, later attempts included
	Items int // that came in batches; 0 for a tool that takes none
	Now   int // under way
	Most  int // at the same time
}

func newMeter() *Meter { return &Meter{tools: map[string]Usage{}, changed: make(chan struct{})} }

// Of returns the usage of one tool.
func (m *Meter) Of(tool string) Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tools[tool]
}

// Await returns once n calls of a tool are under way at the same time.
func (m *Meter) Await(ctx context.Context, tool string, n int) error {
	for {
		m.mu.Lock()
		now, changed := m.tools[tool].Now, m.changed
		m.mu.Unlock()
		if now >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Lines says how each tool was called, for people.
func (m *Meter) Lines() (lines []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.tools)) {
		u := m.tools[name]
		line := fmt.Sprintf("%s: %s", name, count(u.Calls, "call"))
		switch {
		case u.Items > 0:
			line += " with " + count(u.Items, "item")
		case u.Calls > 1:
			line += fmt.Sprintf(", never more than %d at a time", u.Most)
		}
		lines = append(lines, line)
	}
	return lines
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// wrap is the middleware that counts.
func (m *Meter) wrap(next worker.Handler) worker.Handler {
	return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		info, _ := worker.InfoFrom(ctx)
		m.change(info.Tool, func(u *Usage) {
			u.Calls, u.Items, u.Now = u.Calls+1, u.Items+len(worker.ItemsFrom(ctx)), u.Now+1
			u.Most = max(u.Most, u.Now)
		})
		defer m.change(info.Tool, func(u *Usage) { u.Now-- })
		return next(ctx, args)
	}
}

func (m *Meter) change(tool string, do func(*Usage)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.tools[tool]
	do(&u)
	m.tools[tool] = u
	close(m.changed)
	m.changed = make(chan struct{})
}
