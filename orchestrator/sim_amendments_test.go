package orchestrator

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/internal/lab/unfold"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// In some worlds plans come in parts, by amendments, while rivals amend them too, owners die, and two of them are at work
// for a moment. What a run comes to is compared with what its plan comes to as a whole.

// unfolds is whether this is such a world.
func (w *world) unfolds() bool { return w.nests() && w.seed/7%2 == 1 && !w.approving() }

// inParts takes a plan apart; one that can't be comes as it is.
func (w *world) inParts(body []byte, nested *reference.Nested) []byte {
	p, _ := plan.ParseLimited(body, nil, plan.Limits{Templates: w.templates.plans})
	if p == nil || !w.unfolds() {
		return body
	}
	u, ok := unfold.Plan(rand.New(rand.NewSource(w.Int63())), body, p, unfold.Tools{
		Echo: simTools[0], Broken: simTools[2], Gate: fmt.Appendf(nil, `{"id":"GATE","tool":"ask","arguments":{"question":"Open, %d?"}}`, len(w.truths.parts)), // so no two plans begin alike
	})
	if !ok {
		return body
	}
	w.stats["a plan in parts"]++
	if w.proposes() {
		w.forApproval(u)
	}
	w.withInner(u)
	w.truths.parts[plan.Digest(u.Base)] = u
	w.truths.nested[plan.Digest(u.Base)] = nested
	return u.Base
}

// simAmendments is what is known of the amendments of a run, and of who makes them.
type simAmendments struct {
	simRevisions
	parts   *unfold.Unfolded
	said    map[string]int // what was asked for, by digest: the part, or -1 for a rival's
	done    int            // parts that stand
	rivals  []string       // steps that they added
	refused int            // how often the next part was
	givenUp bool           // it will not come to the whole
	inner   *simInner      // of a plan within it; nil for none
}

// simRevisions is what is known of the amendments of one scope.
type simRevisions struct {
	stand []string       // digests of the records, in the order of their numbers
	made  map[int]string // what owners made of the records, by their numbers

	proposals *simProposals // of a plan that was submitted for an approval; nil for any other
}

// amendments of a run whose plan comes in parts, nil for any other.
func (t *truths) amendmentsFor(digest string) *simAmendments {
	u := t.parts[digest]
	if u == nil {
		return nil
	}
	return &simAmendments{parts: u, said: map[string]int{}, inner: innerOf(u), simRevisions: simRevisions{made: map[int]string{}, proposals: proposalsFor(u)}}
}

// amends lets somebody hand out the parts of a run's plan, until it is over.
func (w *world) amends(x *truth) {
	w.at(20*time.Millisecond+w.upTo(300*time.Millisecond), func() {
		if x.gone || x.amendments.done == len(x.amendments.parts.Parts) {
			return
		}
		if x.start != nil && !x.start.Rejected() {
			w.amendNext(x)
			w.amendInner(x)
		}
		w.amends(x)
	})
}

// amendNext asks for the next part, and now and then somebody for something else at once.
func (w *world) amendNext(x *truth) {
	as := x.amendments
	n := as.done
	part := as.parts.Parts[n]
	change := wire.Change{Add: part.Add, Discard: wire.Discard{Steps: part.Discard}, Output: part.Output, OutputSteps: part.OutputSteps, Close: part.Close}
	if part.Close {
		change.Discard.Steps = slices.Concat(part.Discard, as.rivals)
	}
	if as.refused > 5 || as.givenUp { // a tool that nobody has, say: what is there may go on
		as.givenUp, n = true, len(as.parts.Parts)-1
		change = wire.Change{Discard: wire.Discard{Steps: as.gates()}, Close: true}
	}
	ask := func(part int, c wire.Change) {
		r := wire.AmendRequest{Scope: subjects.RootScope, Revision: len(as.stand), Change: c, By: "ann"}
		as.said[r.Digest()] = part
		w.ask(x, &r, as.proposals, amendedReply)
	}
	if !w.healed && !as.givenUp && w.chance(4) {
		id := fmt.Sprintf("RIVAL%d", len(as.stand))
		ask(-1, wire.Change{Add: []json.RawMessage{fmt.Appendf(nil, `{"id":%q,"tool":%q}`, id, simTools[0])}})
	}
	ask(n, change)
}

const amendedReply = "_INBOX.amended."

