// Package few is a map for what most have none or one of, and some have many thousands of: it takes one word while nothing is
// in it, and few more than its entries while there are few. A map of Go's takes room for eight entries with the first.
package few

import "iter"

// atHand is how many entries are looked through one by one; beyond it they are in a map.
const atHand = 8

// Map holds values by their keys. The zero Map is empty and ready to be used. It is not safe for concurrent use.
type Map[K comparable, V any] struct{ is *entries[K, V] }

type entries[K comparable, V any] struct {
	list []entry[K, V] // in the order in which they came; nil once there is a map
	byID map[K]V
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// At returns the value of a key, the zero one where there is none.
func (m Map[K, V]) At(key K) V {
	value, _ := m.Find(key)
	return value
}

// Find is At that tells whether there is a value.
func (m Map[K, V]) Find(key K) (value V, ok bool) {
	switch {
	case m.is == nil:
		return value, false
	case m.is.byID != nil:
		value, ok = m.is.byID[key]
		return value, ok
	}
	for i := range m.is.list {
		if m.is.list[i].key == key {
			return m.is.list[i].value, true
		}
	}
	return value, false
}

// Len is how many there are.
func (m Map[K, V]) Len() int {
	if m.is == nil {
		return 0
	}
	return len(m.is.list) + len(m.is.byID)
}

// Put puts a value in, in the place of one that the key has.
func (m *Map[K, V]) Put(key K, value V) {
	if m.is == nil {
		m.is = &entries[K, V]{}
	}
	in := m.is
	if in.byID != nil {
		in.byID[key] = value
		return
	}
	for i := range in.list {
		if in.list[i].key == key {
			in.list[i].value = value
			return
		}
	}
	if len(in.list) < atHand {
		in.list = append(in.list, entry[K, V]{key, value})
		return
	}
	in.byID = make(map[K]V, 2*atHand)
	for _, e := range in.list {
		in.byID[e.key] = e.value
	}
	in.byID[key], in.list = value, nil
}

// Drop takes a value out. A map out of which the last is taken is as it was before the first.
func (m *Map[K, V]) Drop(key K) {
	if m.is == nil {
		return
	}
	in := m.is
	delete(in.byID, key)
	for i := range in.list {
		if in.list[i].key == key {
			copy(in.list[i:], in.list[i+1:])
			in.list[len(in.list)-1] = entry[K, V]{}
			in.list = in.list[:len(in.list)-1]
			break
		}
	}
	if len(in.list)+len(in.byID) == 0 {
		m.is = nil
	}
}

// All returns all of them, in no order. The one that is being looked at may be dropped; nothing else may be put or dropped
// meanwhile.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.is == nil {
			return
		}
		for i := len(m.is.list) - 1; i >= 0; i-- { // from behind: what is dropped moves those behind it alone
			if e := m.is.list[i]; !yield(e.key, e.value) {
				return
			}
		}
		for key, value := range m.is.byID {
			if !yield(key, value) {
				return
			}
		}
	}
}
