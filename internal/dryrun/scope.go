package dryrun

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// scope is the steps of one plan in the run: of the plan itself, or of a composite that was entered.
type scope struct {
	trial    *trial
	plan     *plan.Plan
	first    int // the number of its first step
	resolver *plan.Resolver
	input    []byte // where the machine doesn't hold it
	turn     turn
}

// turn is the iteration that is looked from.
type turn struct {
	trial *trial
	at    machine.Origin
}

// Last returns what $last stands for, and notes whether it is certain.
func (x *turn) Last() ([]byte, bool) {
	if x.at.Last == nil {
		return []byte("null"), true
	}
	x.trial.asked++
	x.trial.sure = x.trial.sure && x.trial.certainResult(x.at.Last.Step)
	return x.at.Last.Value, true
}

// Index returns what $index stands for.
func (x *turn) Index() int { return x.at.Iteration }

// originOf returns where the arguments of a call are written, and looks from there.
func (t *trial) originOf(c machine.Call) (sc *scope, step int, of machine.Call) {
	o := t.machine.Origin(c)
	sc = t.scopeOf(o.Numbers.First())
	sc.turn = turn{t, o}
	return sc, o.Step, o.Of
}

// scopeOf returns the scope that a step stands in.
func (t *trial) scopeOf(step int) *scope {
	p, of := t.machine.Scope(step)
	first := of.First()
	sc := t.scopes[first]
	if sc == nil {
		sc = &scope{trial: t, plan: p, first: first}
		sc.resolver = p.NewResolver().Fates(func(d int) plan.Fate { return t.machine.Fate(first + d) })
		sc.resolver.In(&sc.turn)
		if t.machine.Composite(first).Step != machine.ThePlan {
			sc.resolver.Input(sc.theInput)
		}
		t.scopes[first] = sc
	}
	return sc
}

// result is trial.result, by the numbers of the plan.
func (sc *scope) result(dep int) ([]byte, bool) { return sc.trial.result(sc.first + dep) }

// theInput returns what $input stands for, and notes whether it is certain.
func (sc *scope) theInput() ([]byte, bool) {
	t, c := sc.trial, sc.trial.machine.Composite(sc.first)
	t.asked++
	t.sure = t.sure && t.certainInput(c.Step)
	value, away := t.machine.Input(sc.first)
	if away && sc.input == nil {
		sc.input, _ = t.resolved(c)
	}
	if away {
		value = sc.input
	}
	return value, value != nil
}

// resolved returns the arguments of a call.
func (t *trial) resolved(c machine.Call) ([]byte, *fault.Error) {
	sc, step, of := t.originOf(c)
	if item := t.item(of); item != nil {
		return sc.resolver.ItemArguments(step, item, sc.result)
	}
	return sc.resolver.Arguments(step, sc.result)
}

// item returns the one of a call; nil for one that has none.
func (t *trial) item(c machine.Call) []byte {
	if c.Item == 0 {
		return nil
	}
	return t.at(c.Step).list[c.Item-1]
}

// enter lets the steps of a composite begin whose input is large.
func (t *trial) enter(c machine.Call) {
	if !t.machine.Entering(c) {
		return
	}
	if _, err := t.resolved(c); err != nil {
		t.apply(&machine.Result{Call: c, Attempt: 1, ByOwner: true, Error: err})
		return
	}
	t.machine.Enter(c, began, &t.effects)
}

// evaluate tells what the machine doesn't work out by itself, because it is large: conditions and outputs.
func (t *trial) evaluate(round *machine.Effects) {
	for _, step := range round.Judge {
		if t.machine.Asks(step) == machine.AskedCondition {
			sc := t.scopeOf(step)
			told := &machine.Told{Call: machine.Call{Step: step}}
			told.Holds, told.Error = sc.plan.Steps[step-sc.first].If.HoldsFor(sc.resolver, nil, sc.result)
			t.tell(machine.Record{Told: told})
		}
	}
	for _, of := range round.Shape {
		if t.machine.Shaping(of) {
			value, err := t.shape(of)
			output := &machine.Result{Attempt: 1, Error: err, Body: value, ByOwner: true}
			t.tell(machine.Record{Told: &machine.Told{Call: of, Output: output}})
		}
	}
	for _, c := range round.Until {
		if t.machine.Ends(c) {
			sc, step, of := t.originOf(c)
			sc.turn.at.Last = t.machine.Result(c)
			told := &machine.Told{Call: c, Until: true}
			told.Holds, told.Error = sc.plan.Steps[step].Repeat.Until.HoldsOf(sc.resolver, t.item(of), nil, sc.result)
			t.tell(machine.Record{Told: told})
		}
	}
}

