package orchestrator

import (
	"strings"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// In the worlds with agents the second round has a plan within a step, two calls of which lead out of the state in which both may
// be called, and one that is open and that nobody amends: its owner has to close it.

// simShutter is the tool that leads there.
const simShutter = "shut/a"

// simWithin are those steps.
const simWithin = `{"id":"p","plan":{"steps":[{"id":"s","tool":"shut"},{"id":"t","tool":"shut"}]}},
		{"id":"q","plan":{"open":true,"open_for":"700ms","steps":[{"id":"i","tool":"opener/a","arguments":{"n":1}}]}}`

// shutterDispatched checks that no second call passes the gate that the first one shuts, or may be about to.
func (t *truths) shutterDispatched(x *truth, a subjects.Attempt) {
	if a.Tool != simShutter {
		return
	}
	t.w.stats["a call that shuts a gate"]++
	for other := range x.out {
		passed := x.succeeded[other] && !t.w.judges()                        // else a guard may have refused what it returned, so that it has failed
		open := !x.final[other] && roundAround(other) == roundAround(a.Step) // what of a round that is behind is not final was given up with it
		if other != a.Step && x.shuts(other) && (passed || open) {
			t.w.violate("A2", "%s passed its gate together with %s", a.MessageID(), other)
		}
	}
}

// shuts reports whether a step shuts the gate.
func (x *truth) shuts(step string) bool {
	return strings.HasSuffix(step, "/p/s") || strings.HasSuffix(step, "/p/t")
}

// roundAround returns the token of the round in which a call stands, at any depth.
func roundAround(step string) string {
	for scope := subjects.ScopeOf(step); ; scope = subjects.ScopeOf(scope) {
		if subjects.IsIteration(scope) || !strings.Contains(scope, "/") {
			return scope
		}
	}
}

// closedByOwner checks the record by which an owner closes a plan that nobody else amends: there is one.
func (t *truths) closedByOwner(x *truth, rec subjects.Record, e *kv.Entry) (is bool) {
	a := wire.ParseAmend(e.Data)
	if !a.ByOwner || !x.agent {
		return false
	}
	as := x.roundAmends()
	if rec.Number != 1 || as.stand[rec.Step] > 0 || !strings.HasSuffix(rec.Step, "/q") {
		t.w.violate("A10", "%s closes a plan of a round, which was closed before or is none", e.Subject)
	}
	as.stand[rec.Step]++
	t.w.stats["a plan of a round was closed by its owner"]++
	return true
}
