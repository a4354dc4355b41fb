package agent

import (
	"encoding/json"
	"maps"
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
	objects []Artifact
	bound   map[string]json.RawMessage // by the types of chains
}

// clone returns one that goes its own way from here on.
func (b *board) clone() board {
	return board{b.chains, slices.Clip(b.objects), maps.Clone(b.bound)}
}

// last returns the last object of a type.
func (b *board) last(typ string) (json.RawMessage, bool) {
	for _, a := range slices.Backward(b.objects) {
		if fits(a.Type, typ) {
			return a.Value, true
		}
	}
	return nil, false
}

// capture puts on the blackboard what an entry says of its results.
func (b *board) capture(e *Entry, result json.RawMessage) {
	a := e.artifact
	if a == nil {
		return
	}
	v, ok := within(result, a.path)
	if !ok || kindOf(v) == jsontape.Null {
		return
	}
	if a.when != nil {
		if holds, err := a.when.holds(func(r reference) ([]byte, bool) { return within(v, r.path) }); !holds || err != nil {
			return
		}
	}
	b.add(Artifact{Type: a.typ, Value: v})
}

// add puts an object on the blackboard, and binds chains to it. A list binds nothing.
func (b *board) add(a Artifact) {
	a.Name = b.nameFor(a.Type)
	b.objects = append(b.objects, a)
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
		clear(b.bound)
	}
	for _, c := range bind {
		b.bound[c.typ] = a.Value
	}
}

// untaken reports whether there is a single object that a chain could act upon, but for its condition.
func (b *board) untaken(typ string) bool {
	for _, c := range b.chains {
		if c.typ != typ || c.when == nil {
			continue
		}
		for _, a := range b.objects {
			if (typ == anyType || fits(a.Type, typ)) && kindOf(a.Value) != jsontape.Array && kindOf(a.Value) != jsontape.Null && !c.takes(a.Value) {
				return true
			}
		}
	}
	return false
}

// nameFor returns a name for the next object of a type.
func (b *board) nameFor(typ string) string {
	simple, n := typ[strings.LastIndexByte(typ, '.')+1:], 1
	for _, a := range b.objects {
		if a.Type[strings.LastIndexByte(a.Type, '.')+1:] == simple {
			n++
		}
	}
	if n == 1 {
		return simple
	}
	return simple + "_" + strconv.Itoa(n)
}

func (b *board) ofType(typ string) (all []Artifact) {
	for _, a := range b.objects {
		if fits(a.Type, typ) {
			all = append(all, a)
		}
	}
	return all
}

func (b *board) types() (all []string) {
	for _, a := range b.objects {
		if !slices.Contains(all, a.Type) {
			all = append(all, a.Type)
		}
	}
	return all
}

func (b *board) names() (all []string) {
	for _, a := range b.objects {
		all = append(all, a.Name)
	}
	return all
}
