package reference

import "slices"

// shape reads the plan's output and its concurrency.
func (p *Plan) shape(root *value) error {
	if n := root.option("concurrency"); n != nil {
		p.Second = true
		for _, digit := range n.raw {
			p.Concurrency = 10*p.Concurrency + int(digit-'0')
		}
	}
	p.Output = root.option("output")
	if p.Output == nil {
		return p.outputs(root.option("output_steps"))
	}
	p.Second = true
	refs, err := references(p.Output)
	for _, r := range refs {
		i := p.index(r.id)
		if i < 0 || r.of == ofResult && p.Steps[i].ForEach && !r.intoEntries() {
			return errRef
		}
		if r.of == ofResult {
			p.Outputs = append(p.Outputs, i)
		}
	}
	slices.Sort(p.Outputs)
	p.Outputs = slices.Compact(p.Outputs)
	return err
}

// comeTo makes the output of a plan whose steps are over: where it succeeded, or something that it refers to did.
func (r *run) comeTo(out *Result) {
	if r.plan.Output == nil {
		return
	}
	some := slices.ContainsFunc(r.plan.Outputs, func(i int) bool { return r.steps[i].Status == succeeded })
	if out.Status != succeeded && !some {
		return
	}
	lenient := *r.plan
	lenient.MissingError = lenient.MissingError && out.Status == succeeded
	x := resolver{plan: &lenient, sight: r.sight()}
	out.Output = x.resolve(r.plan.Output)
	if x.err != nil {
		out.Output = nil
		out.Errors = append(out.Errors, StepError{Step: "=", Code: x.err.Code, Message: x.err.Message})
		if r.status == "" {
			out.Status = failed
		}
	}
}

// seat is a call that may be under way at the same time as others: a step, or an item of one.
type seat struct{ step, item int }

// seatCalls lets calls begin as long as there is room: again and again the first in the order of the document. Where the
// list of a for_each step can't be made, a record says so, and nobody is let in before that: as long as nobody said it,
// its items might be those that come first.
func (r *run) seatCalls() {
	if r.seats == nil || r.lacksList() {
		return
	}
	under := 0
	for s := range r.seats {
		if !r.seatOver(s) {
			under++
		}
	}
	for i := range r.plan.Steps {
		for _, s := range r.seatsOf(i) {
			if under < r.plan.Concurrency && !r.seats[s] && !r.seatOver(s) && r.person(s.step, s.item) == "" {
				r.seats[s] = true
				under++
			}
		}
	}
}

// seatsOf returns the calls of a step that could begin but for the room.
func (r *run) seatsOf(i int) (all []seat) {
	if !r.taken[i] || r.over(i) {
		return nil
	}
	if r.plan.Steps[i].Value || r.plan.Steps[i].ForEach && r.person(i, -1) != "" {
		return nil // it calls nothing, or nothing yet
	}
	if !r.plan.Steps[i].ForEach {
		return []seat{{i, -1}}
	}
	for k := range r.steps[i].Items {
		all = append(all, seat{i, k})
	}
	return all
}

// lacksList is whether a step is for each item of a list that can't be made, which no record says so far.
func (r *run) lacksList() bool {
	for i, s := range r.plan.Steps {
		if s.ForEach && r.taken[i] && !r.over(i) && r.person(i, -1) == "" && r.steps[i].Items == nil && r.spread(i) != nil {
			return true
		}
	}
	return false
}

func (r *run) seatOver(s seat) bool {
	if s.item < 0 || r.over(s.step) {
		return r.over(s.step)
	}
	return r.steps[s.step].Items[s.item].Status != ""
}

// seated is whether there is room for a call, or no need of any.
func (r *run) seated(step, item int) bool { return r.seats == nil || r.seats[seat{step, item}] }

// unseat cancels the items of a step that never had room, where no more of them may begin.
func (r *run) unseat(i int, stopped bool) {
	if r.seats == nil || r.over(i) || !r.plan.Steps[i].ForEach {
		return
	}
	if r.steps[i].Items == nil && r.spread(i) != nil {
		return // a record says so
	}
	for k := range r.steps[i].Items {
		if item := &r.steps[i].Items[k]; item.Status == "" && !r.seats[seat{i, k}] {
			item.cancel()
		}
	}
	r.gather(i, stopped)
}
