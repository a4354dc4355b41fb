package orchestrator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/internal/lab/unfold"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Some of the plans that come in parts have a step besides whose plan is open too, and is amended by others meanwhile, until
// the last part discards it. What waits in it waits for a question that nobody answers. Where the run's plan was submitted for an approval, so does each of these amendments wait for
// one, under the token of that step.
const (
	innerScope = "INNER"
	innerMost  = 40 // steps that it may ever have, besides those that it is submitted with
)

// simInner is what is known of the amendments of the plan within.
type simInner struct {
	simRevisions
	said  map[string]bool               // digests of what was asked for
	tools []map[string]*wire.FrozenTool // of each revision
	waits []string                      // steps that may wait for its gate
	echo  string                        // the tool that they call
	over  bool
}

// withInner gives a plan in parts such a step.
func (w *world) withInner(u *unfold.Unfolded) {
	if !w.chance(2) {
		return
	}
	steps := []string{
		fmt.Sprintf(`{"id":"g","tool":"ask","arguments":{"question":"Within, %d?"}}`, len(w.truths.parts)),
		fmt.Sprintf(`{"id":"w","tool":%q,"depends_on":["g"]}`, simTools[0]),
	}
	u.Base = withStep(u.Base, innerStep(steps))
	for i := range innerMost {
		steps = append(steps, fmt.Sprintf(`{"id":"in%d","tool":%q}`, i, simTools[0]))
	}
	u.Whole = withStep(u.Whole, innerStep(steps))
	last := &u.Parts[len(u.Parts)-1]
	last.Discard = append(slices.Clip(last.Discard), innerScope)
}

func innerStep(steps []string) string {
	return fmt.Sprintf(`{"id":%q,"plan":{"open":true,"steps":[%s]}}`, innerScope, strings.Join(steps, ","))
}

// withStep is a plan with one more step.
func withStep(body []byte, step string) []byte {
	var doc map[string]json.RawMessage
	var steps []json.RawMessage
	_ = json.Unmarshal(body, &doc) // it was written by unfold
	_ = json.Unmarshal(doc["steps"], &steps)
	doc["steps"], _ = json.Marshal(append(steps, json.RawMessage(step)))
	body, _ = json.Marshal(doc)
	return body
}

// innerOf returns what is known of the plan within a plan in parts; nil where there is none.
func innerOf(u *unfold.Unfolded) *simInner {
	p, _ := plan.Parse(u.Base, nil)
	if p == nil {
		return nil
	}
	w, _, is := p.Find(innerScope + "/w")
	if !is {
		return nil
	}
	in := &simInner{echo: w.Tool, said: map[string]bool{}, waits: []string{"w"}, simRevisions: simRevisions{made: map[int]string{}}}
	if p.Approval != nil {
		in.proposals = &simProposals{
			Proposals: reference.NewProposalsWithin(p.Approval.ApproveOnTimeout), base: map[string]bool{"w": true}, approvers: map[string]bool{},
		}
	}
	return in
}

// gates are the steps that keep a plan in parts from its end.
func (as *simAmendments) gates() []string {
	if as.inner == nil {
		return []string{unfold.Gate}
	}
	return []string{unfold.Gate, innerScope}
}

// amendInner lets somebody amend the plan within: add what runs at once, or waits, discard what waits, or write it again.
func (w *world) amendInner(x *truth) {
	in := x.amendments.inner
	if in == nil || in.over || w.healed || !w.chance(2) || len(in.said) >= innerMost {
		return
	}
	id, old := fmt.Sprint("in", len(in.said)), in.waits[w.Intn(len(in.waits))]
	step := func(id, rest string) []json.RawMessage {
		return []json.RawMessage{fmt.Appendf(nil, `{"id":%q,"tool":%q%s}`, id, in.echo, rest)}
	}
	var c wire.Change
	switch w.Intn(5) {
	case 0, 1:
		c.Add = step(id, "")
	case 2:
		c.Add = step(id, `,"depends_on":["g"]`)
		in.waits = append(in.waits, id)
	case 3:
		c.Discard.Steps = []string{old}
	default:
		c.Discard.Steps = []string{old}
		c.Add = step(old, fmt.Sprintf(`,"depends_on":["g"],"arguments":{"again":%d}`, len(in.said)))
	}
	r := &wire.AmendRequest{Scope: innerScope, Revision: len(in.stand), Change: c, By: "eve"}
	in.said[r.Digest()] = true
	w.ask(x, r, in.proposals, innerReply)
}

