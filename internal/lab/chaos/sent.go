package chaos

import (
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
)

// sentWatch sees every call of a living run on its way to its queue, or to the schedule that it waits in, whoever sends it,
// also one that no worker takes.
type sentWatch struct {
	mu   sync.Mutex
	sent []Event
}

func (w *sentWatch) follow(nc *nats.Conn) error {
	_, err := nc.Subscribe(subjects.ToolPendingFilter(liveTool, 0), w.see)
	return err
}

func (w *sentWatch) see(m *nats.Msg) {
	a, _, ok := subjects.ParseStep(m.Subject)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, Event{Kind: evSent, At: time.Now().UnixNano(), Who: "harness", Run: a.Plain(), Tenant: a.Tenant, Generation: a.Generation,
		Step: a.Step, Tool: a.Tool, Attempt: a.Number, Args: valueDigest(m.Data)})
}

func (w *sentWatch) all() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}
