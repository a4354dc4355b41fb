package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// A for_each step that did not come to its end, or some of whose entries failed, is tried again item by item: what an
// item came to is taken over, so that its effect is not repeated. "S=3" names a place in a list. Only while the list
// has the same bytes is it the same call.

// listDigest returns the SHA-256 of a list as a JSON array, without white space between its elements.
func listDigest(list [][]byte) string {
	h := sha256.New()
	sep := "["
	for _, element := range list {
		_, _ = h.Write([]byte(sep)) // hashes take everything
		_, _ = h.Write(element)
		sep = ","
	}
	if len(list) == 0 {
		_, _ = h.Write([]byte(sep))
	}
	_, _ = h.Write([]byte("]"))
	return hex.EncodeToString(h.Sum(nil))
}

// unfinished marks what is out of date because something that it depends on is tried again: all that depends on a
// for_each step which succeeded with failed entries, and in language 2 all that depends on a step which did not succeed.
// For there a step may have succeeded because another failed.
func unfinished(steps []outcome.Step, p *plan.Plan) map[int]bool {
	marked := map[int]bool{}
	for i := range steps {
		st := &steps[i]
		at, ok := indexOf(p, st)
		if ok && (st.Status == outcome.StepSucceeded && st.FailedWithin() || p.Language > 1 && st.Status.Unsuccessful()) {
			for _, d := range p.Dependents(at) {
				descendants(p, d, marked)
			}
		}
	}
	return marked
}

// keyOf returns the idempotency key that a call had in a finished run, or in the one that this one tried again; "" for
// none.
func keyOf(doc *outcome.Run, st *outcome.Step) string {
	if st.Ready.IsZero() || st.Reused {
		return st.RetriedKey
	}
	return doc.Tenant + "/" + subjects.NewRun(doc.Tenant, doc.Run).ID + "/" + strconv.FormatUint(doc.Generation, 10) + "/" + st.ID
}

// keepKey notes the idempotency key that a call had; "" for none.
func keepKey(u *wire.Reuse, token, key string) {
	if key == "" {
		return
	}
	if u.Keys == nil {
		u.Keys = map[string]string{}
	}
	u.Keys[token] = key
}

// keepKeys notes the idempotency keys of a step and of those within it, also of what is taken over: the retry of the
// retry may execute it again. Those within items are not noted: another list may have others in their place;
// nor are those of iterations, of which another may be made of another last, and of the rounds of agents.
func keepKeys(u *wire.Reuse, doc *outcome.Run, st *outcome.Step) {
	if len(st.Steps) == 0 {
		keepKey(u, st.ID, keyOf(doc, st))
	}
	if st.HasRounds() { // a planner that is asked again may answer otherwise
		return
	}
	for i := range st.Steps {
		if st.Steps[i].Items == nil && !subjects.IsIteration(st.Steps[i].ID) {
			keepKeys(u, doc, &st.Steps[i])
		}
	}
}

// fillItems takes over what the items of a for_each step came to; where results is false, only the keys that they had.
func (j *judge) fillItems(f *filler, u *wire.Reuse, doc *outcome.Run, st *outcome.Step, results bool) error {
	if st.List == "" || len(st.Items) == 0 {
		return nil
	}
	values, err := j.pastItems(f, doc, st, results)
	if err != nil {
		return err
	}
	x := &wire.ReusedItems{List: st.List, Count: len(st.Items), Results: map[int]wire.ReusedResult{}, Keys: map[int]string{}}
	for i := range st.Items {
		if values[i] != nil {
			if x.Results[i], err = f.take(values[i]); err != nil {
				return err
			}
		}
		if key := keyOf(doc, &st.Items[i]); key != "" {
			x.Keys[i] = key
		}
	}
	if u.Items == nil {
		u.Items = map[string]*wire.ReusedItems{}
	}
	u.Items[st.ID] = x
	return nil
}

