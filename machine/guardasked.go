package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// GuardAsks is what a person is asked about because of a guard.
type GuardAsks struct {
	// On is one of plan.OnInput to plan.OnOutput.
	On string
	// Why says what the guard says.
	Why string
	// Value is what was returned, or would go in or out; nil for the arguments of a call.
	Value *Result

	waits *guarding
}

// askAbout asks a person about what a guard does not let pass, under the token of the call or the agent and the next number
// there.
func (g *guarding) askAbout(r *Run, no *plan.Refusal, at time.Time, out *Effects) {
	if !g.mayWait(r, at, out) {
		return
	}
	c := r.calls[g.of].Call
	name := r.nameOf(c)
	q := &Question{Call: c, Kind: outcome.Approval, Since: at, Number: r.proposalNumber(name, c), open: true,
		Guard: &GuardAsks{On: g.on, Why: no.Err.Message, waits: g}}
	switch g.on {
	case plan.OnResult:
		q.Guard.Value = r.calls[g.of].result
	case plan.OnOutput:
		q.Guard.Value = g.output
	case plan.OnInput:
		q.Guard.Value = &Result{Value: g.rounds(r).input.value}
	}
	if before := r.inquiry(c); before != nil {
		q.Number = max(q.Number, before.Number+1)
	}
	q.Digest = digestGuard(r, q, g, name)
	if g.of != g.agent {
		r.calls[g.of].state = asking
	}
	propose(r, q, 0, out)
}

// digestGuard names what a person is asked about because of a guard: the run, the call, what the guard looks at and says.
func digestGuard(r *Run, q *Question, g *guarding, name string) string {
	h := sha256.New()
	for _, text := range [...]string{"stepjet guard 1", r.start.Key, name, g.on, strconv.Itoa(g.guard), q.Guard.Why, string(r.Arguments(q.Call))} {
		digestText(h, text)
	}
	if digestResult(h, q.Guard.Value); g.on == plan.OnCall || g.on == plan.OnInput {
		sum := r.digestInputs(q.Step)
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// guardAnswered goes on with what a person was asked about because of a guard.
func guardAnswered(r *Run, q *Question, at time.Time, out *Effects) {
	g := q.Guard.waits
	r.ordered++
	r.spend(r.nameOf(q.Call), q.Number)
	r.keepAnswer(q)
	why := q.answer
	switch {
	case why == nil: // there is nothing to show
		g.refuse(r, &plan.Refusal{Guard: g.guard, Err: g.guards(r).Guards.Rejected(g.guard, q.unshown)}, at, out)
	case r.approves(q):
		g.letThrough(r, at, out)
	default:
		g.refuse(r, &plan.Refusal{Guard: g.guard, Err: g.guards(r).Guards.Rejected(g.guard, r.refusal(q))}, at, out)
	}
}
