package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// documentVersion is the version of the history document's form.
const documentVersion = 1

// documents builds those of runs, for their history and for who looks at one.
type documents struct {
	*env
	values *values
	times  *ledgerTime
}

// of builds the full document of a run that is over; account completes the accounts of its agents. Values that lie in blobs are
// read for the outcome, and where that needs them.
func (d *documents) of(ctx context.Context, r *run, account func(context.Context, []outcome.Step)) *outcome.Run {
	doc, complete := d.begun(ctx, r)
	complete(ctx)
	account(ctx, doc.Steps)
	return doc
}

// begun builds the document of a run but for the results that its machine has let go of, and for what its agents have told
// people. Where it is not finished, complete adds them, beside the loop.
func (d *documents) begun(ctx context.Context, r *run) (doc *outcome.Run, complete func(context.Context)) {
	doc, complete = &outcome.Run{}, func(context.Context) {}
	*doc = outcome.Run{
		Version: documentVersion, Run: r.id.Plain(), Tenant: r.id.Tenant, Generation: r.generation, Digest: r.digest,
		Status: outcome.Running, Submitted: r.submitted, Plan: r.planJSON(), Context: r.context.Keys(),
		Permissions: r.permissions,
	}
	if r.start != nil && r.start.Rejected() {
		doc.Status, doc.Finished = outcome.Rejected, r.judged
		doc.Outcome = &outcome.Outcome{
			Run: doc.Run, Status: outcome.Rejected, Generation: r.generation, Problems: r.start.Problems, Warnings: r.start.Warnings,
		}
		return doc, complete
	}
	m := r.machine
	if m == nil {
		return doc, complete
	}
	now := d.times.of(r)
	doc.Status, doc.Stats, doc.StoppedBy, doc.Started = m.Status(), m.Stats(), m.StoppedBy(), m.Started()
	if u := r.start.Reuse; u != nil {
		doc.RetryOf, doc.RetryFrom = u.Of, u.From
	}
	doc.Revision, doc.Amendments = revisionOf(m, subjects.RootScope), amendmentsOf(m)
	doc.Approval, doc.Templates = m.AccountOf(machine.Call{Step: machine.ThePlan}), templatesOf(r)
	if r.agents != nil {
		doc.Agents = r.agents.digests
	}
	inOutcome := map[string]bool{}
	if m.Finished() {
		doc.Finished = m.LastTime()
		doc.Outcome = d.outcome(ctx, r)
		for _, res := range doc.Outcome.Results {
			inOutcome[res.Step] = true
		}
	}
	room := room{
		said:    mostSaid,
		refused: mostRefused,
		results: max(maxInline-int(doc.Stats.BytesReturned), 0), errors: maxErrors, tries: maxTries, all: machine.Tries(m),
	}
	p, of := m.Scope(0)
	doc.Steps = d.steps(ctx, r, of, len(p.Steps), inOutcome, &room, now)
	return doc, func(ctx context.Context) {
		d.complete(ctx, doc.Steps, room.later)
		d.messages(ctx, doc.Steps, room.told)
	}
}

// headOf returns what a list shows of a run that goes on: its counts so far, and no document.
func headOf(r *run) outcome.Head {
	m := r.machine
	doc := &outcome.Run{Generation: r.generation, Status: outcome.Running, Submitted: r.submitted}
	if m == nil {
		return outcome.HeadOf(doc)
	}
	doc.Stats, doc.Started = m.Stats(), m.Started()
	if u := r.start.Reuse; u != nil {
		doc.RetryOf = u.Of
	}
	p, of := m.Scope(0)
	doc.Steps = make([]outcome.Step, len(p.Steps))
	for k := range doc.Steps {
		s := &p.Steps[k]
		doc.Steps[k] = outcome.Step{ID: s.ID, Tool: s.Tool, Status: m.StepStatus(of.Of(k)), Ready: m.Due(machine.Call{Step: of.Of(k)})}
	}
	return outcome.HeadOf(doc)
}

// revisionOf returns the number of the last amendment of a scope, but for one that waits.
func revisionOf(m *machine.Run, scope string) int {
	n, _ := machine.Revision(m, scope)
	if machine.WaitingAmendment(m, scope) != nil {
		n--
	}
	return n
}

// maxAmendments is how many amendments of an approved plan a document tells of.
const maxAmendments = 100

