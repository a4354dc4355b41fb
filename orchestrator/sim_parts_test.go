package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/stepjet/stepjet/subjects"
)

// carries reports whether the planners of a world take a small last part in their requests.
func (w *world) carries() bool { return w.seed/11%5 < 3 }

// simPart is what a request says of the part that it names, or a part of the one before.
type simPart struct {
	Name, SHA256 string
	Content      json.RawMessage
}

// partsSent checks that whoever is sent a request finds all parts that it leads to: they are stored before it is sent, but for
// the last one where the request has it.
func (t *truths) partsSent(x *truth, m *message) {
	var r struct{ Part *simPart }
	if json.Unmarshal(m.body, &r) != nil || r.Part == nil {
		return
	}
	next, raw := r.Part, t.w.blobs[r.Part.Name]
	if next.Content != nil {
		t.partCarried(x, m, next)
		raw = next.Content
	}
	for next != nil {
		if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != next.SHA256 {
			t.w.violate("A6", "%s was sent, and leads to the part %s, of which %q is stored", m.attempt.MessageID(), next.Name, raw)
			return
		}
		var p struct{ Before *simPart }
		if err := json.Unmarshal(raw, &p); err != nil {
			t.w.violate("A6", "the part %s is %s: %v", next.Name, raw, err)
		}
		if next = p.Before; next != nil {
			raw = t.w.blobs[next.Name]
		}
	}
}

// partCarried checks that a request has a part in it only for a planner that takes it so, as far as the records of the part's
// round make it worth that, and that another attempt can read it elsewhere as well.
func (t *truths) partCarried(x *truth, m *message, p *simPart) {
	a := m.attempt
	if !t.w.carries() || a.Tool != simPlanner && a.Tool != simWriter {
		t.w.violate("A6", "%s was sent with the part %s in it", a.MessageID(), p.Name)
	}
	scope := subjects.ScopeOf(a.Step)
	segments, _ := subjects.ParseStepToken(scope)
	before := subjects.Iteration(subjects.ScopeOf(scope), segments[len(segments)-1].Number-1)
	records := 1 // of the round
	for call := range x.records {
		if strings.HasPrefix(call, before+"/") {
			records++
		}
	}
	if len(p.Content) > 768*records {
		t.w.violate("A6", "%s was sent with the part %s in it, of %d bytes, whose round has %d records", a.MessageID(), p.Name, len(p.Content), records)
	}
	if a.Number > 1 && t.w.blobs[p.Name] == nil {
		t.w.violate("A6", "%s was sent before the part %s was stored", a.MessageID(), p.Name)
	}
	t.carried[p.Name] = p.Content
	t.w.stats["a request had its last part in it"]++
	if t.w.blobs[p.Name] == nil {
		t.w.stats["a request had a part in it that was not stored yet"]++
	}
}

// part is a part that was stored, or sent.
func (t *truths) part(name string) []byte {
	if raw := t.w.blobs[name]; raw != nil {
		return raw
	}
	return t.carried[name]
}