// ask asks all owners for an amendment, once or twice.
func (w *world) ask(x *truth, r *wire.AmendRequest, proposals *simProposals, reply string) {
	verb := proposals.verb(w.Rand, r.Digest())
	body, err := r.Body()
	if err != nil {
		panic(err)
	}
	for range 1 + w.Intn(2) {
		for _, o := range w.owners {
			o.after(w.latency(), func() {
				if x.gone { // who asks names the run alone: it would be for a plan that was submitted again since
					return
				}
				o.svc.request(&nats.Msg{Subject: subjects.API(x.id, verb), Reply: reply + x.id.ID + "." + strconv.FormatUint(x.gen, 10), Data: body})
			})
		}
	}
}

// standsOnce checks that an amendment is one that somebody asked for, and comes behind those that stand, once.
func (t *truths) standsOnce(asked bool, stand []string, rec subjects.Record, e *kv.Entry, a wire.Amend) bool {
	switch {
	case !asked:
		t.w.violate("I8", "an amendment that nobody asked for: %s %s", e.Subject, e.Data)
	case rec.Number != len(stand)+1:
		t.w.violate("I11", "%s stands after %d amendments", e.Subject, len(stand))
	case slices.Contains(stand, a.Digest):
		t.w.violate("I11", "%s is an amendment that stands already", e.Subject)
	default:
		return true
	}
	return false
}

// amendRecorded checks that the amendments of a run are those that somebody asked for, each number once.
func (t *truths) amendRecorded(x *truth, rec subjects.Record, e *kv.Entry) {
	if x.streams != nil && x.start != nil && strings.HasSuffix(rec.Step, "/=stream") {
		t.streamAmended(x, rec, e)
		return
	}
	if x.agent && x.start != nil && subjects.IsIteration(rec.Step) {
		t.roundAmended(x, rec, e)
		return
	}
	a, as := wire.ParseAmend(e.Data), x.amendments
	if t.closedByOwner(x, rec, e) {
		return
	}
	if as == nil || x.start == nil || x.start.Rejected() {
		t.w.violate("I8", "an amendment that nobody asked for: %s", e.Subject)
		return
	}
	if rec.Step == innerScope {
		t.innerRecorded(x, rec, e, a)
		return
	}
	part, asked := as.said[a.Digest]
	if !t.standsOnce(asked, as.stand, rec, e, a) {
		return
	}
	as.stand, as.refused = append(as.stand, a.Digest), 0
	if as.proposals != nil {
		t.proposed(x, part, a)
		return
	}
	x.froze(a.Tools)
	if part < 0 {
		t.w.stats["an amendment by a rival"]++
		as.rivals = append(as.rivals, fmt.Sprintf("RIVAL%d", rec.Number-1))
		return
	}
	t.w.stats["an amendment"]++
	as.done = part + 1
	as.endInner()
}

// amendAnswered looks at the answer to a request for an amendment.
func (t *truths) amendAnswered(m *nats.Msg) {
	rest, is := strings.CutPrefix(m.Subject, amendedReply)
	if !is {
		return
	}
	id, number, _ := strings.Cut(rest, ".")
	gen, _ := strconv.ParseUint(number, 10, 64)
	x := t.of(subjects.NewRun("t", id), gen)
	if x == nil || x.amendments == nil {
		t.w.violate("I8", "an answer about a run that there is not: %s", m.Subject)
		return
	}
	as := x.amendments
	if err := wire.ParseRefusal(m.Header, m.Data); err != nil {
		code := fault.CodeOf(err)
		t.w.stats["an amendment was refused: "+string(code)]++
		t.w.log("an amendment of %s was refused: %v", id, err)
		switch code {
		case fault.Conflict, fault.AlreadyFinished, fault.NotFound, fault.Rejected:
		case fault.Overtaken:
			as.givenUp = true
		default:
			as.refused++
		}
		return
	}
	var r wire.AmendReply
	_ = json.Unmarshal(m.Data, &r)
	if r.Revision < 1 || !t.revisionStands(x, r.Revision) {
		t.w.violate("I11", "revision %d of %s is in force, of which there is no record: %s", r.Revision, id, m.Data)
	}
	t.w.stats["an amendment was answered"]++
}

// froze takes note of the contracts that an amendment froze, as far as there are none yet.
func (x *truth) froze(tools map[string]*wire.FrozenTool) {
	if x.start.Tools == nil {
		x.start.Tools = map[string]*wire.FrozenTool{}
	}
	for name, tool := range tools {
		if x.start.Tools[name] == nil {
			x.start.Tools[name] = tool
		}
	}
}

