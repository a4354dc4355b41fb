package living

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/subjects"
)

// Sent sees every call of a living run on its way to its queue, or to the schedule that it waits in, whoever sends it,
// also one that no worker takes.
type Sent struct {
	mu   sync.Mutex
	sent []journal.Event
}

// Follow begins to watch, on a connection.
func (w *Sent) Follow(nc *nats.Conn) error {
	_, err := nc.Subscribe(subjects.ToolPendingFilter(Tool, 0), w.see)
	return err
}

func (w *Sent) see(m *nats.Msg) {
	a, _, ok := subjects.ParseStep(m.Subject)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, journal.Event{Kind: journal.Sent, At: time.Now().UnixNano(), Who: "harness", Run: a.Plain(), Tenant: a.Tenant, Generation: a.Generation,
		Step: a.Step, Tool: a.Tool, Attempt: a.Number, Args: Digest(m.Data)})
}

// All returns what was seen.
func (w *Sent) All() []journal.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// Digest is a digest of a JSON value that does not depend on how it is written.
func Digest(raw []byte) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) == nil {
		raw, _ = json.Marshal(v)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12])
}
