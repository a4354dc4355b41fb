package agent

import (
	"hash/maphash"
	"slices"
	"sync/atomic"
)

// byName has values by name, and never changes: with returns another one, which shares with it all but the way to what is new.
// So facts of many places of a ledger take little more than those of one. The zero value has nothing.
type byName[V any] struct{ root *nameNode[V] }

// nameNode is a node of a tree. Which of the two it goes on by is the next bit of the hash of a name, from the lowest.
type nameNode[V any] struct {
	name  string
	value V
	below [2]*nameNode[V]
}

// nameSeed need not be the same in all processes: what is known does not depend on how it is found.
var nameSeed = maphash.MakeSeed()

// get returns what has a name.
func (m byName[V]) get(name string) (value V, is bool) {
	if m.root == nil {
		return value, false
	}
	hash := maphash.String(nameSeed, name)
	for n := m.root; n != nil; n = n.below[hash&1] {
		if n.name == name {
			return n.value, true
		}
		hash >>= 1 // all 0 in the end: names of the same hash stand behind each other
	}
	return value, false
}

// has reports whether something has a name.
func (m byName[V]) has(name string) bool {
	_, is := m.get(name)
	return is
}

// with returns what is known and that a name has a value.
func (m byName[V]) with(name string, value V) byName[V] {
	hash := maphash.String(nameSeed, name)
	var made byName[V]
	at := &made.root
	for n := m.root; n != nil; n = n.below[hash&1] {
		same := *n
		if *at = &same; n.name == name {
			same.value = value
			return made
		}
		hash >>= 1
		at = &same.below[hash&1]
	}
	*at = &nameNode[V]{name: name, value: value}
	return made
}

// each calls a function for all that is known, in no order.
func (m byName[V]) each(do func(name string, value V)) {
	var of func(n *nameNode[V])
	of = func(n *nameNode[V]) {
		if n != nil {
			do(n.name, n.value)
			of(n.below[0])
			of(n.below[1])
		}
	}
	of(m.root)
}

// names returns all names, sorted.
func (m byName[V]) names() []string {
	all := []string{}
	m.each(func(name string, _ V) { all = append(all, name) })
	slices.Sort(all)
	return all
}

// grown is a list that only grows, and whose copies go their own way: the first that adds something to what several have in
// common does so in place, all others copy it before.
type grown[E any] struct {
	all  []E
	used *atomic.Int64 // how much of the room behind all of them is taken
}

// add appends one.
func (g *grown[E]) add(e E) {
	n := len(g.all)
	if g.used == nil || n == cap(g.all) || !g.used.CompareAndSwap(int64(n), int64(n)+1) {
		g.all, g.used = slices.Grow(slices.Clip(g.all), n+1), &atomic.Int64{}
		g.used.Store(int64(n) + 1)
	}
	g.all = append(g.all, e)
}
