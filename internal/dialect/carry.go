package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// Writers are the calls of a document as far as they write to the state. They say what the state is behind calls that
// have come to something, for whoever goes on with another document.
type Writers struct{ c *compiler }

// Came is what a call has come to: what it returned, or its error as others read it.
type Came struct{ Result, Error json.RawMessage }

// WritersOf returns the calls of a document that was compiled without problems; nil for one that is not of the dialect.
func WritersOf(src []byte) *Writers {
	s := jsontape.New(src, maxDepth)
	defer s.Release()
	s.Record = true
	if s.Scan() != nil || !Is(src, s.Tape) {
		return nil
	}
	c := &compiler{document: document{src, slices.Clone(s.Tape)}, faulty: map[int]bool{}, in: -1}
	c.readCalls(c.root())
	c.placeWriters()
	return &Writers{c}
}

// maxDepth is the deepest nesting that is read: that of plans.
const maxDepth = 64

// After returns the state behind all calls, beginning with a state: at each of its members what a call behind the last
// would read there. came says what calls have come to; those of which it knows nothing write nothing. What does not fit
// the method of its call, breaks the schema (nil: none), or makes the state larger than most bytes is not written; lost
// says so by the ids of its calls. The state is nil if it is and nothing is written.
func (w *Writers) After(state []byte, came map[string]Came, schema *tool.Schema, most int) (after []byte, lost map[string]string) {
	lost = map[string]string{}
	k := &carried{compiler: w.c, lost: lost, values: map[int]any{}, initial: map[string]any{}}
	if len(state) > 0 {
		k.initial, _ = decoded(state).(map[string]any)
	}
	for i := range w.c.calls {
		if x, is := came[w.c.calls[i].id]; is {
			k.take(i, x)
		}
	}
	if len(k.values) == 0 {
		return state, lost
	}
	for {
		after = k.state()
		i, why := -1, ""
		switch {
		case len(after) > most:
			i, why = k.largest(), fmt.Sprintf("with it the state would have more than %d bytes", most)
		case schema != nil:
			i, why = k.breaks(schema.Check(after, nil))
		}
		if i < 0 {
			return after, lost
		}
		delete(k.values, i)
		lost[w.c.calls[i].id] = why
	}
}

// carried is one such state.
type carried struct {
	*compiler
	initial map[string]any
	values  map[int]any // of the calls that write, by place
	errors  map[int]bool
	sizes   map[int]int
	lost    map[string]string
}

// take notes what a call writes.
func (k *carried) take(i int, x Came) {
	if k.errors == nil {
		k.errors, k.sizes = map[int]bool{}, map[int]int{}
	}
	raw := x.Result
	if k.errors[i] = x.Error != nil; k.errors[i] {
		raw = x.Error
	}
	places := k.calls[i].results
	if k.errors[i] {
		places = k.calls[i].errors
	}
	v := decoded(raw)
	for _, p := range places {
		if len(p)+nesting(v) > deepest {
			k.lose(i, fmt.Sprintf("the state would be nested more than %d deep", deepest))
			return
		}
	}
	if len(places) > 0 {
		k.values[i], k.sizes[i] = v, len(raw)
	}
}

// largest returns the call that writes most; -1 where none does.
func (k *carried) largest() int {
	all := slices.Sorted(maps.Keys(k.values))
	if len(all) == 0 {
		return -1
	}
	return slices.MaxFunc(all, func(a, b int) int { return cmp.Compare(k.sizes[a], k.sizes[b]) })
}

// breaks returns the last call that writes what breaks the schema, or where that is; -1 for none.
func (k *carried) breaks(all []tool.Violation) (call int, why string) {
	call = -1
	for _, v := range all {
		if v.Missing != "" { // what is not there yet is no mistake
			continue
		}
		var at []string
		for _, t := range strings.Split(v.Pointer, "/")[1:] {
			at = append(at, jsontape.UnescapeToken(t))
		}
		for i := range k.values {
			places := k.calls[i].results
			if k.errors[i] {
				places = k.calls[i].errors
			}
			if i > call && slices.ContainsFunc(places, func(p path) bool { return p.meets(at) }) {
				call, why = i, fmt.Sprintf("%s: %s", ref{ofState, keysOf(at)}, v.Message)
			}
		}
	}
	return call, why
}

func keysOf(at []string) (p path) {
	for _, key := range at {
		p = append(p, elem{key: key})
	}
	return p
}

// meets reports whether a path leads into what stands at some keys, or they into what stands at the path.
func (p path) meets(at []string) bool {
	for i := range min(len(p), len(at)) {
		if p[i].key != at[i] {
			return false
		}
	}
	return true
}

// state puts all together. The keys of objects are sorted.
func (k *carried) state() []byte {
	keys := map[string]bool{}
	for key := range k.initial {
		keys[key] = true
	}
	for _, key := range k.written.keys {
		keys[key] = true
	}
	for _, w := range k.written.writers {
		m, object := k.value(w).(map[string]any)
		for key := range m {
			keys[key] = true
		}
		if method := k.calls[w.call].method; k.wrote(w) && (!object && k.value(w) != nil || !w.fails && (method == "push" || method == "concat")) {
			k.lose(w.call, "the state is an object, and what was returned makes it none")
		}
	}
	all := map[string]any{}
	for key := range keys {
		p := path{{key: key}}
		v := k.at(p)
		if _, was := k.initial[key]; v != nil || was || k.wroteAt(p) {
			all[key] = v
		}
	}
	out, err := jsontape.Marshal(all)
	if err != nil {
		panic(err) // it was decoded
	}
	return out
}

