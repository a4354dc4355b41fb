package plan

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// MaxArguments is the largest resolved arguments of a step, in bytes: 64 MiB.
const MaxArguments = MaxOutput

// fewHoles is the number of holes up to which resolving needs no memory but the result's.
const fewHoles = 16

// Arguments returns the arguments of a step with all references resolved; those of a for_each step are given by
// ItemArguments, since here there is no item. result gives the JSON value that a direct
// dependency came to (see Output), or ok false where it is missing: an optional step that did not succeed. It may be
// called several times for the same dependency, and must give the same each time.
//
// The arguments are a pure function of the plan and those results. Values keep the producer's exact bytes. A result is
// data: references within it are never resolved. The answer is always a fresh slice. Where the results may be large, a
// Resolver for the whole run is faster.
//
// Errors: unresolved_ref for a path into a string, number or boolean, and for a missing value under on_missing: error;
// too_large for more than MaxArguments bytes, found before anything is built; invalid_arguments where the whole of the
// arguments is a reference that comes to something else than an object.
func (p *Plan) Arguments(step int, result func(dep int) (json []byte, ok bool)) ([]byte, *fault.Error) {
	r := Resolver{plan: p}
	return r.Arguments(step, result)
}

// arguments resolves the arguments of a step; item is nil where there is none.
func (r *Resolver) arguments(step int, item []byte, result func(dep int) (json []byte, ok bool)) ([]byte, *fault.Error) {
	t := &r.plan.Steps[step].args
	out, err := r.fill(t, item, result)
	if err != nil {
		return nil, err
	}
	if t.whole && (len(out) == 0 || out[0] != '{') {
		return nil, fault.New(fault.InvalidArguments, "the arguments are %s as a whole, which came to %s and not to an object",
			t.holes[0].targets[0].shown(), kindOf(out))
	}
	return out, nil
}

// fill returns a template with all its references resolved, in a fresh slice.
func (r *Resolver) fill(t *template, item []byte, result func(dep int) (json []byte, ok bool)) ([]byte, *fault.Error) {
	var few [fewHoles][]byte
	values := few[:0]
	size, most := int64(len(t.head)), r.limit()
	for i := range t.holes {
		h := &t.holes[i]
		v, err := r.resolve(h, item, most-size, result)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		size += int64(filledSize(v, h.text)) + int64(len(h.after))
		if size > most { // nothing more is read
			return nil, r.tooLarge(size)
		}
	}
	if size > most {
		return nil, r.tooLarge(size)
	}
	if r.deriving {
		if r.left -= size; r.left < 0 {
			return nil, tooMuch()
		}
	}
	out := make([]byte, 0, size)
	out = append(out, t.head...)
	for i := range t.holes {
		out = appendFilled(out, values[i], t.holes[i].text)
		out = append(out, t.holes[i].after...)
	}
	return out, nil
}

// limit returns the most bytes of arguments, or of the value in hand.
func (r *Resolver) limit() int64 {
	if r.most > 0 || r.deriving {
		return r.most
	}
	return MaxArguments
}

// tooLarge refuses what would be larger than the limit.
func (r *Resolver) tooLarge(size int64) *fault.Error {
	if r.deriving {
		return fault.New(fault.TooLarge, "the value would have %d bytes or more, and there is room for %d: all values of a run have at most %d together",
			size, r.limit(), MaxValues).WithHint("refer to less, or hand large data on by a name or an address")
	}
	return fault.New(fault.TooLarge, "with its references resolved, the step would be given %d bytes or more, at most %d are allowed", size, r.limit()).
		WithHint("let tools hand large data on by a name or an address")
}

// Most bounds the size, in bytes, of a step's resolved arguments, or of the list of a for_each step where item is
// negative, by the sizes of its dependencies' results and of the item.
func (p *Plan) Most(step, item int, size func(dep int) int64) int64 {
	t := &p.Steps[step].args
	if item < 0 {
		t = &p.Steps[step].ForEach.in
	}
	return t.most(item, size)
}

// most bounds the size of the template once it is filled in, with an item of so many bytes.
func (t *template) most(item int, size func(dep int) int64) int64 {
	sum := int64(len(t.head))
	for i := range t.holes {
		h := &t.holes[i]
		most := int64(max(len(h.def), len(null)))
		if h.calc > 0 {
			most = int64(expression.ValueLimits.Bytes)
		}
		for k := range h.targets {
			switch t := &h.targets[k]; {
			case t.of == itsInput:
				most = max(most, size(TheInput))
			case t.of == itsLast:
				most = max(most, size(TheLast))
			case t.of != itsResult:
				most = max(most, maxFate)
			case t.step == theItem:
				most = max(most, int64(item))
			default:
				most = max(most, size(t.step))
			}
		}
		if h.text {
			most *= 2 // every byte may need an escape
		}
		sum += most + int64(len(h.after))
	}
	return sum
}

// Output returns the value that the plan comes to, once all its steps are over; it must be one that has an Output.
// result is as for Arguments. Where lenient is set, what is missing is null whatever on_missing says: the run did not
// succeed.
//
// Errors: those of Arguments.
func (r *Resolver) Output(
	lenient bool, result func(dep int) (json []byte, ok bool),
) ([]byte, *fault.Error) {
	r.lenient, r.left = lenient || r.plan.Output.plain, maxGoneThrough
	defer func() { r.lenient = false }()
	return r.fill(&r.plan.Output.template, nil, result)
}

