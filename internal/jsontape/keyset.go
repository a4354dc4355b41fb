package jsontape

import (
	"bytes"
	"hash/maphash"
)

// keySet finds the keys that an object has twice. It keeps its memory between objects.
type keySet struct {
	table []int32  // open addressing; index into keys, plus one
	texts [][]byte // of the keys, unescaped
	arena []byte
}

// fewKeys is the number of keys up to which comparing each with each is fastest.
const fewKeys = 12

// keySeed makes collisions of the table unpredictable to whoever writes the keys.
var keySeed = maphash.MakeSeed()

// find calls twice for each key that is equal, once unescaped, to one before it.
func (t *keySet) find(src []byte, keys []Span, twice func(*Span)) {
	escaped := false
	for i := range keys {
		escaped = escaped || keys[i].Flags&Escaped != 0
	}
	if len(keys) <= fewKeys && !escaped {
		for i := 1; i < len(keys); i++ {
			for j := range keys[:i] {
				a, b := keys[i], keys[j]
				if a.End-a.Start == b.End-b.Start && string(src[a.Start:a.End]) == string(src[b.Start:b.End]) {
					twice(&keys[i])
					break
				}
			}
		}
		return
	}
	t.unescape(src, keys)
	size := 16
	for size < 2*len(keys) {
		size *= 2
	}
	if cap(t.table) < size {
		t.table = make([]int32, size)
	}
	t.table = t.table[:size]
	clear(t.table)
	for i, text := range t.texts {
		slot := int(maphash.Bytes(keySeed, text)) & (size - 1)
		for t.table[slot] != 0 && !bytes.Equal(t.texts[t.table[slot]-1], text) {
			slot = (slot + 1) & (size - 1)
		}
		if t.table[slot] != 0 {
			twice(&keys[i])
			continue
		}
		t.table[slot] = int32(i + 1)
	}
}

// unescape fills texts. The arena is grown first, so that texts may point into it.
func (t *keySet) unescape(src []byte, keys []Span) {
	size := 0
	for _, k := range keys {
		if k.Flags&Escaped != 0 {
			size += int(k.End - k.Start)
		}
	}
	if cap(t.arena) < size {
		t.arena = make([]byte, 0, size)
	}
	t.arena, t.texts = t.arena[:0], t.texts[:0]
	for _, k := range keys {
		raw := src[k.Start:k.End]
		if k.Flags&Escaped != 0 {
			from := len(t.arena)
			t.arena = AppendUnescaped(t.arena, raw)
			raw = t.arena[from:]
		}
		t.texts = append(t.texts, raw)
	}
}

// trim lets go of the texts, and of memory that one large object took.
func (t *keySet) trim() {
	clear(t.texts)
	if cap(t.table) > maxKept {
		t.table = nil
	}
	if cap(t.texts) > maxKept {
		t.texts = nil
	}
	if cap(t.arena) > maxKept {
		t.arena = nil
	}
}
