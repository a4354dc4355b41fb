package reference

import (
	"fmt"
	"slices"
)

// executeItems runs a for_each step: item by item, until one fails whose tool is fail-fast.
func (r *run) executeItems(i int, call Behaviour) {
	if err := r.spread(i); err != nil {
		r.steps[i].fail(err)
		return
	}
	for k := range r.steps[i].Items {
		item := &r.steps[i].Items[k]
		if r.halted(i) {
			item.cancel()
		} else if !r.consult(i, k) || item.Status != "" {
			continue
		} else if err := r.resolveItem(i, k); err != nil {
			item.fail(err)
		} else {
			r.call(item, token(r.plan.Steps[i].ID, k), i, call)
		}
	}
	r.gather(i, false)
}

// spread makes the items of a for_each step.
func (r *run) spread(i int) *Err {
	list, err := r.plan.Items(i, r.sight())
	if err != nil {
		return err
	}
	r.steps[i].list, r.steps[i].Items = list, make([]Step, len(list))
	return nil
}

// resolveItem fills in the arguments of an item.
func (r *run) resolveItem(i, k int) *Err {
	if args := r.edited[r.name(i, k)]; args != nil {
		r.steps[i].Items[k].Arguments = args
		return nil
	}
	args, err := r.plan.ItemArguments(i, r.steps[i].list[k], r.sight())
	r.steps[i].Items[k].Arguments = args
	return err
}

// halted is whether an item failed in a way that keeps the others from going on.
func (r *run) halted(i int) bool {
	return !r.contracts[r.plan.Steps[i].Tool].PartialSuccess && r.firstFailed(i) >= 0
}

// firstFailed returns the lowest number of an item that failed; -1 where none did.
func (r *run) firstFailed(i int) int {
	return slices.IndexFunc(r.steps[i].Items, func(s Step) bool { return s.Status == failed })
}

// gather ends a for_each step once all its items are over.
func (r *run) gather(i int, stopped bool) {
	s := &r.steps[i]
	s.Attempts = 0
	interrupted := false
	for _, item := range s.Items {
		s.Attempts += item.Attempts
		if item.Status == "" {
			return
		}
		interrupted = interrupted || item.Status == cancelled
	}
	switch first := r.firstFailed(i); {
	case stopped && interrupted:
		s.cancel()
	case r.halted(i):
		err := s.Items[first]
		s.fail(&Err{Code: err.Code, Message: fmt.Sprintf("item %d: %s", first, err.Message)})
	default:
		s.Status, s.Result = succeeded, entries(s.Items)
	}
}

// emptyLists ends the steps that are ready and have no items: there is nothing that a record could decide. In language 2
// it derives all that follows, and says whether that stopped the run.
func (r *run) emptyLists() (stopped bool) {
	if r.plan.Second {
		return r.derive()
	}
	for again := true; again; {
		again = false
		for i := range r.plan.Steps {
			if r.ready(i) && r.person(i, -1) == "" && r.isEmpty(i) {
				r.gather(i, false)
				again = true
			}
		}
	}
	return false
}

// isEmpty is whether a step is for each item of a list that has none.
func (r *run) isEmpty(i int) bool {
	if !r.plan.Steps[i].ForEach {
		return false
	}
	list, err := r.plan.Items(i, r.sight())
	return err == nil && len(list) == 0
}

// itemRecord takes one record of an item that is open.
func (r *run) itemRecord(i, k int, d Decided, stopped bool) error {
	s := &r.steps[i]
	if s.Items == nil {
		if err := r.spread(i); err != nil {
			return fmt.Errorf("%q was decided, though the list comes to %s", d.Step, err.Code)
		}
	}
	if k >= len(s.Items) || s.Items[k].Status != "" {
		return fmt.Errorf("%q was decided, which is no item or over", d.Step)
	}
	item := &s.Items[k]
	if !d.ByOwner {
		item.Attempts++
	}
	r.blobs[i] = r.blobs[i] || d.Blob
	ending := stopped || r.halted(i)
	if r.person(i, k) != "" {
		return fmt.Errorf("%q was executed, of which nobody has approved", d.Step)
	}
	if ending && r.givenUp(i, d.Reply) {
		item.cancel()
	} else if err := r.resolveItem(i, k); err != nil && !d.ByOwner {
		return fmt.Errorf("%q was executed, though its arguments come to %s", d.Step, err.Code)
	} else {
		item.decide(d.Reply, r.attemptsLeft(i, ending), r.contracts[r.plan.Steps[i].Tool].Asks)
	}
	r.leaveSeat(i, k)
	if r.halted(i) {
		r.dropAsked(i)
	}
	r.gather(i, stopped)
	if r.halted(i) {
		r.unseat(i, stopped)
	}
	return nil
}
