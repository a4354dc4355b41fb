package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// takeHandedOver hears what planners hand over before their answers are whole. The owner of the run answers.
func takeHandedOver(s *api, m *nats.Msg) {
	of, ok := subjects.ParseStream(m.Subject)
	if !ok {
		return
	}
	asks, err := wire.ParseHandOver(m.Data)
	l := s.loops.of(of.Partition())
	l.post(func() {
		if c := l.cursors.owned[of.Partition()]; c == nil || !c.caughtUp {
			return // another's, or not read yet: the worker asks again
		}
		r := l.runs.byID[of.Run]
		switch {
		case err != nil:
			s.refuse(m, err)
		case r == nil || r.generation != of.Generation || r.phase == finished || r.phase == finishing:
			s.refuse(m, finishedAlready(of.Run))
		case r.phase == foreign:
			s.refuse(m, leftAlone(of.Run))
		case r.phase == running && !r.awaitingInput():
			(&handing{s: s, l: l, m: m, r: r, of: of, asks: asks}).take()
		}
	})
}

// handing is one request by which a planner hands over steps. It is answered when this owner has read from the ledger what
// became of them.
type handing struct {
	s    *api
	l    *loop
	m    *nats.Msg
	r    *run
	of   subjects.Attempt
	asks wire.HandOver
}

// take has the steps admitted as they stand now.
func (h *handing) take() {
	if h.r.phase != running || h.r.awaitingInput() {
		return // the worker asks again
	}
	call, _, known := h.r.call(h.of)
	if known && call.Step == machine.NotYet {
		call, known = h.r.machine.Find(h.of.Step)
	}
	scope, attempt, streams := machine.Streams(h.r.machine, call)
	if !known || !streams || attempt != h.of.Number {
		h.s.refuse(h.m, fault.New(fault.AlreadyFinished, "attempt %d of '%s' may hand over no steps: it is not out, or its agent lets nothing begin before an answer is whole", h.of.Number, h.of.Step))
		return
	}
	if !machine.Claimed(h.r.machine, call, attempt) { // its claim stands, as the worker says, and is read soon
		h.later(scope, func() bool {
			_, now, out := machine.Streams(h.r.machine, call)
			return !out || now != attempt || machine.Claimed(h.r.machine, call, attempt)
		})
		return
	}
	h.admit(scope)
}

// later takes the request again once something is so.
func (h *handing) later(scope string, so func() bool) {
	c := changesOf(h.r)
	c.waiting = append(c.waiting, amender{&machine.Amendment{Scope: scope}, func() bool {
		if !so() {
			return false
		}
		h.l.post(h.take)
		return true
	}})
}

// admit has the steps admitted beside the loop, and records those that begin.
func (h *handing) admit(scope string) {
	r := h.r
	_, empty, err := machine.Consider(r.machine, h.amendment(scope, &agents.HandedOver{Round: &wire.AmendedRound{}}), nil)
	if err != nil || len(empty.Problems) > 0 {
		if err == nil {
			err = fault.New(fault.InvalidValue, "%s", empty.Problems[0].Message)
		}
		h.s.refuse(h.m, err)
		return
	}
	of, _ := machine.StreamNamed(r.machine, scope)
	p, _, _ := machine.ScopeNamed(r.machine, scope)
	var stands []string
	for i := range p.Steps {
		stands = append(stands, p.Steps[i].ID)
	}
	ag, its := h.l.dispatcher.agentry, r.agents
	revision, _ := machine.Revision(r.machine, scope)
	x, contracts := ag.look(r, of, machine.RoundCount(r.machine, of)-1, false), its.frozen(r)
	ag.memory.reserve(x.size, func(ctx context.Context) {
		var over *agents.HandedOver
		l, err := x.read(ctx, ag.values)
		if err == nil {
			over, err = agents.HandOver(l, stands, h.asks.Add, contracts)
		}
		if ctx.Err() != nil {
			return // only when stopping: the worker asks again
		}
		ag.post(func() {
			if x.found(its); r.phase != running || r.awaitingInput() {
				return // likewise
			}
			now, _ := machine.Revision(r.machine, scope)
			switch {
			case err != nil:
				h.s.refuse(h.m, err)
			case now != revision: // another owner has recorded more
				h.take()
			case len(over.Add) == 0:
				h.s.reply(h.m, over.Reply.Body())
			default:
				h.record(scope, over)
			}
		})
	})
}

// amendment is the one by which steps begin, as the machine takes it.
func (h *handing) amendment(scope string, over *agents.HandedOver) *machine.Amendment {
	rec, at := h.recordOf(scope, over)
	return amendmentOf(h.r, at, &rec)
}

func (h *handing) recordOf(scope string, over *agents.HandedOver) (wire.Amend, subjects.Record) {
	now, _ := machine.Revision(h.r.machine, scope)
	sum := sha256.New()
	for _, step := range over.Add {
		_, _ = sum.Write([]byte(agent.StepID(step)))
		_, _ = sum.Write(step)
	}
	_, _ = sum.Write([]byte(h.asks.Nonce))
	return wire.Amend{
		Digest: hex.EncodeToString(sum.Sum(nil)), Change: wire.Change{Add: over.Add}, Round: over.Round, Approved: machine.Approves(h.r.machine),
		Streamed: &wire.Streamed{Attempt: h.of.Number, Nonce: h.asks.Nonce},
	}, subjects.Record{Step: scope, Number: now + 1}
}

// record creates the record of steps that begin, and answers once a record of its number was read.
func (h *handing) record(scope string, over *agents.HandedOver) {
	rec, at := h.recordOf(scope, over)
	_, report, err := machine.Consider(h.r.machine, amendmentOf(h.r, at, &rec), nil)
	head, body, bad := rec.Message()
	switch {
	case err != nil:
		h.s.refuse(h.m, err)
		return
	case len(report.Problems) > 0: // such as that the run has no room: the answer will be told so
		h.heldAll(over, report.Problems[0].Message)
		return
	case bad != nil:
		h.s.refuse(h.m, bad)
		return
	case len(body) > wire.InlineLimit:
		h.heldAll(over, "its record would be too large")
		return
	}
	recordAndWait(h.l, h.r, at, &rec, head, body, func() bool {
		stands := h.r.machine.Amendment(scope, at.Number)
		switch {
		case stands == nil:
			return false
		case stands.Digest != rec.Digest || stands.Stale() != nil: // what became of the attempt is looked at anew
			h.l.post(h.take)
		default:
			h.s.reply(h.m, over.Reply.Body())
		}
		return true
	}, func(_ kv.Decision, err error) {
		if err != nil {
			h.s.refuse(h.m, err)
		}
	})
}

// heldAll answers that none of the steps begins.
func (h *handing) heldAll(over *agents.HandedOver, why string) {
	reply := over.Reply
	for _, step := range over.Add {
		id := agent.StepID(step)
		reply.Begun = slices.DeleteFunc(slices.Clone(reply.Begun), func(begun string) bool { return begun == id })
		if !agent.IsRound(id) {
			reply.Held = append(reply.Held, wire.Held{ID: id, Why: why})
		}
	}
	h.s.reply(h.m, reply.Body())
}