// pastItems returns the results of the successful items of a finished for_each step, nil for all others: from the
// step's own result, or where it has none from the items.
func (j *judge) pastItems(f *filler, doc *outcome.Run, st *outcome.Step, wanted bool) ([][]byte, error) {
	values := make([][]byte, len(st.Items))
	if !wanted {
		return values, nil
	}
	whole, err := j.pastResult(f.ctx, doc, st, true)
	if err != nil {
		return nil, err
	}
	var entries []struct {
		Status string          `json:"status"`
		Data   json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(whole, &entries) // without them each item is asked
	for i := range st.Items {
		x := &st.Items[i]
		switch {
		case x.Status != outcome.StepSucceeded || x.FailedWithin():
		case x.Result == nil && x.Blob == nil && len(entries) == len(st.Items) && entries[i].Status == "ok":
			values[i] = entries[i].Data
		case x.Result != nil || x.Blob != nil:
			if values[i], err = j.pastResult(f.ctx, doc, x, false); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// calls adds what a retry of this run needs to know of a step: the list of a for_each step, what its items came to
// where the step itself has no result, and which keys calls had in an earlier run that this one didn't reach.
func (d *documents) calls(ctx context.Context, r *run, i int, st *outcome.Step, inOutcome bool, room *room) {
	if st.Ready.IsZero() || st.Reused {
		st.RetriedKey = r.retriedKey(machine.Call{Step: i})
	}
	_, expanded := r.machine.Items(i)
	switch {
	case expanded:
		st.List = listDigest(d.values.listed(ctx, r, i))
	case st.Status != outcome.StepSucceeded || st.Reused:
		st.List, st.Items = r.unreached(i, st.Status)
	}
	alone := expanded && !inOutcome && st.Result == nil && st.Blob == nil
	for item := range st.Items {
		x, c := &st.Items[item], machine.Call{Step: i, Item: item + 1}
		if expanded && (x.Ready.IsZero() || x.Reused) {
			x.RetriedKey = r.retriedKey(c)
		}
		if alone && x.Status == outcome.StepSucceeded {
			s := sourceOf(r, r.machine.Result(c))
			if x.Result, x.Blob, x.Text = s.value, s.blob, s.text && s.blob != nil; s.blob == nil && s.apart() {
				x.Result, _ = d.values.read(ctx, &s)
			}
		}
		d.fit(ctx, r, x, room)
	}
}

// reusedItems returns the results of items in the machine's form, by item from 1.
func reusedItems(x *wire.ReusedItems, step int) map[int]*machine.Result {
	all := make(map[int]*machine.Result, len(x.Results))
	for i, res := range x.Results {
		all[i+1] = reusedResult(res, machine.Call{Step: step, Item: i + 1})
	}
	return all
}

func reusedResult(x wire.ReusedResult, c machine.Call) *machine.Result {
	return &machine.Result{Call: c, Attempt: 1, Value: x.Value, Handle: x.Blob, Text: x.Text, Size: x.Size, ByOwner: true}
}

// sameList returns what is taken over of a for_each step whose list is known by now, if that is the one of before.
func (r *run) sameList(step int) *wire.ReusedItems {
	x := r.start.Reuse.ItemsOf(r.token(machine.Call{Step: step}))
	if x == nil || !r.same[step] {
		return nil
	}
	return x
}

// takeOver tells the machine which items of a list are not executed. It comes before the length of the list.
func (r *run) takeOver(step int, list [][]byte) {
	x := r.start.Reuse.ItemsOf(r.token(machine.Call{Step: step}))
	if x == nil || x.Count != len(list) || x.List != listDigest(list) {
		return
	}
	if r.same == nil {
		r.same = map[int]bool{}
	}
	r.same[step] = true
	r.machine.TakeOver(step, reusedItems(x, step))
}

// retriedKey returns the idempotency key that a call had in the run that this one tries again; "" for none.
func (r *run) retriedKey(c machine.Call) string {
	switch {
	case r.start.Reuse == nil:
		return ""
	case c.Item == 0:
		return r.start.Reuse.Keys[r.token(c)]
	}
	if x := r.sameList(c.Step); x != nil {
		return x.Keys[c.Item-1]
	}
	return ""
}

// unreached returns the items of a for_each step that this run never came to, as they were taken over: for the retry of
// this one.
func (r *run) unreached(step int, status outcome.StepStatus) (list string, items []outcome.Step) {
	x := r.start.Reuse.ItemsOf(r.token(machine.Call{Step: step}))
	if x == nil {
		return "", nil
	}
	below := r.neverReached(status)
	items = make([]outcome.Step, x.Count)
	for i := range items {
		st := &items[i]
		st.ID, st.Tool, st.Status = r.token(machine.Call{Step: step, Item: i + 1}), r.step(step).Tool, below.status
		if res, ok := x.Results[i]; ok {
			st.Status, st.Reused, st.Result, st.Blob, st.Bytes = outcome.StepSucceeded, true, res.Value, res.Blob, res.Size
			st.Text = res.Text && res.Blob != nil
		}
		st.Reused = st.Reused || status == outcome.StepSucceeded // as a whole
		st.RetriedKey = x.Keys[i]
		if !st.Reused {
			st.Steps = below.within(r.step(step), st.ID)
		}
	}
	return x.List, items
}

// unreached are the steps of composites that a run never came to, as they were taken over.
type unreached struct {
	*wire.Reuse
	status outcome.StepStatus
}

// neverReached is what a step that ended with a status never came to. One that failed as a whole did not fail of that.
func (r *run) neverReached(status outcome.StepStatus) unreached {
	if status == outcome.StepFailed {
		status = outcome.StepCancelled
	}
	return unreached{r.start.Reuse, status}
}

// within returns the steps of a composite; nil where nothing of them was taken over.
func (u unreached) within(of *plan.Step, token string) (all []outcome.Step) {
	if of.Plan == nil || u.Reuse == nil || of.Agent() != nil && of.Repeat == nil {
		return nil
	}
	if of.Repeat != nil {
		for i := range of.Repeat.Max {
			st, some := u.step(of.Does(), subjects.Iteration(token, i))
			if !some {
				break
			}
			all = append(all, st)
		}
		return all
	}
	some := false
	for i := range of.Plan.Steps {
		s := &of.Plan.Steps[i]
		st, is := u.step(s, subjects.InScope(token, s.ID))
		all, some = append(all, st), some || is
	}
	if !some {
		return nil
	}
	return all
}

// step returns one of them, and whether something of it was taken over.
func (u unreached) step(s *plan.Step, token string) (st outcome.Step, some bool) {
	st.ID, st.Tool, st.Status, st.RetriedKey = token, s.Tool, u.status, u.Keys[token]
	if res, ok := u.Steps[token]; ok {
		st.Status, st.Reused, st.Result, st.Blob, st.Bytes = outcome.StepSucceeded, true, res.Value, res.Blob, res.Size
		st.Text = res.Text && res.Blob != nil
	} else {
		st.Steps = u.within(s, token)
	}
	return st, st.Reused || st.RetriedKey != "" || st.Steps != nil
}

// sameAbove reports whether the items that a call stands in are those of the run that this one tries again.
func (r *run) sameAbove(c machine.Call) bool {
	for ; c.Step != machine.ThePlan; c = r.machine.Composite(c.Step) {
		if c.Item > 0 && !r.same[c.Step] {
			return false
		}
	}
	return true
}

// An agent that did not come to its end is tried again from the first of its rounds that is not whole. What those before
// came to is not frozen as a whole: each call that would be sent, of a planner too, is answered with what it came to then, as
// long as everything before it in the loop was. So the loop goes through its rounds as it did then, everything is looked at
// again that follows from them, and nobody is asked or paid twice.

// rounds takes over those of an agent. whole is whether nothing of it has to be made anew.
func (x *takeover) rounds(ctx context.Context, st *outcome.Step, name string) (whole bool, err error) {
	digest, known := x.doc.Agents[name]
	if !known {
		return false, nil
	}
	d, err := x.reg.definition(ctx, name, x.tools[name])
	if err != nil {
		return false, err
	}
	most, guarded := agents.Lasting(d)
	if agents.Digest(d) != digest || guarded {
		return false, nil
	}
	rounds := roundsIn(st)
	if e := st.Error; e != nil && e.Code == fault.RoundsExhausted && len(rounds) >= most {
		return false, nil // it would come to the same end
	}
	for n, round := range rounds {
		ended := st.Status == outcome.StepSucceeded && n == len(rounds)-1
		stale := told(st, n) || len(round.calls) == 0 && !ended // what was said was said to that run; an answer without calls was of no use
		if whole, err = x.round(ctx, round, stale); err != nil || !whole {
			return false, err
		}
	}
	return st.Status == outcome.StepSucceeded, nil
}

// formerRound is what a round of an agent is made of: the call of its planner, that of the summary before, and those of the answer.
// What had begun before the answer was whole stands there as steps of it, if it came to that.
type formerRound struct {
	planner, summary *outcome.Step // summary is nil where its agent has none made
	calls            []*outcome.Step
}

// roundsIn returns those of an agent.
func roundsIn(st *outcome.Step) (rounds []formerRound) {
	for i := range st.Steps {
		each := &st.Steps[i]
		if each.ID == subjects.InScope(subjects.Iteration(st.ID, len(rounds)), plan.PlannerStep) {
			rounds = append(rounds, formerRound{planner: each})
			continue
		} else if len(rounds) == 0 {
			return nil
		}
		last, within := &rounds[len(rounds)-1], subjects.Iteration(st.ID, len(rounds)-1)
		switch each.ID {
		case subjects.InScope(within, plan.SummaryStep):
			last.summary = each
		case subjects.InScope(within, plan.StreamStep):
		default:
			last.calls = append(last.calls, each)
		}
	}
	return rounds
}

// told reports whether the planner of a round was told what a person said, or its answer came to nothing.
func told(st *outcome.Step, round int) bool {
	return slices.ContainsFunc(st.Said, func(s outcome.Said) bool { return s.Round != nil && *s.Round == round }) ||
		slices.ContainsFunc(st.Refused, func(r outcome.Refused) bool { return r.Round == round })
}

// round takes over one round, as far as it can be: of one whose planner has to be asked again, the summary that was made before. One
// that failed is no reason to ask the planner again.
func (x *takeover) round(ctx context.Context, past formerRound, stale bool) (whole bool, err error) {
	if past.summary != nil {
		if _, err = x.made(ctx, past.summary); err != nil {
			return false, err
		}
	}
	if stale {
		return false, nil
	}
	if whole, err = x.made(ctx, past.planner); err != nil || !whole {
		return false, err
	}
	for _, st := range past.calls {
		all, err := x.made(ctx, st)
		if err != nil {
			return false, err
		}
		whole = whole && all
	}
	return whole, nil
}

// made takes over what a worker has made of a call, or of what it consists of. all is whether nothing of it is to be made anew.
func (x *takeover) made(ctx context.Context, st *outcome.Step) (all bool, err error) {
	all = st.Status == outcome.StepNotTaken || st.Status == outcome.StepSucceeded && st.Answer == nil || st.Discarded && st.Ready.IsZero()
	switch {
	case st.Answer != nil: // a person is asked anew
		return false, nil
	case st.HasRounds():
		whole, err := x.rounds(ctx, st, st.Tool)
		return all && whole, err
	case len(st.Items) > 0:
		values, err := x.pastItems(x.f, x.doc, st, true)
		if err != nil {
			return false, err
		}
		for i := range st.Items {
			each := &st.Items[i]
			own, err := x.made(ctx, each)
			if err != nil {
				return false, err
			}
			if !own && values[i] != nil && len(each.Steps) == 0 && each.Answer == nil {
				own, err = true, x.keep(each, values[i])
			}
			if all = all && own; err != nil {
				return false, err
			}
		}
		return all, nil
	case len(st.Steps) > 0:
		for i := range st.Steps {
			own, err := x.made(ctx, &st.Steps[i])
			if err != nil {
				return false, err
			}
			all = all && own
		}
		return all, nil
	case st.Status != outcome.StepSucceeded || st.Started.IsZero() && !st.Reused: // nobody has made it: whoever decided it does so again
		if st.Status == outcome.StepSucceeded && st.Tool == agent.Communicate {
			x.u.Told = append(x.u.Told, st.ID) // and people are not told it again
		}
		return all, nil
	}
	value, err := x.pastResult(ctx, x.doc, st, false)
	if err != nil || value == nil {
		return false, err
	}
	return all, x.keep(st, value)
}

// keep takes over the result of a call in a round.
func (x *takeover) keep(st *outcome.Step, value []byte) error {
	taken, err := x.f.take(value)
	taken.Type, taken.Planner = st.Type, st.Shown
	x.u.Rounds[st.ID] = taken
	return err
}