// amendmentsOf tells what became of the last amendments of a plan that was submitted for an approval; nil for any other.
func amendmentsOf(m *machine.Run) (list []outcome.Amendment) {
	if !machine.Approves(m) {
		return nil
	}
	all := m.Amendments()
	for _, a := range all[max(len(all)-maxAmendments, 0):] {
		list = append(list, outcome.Amendment{
			Step: a.Scope, Revision: a.Revision, By: a.By, Verified: a.Verified, Reason: a.Reason, At: a.At(), Waits: a.Waits(),
			Answer: a.Account(), Error: a.Stale(), Digest: a.Asked(),
		})
	}
	return list
}

// templatesOf returns the plans of the templates that a run may call, by name; nil for none.
func templatesOf(r *run) (all map[string]json.RawMessage) {
	if r.plan.Language < 2 {
		return nil
	}
	add := func(name string, t *plan.Template) {
		if all == nil {
			all = map[string]json.RawMessage{}
		}
		all[name] = t.Plan
	}
	if len(r.machine.Amendments()) > 0 { // the plan that was submitted is not all
		for name, t := range machine.Templates(r.machine) {
			add(name, t)
		}
		return all
	}
	for s := range r.plan.All() {
		if s.Template != nil && s.Agent() == nil {
			add(s.Tool, s.Template)
		}
	}
	return all
}

// steps returns the account of the n steps of a scope.
func (d *documents) steps(
	ctx context.Context, r *run, of machine.Numbers, n int, inOutcome map[string]bool, room *room, now time.Time,
) []outcome.Step {
	all := make([]outcome.Step, n)
	for k := range all {
		st, i := &all[k], of.Of(k)
		*st = r.machine.Step(machine.Call{Step: i}, now)
		d.items(r, i, st, now)
		if !inOutcome[st.ID] {
			d.result(ctx, r, i, st, room)
			d.fit(ctx, r, st, room)
		}
		if r.machine.Finished() {
			d.calls(ctx, r, i, st, inOutcome[st.ID], room)
		}
		room.fitErrors(st)
		room.fitTries(st, i)
		room.fitSaid(r, i, st)
		room.tells(r, i, st)
		room.fitRefused(r, i, st)
		if r.agents != nil {
			eachOf(st, i, func(st *outcome.Step, c machine.Call) { ofAgents(r, st, c) })
		}
		inside := func(c machine.Call, x *outcome.Step) {
			if len(r.machine.Amendments()) > 0 {
				x.Revision = revisionOf(r.machine, x.ID)
			}
			for p, within := range r.machine.Inside(c) {
				x.Steps = append(x.Steps, d.steps(ctx, r, within, len(p.Steps), inOutcome, room, now)...)
			}
			if x.Steps == nil && !x.Reused && r.machine.Finished() && r.sameAbove(c) {
				x.Steps = r.neverReached(x.Status).within(r.step(i), x.ID)
			}
		}
		inside(machine.Call{Step: i}, st)
		for item := range st.Items {
			inside(machine.Call{Step: i, Item: item + 1}, &st.Items[item])
		}
	}
	return all
}

// result adds the result of a successful step. That of a for_each step is what references to it see.
func (d *documents) result(ctx context.Context, r *run, i int, st *outcome.Step, room *room) {
	s := r.source(i)
	st.Result, st.Blob, st.Text = s.value, s.blob, s.text && s.blob != nil
	switch size := s.size(); {
	case s.blob != nil || !s.apart() && !s.list:
	case r.machine.Finished():
		st.Result, _ = d.values.read(ctx, &s) // too large to be put together: its items are there
	case !s.inBlobs() && size <= int64(room.results):
		if room.later == nil {
			room.later = map[string]source{}
		}
		room.later[st.ID], room.results = s, room.results-int(size)
	}
}

// complete adds the results that were let go of to the document of a run that goes on.
func (d *documents) complete(ctx context.Context, steps []outcome.Step, later map[string]source) {
	if len(later) == 0 {
		return
	}
	for i := range steps {
		if s, is := later[steps[i].ID]; is {
			steps[i].Result, _ = d.values.read(ctx, &s)
		}
		d.complete(ctx, steps[i].Items, later)
		d.complete(ctx, steps[i].Steps, later)
	}
}

func (d *documents) items(r *run, i int, st *outcome.Step, now time.Time) {
	n, ok := r.machine.Items(i)
	if !ok {
		return
	}
	st.Items = make([]outcome.Step, n)
	for item := range st.Items {
		st.Items[item] = r.machine.Step(machine.Call{Step: i, Item: item + 1}, now)
	}
}