func (k *carried) lose(call int, why string) { k.lost[k.calls[call].id] = why }

// wrote reports whether a writer has written.
func (k *carried) wrote(w writer) bool {
	_, is := k.values[w.call]
	return is && k.errors[w.call] == w.fails
}

// wroteAt reports whether something was written just there.
func (k *carried) wroteAt(p path) bool {
	pl := k.placed(p)
	return pl != nil && slices.ContainsFunc(pl.writers, k.wrote)
}

// value is what a writer has written; nil for nothing.
func (k *carried) value(w writer) any {
	if !k.wrote(w) {
		return nil
	}
	return k.values[w.call]
}

// placed returns the place of a path; nil where nobody writes at it or below.
func (k *carried) placed(p path) *place {
	pl := k.written
	for _, e := range p {
		if pl = pl.below[e.key]; pl == nil {
			return nil
		}
	}
	return pl
}

// at is what stands at a path below the root: what was written there and above it in the order of the list, null taking
// nothing's place, and in it what was written below.
func (k *carried) at(p path) any {
	value := within(k.initial, p)
	for _, w := range k.above(p) {
		v := within(k.value(w.writer), w.rest)
		switch method := k.methodOf(w); {
		case v == nil:
		case method == methodSet:
			value = v
		default:
			more, fits := foldInto(value, v, method)
			if fits {
				value = more
			} else {
				k.lose(w.call, fmt.Sprintf("%s does not fit what stands at %s", method, ref{ofState, p}))
			}
		}
	}
	pl := k.placed(p)
	if pl == nil {
		return value
	}
	for _, key := range pl.keys {
		v := k.at(append(slices.Clip(p), elem{key: key}))
		if v == nil {
			continue
		}
		m, object := value.(map[string]any)
		if value != nil && !object {
			k.loseBelow(pl.below[key], fmt.Sprintf("what stands at %s is no object", ref{ofState, p}))
			continue
		}
		if m = maps.Clone(m); m == nil {
			m = map[string]any{}
		}
		m[key], value = v, m
		value = m
	}
	return value
}

// loseBelow notes all that was written at a place and below it as lost.
func (k *carried) loseBelow(pl *place, why string) {
	for _, w := range pl.writers {
		if k.wrote(w) {
			k.lose(w.call, why)
		}
	}
	for _, below := range pl.below {
		k.loseBelow(below, why)
	}
}

// above returns who writes at a path or above it, in the order of the list. What is pushed and appended has no parts.
func (k *carried) above(p path) (all []above) {
	pl := k.written
	for depth := 0; pl != nil; depth++ {
		for _, w := range pl.writers {
			method := k.calls[w.call].method
			if parts := w.fails || depth == len(p) || method != "push" && method != "concat"; parts {
				all = append(all, above{w, p[depth:]})
			}
		}
		if depth == len(p) {
			break
		}
		pl = pl.below[p[depth].key]
	}
	slices.SortStableFunc(all, func(a, b above) int { return cmp.Or(a.call-b.call, len(b.rest)-len(a.rest)) })
	return all
}

// foldInto puts what a call returned together with what is there; fits is false where that can't be.
func foldInto(value, more any, method string) (_ any, fits bool) {
	if method == "push" {
		more = []any{more}
	}
	switch more := more.(type) {
	case map[string]any:
		m, object := value.(map[string]any)
		if method != "merge" || value != nil && !object {
			return nil, false
		}
		both := map[string]any{}
		for _, from := range []map[string]any{m, more} {
			for key, v := range from {
				if v != nil {
					both[key] = v
				}
			}
		}
		return both, true
	case []any:
		list, is := value.([]any)
		return append(append([]any{}, list...), more...), method != "merge" && (is || value == nil)
	case string:
		s, is := value.(string)
		return s + more, method == "concat" && (is || value == nil)
	}
	return nil, false
}

// within is what stands behind keys of a value; nil where nothing does.
func within(v any, p path) any {
	for _, e := range p {
		m, _ := v.(map[string]any)
		v = m[e.key]
	}
	return v
}

// deepest is how deep a state may nest, so that a document that begins with it can be read.
const deepest = maxDepth - 8

func nesting(v any) (deep int) {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			deep = max(deep, nesting(x))
		}
	case []any:
		for _, x := range v {
			deep = max(deep, nesting(x))
		}
	default:
		return 0
	}
	return deep + 1
}

func decoded(raw []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// Refers reports whether a text may refer to the state or the input.
func Refers(raw []byte) bool {
	s := string(raw)
	for _, mark := range []string{"†", `\u2020`, "$state", "$input", "${state", "${input"} {
		if strings.Contains(s, mark) {
			return true
		}
	}
	return false
}

// Needed returns the members of a large object, a state or an input, whose names a text has: what calls may read by name.
func Needed(object, calls []byte) []byte {
	var o jsontape.ObjectWriter
	whole := jsontape.Members(object, func(key, value []byte) bool {
		if len(value) <= few || bytes.Contains(calls, key[1:len(key)-1]) {
			o.Add(jsontape.Unquoted(key), value)
		}
		return true
	})
	if !whole {
		return object
	}
	return o.JSON()
}

// few bytes are not worth leaving out.
const few = 256
