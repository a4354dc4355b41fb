package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// stepDeps reads depends_on, the condition, the list and the arguments or the value of a step, once all ids are known.
func (p *parser) stepDeps(i int) {
	p.deps = p.deps[:0]
	if n := p.node(i).dependsOn; n != 0 {
		p.dependsOn(i, n)
		p.node(i).ordered = slices.Clone(p.deps)
	}
	if n := p.node(i).condition; n != 0 {
		r := expressionReader{parser: p, step: i, at: p.below(p.stepAt(i), n).String, field: "if"}
		p.plan.Steps[i].If = r.condition(n)
	}
	repeatReader{p}.until(i)
	p.keepUses(i)
	refs := p.list(i) + p.asks(i)
	if n := p.node(i).value; n != 0 {
		valueReader{p}.read(i, n, refs)
	} else {
		p.refs.turn = p.plan.Steps[i].Repeat != nil
		p.arguments(i, p.node(i).arguments, refs)
		p.refs.turn = false
	}
	if len(p.deps) > 0 {
		slices.Sort(p.deps)
		first := len(p.allDeps)
		p.allDeps = append(p.allDeps, slices.Compact(p.deps)...)
		p.plan.Steps[i].Deps = p.allDeps[first:len(p.allDeps):len(p.allDeps)]
	}
	p.subPlan(i)
}

// dependsOn reads the ids that order steps without data.
func (p *parser) dependsOn(i int, n int32) {
	at := p.below(p.stepAt(i), n)
	if k := p.tape[n].Kind; k != jsontape.Array {
		hint := `write "depends_on": ["a", "b"]`
		if k == jsontape.String {
			hint = `write "depends_on": ` + listOfIDs(p.str(n))
		}
		p.invalid(at, hint, "must be an array of step ids, but is "+p.shown(n))
		return
	}
	for item, v := 0, n+1; v < p.tape[n].Next; item, v = item+1, p.tape[v].Next {
		if p.tape[v].Kind != jsontape.String {
			p.itemProblem(fault.InvalidValue, at, item, "", "must be a step's id, but is %s", p.shown(v))
			continue
		}
		id := p.str(v)
		dep, known := p.plan.ids.find(id)
		if !known {
			if p.col.wants(fault.UnknownRef) {
				hint := p.idHint(i, id, strconv.Quote)
				if plain, ok := strings.CutPrefix(id, refPrefix); ok {
					hint = fmt.Sprintf("write the id alone: %q", p.idAlone(plain))
				} else if f, is := p.refs.foreign(id, p.knownStep); is {
					hint = fmt.Sprintf("write the id alone: %q", f.id)
				} else if s, _ := p.around(id); s != nil {
					hint = fmt.Sprintf("a step waits for steps of its own plan alone: let the step %q, which has this plan, depend on it", s.ID)
				}
				p.col.add(fault.UnknownRef, string(jsontape.AppendIndex([]byte(at.String()), item)), fmt.Sprintf("there is no step %q", clip(id)), hint)
			}
			continue
		}
		p.depend(i, int(dep), func() string { return string(jsontape.AppendIndex([]byte(at.String()), item)) })
	}
}

// idAlone returns the id that a reference begins with.
func (p *parser) idAlone(text string) string {
	if r, _, why := p.refs.parse(text, 0); why == "" {
		return r.id
	}
	return clip(text)
}

// depend notes that step i waits for step dep. A step that waits for itself is reported here, where its place is known,
// and once.
func (p *parser) depend(i, dep int, path func() string) {
	if dep != i {
		p.deps = append(p.deps, dep)
		return
	}
	if n := len(p.selfLoops); n > 0 && p.selfLoops[n-1] == i {
		return
	}
	p.selfLoops = append(p.selfLoops, i)
	if !p.col.wants(fault.Cycle) {
		return
	}
	id := p.plan.Steps[i].ID
	hint := "a step can't wait for itself; its own output is not there yet"
	if i > 0 && subjects.ValidStepID(p.plan.Steps[i-1].ID) {
		hint += fmt.Sprintf(". Off by one? The step before it is %q", p.plan.Steps[i-1].ID)
	}
	p.col.add(fault.Cycle, path(), fmt.Sprintf("the step waits for itself: %s -> %s", clip(id), clip(id)), hint)
}

// idHint suggests ids of steps in the place of one that there is not: those of the steps before the step in hand first,
// and never its own; -1 for no step. write says how an id is written there.
func (p *parser) idHint(step int, id string, write func(string) string) string {
	ids := p.idList()
	if near := p.nearIDs(step, id, ids); len(near) > 0 {
		return didYouMean(near, write)
	}
	if len(ids) == 0 {
		return ""
	}
	return "the steps are: " + listSome(ids)
}

// nearIDs returns the ids most like one.
func (p *parser) nearIDs(step int, id string, ids []string) []string {
	near := p.near.nearest(id, ids)
	if step >= 0 {
		own := p.plan.Steps[step].ID
		near = slices.DeleteFunc(near, func(n string) bool { return n == own })
		slices.SortStableFunc(near, func(a, b string) int { // the list is in the order of steps
			return cmp.Compare(p.after(step, a), p.after(step, b))
		})
	}
	return near
}

// after is 0 for a step before the one in hand, 1 for one behind it.
func (p *parser) after(step int, id string) int {
	if p.plan.ids.at(id) < step {
		return 0
	}
	return 1
}

// idList returns the ids of all steps that have a valid one, in their order.
func (p *parser) idList() []string {
	if p.ids == nil {
		for i := range p.plan.Steps {
			if id := p.plan.Steps[i].ID; subjects.ValidStepID(id) && p.plan.ids.at(id) == i {
				p.ids = append(p.ids, id)
			}
		}
	}
	return p.ids
}

