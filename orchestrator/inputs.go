package orchestrator

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/few"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// inputs is all that a call's arguments are made of, for use beside the loop.
type inputs struct {
	plan     *plan.Plan      // that the call's step stands in; of an iteration its loop
	step     int             // of the plan
	numbers  machine.Numbers // that the plan's steps have in the run
	does     *plan.Step      // what is done: of an iteration another than its loop
	resolver *plan.Resolver  // of the plan; nil where it would be used off the loop
	call     machine.Call
	item     []byte  // the element of the list, for an item of a for_each step
	list     *inputs // of which that is to be read again, where its list was let go of; nil where it is here
	at       int     // in the list
	schema   *tool.Schema
	hasRefs  bool
	deps     []int    // of the step, in the plan, sorted; nil where nothing refers to them
	edited   []byte   // arguments that a person gave in the place of the plan's
	values   []source // of them
	apart    bool     // a value has to be read first, which blocks

	input source  // of the scope that the step stands in,
	outer *inputs // or what it is to be made of

	iteration int    // the number of the iteration; 0 also for a call that is none
	last      source // the result of the one before

	fates map[int]plan.Fate // how the steps of the plan ended that it names by $error or $status
}

// source is where the value of a dependency comes from. The zero source is a missing value.
type source struct {
	value []byte          // inline
	blob  *outcome.Handle // or in a blob,
	text  bool            // whose content is plain text
	away  *recorded       // or to be read from its record again,
	again *derivedAgain   // or to be derived again,
	items []source        // or put together from the results of items,
	fault *fault.Error    // one of which may have failed
	list  bool            // items is meant, though it may be empty
	ids   []string        // the names of items, where an object is made of them
}

// recorded is a result that the machine has let go of. It stands in the record of its attempt.
type recorded struct {
	attempt subjects.Attempt
	size    int64
}

// derivedAgain is what a step came to that calls no worker: the machine has let go of it, and it follows from what others
// came to, as it did before.
type derivedAgain struct {
	name    string // no other value has it
	in      inputs
	what    derivation
	lenient bool
	size    int64
}

type derivation uint8

const (
	aValue derivation = iota
	anOutput
	aList
)

// mostDerivable bounds how much is kept of how values are derived again. One may be made of many others.
const mostDerivable = 1024

// derivable returns where the result of a value or a composite comes from that was let go of.
func derivable(r *run, res *machine.Result) source {
	if x := r.derivable[res.Call]; x != nil {
		return source{again: x}
	}
	x, s := &derivedAgain{name: r.attempt(res.Call, 1).Key(), size: res.Size}, r.step(res.Call.Step)
	switch {
	case s.Value:
		x.in = r.unread(res.Call)
		x.in.gather(r)
	case s.Repeat != nil && !s.Repeat.Collect:
		last := source{}
		for _, each := range r.machine.Inside(res.Call) {
			last = r.source(each.First())
		}
		return last
	default:
		x.what, x.lenient = anOutput, r.machine.Lenient(res.Call)
		var isLoop bool
		if x.in, isLoop = r.unshaped(res.Call); isLoop {
			x.what = aList
		}
	}
	x.in.resolver = nil // that of a run is for one goroutine
	if r.derivable == nil || len(r.derivable) >= mostDerivable {
		r.derivable = map[machine.Call]*derivedAgain{}
	}
	r.derivable[res.Call] = x
	return source{again: x}
}

func (s *source) missing() bool {
	return s.value == nil && s.blob == nil && s.away == nil && s.again == nil && !s.list
}

// inputs gathers what a call's arguments are made of. Those of a call in a round of an agent were made before.
func (r *run) inputs(c machine.Call) inputs {
	in := asWritten(r, c)
	if args := r.agents.made(c); args != nil {
		in.edited, in.apart = args, len(args) > wire.InlineLimit
	}
	return in
}

// asWritten gathers what a call's arguments are made of as they are written.
func asWritten(r *run, c machine.Call) inputs {
	in := r.unread(c)
	p := &in.plan.Steps[in.step]
	in.resolver, in.schema, in.hasRefs = r.resolverOf(in.plan, in.numbers), r.schemas[in.does.Tool], p.HasRefs
	in.edited = r.machine.Arguments(c)
	if in.does.Ask {
		in.schema = tool.AskInput()
	}
	if p.HasRefs && in.edited == nil {
		in.gather(r)
	}
	return in
}

// mostResolvers bounds those of scopes that are kept: of a loop that enters ten thousand, few are looked from again.
const mostResolvers = 64

