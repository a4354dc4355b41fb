package orchestrator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// In some of the worlds with an agent people amend what its rounds run: they add calls, also ones that are locked, and discard
// what waits, while owners die and take over. All owners make the same of it, and no gate is passed.

// simAmendedRounds is what is known of the amendments of an agent's rounds.
type simAmendedRounds struct {
	said  map[string]bool   // what was asked for, by digest
	stand map[string]int    // records, by scope
	made  map[string]string // what owners made of them

	discards map[string]bool // what they discard, by token
}

const (
	amendedRoundReply = "_INBOX.amendedround."
	mostRoundAmends   = 14
	simAdded          = "amd"        // what ids of added calls begin with
	simFurther        = "amdfurther" // of those that refer to more of an earlier round than the answer does
)

// amendsRounds lets somebody ask for the next amendment of a round.
func (w *world) amendsRounds(id subjects.Run, n int) {
	if w.seed/11%5 > 2 || n == mostRoundAmends {
		return
	}
	w.at(w.upTo(w.knobs.faults/mostRoundAmends+60*time.Millisecond), func() {
		var x *truth
		for _, of := range w.truths.order {
			if of.id == id && of.agent {
				x = of
			}
		}
		if x != nil && x.start != nil {
			w.amendRound(x, n)
		}
		w.amendsRounds(id, n+1)
	})
}

func (w *world) amendRound(x *truth, n int) {
	as := x.roundAmends()
	round := 0
	for x.told["round "+subjects.Iteration("a", round+1)] {
		round++
	}
	scope := subjects.Iteration("a", max(0, round-w.Intn(4)/3))
	add := []json.RawMessage{fmt.Appendf(nil, `{"id":"%s%d","tool":"opener/a","arguments":{"n":%d}}`, simAdded, n, n)}
	if n%3 == 1 {
		add = append(add, fmt.Appendf(nil, `{"id":"%slate%d","tool":"late","depends_on":["%s%d"],"arguments":{"n":1}}`, simAdded, n, simAdded, n))
	}
	if n%3 == 2 {
		add = append(add, fmt.Appendf(nil, `{"id":"%slate%d","tool":"late","arguments":{"n":1}}`, simAdded, n))
	}
	if n%5 == 4 && round > 0 { // what it refers to of an earlier round may have been let go of
		add = append(add, fmt.Appendf(nil, `{"id":"%sold%d","tool":"opener/a","arguments":{"n":"$ref:r0.x.n"}}`, simAdded, n))
	}
	if n%2 == 1 && round > 0 && w.script()[0] == simScript[0] { // the answer does not refer to v
		add = append(add, fmt.Appendf(nil, `{"id":"%s%d","tool":"opener/a","arguments":{"v":"$ref:r0.v","n":"$ref:r0.x.n"}}`, simFurther, n))
	}
	r := wire.AmendRequest{Scope: scope, Revision: as.stand[scope], Change: wire.Change{Add: add}, By: "ann"}
	if n%4 == 3 {
		r.Discard.Steps = []string{"u"}
	}
	verb := subjects.VerbAmend
	if w.chance(2) {
		verb = subjects.VerbAmendApproved
	}
	as.said[r.Digest()] = true
	body, err := r.Body()
	if err != nil {
		panic(err)
	}
	for range 1 + w.Intn(2) {
		for _, o := range w.owners {
			o.after(w.latency(), func() {
				o.svc.request(&nats.Msg{Subject: subjects.API(x.id, verb), Reply: amendedRoundReply + x.id.ID, Data: body})
			})
		}
	}
}

func (x *truth) roundAmends() *simAmendedRounds {
	if x.amendedRounds == nil {
		x.amendedRounds = &simAmendedRounds{said: map[string]bool{}, stand: map[string]int{}, made: map[string]string{}, discards: map[string]bool{}}
	}
	return x.amendedRounds
}

// roundAmended checks that an amendment of a round is one that somebody asked for, with the next number.
func (t *truths) roundAmended(x *truth, rec subjects.Record, e *kv.Entry) {
	a, as := wire.ParseAmend(e.Data), x.roundAmends()
	switch {
	case !x.told["round "+rec.Step], !as.said[a.Digest], a.Round == nil:
		t.w.violate("I8", "an amendment of a round that nobody asked for: %s %s", e.Subject, e.Data)
	case rec.Number != as.stand[rec.Step]+1:
		t.w.violate("I11", "%s stands after %d amendments", e.Subject, as.stand[rec.Step])
	}
	as.stand[rec.Step]++
	for _, id := range a.Discard.Steps {
		as.discards[subjects.InScope(rec.Step, id)] = true
	}
	t.w.stats["a round was amended"]++
	if len(a.Round.Settled) > 0 {
		t.w.stats["a round was amended with what was locked"]++
	}
}