const innerReply = "_INBOX.inner."

// innerRecorded is amendRecorded for the plan within.
func (t *truths) innerRecorded(x *truth, rec subjects.Record, e *kv.Entry, a wire.Amend) {
	in := x.amendments.inner
	if in == nil {
		in = &simInner{}
	}
	if !t.standsOnce(in.said[a.Digest], in.stand, rec, e, a) {
		return
	}
	t.w.stats["an amendment of a plan within another"]++
	in.stand, in.tools = append(in.stand, a.Digest), append(in.tools, a.Tools)
	ps := in.proposals
	if ps == nil {
		x.froze(a.Tools)
		return
	}
	switch {
	case a.Approved && !ps.approvers[a.Digest]:
		t.w.violate("I13", "an amendment within %s is recorded as approved, of which nobody approved: %s", x.id.ID, a.Digest)
	case !slices.Contains(a.Needs, wire.ApprovedAmendments):
		t.w.violate("needs", "an amendment within the approved plan %s needs nothing", x.id.ID)
	}
	added := map[string]bool{}
	for _, step := range a.Add {
		var s struct{ ID string }
		_ = json.Unmarshal(step, &s) // the owner read it
		added[s.ID] = true
	}
	ps.added = append(ps.added, added)
	ps.Amend(a.Approved)
	t.w.stats["an amendment of a plan within an approved one "+ps.States[len(ps.States)-1]]++
	x.amendments.recountIfBegun(x)
}

// innerAnswered takes note of an answer about an amendment of the plan within an approved one.
func (t *truths) innerAnswered(x *truth, rec subjects.Record, e *kv.Entry) {
	ps, a := x.amendments.inner.proposals, wire.ParseAnswer(e.Data)
	before := slices.Clone(ps.States)
	ps.Answer(&reference.Answer{Number: rec.Number, Other: a.Digest == "forged", Decision: a.Decision, Value: a.Value, Arguments: a.Arguments})
	for n, state := range ps.States {
		if before[n] != state {
			t.w.stats["an amendment of a plan within an approved one was asked for: "+a.Decision+", "+state]++
		}
	}
	x.amendments.recountIfBegun(x)
}

// recountIfBegun is recount once something of the run's own plan was.
func (as *simAmendments) recountIfBegun(x *truth) {
	if len(as.proposals.tools) == 0 {
		as.inner.froze(x)
		return
	}
	as.recount(x)
}

// froze lets the contracts count that amendments of the plan within froze, and which are in force.
func (in *simInner) froze(x *truth) {
	if in == nil {
		return
	}
	for n, tools := range in.tools {
		if in.proposals.States[n] == reference.AmendmentInForce {
			x.froze(tools)
		}
	}
}

// endInner says that the plan within is over: the last part has discarded it.
func (as *simAmendments) endInner() {
	if as.inner == nil || as.inner.over || as.done < len(as.parts.Parts) {
		return
	}
	as.inner.over = true
	if as.inner.proposals != nil {
		as.inner.proposals.End()
	}
}

// innerTold looks at the answer to a request for an amendment of the plan within.
func (t *truths) innerTold(m *nats.Msg) {
	rest, is := strings.CutPrefix(m.Subject, innerReply)
	if !is {
		return
	}
	id, number, _ := strings.Cut(rest, ".")
	gen, _ := strconv.ParseUint(number, 10, 64)
	if err := wire.ParseRefusal(m.Header, m.Data); err != nil {
		t.w.log("an amendment within %s was refused: %v", id, err)
		return
	}
	var r wire.AmendReply
	_ = json.Unmarshal(m.Data, &r)
	stands := slices.ContainsFunc(t.order, func(x *truth) bool { // the id may have been used again since
		return x.id == subjects.NewRun("t", id) && x.gen >= gen && x.amendments != nil && x.amendments.inner != nil && r.Revision <= len(x.amendments.inner.stand)
	})
	if r.Scope != innerScope || r.Revision < 1 || !stands {
		t.w.violate("I11", "revision %d within %s is in force, of which there is no record: %s", r.Revision, id, m.Data)
	}
	t.w.stats["an amendment of a plan within another was answered"]++
}

// askedInner returns the question about an amendment of the plan within; nil for none.
func askedInner(r *run) (about *machine.Question) {
	r.machine.Questions(func(q *machine.Question) {
		if q.Amendment != nil && q.Step != machine.ThePlan {
			about = q
		}
	})
	return about
}
