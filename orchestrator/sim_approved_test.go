package orchestrator

import (
	"encoding/json"
	"maps"
	"math/rand"
	"slices"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/internal/lab/unfold"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Some of the plans that come in parts are submitted for an approval: then each part waits for its own, unless an approver
// hands it out. Which amendments that lets be in force the reference finds out from the records alone.

// proposes is whether this is such a world.
func (w *world) proposes() bool { return w.unfolds() && w.seed/14%2 == 1 }

// forApproval lets a plan in parts say that it is to be approved of.
func (w *world) forApproval(u *unfold.Unfolded) {
	approval := json.RawMessage(pickOne(w, `true`, `{"timeout":"700ms","on_timeout":"approve"}`, `{"timeout":"2s"}`))
	says := func(body []byte) []byte {
		var doc map[string]json.RawMessage
		_ = json.Unmarshal(body, &doc) // it was written by unfold
		doc["approval"] = approval
		body, _ = json.Marshal(doc)
		return body
	}
	u.Base, u.Whole = says(u.Base), says(u.Whole)
	w.stats["a plan in parts that is approved of"]++
}

// simProposals is what is known of the amendments of an approved plan.
type simProposals struct {
	*reference.Proposals
	base      map[string]bool               // ids of the steps that were submitted
	added     []map[string]bool             // and of those that each revision adds
	parts     []int                         // what each revision is: a part, or -1 for a rival's
	tools     []map[string]*wire.FrozenTool // those of the start, and of each revision
	approvers map[string]bool               // digests of what approvers asked for
}

// proposalsFor returns those of a plan in parts; nil for one that nobody has to approve of.
func proposalsFor(u *unfold.Unfolded) *simProposals {
	p, _ := plan.Parse(u.Base, nil)
	if p == nil || p.Approval == nil {
		return nil
	}
	ps := &simProposals{Proposals: reference.NewProposals(p.Approval.ApproveOnTimeout), base: map[string]bool{}, approvers: map[string]bool{}}
	for i := range p.Steps {
		ps.base[p.Steps[i].ID] = true
	}
	return ps
}

// verb is that of who asks for an amendment: now and then an approver does.
func (ps *simProposals) verb(rng *rand.Rand, digest string) string {
	if ps == nil || !ps.approvers[digest] && rng.Intn(4) > 0 {
		return subjects.VerbAmend
	}
	ps.approvers[digest] = true
	return subjects.VerbAmendApproved
}

// proposed takes note of the record of an amendment of an approved plan.
func (t *truths) proposed(x *truth, part int, a wire.Amend) {
	ps := x.amendments.proposals
	if a.Approved && !ps.approvers[a.Digest] {
		t.w.violate("I13", "an amendment of %s is recorded as approved, of which nobody approved: %s", x.id.ID, a.Digest)
	}
	if !slices.Contains(a.Needs, wire.ApprovedAmendments) {
		t.w.violate("needs", "an amendment of the approved plan %s needs nothing", x.id.ID)
	}
	added := map[string]bool{}
	for _, step := range a.Add {
		var s struct{ ID string }
		_ = json.Unmarshal(step, &s) // the owner read it
		added[s.ID] = true
	}
	if len(ps.tools) == 0 {
		ps.tools = append(ps.tools, x.start.Tools)
	}
	ps.added, ps.parts, ps.tools = append(ps.added, added), append(ps.parts, part), append(ps.tools, a.Tools)
	ps.Amend(a.Approved)
	t.w.stats["an amendment of an approved plan "+ps.States[len(ps.States)-1]]++
	x.amendments.recount(x)
}

// recount finds out which parts of an approved plan stand, which steps of rivals, and which contracts. Those that a revision
// froze which is not in force count for nobody.
func (as *simAmendments) recount(x *truth) {
	as.done, as.rivals = 0, nil
	x.start.Tools = maps.Clone(as.proposals.tools[0])
	for n, state := range as.proposals.States {
		if state == reference.AmendmentInForce {
			x.froze(as.proposals.tools[n+1])
		}
		switch part := as.proposals.parts[n]; {
		case state != reference.AmendmentInForce:
		case part >= 0:
			as.done = part + 1
		default:
			as.rivals = append(as.rivals, slices.Sorted(maps.Keys(as.proposals.added[n]))...)
		}
	}
	as.inner.froze(x)
	as.endInner()
}

// proposalAnswered takes note of an answer about an approved plan or an amendment of it; false for any other.
func (t *truths) proposalAnswered(x *truth, rec subjects.Record, e *kv.Entry) bool {
	if x.amendments == nil || x.amendments.proposals == nil || rec.Step != subjects.RootScope && rec.Step != innerScope {
		return false
	}
	if rec.Step == innerScope {
		t.innerAnswered(x, rec, e)
		return true
	}
	ps, a := x.amendments.proposals, wire.ParseAnswer(e.Data)
	before := slices.Clone(ps.States)
	ps.Answer(&reference.Answer{Number: rec.Number, Other: a.Digest == "forged", Decision: a.Decision, Value: a.Value, Arguments: a.Arguments})
	for n, state := range ps.States {
		if before[n] != state {
			t.w.stats["an amendment of an approved plan was asked for: "+a.Decision+", "+state]++
		}
	}
	switch {
	case ps.Begun() && x.answers == nil:
		x.answers = map[string]wire.Answer{subjects.RootScope: a}
	case ps.Refused():
		x.disturbed, x.amendments.givenUp = true, true
	}
	if len(ps.tools) > 0 {
		x.amendments.recount(x)
	}
	q := t.w.questions.entries[subjects.QuestionKey(x.id, x.gen, rec.Step)].doc
	if q != nil && q.Number == rec.Number && q.Until != nil && a.Decision == wire.Expire && e.Time.Before(*q.Until) {
		t.w.violate("time", "nobody was to answer about %s any more %v too early", x.id.ID, q.Until.Sub(e.Time))
	}
	return true
}

// checkProposed is I13 of amendments: no step is sent that nobody approved of.
func (t *truths) checkProposed(x *truth, token string) {
	if x.amendments == nil || x.amendments.proposals == nil || x.early {
		return
	}
	ps := x.amendments.proposals
	segments, _ := subjects.ParseStepToken(token)
	if len(segments) > 1 && segments[0].Name == innerScope {
		ps, segments = x.amendments.inner.proposals, segments[1:]
		t.w.stats["dispatch of what an amendment of a plan within an approved one has, or that plan itself"]++
	}
	if id := segments[0].Name; !ps.base[id] && !ps.approves(id) {
		t.w.violate("I13", "%s was dispatched, of whose amendment nobody has approved", token)
	}
}

// approves reports whether an amendment is in force that adds a step.
func (ps *simProposals) approves(id string) bool {
	for n, state := range ps.States {
		if state == reference.AmendmentInForce && ps.added[n][id] {
			return true
		}
	}
	return false
}

// answerProposal lets somebody answer about an approved plan, or an amendment of it; false for any other question.
func (w *world) answerProposal(q *outcome.Question, x *truth, say func(wire.Answer)) bool {
	if x == nil || x.amendments == nil || x.amendments.proposals == nil || q.Step != subjects.RootScope && q.Step != innerScope {
		return false
	}
	yes := wire.Answer{Digest: q.Digest, Decision: wire.Approve, By: "ann"}
	no := wire.Answer{Digest: q.Digest, Decision: wire.Reject, By: "bob"}
	n := w.Intn(8)
	switch {
	case w.healed:
		say(yes)
	case n == 0: // who writes to the ledger past all owners
		subject := subjects.AnswerRecord(x.id, q.Generation, q.Step, q.Number, len(w.shards))
		h, body := wire.Answer{Digest: "forged", Decision: wire.Approve, By: "eve"}.Message()
		if !x.gone {
			w.streamOf(subject).create(subject, h, body, nil)
		}
	case n == 1:
		stale := yes
		stale.Digest = "of something else"
		say(stale)
	case n == 2 && q.Revision > 0:
		say(no)
	case n == 3 && q.Revision > 0:
		say(yes)
		say(no)
	default:
		say(yes)
		say(yes)
	}
	return true
}

// madeOf compares what an owner makes of an amendment with what the records say.
func (o *orch) madeOf(x *truth, revisions *simRevisions, a *machine.Amendment) {
	ps := revisions.proposals
	if ps == nil {
		return
	}
	want := ps.States[a.Revision-1]
	if a.InForce() && want != reference.AmendmentInForce {
		o.w.violate("I11", "%s follows revision %d of %s, of which the ledger says: %s", o.name, a.Revision, x.id.ID, want)
	}
}

// approveUntold lets an owner believe in approvals of amendments that are in no ledger.
func (o *orch) approveUntold(l *loop) {
	for _, r := range l.runs.oldestFirst(func(r *run) bool { return r.phase == running && !r.busy }) {
		q := r.machine.Question(machine.Call{Step: machine.ThePlan})
		if o.w.bug == approveInnerUntold {
			q = askedInner(r)
		}
		if q == nil || q.Amendment == nil || !o.w.chance(10) {
			continue
		}
		var eff machine.Effects
		r.machine.Apply(machine.Record{Seq: r.lastSeq + 1_000_000, Time: r.machine.LastTime(), Answer: &machine.Answer{
			Call: q.Call, Number: q.Number, Digest: q.Digest, Decision: machine.Approve,
		}}, r.machine.LastTime(), &eff)
	}
}

// takenForApproved spoils the record of an amendment on its way from the ledger: it is read as one that waits for nobody.
func takenForApproved(e kv.Entry) kv.Entry {
	a := wire.ParseAmend(e.Data)
	a.Approved = true
	e.Data, _ = json.Marshal(a)
	return e
}