func (d *documents) outcome(ctx context.Context, r *run) *outcome.Outcome {
	total := int64(0)
	var left []outcome.StepError
	o := r.machine.Outcome(r.id.Plain(), func(i int) []byte {
		res := r.machine.Result(machine.Call{Step: i})
		if total += res.Size; total > maxOutcome {
			left = append(left, outcome.StepError{Step: r.step(i).ID, Code: fault.TooLarge,
				Message: "the step succeeded, but the outcome would be larger than 56 MiB with its result",
				Hint:    "name fewer steps in output_steps, or read the result from the run's document"})
			return nil
		}
		s := r.source(i)
		v, err := d.values.read(ctx, &s)
		if err != nil {
			left = append(left, outcome.StepError{Step: r.step(i).ID, Code: err.Code, Message: err.Message, Hint: err.Hint})
			return nil
		}
		if r.step(i).ForEach != nil {
			return plan.Envelope(v)
		}
		return v
	})
	if x := r.machine.Output(); x != nil && x.Handle != nil {
		value, err := d.values.value(ctx, x.Handle, false)
		if o.Output = value; err != nil {
			left = append(left, outcome.StepError{Step: subjects.RootScope, Code: err.Code, Message: err.Message, Hint: err.Hint})
		}
	}
	o.Generation = r.generation
	o.Warnings = append(slices.Clip(r.start.Warnings), d.foundNothing(ctx, r)...)
	fitTexts(o.Errors)
	if len(left) > 0 {
		o.Errors = append(o.Errors, left...)
		kept := o.Results[:0]
		for _, res := range o.Results {
			if res.JSON != nil {
				kept = append(kept, res)
			}
		}
		o.Results = kept
	}
	return o
}

// planJSON returns the plan as it can stand inside a JSON document; a plan that isn't JSON stands there as a string. That
// of a run that was amended stands there as it is now.
func (r *run) planJSON() json.RawMessage {
	if body, amended := lastShape(r); amended {
		return body
	}
	if r.body == nil || r.plan != nil || json.Valid(r.body) { // a plan that could be parsed is
		return r.body
	}
	s, _ := json.Marshal(text.Clip(string(r.body), 64<<10)) // strings can't fail
	return s
}

// A run's document is one object of at most 64 MiB. It is kept within that here, so that no plan and no tool can make a
// run whose outcome can't be stored.
const (
	// maxInline bounds, in bytes, the results that a document holds, those of the outcome included; of the others each
	// gets a blob.
	maxInline = 48 << 20
	// maxErrors bounds the errors of the outcome, and again those of the steps; beyond it they lose their details and
	// keep the beginning of their message.
	maxErrors = 1 << 20
	// maxTries bounds the tries that are listed of all steps together.
	maxTries = 10_000
	// shortText is what such a message keeps.
	shortText = 128
)

// room is what is left for steps in a document.
type room struct {
	results, errors, tries int
	said                   int                            // bytes of words to agents that there is still room for
	refused                int                            // likewise of answers that came to nothing
	all                    map[machine.Call][]outcome.Try // of those that had more than one
	later                  map[string]source              // results that are still to be read, by token
	told                   []*telling                     // what agents have told people, likewise
}

// eachOf calls what lists something of a call for a step and each of its items.
func eachOf(st *outcome.Step, step int, list func(*outcome.Step, machine.Call)) {
	list(st, machine.Call{Step: step})
	for i := range st.Items {
		list(&st.Items[i], machine.Call{Step: step, Item: i + 1})
	}
}

// ofAgents adds what is to be told of a call for agents alone.
func ofAgents(r *run, st *outcome.Step, c machine.Call) {
	st.Reused = st.Reused || tries(r).Taken(c)
	if res := r.machine.Decided(c); res != nil && r.agents.said.Len() > 0 {
		said := r.agents.said.At(attemptOf{r.token(res.Call), res.Attempt}) // of the call that was made
		st.Type, st.Shown = said.kind, said.planner
	}
}

// fitTries lists the tries of a step and its items, as long as there is room for them.
func (room *room) fitTries(st *outcome.Step, step int) {
	if room.all == nil {
		return
	}
	list := func(of *outcome.Step, c machine.Call) {
		if n := len(room.all[c]); n <= room.tries {
			of.Tries = room.all[c]
			room.tries -= n
		}
	}
	eachOf(st, step, list)
}

// mostSaid is how many bytes the words to a run's agents have in its document, and longestSaid how many one may have.
const (
	mostSaid    = 128 << 10
	longestSaid = 1 << 10
)

