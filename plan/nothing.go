package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Nothing is a reference that found nothing, so that null stands in its place.
type Nothing struct {
	// Reference is the reference as written, without its prefix; the first of alternatives.
	Reference string
	// At is its place: a JSON pointer in the plan.
	At string
	// Saw says what was there instead, as in: step "a" returned an object with the keys x, list, text.
	Saw string

	of      aspect
	decides bool // it stands in a condition
}

// String is the reference with its prefix.
func (n Nothing) String() string { return n.of.prefix() + n.Reference }

// Message tells of it in a sentence.
func (n Nothing) Message() string {
	if n.decides {
		return fmt.Sprintf("%s found nothing, so it is null in the condition; %s", n, n.Saw)
	}
	return fmt.Sprintf("%s found nothing, so null stands in its place; %s", n, n.Saw)
}

// NothingDecided returns the references in a step's condition that find nothing where that is not asked for by "??", ==
// null or != null. What did not succeed is not told: its status says so. It is a pure function of the plan and the
// results.
func (r *Resolver) NothingDecided(step int, result func(dep int) (json []byte, ok bool)) []Nothing {
	if c := r.plan.Steps[step].If; c != nil {
		return c.nothing(r, fmt.Sprintf("/steps/%d/if", step), result)
	}
	return nil
}

// Nothing returns the references in a step's arguments, or in its value, that find nothing and in whose place null
// stands; item is nil for a step without for_each. They
// are a pure function of the plan and the results.
func (r *Resolver) Nothing(step int, item []byte, result func(dep int) (json []byte, ok bool)) (all []Nothing) {
	s := &r.plan.Steps[step]
	t, field := &s.args, "arguments"
	if s.Value {
		field = "value"
	}
	var places []string
	for i := range t.holes {
		for _, h := range plainly(r.plan, t, i) {
			saw, missed := r.missed(&h, item, result)
			if !missed || slices.ContainsFunc(h.targets, func(t target) bool { return t.of > itsInput }) {
				continue // there is none before the first iteration
			}
			if places == nil {
				places = t.places()
			}
			all = append(all, Nothing{
				Reference: h.targets[0].text, At: fmt.Sprintf("/steps/%d/%s%s", step, field, places[i]), Saw: saw,
				of: h.targets[0].of,
			})
		}
	}
	return all
}

// missed reports whether none of a hole's references finds anything, and says what the last one saw.
func (r *Resolver) missed(h *hole, item []byte, result func(dep int) ([]byte, bool)) (saw string, missed bool) {
	for i := range h.targets {
		t := &h.targets[i]
		value, ok := r.about(t, item, result)
		if !ok {
			saw = r.saw(t, nil, 0, false)
			continue
		}
		at, stop, f := r.lookup(t.remembered(), value, t.path)
		if several := len(h.targets) > 1; f == isThere && !(several && string(at) == "null") || f == isMany || f == notInto && !several {
			return "", false
		}
		saw = r.saw(t, at, stop, true)
	}
	return saw, true
}

// saw says what a reference met where it went no further: at begins with that value.
func (r *Resolver) saw(t *target, at []byte, stop int, ok bool) string {
	whose := "the item"
	if t.of != itsResult {
		return t.of.prefix() + clip(idIn(t.text)) + pathText(t.path[:max(stop, 0)]) + " is " + outline(at)
	}
	if t.step != theItem {
		whose = fmt.Sprintf("step %q returned", r.plan.Steps[t.step].ID)
		if !ok {
			return fmt.Sprintf("step %q did not succeed", r.plan.Steps[t.step].ID)
		}
	} else {
		whose += " is"
	}
	if stop > 0 {
		whose = fmt.Sprintf("%s%s%s is", refPrefix, clip(idIn(t.text)), pathText(t.path[:stop]))
	}
	return whose + " " + outline(at)
}

// idIn returns the id of a reference as written.
func idIn(ref string) string {
	id, _, _ := strings.Cut(ref, ".")
	id, _, _ = strings.Cut(id, "[")
	return id
}

// Limits of what an outline tells of an object.
const (
	maxOutlined    = 12
	maxOutlinedKey = 40
)

