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
}

// board is the blackboard: the objects that tools have returned, and those that chains act upon.
type board struct {
	chains  []*chain
	objects grown[Artifact]
	latest  byName[json.RawMessage] // objects by the names that their types have: the full one, and what stands behind its last dot
	counted byName[int]             // objects by the latter
	bound   byName[json.RawMessage] // by the types of chains
}

// last returns the last object of a type.
func (b *board) last(typ string) (json.RawMessage, bool) {
	return b.latest.get(typ)
}

// made returns the object that an entry makes of a result, still without a name; false for none.
func (e *Entry) made(result json.RawMessage) (Artifact, bool) {
	a := e.artifact
	if a == nil {
		return Artifact{}, false
	}
	v, ok := within(result, a.path)
	if !ok || kindOf(v) == jsontape.Null {
		return Artifact{}, false
	}
	if a.when != nil {
		if holds, err := a.when.holds(func(r reference) ([]byte, bool) { return within(v, r.path) }); !holds || err != nil {
			return Artifact{}, false
		}
	}
	return Artifact{Type: a.typ, Value: v}, true
}

// add puts an object on the blackboard, and binds chains to it. A list binds nothing.
func (b *board) add(a Artifact) {
	simple := simpleName(a.Type)
	n, _ := b.counted.get(simple)
	if a.Name = simple; n > 0 {
		a.Name += "_" + strconv.Itoa(n+1)
	}
	b.objects.add(a)
	b.counted, b.latest = b.counted.with(simple, n+1), b.latest.with(simple, a.Value)
	if a.Type != simple {
		b.latest = b.latest.with(a.Type, a.Value)
	}
	if kindOf(a.Value) == jsontape.Array || kindOf(a.Value) == jsontape.Null {
		return
	}
	var bind []*chain
	replaces := false
	for _, c := range b.chains {
		replaces = replaces || c.typ == anyType
		if (c.typ == anyType && c.has || fits(a.Type, c.typ)) && c.takes(a.Value) {
			bind = append(bind, c)
		}
	}
	if replaces && len(bind) > 0 { // one object is the current one
		b.bound = byName[json.RawMessage]{}
	}
	for _, c := range bind {
		b.bound = b.bound.with(c.typ, a.Value)
	}
}

// untaken reports whether there is a single object that a chain could act upon, but for its condition.
func (b *board) untaken(typ string) bool {
	for _, c := range b.chains {
		if c.typ != typ || c.when == nil {
			continue
		}
		for _, a := range b.objects.all {
			if (typ == anyType || fits(a.Type, typ)) && kindOf(a.Value) != jsontape.Array && kindOf(a.Value) != jsontape.Null && !c.takes(a.Value) {
				return true
			}
		}
	}
	return false
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