// resolverOf returns the resolver of a scope, for the loop: it builds nothing large.
func (r *run) resolverOf(p *plan.Plan, of machine.Numbers) *plan.Resolver {
	if p == r.plan {
		return r.resolver
	}
	first := of.First()
	x := r.resolvers.At(first)
	if x.plan != p { // the first of its scope, or from before an amendment
		x = scopeResolver{p, p.NewResolver().Limit(wire.InlineLimit).Fates(func(step int) plan.Fate { return r.fate(of.Of(step)) })}
		x.Input(func() ([]byte, bool) {
			value, _ := r.machine.Input(first)
			return value, value != nil
		})
		if r.resolvers.Len() >= mostResolvers {
			r.resolvers = few.Map[int, scopeResolver]{}
		}
		r.resolvers.Put(first, x)
	}
	return x.Resolver
}

// scopeResolver is the resolver of a scope, as long as that has the plan.
type scopeResolver struct {
	plan *plan.Plan
	*plan.Resolver
}

// unread are the inputs of a call of which nothing is gathered yet.
func (r *run) unread(c machine.Call) inputs {
	o := r.machine.Origin(c)
	in := inputs{plan: o.Plan, step: o.Step, numbers: o.Numbers, does: r.step(c.Step), call: c, iteration: max(o.Iteration, 0), last: sourceOf(r, o.Last)}
	if o.Of.Item > 0 {
		in.takeItem(r, o.Of)
	}
	return in
}

// takeItem takes the element of a list that a call is for.
func (in *inputs) takeItem(r *run, of machine.Call) {
	if list, here := r.lists[of.Step]; here {
		in.item = list[of.Item-1]
		return
	}
	list := listOf(r, of.Step)
	in.list, in.at, in.apart = &list, of.Item-1, list.apart
}

// listOf gathers what the list of a for_each step is made of.
func listOf(r *run, step int) inputs {
	in := r.unread(machine.Call{Step: step})
	in.gather(r)
	in.resolver = nil
	return in
}

func (in *inputs) gather(r *run) {
	s := &in.plan.Steps[in.step]
	in.deps = s.Deps
	if s.TakesInput {
		in.takeInput(r)
	}
	in.apart = in.apart || in.last.apart()
	in.read(r)
	for _, step := range s.Named {
		in.name(r, step)
	}
}

// takeInput gathers the input of the scope, or what it is made of where the machine does not hold it.
func (in *inputs) takeInput(r *run) {
	value, away := r.machine.Input(in.numbers.First())
	if !away {
		in.input = source{value: value}
		return
	}
	outer := r.inputs(r.machine.Composite(in.numbers.First()))
	outer.resolver = nil
	in.outer, in.apart = &outer, true
}

// read gathers what is known of the values.
func (in *inputs) read(r *run) {
	in.values = make([]source, len(in.deps))
	for i, dep := range in.deps {
		in.values[i] = r.source(in.numbers.Of(dep))
		in.apart = in.apart || in.values[i].apart()
	}
	if in.apart {
		in.resolver = nil // that of a run is for one goroutine
	}
}

// name gathers how a step of the plan ended.
func (in *inputs) name(r *run, step int) {
	if in.fates == nil {
		in.fates = map[int]plan.Fate{}
	}
	in.fates[step] = r.fate(in.numbers.Of(step))
}

// fate tells how a step ended.
func (r *run) fate(step int) plan.Fate { return r.machine.Fate(step) }

// inputSize bounds the bytes of the scope's input.
func (in *inputs) inputSize() int64 {
	if in.outer == nil {
		return in.input.size()
	}
	return in.outer.most(false)
}

func (in *inputs) fate(step int) plan.Fate { return in.fates[step] }

// largest returns the bytes of the largest value, which is held alone.
func (in *inputs) largest() (n int64) {
	for i := range in.values {
		n = max(n, in.values[i].size())
	}
	return max(n, in.last.size())
}

// inBlobs reports whether something of a value lies in a blob.
func (s *source) inBlobs() bool {
	return s.blob != nil || slices.ContainsFunc(s.items, func(x source) bool { return x.inBlobs() })
}

// apart reports whether something of a value has to be read first.
func (s *source) apart() bool {
	return s.blob != nil || s.away != nil || s.again != nil || slices.ContainsFunc(s.items, func(x source) bool { return x.apart() })
}

// source returns where the value of a step comes from: missing where it did not succeed.
func (r *run) source(step int) source {
	res := r.machine.Result(machine.Call{Step: step})
	if res == nil {
		return source{}
	}
	n, isList := r.machine.Items(step)
	if res.Parts != nil && r.machine.Value(step) == nil { // of an earlier round, something of which lies in a blob
		s := source{list: true, ids: []string{}}
		for _, p := range res.Parts {
			s.ids, s.items = append(s.ids, p.ID), append(s.items, r.source(p.Step))
		}
		return s
	}
	if !isList && res.Parts == nil {
		return sourceOf(r, res)
	}
	if value := r.machine.Value(step); value != nil { // all who refer to it share it
		return source{value: value}
	}
	s := source{list: true, items: make([]source, n)}
	for i := range s.items {
		s.items[i] = sourceOf(r, r.machine.Decided(machine.Call{Step: step, Item: i + 1}))
	}
	return s
}