// shape makes the output of a composite, or of the plan.
func (t *trial) shape(of machine.Call) ([]byte, *fault.Error) {
	first := 0
	for _, within := range t.machine.Inside(of) {
		first = within.First()
	}
	if of.Step != machine.ThePlan && t.machine.PlanStep(of.Step).Repeat != nil {
		var list [][]byte
		for _, each := range t.machine.Inside(of) {
			list = append(list, t.machine.Result(machine.Call{Step: each.First()}).Value)
		}
		return slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]")), nil
	}
	sc := t.scopeOf(first)
	return sc.resolver.Output(t.machine.Lenient(of), sc.result)
}

// certainInput reports whether what a composite is handed is certain.
func (t *trial) certainInput(step int) bool {
	sc, s := t.scopeOf(step), t.machine.PlanStep(step)
	if s.TakesInput && !t.certainInput(t.machine.Composite(step).Step) {
		return false
	}
	return t.at(step).sure && !s.ReadsAny(func(dep int) bool { return !t.certainResult(sc.first + dep) })
}

// certainResult reports whether what a step returned is certain.
func (t *trial) certainResult(step int) bool {
	x := t.at(step)
	return t.certain(step) && (x.tool == nil || x.tool.from == outcome.FromExample)
}

// certainWithin reports whether all that the steps of a composite call returns what an author gave as an example.
func (t *trial) certainWithin(p *plan.Plan) bool {
	for s := range p.All() {
		if k := t.catalog.known[s.Tool]; s.Ask || k != nil && k.calls > 0 && k.from != outcome.FromExample {
			return false
		}
	}
	return true
}

// place returns the pointer of a step in the document, and how it is named there: by the ids down to it.
func (t *trial) place(step int) (pointer, id string) {
	if t.machine.PlanStep(step).ID == plan.IterationStep {
		return t.place(t.machine.Composite(step).Step)
	}
	p, of := t.machine.Scope(step)
	pointer, id = "/steps/"+strconv.Itoa(of.Step(step)), p.Steps[of.Step(step)].ID
	if c := t.machine.Composite(step); c.Step != machine.ThePlan {
		_, outer := t.place(c.Step)
		return t.around(step) + pointer, outer + "/" + id
	}
	return pointer, id
}

// elsewhere ends, in a pointer, what is a place in the document: behind it the plan of a template goes on.
const elsewhere = "\x00"

// inDocument returns the place in the document of what may stand in the plan of a template: where that is called.
func inDocument(pointer string) string {
	pointer, _, _ = strings.Cut(pointer, elsewhere)
	return pointer
}

// isFirst reports whether a call is none of an item, or of the first, and so with all composites that it stands in.
func (t *trial) isFirst(c machine.Call) bool {
	for c.Step != machine.ThePlan {
		if c.Item > 1 || t.machine.Origin(c).Iteration > 0 {
			return false
		}
		c = t.machine.Composite(c.Step)
	}
	return true
}

// around returns the pointer of the plan that a step stands in.
func (t *trial) around(step int) string {
	if t.machine.PlanStep(step).ID == plan.IterationStep {
		step = t.machine.Composite(step).Step
	}
	c := t.machine.Composite(step)
	if c.Step == machine.ThePlan {
		return ""
	}
	at, _ := t.place(c.Step)
	if t.machine.PlanStep(c.Step).Template != nil {
		return at + "/tool" + elsewhere
	}
	return at + "/plan"
}