// mostRefused is how many bytes the refused answers of a run's planners have in its document, and problemsShown how many
// problems one has.
const (
	mostRefused   = 64 << 10
	problemsShown = 3
)

// fitRefused lists the answers of an agent's planner that came to nothing, as long as there is room: the latest first. Behind that of
// those alone of which something had begun, without what is wrong with them.
func (room *room) fitRefused(r *run, step int, st *outcome.Step) {
	list := func(of *outcome.Step, c machine.Call) {
		all := machine.Rounds(r.machine, c, 0)
		for k := len(all) - 1; k >= 0; k-- {
			problems := refusalOf(&all[k])
			if len(problems) == 0 {
				continue
			}
			x := outcome.Refused{Round: all[k].Number, Problems: problems[:min(len(problems), problemsShown)], Count: len(problems)}
			for _, p := range x.Problems {
				room.refused -= len(p.Path) + len(p.Message) + len(p.Hint)
			}
			full := room.refused < 0
			if full && (all[k].HandedOver == nil || len(all[k].HandedOver.Steps) == 0) {
				continue
			}
			if full { // that it came to nothing a retry has to know, which sees the steps that had begun before it was whole
				x.Problems = []fault.Problem{}
			}
			of.Refused = append(of.Refused, x)
		}
		slices.Reverse(of.Refused)
	}
	eachOf(st, step, list)
}

// refusalOf returns why what a planner answered in a round came to nothing; nothing where it did not.
func refusalOf(v *machine.RoundView) []fault.Problem {
	why := v.Refused
	if rec := v.Record; rec != nil && rec.Invalid {
		return rec.Problems
	} else if rec != nil && rec.Refused != nil {
		why = rec.Refused
	}
	if why == nil {
		return nil
	}
	return []fault.Problem{{Code: why.Code, Message: why.Message, Hint: why.Hint}}
}

// fitSaid lists what people have said to an agent, as long as there is room for it: the latest words first.
func (room *room) fitSaid(r *run, step int, st *outcome.Step) {
	list := func(of *outcome.Step, c machine.Call) {
		all := machine.AllSaid(r.machine, c)
		for k := len(all) - 1; k >= 0; k-- {
			w := all[k]
			x := outcome.Said{ID: w.ID, By: w.By, Verified: w.Verified, Interrupt: w.Interrupt, Content: w.Content}
			if n := w.Round; n >= 0 {
				x.Round = &n
			}
			if len(x.Content) > longestSaid {
				x.Bytes, x.Content = int64(len(x.Content)), beginning(x.Content)
			}
			if room.said -= len(x.ID) + len(x.By) + len(x.Content); room.said < 0 {
				break
			}
			of.Said = append(of.Said, x)
		}
		slices.Reverse(of.Said)
	}
	eachOf(st, step, list)
}

// beginning returns the beginning of what was said, of a text; nil for what is none.
func beginning(content json.RawMessage) json.RawMessage {
	var said string
	if json.Unmarshal(content, &said) != nil {
		return nil
	}
	for most := longestSaid; ; most /= 2 { // it is longer in JSON
		if content, _ = json.Marshal(text.Clip(said, most)); len(content) <= longestSaid { // of a string
			return content
		}
	}
}

// mostMessages is how many bytes what a run's agents have told people has in its document.
const mostMessages = 128 << 10

// telling is a call by which an agent has told people something.
type telling struct {
	agent   string // the token of the step that calls it
	seq     uint64 // of the call's record
	message outcome.Message
	value   source // of what it says
}

// messageOf returns what an agent has told people by a call, for one by which it has; nil for any other.
func messageOf(r *run, c machine.Call) *telling {
	s := r.step(c.Step)
	if !s.Own || s.Tool != agent.Communicate || s.ForEach != nil && c.Item == 0 {
		return nil
	}
	res := r.machine.Result(c)
	of, round, _, within := machine.RoundAround(r.machine, c)
	if res == nil || res.Error != nil || !within {
		return nil
	}
	st := r.machine.Step(c, time.Time{})
	return &telling{r.token(of), res.Seq, outcome.Message{Step: st.ID, Round: round, At: st.Decided, Reused: tries(r).Told(c)}, sourceOf(r, res)}
}

// read sets what the message says, from the result of its call.
func (x *telling) read(result []byte) {
	var whole string
	_ = json.Unmarshal(result, &whole) // a text of ours; anything else says nothing
	x.message.Says(whole)
}

