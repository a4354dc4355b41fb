package machine

import (
	"cmp"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// Tries returns the attempts of a run's calls that had more than one decided, or asked a person, in their order, of which no call has more
// than 36; nil where there are none. They stand in the records, so nothing is kept for it: it goes through all of them.
func Tries(r *Run) map[Call][]outcome.Try {
	var all map[Call][]outcome.Try
	for i := range r.log {
		if res := r.log[i].Result; res != nil && (res.Attempt > 1 || inquired(r, res)) && counted(r, res) {
			if all == nil {
				all = map[Call][]outcome.Try{}
			}
			all[res.Call] = nil
		}
	}
	if all == nil {
		return nil
	}
	for i := range r.log {
		res := r.log[i].Result
		if res == nil || !counted(r, res) {
			continue
		}
		if tries, again := all[res.Call]; again {
			all[res.Call] = append(tries, tryOf(r, res))
		}
	}
	for _, tries := range all {
		slices.SortStableFunc(tries, func(a, b outcome.Try) int { return cmp.Compare(a.Attempt, b.Attempt) })
	}
	return all
}

// counted reports whether a record has decided an attempt: nobody asked for those after the last that was decided.
func counted(r *Run, res *Result) bool {
	i, ok := r.index(res.Call)
	return ok && r.calls[i].result != nil && res.Attempt <= r.calls[i].result.Attempt
}

// inquired reports whether a record's attempt ended with a question. One that asked though it might not failed of that.
func inquired(r *Run, res *Result) bool {
	return slices.ContainsFunc(r.inquiries[res.Call], func(q *Question) bool { return q.Attempt == res.Attempt })
}

func tryOf(r *Run, res *Result) outcome.Try {
	t := outcome.Try{
		Attempt: res.Attempt, Started: res.Started, Ended: res.Ended, Deliveries: int(res.Deliveries), Asked: inquired(r, res),
	}
	if !res.ByOwner {
		t.Worker = res.Worker
	}
	if res.Asks != nil && !t.Asked {
		t.Code = fault.ToolTerminal
	}
	if res.Error != nil {
		t.Code, t.ToolCode = res.Error.Code, res.Error.ToolCode
	}
	return t
}