// outline says what a value is without telling what is in it, but for an object's first keys. b may go on behind it.
func outline(b []byte) string {
	if len(b) == 0 || b[0] != '{' {
		return kindOf(b)
	}
	var keys []string
	for i := jsontape.SkipSpace(b, 1); i >= 0 && i < len(b) && b[i] == '"'; {
		end := min(jsontape.SkipString(b, i), len(b))
		if len(keys) == maxOutlined {
			keys = append(keys, "…")
			break
		}
		key := string(jsontape.AppendUnescaped(nil, string(b[i+1:max(end-1, i+1)])))
		if len(key) > maxOutlinedKey {
			key = strings.ToValidUTF8(key[:maxOutlinedKey], "") + "…"
		}
		keys = append(keys, strings.ToValidUTF8(key, "\uFFFD"))
		if i = jsontape.SkipSpace(b, end); i >= len(b) || b[i] != ':' {
			break
		}
		i = jsontape.NextItem(b, jsontape.SkipSpace(b, i+1))
	}
	if len(keys) == 0 {
		return "an object without keys"
	}
	return "an object with the keys " + strings.Join(keys, ", ")
}

// Explain says, for a place in a step's resolved arguments, which reference the value there came from and what that
// found; empty where there is none.
func (r *Resolver) Explain(step int, item []byte, at string, result func(dep int) (json []byte, ok bool)) string {
	t := &r.plan.Steps[step].args
	places := t.places()
	for i := range t.holes {
		if at != places[i] && !strings.HasPrefix(at, places[i]+"/") {
			continue
		}
		h := &t.holes[i]
		ref := h.targets[0].shown()
		if saw, missed := r.missed(h, item, result); missed && h.def == "" {
			return fmt.Sprintf("%s is null because %s found nothing; %s", shownPlace(places[i]), ref, saw)
		}
		if h.text {
			return ""
		}
		r.left = maxGoneThrough
		value, err := r.resolve(h, item, MaxArguments, result)
		if err != nil {
			return ""
		}
		for k := range h.targets { // the first that is there is what it came from
			one := hole{targets: h.targets[k : k+1], def: string(null)}
			if found, err := r.resolve(&one, item, MaxArguments, result); err == nil && string(found) != string(null) {
				ref = h.targets[k].shown()
				break
			}
		}
		return fmt.Sprintf("%s came to %s", ref, outline(value))
	}
	return ""
}

func shownPlace(at string) string {
	if at == "" {
		return "the whole"
	}
	return at
}

// places returns the JSON pointers of a template's holes, in their order. It is for messages: nothing keeps them.
func (t *template) places() []string {
	text := []byte(t.head)
	from := make([]int32, len(t.holes))
	for i := range t.holes {
		from[i] = int32(len(text))
		if !t.holes[i].text {
			text = append(text, null...)
		}
		text = append(text, t.holes[i].after...)
	}
	s := jsontape.New(text, maxTolerated)
	defer s.Release()
	s.Record = true
	all := make([]string, len(t.holes))
	if err := s.Scan(); err != nil {
		return all
	}
	p := placer{src: text, tape: s.Tape, from: from, all: all}
	p.value(0)
	return all
}

// placer finds the holes of a template in its text.
type placer struct {
	src  []byte
	tape []jsontape.Node
	from []int32 // where the holes are
	next int     // hole that was not found yet
	path []byte
	all  []string
}

func (p *placer) value(n int32) {
	v := &p.tape[n]
	top := len(p.path)
	switch v.Kind {
	case jsontape.Array:
		for i, c := 0, n+1; c < v.Next; i, c = i+1, p.tape[c].Next {
			p.path = jsontape.AppendIndex(p.path[:top], i)
			p.value(c)
		}
	case jsontape.Object:
		for k := n + 1; k < v.Next; k = p.tape[k+1].Next {
			key := &p.tape[k]
			p.path = jsontape.AppendToken(p.path[:top], key.Inside().Text(p.src))
			p.value(k + 1)
		}
	default:
		for p.next < len(p.from) && p.from[p.next] < v.End {
			p.all[p.next] = string(p.path)
			p.next++
		}
	}
	p.path = p.path[:top]
}

// nothing says that a reference found nothing, where the plan has that fail the step.
func (r *Resolver) nothing(h *hole, item []byte, result func(dep int) ([]byte, bool)) *fault.Error {
	saw, _ := r.missed(h, item, result)
	if len(h.targets) > 1 {
		return fault.New(fault.UnresolvedRef, "none of the %d alternatives of %s is there; of the last one, %s", len(h.targets), h.targets[0].shown(), saw)
	}
	return fault.New(fault.UnresolvedRef, "%s found nothing, and the plan says on_missing: error; %s", h.targets[0].shown(), saw)
}