// MostOutput bounds the size of the plan's output, in bytes, by the sizes of the results that it refers to.
func (p *Plan) MostOutput(size func(dep int) int64) int64 { return p.Output.most(0, size) }

// aPart is the size from which on a small part of a result is copied out of it, so that the rest need not be kept.
const aPart = 256 << 10

var null = []byte("null")

// maxGoneThrough is how many bytes of results the references of one step may go through together: each that has a path
// counts all of the result that it goes into. A plan of a few lines could otherwise have 64 MiB read thousands of
// times.
const maxGoneThrough = 256 * MaxOutput

// tooMuch refuses references that go through more than that.
func tooMuch() *fault.Error {
	return fault.New(fault.TooLarge, "the step's references go through more than %d bytes of results together", int64(maxGoneThrough)).
		WithHint("refer to less of what is large, or split the step")
}

// resolve returns the JSON value that goes into a hole. room is how many bytes of it there is room for.
func (r *Resolver) resolve(h *hole, item []byte, room int64, result func(dep int) ([]byte, bool)) ([]byte, *fault.Error) {
	if h.calc > 0 {
		return r.calculate(h, item, result)
	}
	several := len(h.targets) > 1 || h.def != ""
	for i := range h.targets {
		t := &h.targets[i]
		value, ok := r.about(t, item, result)
		if !ok {
			continue
		}
		if len(t.path) > 0 {
			if r.left -= int64(len(value)); r.left < 0 {
				return nil, tooMuch()
			}
		}
		at, stop, f := r.lookup(t.remembered(), value, t.path)
		if f == isMany {
			var err *fault.Error
			if at, stop, f, err = r.project(t, at, stop, several, room); err != nil {
				return nil, err
			}
		}
		switch {
		case f == isThere && !(several && string(at) == "null"):
			if len(value) > aPart && len(at) < len(value)/2 {
				at = bytes.Clone(at)
			}
			return at, nil
		case f == notInto && !several:
			return nil, r.notInto(t, stop, at)
		}
	}
	switch {
	case h.def != "":
		return []byte(h.def), nil
	case r.plan.OnMissing == MissingError && !r.lenient:
		return nil, r.nothing(h, item, result)
	}
	return null, nil
}

// about returns what a reference goes into: the item, a step's result, or how the step ended.
func (r *Resolver) about(t *target, item []byte, result func(dep int) ([]byte, bool)) (value []byte, ok bool) {
	switch {
	case t.of == itsInput && r.input == nil, t.of > itsInput && r.turn == nil:
		return nil, false
	case t.of == itsInput:
		return r.input()
	case t.of == itsLast:
		return r.turn.Last()
	case t.of == itsIndex:
		return strconv.AppendInt(nil, int64(r.turn.Index()), 10), true
	case t.of != itsResult && r.fates == nil:
		return nil, false
	case t.of != itsResult:
		return r.fates(t.step).value(t.of), true
	case t.step == theItem:
		return item, item != nil
	}
	return result(t.step)
}

// remembered is what a Resolver remembers its way through the value by; only results stay the same and are large.
func (t *target) remembered() int {
	if t.of != itsResult {
		return theItem
	}
	return t.step
}

// notInto says that a path goes into a value that has no parts.
func (r *Resolver) notInto(t *target, stop int, at []byte) *fault.Error {
	err := fault.New(fault.UnresolvedRef, "%s: what is there is %s, which has no %s", t.shown(), kindOf(at), t.path[stop].shown())
	if t.of == itsInput {
		return err.WithHint("refer to the input as a whole, or hand an object in")
	}
	if t.of.isWord() {
		return err.WithHint("refer to the result as a whole, or have the step return an object")
	}
	if t.of != itsResult {
		return err.WithHint("write %s alone; $error:<id> has code, tool_code, message and details", clip(t.of.prefix()+idIn(t.text)))
	}
	if t.step == theItem {
		return err.WithHint("refer to the item as a whole, or have the list hold objects")
	}
	what := "an object"
	if t.path[stop].isEvery() {
		what = "an array"
	}
	return err.WithHint("refer to the value as a whole, or have step %q return %s there", r.plan.Steps[t.step].ID, what)
}

func (e elem) shown() string {
	if e.isKey {
		return fmt.Sprintf("key %q", clip(e.key))
	}
	switch e.index {
	case hugeIndex:
		return "such item"
	case everyItem:
		return "items"
	}
	return fmt.Sprintf("item %d", e.index)
}

// kindOf names the kind of a JSON value.
func kindOf(value []byte) string {
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return jsontape.Object.String()
	case '[':
		return jsontape.Array.String()
	case '"':
		return jsontape.String.String()
	case 't', 'f':
		return "a boolean"
	case 'n':
		return jsontape.Null.String()
	}
	return jsontape.Number.String()
}

// filledSize returns the number of bytes that a value takes in a hole: in a string, strings bare and all else as text.
func filledSize(value []byte, text bool) int {
	switch {
	case !text:
		return len(value)
	case len(value) >= 2 && value[0] == '"':
		return len(value) - 2
	}
	return jsontape.EscapedSize(value)
}

func appendFilled(dst, value []byte, text bool) []byte {
	switch {
	case !text:
		return append(dst, value...)
	case len(value) >= 2 && value[0] == '"':
		return append(dst, value[1:len(value)-1]...) // its escapes are right in any string
	}
	return jsontape.AppendEscaped(dst, value)
}