// arguments reads a step's arguments: an object, a string that holds one, or nothing. refs is the number of references
// that the step has elsewhere.
func (p *parser) arguments(i int, n int32, refs int) {
	s := &p.plan.Steps[i]
	if n == 0 || p.tape[n].Kind == jsontape.String && p.tape[n].End-p.tape[n].Start == 2 {
		s.args.head = "{}"
		p.checkSchema(i, nil)
		return
	}
	w := walker{p: p, step: i, src: p.src, tape: p.tape, refs: refs}
	if s.ForEach != nil {
		w.item = s.ForEach.As
	}
	switch p.tape[n].Kind {
	case jsontape.Object:
		w.root = n
	case jsontape.String:
		if !p.innerText(&w, n) {
			p.node(i).unsure = true
			return
		}
	default:
		p.node(i).unsure = true
		p.col.addf(fault.InvalidArguments, p.argumentsAt(i), `write "arguments": {"name": value}`,
			"arguments must be an object, but are %s", p.tape[n].Kind)
		return
	}
	w.track = w.needsHoles()
	w.compile(&s.args)
	s.HasRefs = len(s.args.holes) > 0
	p.checkSchema(i, &w)
}

// argumentsAt returns the place of a step's arguments, also where there are none.
func (p *parser) argumentsAt(step int) string {
	at := p.stepAt(step)
	if n := p.node(step).arguments; n != 0 {
		return p.below(at, n).String()
	}
	return at.in("arguments").String()
}

// innerText scans arguments that are a JSON string holding JSON. It reports false where they don't hold an object.
func (p *parser) innerText(w *walker, n int32) bool {
	at := p.argumentsAt(w.step)
	v := p.tape[n]
	w.src = p.src[v.Start+1 : v.End-1]
	if v.Flags&jsontape.Escaped != 0 {
		p.text = jsontape.AppendUnescaped(p.text[:0], w.src)
		w.src = string(p.text)
	} else {
		p.text = append(p.text[:0], w.src...)
	}
	s := jsontape.New(p.text, MaxDepth-p.argumentsDepth())
	defer s.Release()
	s.Record, s.Tape = true, p.inner[:0]
	s.Flaw = p.flaw(at)
	err := s.Scan()
	p.inner = s.Tape
	w.tape = p.inner
	switch {
	case err != nil && err.Deep:
		p.col.addf(fault.MalformedJSON, at, "flatten the arguments", "the JSON in the string is nested too deep: more than %d in all", MaxDepth)
		return false
	case err != nil:
		p.col.addf(fault.InvalidArguments, at, innerHint(w.src), "the string holds no JSON, at byte %d: %s", err.At, err.Message)
		return false
	case w.tape[0].Kind != jsontape.Object:
		p.col.addf(fault.InvalidArguments, at, innerHint(w.src), "the string must hold an object, but holds %s", w.tape[0].Kind)
		return false
	}
	return true
}

// aroundArguments is the number of objects and arrays of a plan around a step's arguments: the plan, steps and the step.
const aroundArguments = 3

func (p *parser) argumentsDepth() int { return aroundArguments * (p.above + 1) }

func innerHint(text string) string {
	switch t := strings.TrimSpace(text); {
	case strings.HasPrefix(t, refPrefix), strings.HasPrefix(t, "${ref:"):
		ref := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(t, refPrefix), "${ref:"), "}")
		return fmt.Sprintf(`arguments as a whole from another step are written {"$ref": %q}`, clip(ref))
	case strings.HasPrefix(t, "```"):
		return "send the JSON alone, without the ``` around it"
	case strings.HasPrefix(t, `"`):
		return "the object is encoded twice; write it as it is"
	}
	return `write "arguments": {"name": value}`
}

// unknownHint says which reference was probably meant, with the path that it has and in the form that it has.
func (w *walker) unknownHint(r ref, text bool, below string) string {
	at := site{text: text, object: below != ""}
	if r.id+"." == stepsPrefix && len(r.path) > 0 && r.path[0].isKey && w.known(r.path[0].key) {
		return w.didYouMeanID(r.path[0].key, r.path[1:], &at)
	}
	if r.id == defaultAs && w.item != "" {
		return fmt.Sprintf("the item is named %q here: %s", clip(w.item), w.didYouMeanID(w.item, r.path, &at))
	}
	if hint := w.p.outside(r.id); hint != "" {
		return hint
	}
	if hint := w.p.asFrom(w.step, r.id); hint != "" {
		return hint
	}
	if hint := w.p.itemHint(r.id); hint != "" {
		return hint
	}
	ids := w.p.idList()
	near := w.p.nearIDs(w.step, r.id, ids)
	right := proposal{way: meant}
	for _, id := range near {
		t, _ := w.targetOf(id, r.path)
		if _, v := w.judge(&t, &at); v == fits && w.mayWrite(&t) {
			right.refs = append(right.refs, t)
		}
	}
	switch {
	case len(right.refs) > 0:
		return w.put(right, &at)
	case len(near) > 0:
		return w.didYouMeanID(near[0], r.path, &at)
	}
	return "the steps are: " + listSome(ids)
}

// didYouMeanID asks for a reference to a step or an item, by a path or, where that doesn't do, another.
func (w *walker) didYouMeanID(id string, path []elem, at *site) string {
	t, _ := w.targetOf(id, path)
	if found := w.proposed(t, at); len(found.refs) > 0 {
		found.way = meant
		return w.put(found, at)
	}
	return fmt.Sprintf("did you mean %q? What the path leads to there can't be taken here", clip(id))
}