// tells notes what an agent has told people by a step, or by the items of one.
func (room *room) tells(r *run, step int, st *outcome.Step) {
	if r.agents == nil {
		return
	}
	eachOf(st, step, func(_ *outcome.Step, c machine.Call) {
		if x := messageOf(r, c); x != nil {
			room.told = append(room.told, x)
		}
	})
}

// messages lists with each agent what it has told people, as long as there is room for it: the latest first to stay.
func (d *documents) messages(ctx context.Context, steps []outcome.Step, told []*telling) {
	slices.SortStableFunc(told, func(a, b *telling) int { return cmp.Compare(a.seq, b.seq) })
	all, left := map[string][]outcome.Message{}, map[string]int{}
	for k, room := len(told)-1, mostMessages; k >= 0; k-- {
		x := told[k]
		if room > 0 {
			if value, err := d.values.read(ctx, &x.value); err == nil {
				x.read(value)
			} else {
				x.message.Bytes = x.value.size()
			}
			room -= len(x.message.Step) + len(x.message.Text)
		}
		if room < 0 {
			left[x.agent]++
			continue
		}
		all[x.agent] = append(all[x.agent], x.message)
	}
	var list func([]outcome.Step)
	list = func(steps []outcome.Step) {
		for i := range steps {
			s := &steps[i]
			s.Messages, s.MessagesLeftOut = all[s.ID], left[s.ID]
			slices.Reverse(s.Messages)
			list(s.Items)
			list(s.Steps)
		}
	}
	if len(told) > 0 {
		list(steps)
	}
}

// fit puts a step's result into a blob where the document has no room for it. A run that goes on shows its size alone.
func (d *documents) fit(ctx context.Context, r *run, st *outcome.Step, room *room) {
	if len(st.Result) <= room.results {
		room.results -= len(st.Result)
		return
	}
	if r.machine.Finished() {
		name := func(unique string) string { return subjects.RunBlobName(r.id, r.generation, "result", unique) }
		if st.Blob, _ = d.values.put(ctx, r.bucket(), name, st.Result); st.Blob == nil {
			return // only when stopping: the next owner writes the document
		}
		st.Text = false
	}
	st.Result = nil
}

// fitErrors shortens the errors of a step and its items where the document has no room for them.
func (room *room) fitErrors(st *outcome.Step) {
	if e := st.Error; e != nil {
		if size := len(e.Message) + len(e.Hint) + len(e.Details); size <= room.errors {
			room.errors -= size
		} else {
			short := *e
			short.Message, short.Hint, short.Details = text.Clip(e.Message, shortText), text.Clip(e.Hint, shortText), nil
			st.Error = &short
		}
	}
	for i := range st.Items {
		room.fitErrors(&st.Items[i])
	}
}

// fitTexts shortens the messages of an outcome's errors where there is no room for them.
func fitTexts(errors []outcome.StepError) {
	left := maxErrors
	for i := range errors {
		e := &errors[i]
		if size := len(e.Message) + len(e.Hint); size <= left {
			left -= size
		} else {
			e.Message, e.Hint = text.Clip(e.Message, shortText), text.Clip(e.Hint, shortText)
		}
	}
}

// Limits of what an outcome tells of references that found nothing. They count what the records say, so that every
// owner comes to the same warnings.
const (
	maxNothing      = 20
	maxNothingItems = 100_000   // items of for_each steps that are looked at
	maxNothingBytes = 256 << 20 // of results that lie in blobs
)

// foundNothing returns a warning for each reference that found nothing: null went to the tool in its place. It is a
// function of the plan and the records, whoever owns the run.
func (d *documents) foundNothing(ctx context.Context, r *run) []fault.Problem {
	n := &nothings{
		run: r, past: &pastValues{values: d.values, ctx: ctx, r: r, held: -1, left: maxNothingBytes},
		items: maxNothingItems, told: map[string]bool{},
	}
	p, of := r.machine.Scope(0)
	n.scope(p, of, "")
	return n.all
}

// nothings gathers those warnings. A reference is told of once of a step, whatever items and places it found nothing in.
type nothings struct {
	run   *run
	past  *pastValues
	items int // that may still be looked at
	told  map[string]bool
	all   []fault.Problem
}

