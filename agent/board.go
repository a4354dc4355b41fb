package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Artifact is an object on the blackboard.
type Artifact struct {
	// Name is its own: the type behind its last dot, then that with _2 and so on.
	Name  string          `json:"name"`
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`

	place []int // of the call that it came of (Outcome.Place)
}

// board is the blackboard: the objects that tools have returned, and those that chains act upon.
type board struct {
	chains  []*chain
	objects grown[Artifact]
	latest  byName[json.RawMessage] // objects by the names that their types have: the full one, and what stands behind its last dot
	counted byName[int]             // objects by the latter
	bound   byName[json.RawMessage] // by the types of chains
	untaken byName[bool]            // types of chains that did not take an object which they could have acted upon
	recent  grown[taken]            // the objects since the round began, and which chains act upon them
	before  current                 // latest and bound as of then
}

// current is what counts of the objects on a blackboard.
type current struct{ latest, bound byName[json.RawMessage] }

// taken is an object with the chains that act upon it.
type taken struct {
	Artifact
	by []*chain
}

// last returns the last object of a type.
func (b *board) last(typ string) (json.RawMessage, bool) {
	return b.latest.get(typ)
}

// add puts an object on the blackboard, and binds chains to it. A list binds nothing.
func (b *board) add(a Artifact, look sight) {
	bind := b.takers(a, look) // their conditions don't see it on the blackboard yet
	simple := simpleName(a.Type)
	n, _ := b.counted.get(simple)
	if a.Name = simple; n > 0 {
		a.Name += "_" + strconv.Itoa(n+1)
	}
	b.objects.add(a)
	b.counted = b.counted.with(simple, n+1)
	t := taken{a, bind}
	b.recent.add(t)
	b.count(t)
}

// count has an object count in the place of those before it.
func (b *board) count(t taken) {
	simple := simpleName(t.Type)
	if b.latest = b.latest.with(simple, t.Value); t.Type != simple {
		b.latest = b.latest.with(t.Type, t.Value)
	}
	replaces := slices.ContainsFunc(b.chains, func(c *chain) bool { return c.typ == anyType })
	if replaces && len(t.by) > 0 { // one object is the current one
		b.bound = byName[json.RawMessage]{}
	}
	for _, c := range t.by {
		b.bound = b.bound.with(c.typ, t.Value)
	}
}

// settle has the objects since the round began count by their places, whichever came first: which object is acted upon is no matter
// of which worker was slower. What they are called stays.
func (b *board) settle() {
	places := func(x, y taken) int { return slices.Compare(x.place, y.place) }
	if all := b.recent.all; !slices.IsSortedFunc(all, places) {
		b.latest, b.bound = b.before.latest, b.before.bound
		for _, t := range slices.SortedStableFunc(slices.Values(all), places) {
			b.count(t)
		}
	}
	b.recent, b.before = grown[taken]{}, current{b.latest, b.bound}
}

// takers returns the chains that are to act upon an object, and notes those whose condition it does not meet.
func (b *board) takers(a Artifact, look sight) (all []*chain) {
	if kindOf(a.Value) == jsontape.Array || kindOf(a.Value) == jsontape.Null {
		return nil
	}
	for _, c := range b.chains {
		if c.typ != anyType && !fits(a.Type, c.typ) {
			continue
		}
		if !c.takes(look) {
			b.untaken = b.untaken.with(c.typ, true)
		} else if c.has || c.typ != anyType {
			all = append(all, c)
		}
	}
	return all
}

// simpleName returns a type without what stands before its last dot.
func simpleName(typ string) string { return typ[strings.LastIndexByte(typ, '.')+1:] }

func (b *board) ofType(typ string) (all []Artifact) {
	for _, a := range b.objects.all {
		if fits(a.Type, typ) {
			all = append(all, a)
		}
	}
	return all
}

func (b *board) types() (all []string) {
	for _, a := range b.objects.all {
		if !slices.Contains(all, a.Type) {
			all = append(all, a.Type)
		}
	}
	return all
}

func (b *board) names() (all []string) {
	for _, a := range b.objects.all {
		all = append(all, a.Name)
	}
	return all
}
