package plan

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

const (
	// MaxItems is the most items of a for_each step's list.
	MaxItems = 10_000
	// MaxAllItems is the most items that all lists of a plan may have: in a plan of more than 100 for_each steps each
	// may have its share of them.
	MaxAllItems = 1_000_000
)

// mostItems returns how many items each list of the plan may have. It depends on the plan alone, so that all who read a
// list judge alike.
func (p *Plan) mostItems() int {
	lists := 0
	for i := range p.Steps {
		if p.Steps[i].ForEach != nil {
			lists++
		}
	}
	return min(MaxItems, MaxAllItems/max(lists, 1))
}

// Items returns the items of a for_each step's list, each as JSON; an empty list has none. They share memory with the
// results where the list is a reference as a whole. result is as for Arguments.
//
// Errors: those of Arguments; unresolved_ref where the list is null or missing, or is no array, since to do nothing
// then would hide a mistake; invalid_arguments for more than MaxItems items. The step must be one that has a ForEach.
func (p *Plan) Items(step int, result func(dep int) (json []byte, ok bool)) ([][]byte, *fault.Error) {
	r := Resolver{plan: p}
	return r.Items(step, result)
}

// ItemArguments is Arguments for one item of a for_each step.
func (p *Plan) ItemArguments(step int, item []byte, result func(dep int) (json []byte, ok bool)) ([]byte, *fault.Error) {
	r := Resolver{plan: p}
	return r.ItemArguments(step, item, result)
}

// list resolves a step's list and takes it apart.
func (r *Resolver) list(step int, result func(dep int) (json []byte, ok bool)) ([][]byte, *fault.Error) {
	t := &r.plan.Steps[step].ForEach.in
	var value []byte
	var err *fault.Error
	if t.whole {
		value, err = r.resolve(&t.holes[0], nil, r.limit(), result)
	} else {
		value, err = r.fill(t, nil, result)
	}
	switch {
	case err != nil:
		return nil, err
	case len(value) == 0 || value[0] == 'n':
		why := listText(t) + " is null or missing"
		if t.whole {
			if saw, missed := r.missed(&t.holes[0], nil, result); missed {
				why = listText(t) + " found nothing; " + saw
			}
		}
		return nil, fault.New(fault.UnresolvedRef, "there is no list: %s", why).
			WithHint("have it come to an array; an empty one is fine")
	case value[0] != '[':
		return nil, fault.New(fault.UnresolvedRef, "there is no list: %s is %s", listText(t), kindOf(value)).
			WithHint("refer to the array within it, or have the step before return one")
	}
	items, count := split(value)
	if most := r.plan.mostItems(); count > most {
		return nil, fault.New(fault.InvalidArguments, "the list has %d items, at most %d are allowed", count, most).
			WithHint("let the tool before return fewer, or in pages")
	}
	return items, nil
}

// listText names a list that is a reference as a whole.
func listText(t *template) string {
	if !t.whole {
		return "it"
	}
	return t.holes[0].targets[0].shown()
}

// split returns the items of an array, up to MaxItems, and how many there are.
func split(array []byte) (items [][]byte, count int) {
	for i := jsontape.Item(array, 0, 0); i >= 0; i = jsontape.NextItem(array, i) {
		end := jsontape.SkipValue(array, i)
		if end <= i {
			break
		}
		if count++; count <= MaxItems {
			items = append(items, array[i:end:end])
		}
	}
	return items, count
}