// scope looks at the steps of a scope, whose plan has its place in the document, and of those below it.
func (n *nothings) scope(p *plan.Plan, of machine.Numbers, place string) {
	m := n.run.machine
	input, away := m.Input(of.First())
	if machine.InputLetGo(m, of.First()) && slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.TakesInput }) {
		in := n.run.inputs(m.Composite(of.First()))
		in.resolver = nil
		if value, err := n.past.values.arguments(n.past.ctx, &in); err == nil {
			input, away = value, false
		}
	}
	resolver := p.NewResolver().Fates(func(step int) plan.Fate { return n.run.fate(of.Of(step)) })
	resolver.Input(func() ([]byte, bool) { return input, input != nil })
	for i := range p.Steps {
		s, c := &p.Steps[i], machine.Call{Step: of.Of(i)}
		if n.past.unread {
			return
		}
		if !(away && s.TakesInput) { // else it can't be told
			n.step(resolver, s, c, of, place)
		}
		if s.Plan == nil || s.Template != nil { // who calls a template can't mend it, and need not hand it all that it takes
			continue
		}
		count, _ := m.Items(c.Step)
		for c.Item = 0; c.Item <= count && len(n.all) < maxNothing; c.Item++ {
			for inner, numbers := range n.plansWithin(c) {
				n.scope(inner, numbers, fmt.Sprintf("%s/steps/%d/plan", place, i))
			}
		}
	}
}

// plansWithin returns the scopes of the plan that somebody wrote into a composite: of a loop those of its iterations.
func (n *nothings) plansWithin(c machine.Call) iter.Seq2[*plan.Plan, machine.Numbers] {
	return func(yield func(*plan.Plan, machine.Numbers) bool) {
		for p, of := range n.run.machine.Inside(c) {
			if n.run.step(c.Step).Repeat == nil {
				yield(p, of)
				return
			}
			for inner, numbers := range n.run.machine.Inside(machine.Call{Step: of.First()}) {
				if !yield(inner, numbers) {
					return
				}
			}
		}
	}
}

// step looks at what a step was decided by, and at what it, or each of its items, was given.
func (n *nothings) step(resolver *plan.Resolver, s *plan.Step, c machine.Call, of machine.Numbers, place string) {
	status := n.run.machine.StepStatus(c.Step)
	over := status == outcome.StepSucceeded || status == outcome.StepFailed
	if !(over && s.HasRefs) && (s.If == nil || !over && status != outcome.StepNotTaken) {
		return
	}
	if n.run.machine.Step(c, time.Time{}).Reused {
		return // it was not executed here
	}
	i, result := of.Step(c.Step), func(dep int) ([]byte, bool) { return n.past.result(of.Of(dep)) }
	n.tell(c, i, place, "", resolver.NothingDecided(i, result))
	if !over || !s.HasRefs {
		return
	}
	if s.ForEach == nil {
		n.tell(c, i, place, "", resolver.Nothing(i, nil, result))
	}
	list := n.run.lists[c.Step]
	if _, spread := n.run.machine.Items(c.Step); spread {
		list = n.past.values.listed(n.past.ctx, n.run, c.Step)
	}
	if s.Value && s.ForEach != nil {
		list, _ = resolver.Items(i, result) // nobody keeps it
	}
	for k, item := range list {
		if n.items--; n.items < 0 || len(n.all) == maxNothing {
			return
		}
		n.tell(c, i, place, fmt.Sprintf("item %d: ", k), resolver.Nothing(i, item, result))
	}
}

func (n *nothings) tell(c machine.Call, step int, place, of string, found []plan.Nothing) {
	for _, x := range found {
		key := fmt.Sprintf("%s %d %s", place, step, x)
		if len(n.all) == maxNothing || n.past.unread || n.told[key] {
			continue
		}
		n.told[key] = true
		n.all = append(n.all, fault.Problem{Code: fault.UnresolvedRef, Path: place + x.At, Step: n.run.token(c), Message: of + x.Message()})
	}
}

// pastValues returns the values of a finished run's steps. Of those that lie in blobs it holds one at a time.
type pastValues struct {
	values *values
	ctx    context.Context
	r      *run
	held   int
	data   []byte
	left   int64 // bytes that may still be read
	unread bool  // something was not read, so that nothing more can be said
}

func (v *pastValues) result(dep int) ([]byte, bool) {
	s := v.r.source(dep)
	switch {
	case s.missing() || s.value != nil:
		return s.value, s.value != nil
	case v.held == dep:
		return v.data, true
	}
	if s.inBlobs() { // what was let go of counts as if it were here
		v.left -= s.size()
	}
	if v.left < 0 || v.unread {
		v.unread = true
		return nil, false
	}
	data, err := v.values.read(v.ctx, &s)
	if err != nil {
		v.unread = true
		return nil, false
	}
	v.held, v.data = dep, data
	return data, true
}