// revisionStands reports whether a run has so many revisions. Who asks names its id alone: if a plan was submitted under it
// again since, the answer is about that one.
func (t *truths) revisionStands(asked *truth, revision int) bool {
	return slices.ContainsFunc(t.order, func(x *truth) bool {
		return x.id == asked.id && x.gen >= asked.gen && x.amendments != nil && revision <= len(x.amendments.stand)
	})
}

// amendedAlike sees that each owner makes the same of the amendments that it has read: the same numbers in the same
// order, each in force or stale.
func (o *orch) amendedAlike(l *loop) {
	if len(o.w.truths.parts) == 0 {
		return
	}
	for _, r := range l.runs.byID {
		x := o.w.truths.of(r.id, r.generation)
		if x == nil || x.amendments == nil || r.machine == nil || !machine.Settled(r.machine) {
			continue
		}
		number := map[string]int{}
		for _, a := range r.machine.Amendments() {
			i := number[a.Scope]
			number[a.Scope]++
			revisions := &x.amendments.simRevisions
			if a.Scope == innerScope {
				revisions = &x.amendments.inner.simRevisions
			}
			o.amendmentAlike(x, revisions, i, a)
		}
	}
}

// amendmentAlike is amendedAlike for one amendment, which an owner has read as the one after i others of its scope.
func (o *orch) amendmentAlike(x *truth, revisions *simRevisions, i int, a *machine.Amendment) {
	if i < len(revisions.stand) {
		o.madeOf(x, revisions, a)
	}
	if a.Waits() {
		return // what it comes to is not known yet
	}
	made := fmt.Sprintf("%s %v %d", a.Digest, a.Stale(), a.Steps())
	before, known := revisions.made[i+1]
	switch {
	case a.Revision != i+1:
		o.w.violate("I11", "%s takes revision %d of %s in %s for the one after %d", o.name, a.Revision, a.Scope, x.id.ID, i)
	case known && before != made:
		o.w.violate("I11", "%s makes of revision %d of %s in %s: %s, and another made: %s", o.name, a.Revision, a.Scope, x.id.ID, made, before)
	case known:
		o.w.stats["an amendment was read by another owner, or again"]++
	case i >= len(revisions.stand) || a.Digest != revisions.stand[i]:
		o.w.violate("I11", "%s has a revision %d of %s in %s that is not in the ledger", o.name, a.Revision, a.Scope, x.id.ID)
	}
	revisions.made[i+1] = made
}

// checkI12: what was discarded before it was ready never ran.
func (t *truths) checkI12(x *truth, doc *outcome.Run) {
	eachStep(doc.Steps, func(st *outcome.Step) {
		if !st.Discarded || !st.Ready.IsZero() || st.Status == outcome.StepSucceeded || st.ID == innerScope {
			return
		}
		t.w.stats["a step was discarded before it was ready"]++
		if strings.HasPrefix(st.ID, innerScope+"/") {
			t.w.stats["a step of a plan within another was discarded before it was ready"]++
		}
		if len(x.out[st.ID])+x.effects[st.ID] > 0 {
			t.w.violate("I12", "step %s was discarded while it waited, and was dispatched", st.ID)
		}
	})
}

// wholeOf is the plan of a run that comes in parts, with all steps that it may ever have.
func (as *simAmendments) wholeOf(templates map[string]*plan.Template) *plan.Plan {
	var doc map[string]json.RawMessage
	var steps []json.RawMessage
	_ = json.Unmarshal(as.parts.Whole, &doc)
	_ = json.Unmarshal(doc["steps"], &steps)
	for i := range 60 {
		steps = append(steps, fmt.Appendf(nil, `{"id":"RIVAL%d","tool":%q}`, i, simTools[0]))
	}
	doc["steps"], _ = json.Marshal(steps)
	body, _ := json.Marshal(doc)
	p, report := plan.ParseLimited(body, nil, plan.Limits{Templates: templates})
	if p == nil {
		panic(fmt.Sprint(report.Problems))
	}
	return p
}

// amendUntold lets an owner believe in an amendment that is in no ledger.
func (o *orch) amendUntold(l *loop) {
	for _, r := range l.runs.oldestFirst(func(r *run) bool { return r.phase == running && !r.busy }) {
		now, _ := machine.Revision(r.machine, subjects.RootScope)
		if r.plan.Open && o.w.chance(20) {
			var eff machine.Effects
			r.machine.Apply(machine.Record{Seq: r.lastSeq + 1_000_000, Time: r.machine.LastTime(), Amendment: &machine.Amendment{
				Scope: subjects.RootScope, Revision: now + 1, Digest: "untold", Discard: []string{unfold.Gate},
			}}, r.machine.LastTime(), &eff)
		}
	}
}