// sourceOf returns where a result comes from.
func sourceOf(r *run, res *machine.Result) source {
	switch {
	case res == nil:
		return source{}
	case res.Error != nil:
		return source{fault: res.Error}
	case res.Away && res.Derived:
		return derivable(r, res)
	case res.Away:
		return source{away: &recorded{r.attempt(res.Call, res.Attempt), res.Size}}
	}
	return source{value: res.Value, blob: res.Handle, text: res.Text}
}

// entries builds what a reference to a for_each step sees, once the values of all items are here.
func (s *source) entries() ([]byte, *fault.Error) {
	if s.ids != nil {
		object := []byte{'{'}
		for i, id := range s.ids {
			if i > 0 {
				object = append(object, ',')
			}
			object = append(append(append(append(object, '"'), id...), '"', ':'), s.items[i].value...)
		}
		return append(object, '}'), nil
	}
	list := make([]plan.Item, len(s.items))
	for i := range s.items {
		list[i] = plan.Item{Data: s.items[i].value, Error: s.items[i].fault}
	}
	return plan.Entries(list)
}

// unshaped are the inputs of the output of a composite, or of the plan. Those of a loop are the results of its iterations.
func (r *run) unshaped(of machine.Call) (in inputs, isLoop bool) {
	in.plan, in.numbers = r.machine.Scope(0)
	if of.Step != machine.ThePlan && r.step(of.Step).Repeat != nil {
		for _, each := range r.machine.Inside(of) {
			in.deps = append(in.deps, len(in.deps))
			in.values = append(in.values, r.source(each.First()))
		}
		return in, true
	}
	if of.Step != machine.ThePlan {
		for p, numbers := range r.machine.Inside(of) {
			in.plan, in.numbers = p, numbers // the last of them
		}
	}
	in.deps = in.plan.Output.Waits
	if in.plan.Output.TakesInput {
		in.takeInput(r)
	}
	in.read(r)
	for _, step := range in.deps {
		in.name(r, step)
	}
	return in, false
}

// maxExplained is the most places of which an error says where their values came from.
const maxExplained = 3

// explained adds to an error which references the wrong values came from.
func (in *inputs) explained(err *fault.Error, bad []tool.Violation, resolver *plan.Resolver, result func(int) ([]byte, bool)) *fault.Error {
	for _, v := range bad[:min(len(bad), maxExplained)] {
		why := resolver.Explain(in.step, in.item, v.Pointer, result)
		if why != "" && !strings.Contains(err.Message, why) {
			err.Message += "; " + why
		}
	}
	return err
}

// size returns about how many bytes a source has.
func (s *source) size() (n int64) {
	n = int64(len(s.value))
	if s.blob != nil {
		n += s.blob.Size
	}
	if s.away != nil {
		n += s.away.size
	}
	if s.again != nil {
		n += s.again.size
	}
	for i := range s.items {
		n += s.items[i].size() + 40 // with what stands around it
	}
	return n
}

// most bounds the bytes that the arguments may come to, or the list of a for_each step, with the largest value that is
// read for them.
func (in *inputs) most(list bool) int64 {
	largest, item := int64(0), len(in.item)
	if list {
		item = -1
	}
	most := in.plan.Most(in.step, item, func(dep int) int64 {
		n := in.sizeOf(dep)
		largest = max(largest, n)
		return n
	})
	return min(most, plan.MaxArguments) + min(largest, plan.MaxOutput)
}

// mostOfValue bounds the bytes that a step's value may come to, with the largest value that is read for it. How many
// items a list has that there is one for each of, nobody knows yet.
func (in *inputs) mostOfValue() int64 {
	if in.plan.Steps[in.step].ForEach != nil {
		return plan.MaxValues + in.largest()
	}
	return in.most(false)
}

// sizeOf returns about how many bytes the value of a step of the plan has.
func (in *inputs) sizeOf(dep int) int64 {
	if dep == plan.TheInput {
		return in.inputSize()
	}
	if dep == plan.TheLast {
		return in.last.size()
	}
	i, found := slices.BinarySearch(in.deps, dep)
	if !found || i >= len(in.values) {
		return 0
	}
	return in.values[i].size()
}

// argumentBytes bounds a call's bytes before its arguments are built.
func (r *run) argumentBytes(c machine.Call) int64 {
	in := r.inputs(c)
	return in.most(false)
}