// reachedBack checks what a call is called with that refers to more of the first round than the answer does.
func (w *world) reachedBack(a subjects.Attempt, args []byte) {
	segments, _ := subjects.ParseStepToken(a.Step)
	if !strings.HasPrefix(segments[len(segments)-1].Name, simFurther) {
		return
	}
	first := w.truths.of(a.Run, a.Generation).succeeded["a/=0/x"]
	failed := string(args) == `{"v":1,"n":null}` && (!first || w.guards()) // a guard may have said no to what it returned
	if want := fmt.Sprintf(`{"v":1,"n":%d}`, w.seed%97); string(args) != want && !failed {
		w.violate("I11", "%s was called with %s, not %s", a.MessageID(), args, want)
	}
	w.stats["an added call referred to more of an earlier round"]++
}

// roundAmendAnswered takes the answer to a request for an amendment of a round.
func (t *truths) roundAmendAnswered(m *nats.Msg) (is bool) {
	id, is := strings.CutPrefix(m.Subject, amendedRoundReply)
	if !is {
		return false
	}
	if err := wire.ParseRefusal(m.Header, m.Data); err != nil {
		t.w.stats["an amendment of a round was refused: "+string(fault.CodeOf(err))]++
		switch fault.CodeOf(err) {
		case fault.Conflict, fault.AlreadyFinished, fault.NotFound, fault.NotReady, fault.InvalidID, fault.Overtaken, fault.UnknownRef, fault.DuplicateStep, fault.Permission, fault.NotAmendable, fault.Timeout: // the last where a store did not answer
		default:
			t.w.violate("I11", "an amendment of a round of %s was refused: %v", id, err)
		}
		return true
	}
	t.w.stats["an amendment of a round was answered"]++
	return true
}

// roundsAmendedAlike is I11 for rounds: each owner makes the same of the amendments that it has read.
func (o *orch) roundsAmendedAlike(r *run, x *truth) {
	if x.amendedRounds == nil || r.machine == nil || !machine.Settled(r.machine) {
		return
	}
	for _, a := range r.machine.Amendments() {
		key, made := fmt.Sprintf("%s %d", a.Scope, a.Revision), fmt.Sprintf("%s %v %d", a.Digest, a.Stale(), a.Steps())
		before, known := x.amendedRounds.made[key]
		if known && before != made {
			o.w.violate("I11", "%s makes of the amendment %s of %s: %s, and another made: %s", o.name, key, x.id.ID, made, before)
		}
		if a.Revision > x.amendedRounds.stand[a.Scope] {
			o.w.violate("I11", "%s has an amendment %s of %s that is not in the ledger", o.name, key, x.id.ID)
		}
		if known {
			o.w.stats["an amendment of a round was read by another owner, or again"]++
		}
		x.amendedRounds.made[key] = made
	}
}

// checkAmendedRounds: what was discarded while it waited never ran, what was added came to something, and no agent comes to an
// output that has nothing where a call of its answer was discarded.
func (t *truths) checkAmendedRounds(x *truth, doc *outcome.Run) {
	eachStep(doc.Steps, func(st *outcome.Step) {
		missed := func(s outcome.Step) bool {
			return strings.HasSuffix(s.ID, "/m") && s.Discarded && s.Status != outcome.StepSucceeded
		}
		if !slices.ContainsFunc(st.Steps, missed) {
			return
		}
		t.w.stats["a call that an output refers to was discarded"]++
		if string(st.Result) == `{"n":null}` {
			t.w.violate("I11", "%s came to %s, and what that refers to was discarded", st.ID, st.Result)
		}
	})
	eachStep(doc.Steps, func(st *outcome.Step) {
		segments, _ := subjects.ParseStepToken(st.ID)
		if strings.HasPrefix(segments[len(segments)-1].Name, simAdded) {
			t.w.stats["an added call: "+string(st.Status)]++
		}
		if !st.Discarded || !st.Ready.IsZero() || st.Status == outcome.StepSucceeded {
			return
		}
		t.w.stats["a call of a round was discarded before it was ready"]++
		if len(x.out[st.ID])+x.effects[st.ID] > 0 {
			t.w.violate("I12", "the call %s was discarded while it waited, and was dispatched", st.ID)
		}
	})
}

// amendedAny reports whether an amendment of a round stands.
func (x *truth) amendedAny() bool {
	return x.amendedRounds != nil && len(x.amendedRounds.stand) > 0
}

// agentsAmendedAlike is roundsAmendedAlike for all runs of a loop.
func (o *orch) agentsAmendedAlike(l *loop) {
	if len(o.w.truths.agents) == 0 {
		return
	}
	for _, r := range l.runs.byID {
		if x := o.w.truths.of(r.id, r.generation); x != nil && x.agent {
			o.roundsAmendedAlike(r, x)
			o.streamsAlike(r, x)
		}
	}
}
