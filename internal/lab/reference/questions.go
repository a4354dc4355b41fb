package reference

import (
	"fmt"
	"strings"
)

// A run may wait for a person: before it begins, before a step does that the plan or the contract of its tool guards, and
// where a step calls the tool that asks. What waits is no work of anybody's. An answer counts where its record finds the
// question open, under the number that it has then; any other has used its number up, and says nothing.

// askTool is the tool that asks a person for a value, and always the contract of a tool each of whose calls is asked for.
const (
	askTool = "ask"
	always  = "always"
)

// thePlan is where a step's name would stand, for what the plan as a whole is asked for.
const thePlan = "="

// What a call waits for before it begins.
const (
	forApproval = "approval"
	forValue    = "ask"
	forContract = "contract" // a record says whether the contract of its tool asks for an approval
)

// What an answer says, where it gives no value.
const (
	approve = "approve"
	reject  = "reject"
	expire  = "expire" // nobody answered in time
)

// Answer is what a person says to a question, or an owner where nobody did in time.
type Answer struct {
	// Number says which question of the step it is for, counted from 1. Who is asked in Run needs not say it.
	Number int
	// Other is whether it is for something else than what was asked.
	Other bool
	// Decision is approve, reject or expire; empty where Value or Err says it.
	Decision string
	// Value decides the step, as JSON; nil for none. Arguments take the place of those of the plan; nil leaves them.
	Value, Arguments []byte
	// Err is an owner's: why there is nothing to show.
	Err *Err
	// Refusal and Hint are what the error says of a step that does not begin: no promise, but items show it to others.
	Refusal, Hint string
}

// People says what a person answers who is asked about a step, "S=i" for an item and "=" for the plan; kind is approval or
// ask.
type People func(step, kind string) Answer

// everybody agrees, and has nothing to say.
func everybody(_, kind string) Answer {
	if kind == forValue {
		return Answer{Value: []byte("null")}
	}
	return Answer{Decision: approve}
}

// shut is whether a run waits for the approval of its plan.
func (r *run) shut() bool { return r.plan.Approval != nil && !r.said[thePlan] }

// name is what a step, or an item of one, is called; k is -1 for the step itself.
func (r *run) name(i, k int) string {
	if k < 0 {
		return r.plan.Steps[i].ID
	}
	return token(r.plan.Steps[i].ID, k)
}

// of returns a step, or an item of one.
func (r *run) of(i, k int) *Step {
	if k < 0 {
		return &r.steps[i]
	}
	return &r.steps[i].Items[k]
}

// person says what a call that could begin waits for; "" for nothing. Of a list either the step is asked for or each item.
func (r *run) person(i, k int) string {
	s := &r.plan.Steps[i]
	if (k < 0 || k < len(r.steps[i].Items)) && r.of(i, k).waits {
		return forValue
	}
	name, rule := r.name(i, k), r.contracts[s.Tool].Approval
	if s.Value || r.said[name] || s.ForEach && (s.Approval != nil && s.Approval.All) != (k < 0) {
		return ""
	}
	switch told := r.weighed[name]; {
	case s.Tool == askTool:
		return forValue
	case s.Approval != nil || rule == always:
		return forApproval
	case rule == "":
		return ""
	case told == nil:
		return forContract
	case told.Holds || told.Err != nil:
		return forApproval
	}
	return ""
}

// asksEach is whether the items of a step may each wait for a person.
func (r *run) asksEach(i int) bool {
	s := &r.plan.Steps[i]
	switch {
	case !s.ForEach || s.Value:
		return false
	case r.contracts[s.Tool].Asks: // its worker does so by itself, whomever the plan asks about all of them
		return true
	case s.Approval != nil && s.Approval.All:
		return false
	}
	return s.Tool == askTool || s.Approval != nil || r.contracts[s.Tool].Approval != ""
}

// asked returns the question that is open at a call; "" for none.
func (r *run) asked(i, k int) string {
	if !r.ready(i) || k >= 0 && !r.hasItem(i, k) || r.of(i, k).Status != "" {
		return ""
	}
	return r.person(i, k)
}

// hasItem is whether a step has such an item. Its list is gone through as soon as the step is let through.
func (r *run) hasItem(i, k int) bool {
	if !r.plan.Steps[i].ForEach || r.person(i, -1) != "" {
		return false
	}
	if r.steps[i].Items == nil && r.spread(i) != nil {
		return false
	}
	return k < len(r.steps[i].Items)
}

// dropAsked ends the items of a step that somebody is asked about: nobody is any more, and that needs no record. It
// reports whether there are items: a list that comes to nothing is for a record to say.
func (r *run) dropAsked(i int) bool {
	if !r.asksEach(i) || r.steps[i].Items == nil && r.spread(i) != nil {
		return false
	}
	for k := range r.steps[i].Items {
		if item := &r.steps[i].Items[k]; item.Status == "" && r.person(i, k) != "" {
			item.cancel()
		}
	}
	return true
}

// takes reports whether an answer is one to a question of a kind.
func (a *Answer) takes(kind string) bool {
	switch {
	case a.Err != nil:
		return a.Decision == "" && a.Value == nil && a.Arguments == nil && kind != thePlan
	case a.Decision == reject || a.Decision == expire:
		return a.Value == nil && a.Arguments == nil
	case a.Value != nil:
		return a.Decision == "" && a.Arguments == nil && kind != thePlan
	}
	return a.Decision == approve && kind != forValue && (a.Arguments == nil || kind != thePlan)
}

// void takes note of an answer that says nothing: the next question has a number that nobody used.
func (r *run) void(name string, a *Answer) { r.spent[name] = max(r.spent[name], a.Number) }

// counts reports whether an answer is one to the question that is open.
func (r *run) counts(name, kind string, a *Answer) bool {
	return a.Number == r.spent[name]+1 && !a.Other && a.takes(kind)
}

// answer takes the record of an answer, and returns the step that it is about; -1 for the plan, or where it says nothing.
func (r *run) answer(d Decided) int {
	id, k := splitToken(d.Step)
	i := r.plan.index(id)
	switch {
	case d.Step == thePlan && r.shut() && r.open() && r.counts(thePlan, thePlan, d.Answer):
		r.planAnswered(d.Answer)
		return -1
	case i < 0 || d.Step == thePlan:
		r.void(d.Step, d.Answer)
		return -1
	}
	kind := r.asked(i, k)
	if kind == "" || kind == forContract || !r.counts(d.Step, kind, d.Answer) {
		r.void(d.Step, d.Answer)
		return -1
	}
	r.answered(i, k, kind, d.Answer)
	return i
}

// planAnswered lets a run begin, or ends it before its first step.
func (r *run) planAnswered(a *Answer) {
	if a.Decision == approve || a.Decision == expire && r.plan.Approval.Approves {
		r.said[thePlan] = true
		return
	}
	r.status = cancelled
	for i := range r.steps {
		r.steps[i].cancel()
		r.steps[i].Code = codeRejected
	}
}

// answered decides a call, or lets it begin.
func (r *run) answered(i, k int, kind string, a *Answer) {
	s, step := r.of(i, k), &r.plan.Steps[i]
	r.spent[r.name(i, k)] = max(r.spent[r.name(i, k)], a.Number) // the next question of the call has the next number
	if s.waits {
		s.told(a)
		r.settled(i, k)
		return
	}
	no := &Err{Code: codeRejected, Message: a.Refusal, Hint: a.Hint}
	approves := step.Approval != nil && step.Approval.Approves && r.contracts[step.Tool].Approval == ""
	switch {
	case a.Err != nil:
		s.fail(a.Err)
	case a.Value != nil && k < 0 && step.ForEach:
		s.fail(&Err{Code: codeInvalidValue, Message: "one value for all items"})
	case a.Value != nil:
		result, err := Convert(a.Value, false)
		if err != nil {
			s.fail(err)
			break
		}
		s.Status, s.Result = succeeded, result
	case a.Decision == approve || a.Decision == expire && kind == forApproval && approves:
		r.said[r.name(i, k)] = true
		if a.Arguments != nil {
			r.edited[r.name(i, k)] = a.Arguments
		}
	case a.Decision == expire && kind == forValue:
		no.Code = codeTimeout
		s.fail(no)
	default:
		s.fail(no)
	}
	r.settled(i, k)
}

// settled goes on with the list that a call is part of, or of which the call is the whole.
func (r *run) settled(i, k int) {
	switch {
	case k >= 0:
		if r.halted(i) {
			r.dropAsked(i)
		}
		r.gather(i, false)
		if r.halted(i) {
			r.unseat(i, false)
		}
	case !r.over(i) && r.isEmpty(i):
		r.gather(i, false)
	}
}

// weighs takes the record of whether the contract of a call's tool asks for an approval.
func (r *run) weighs(d Decided) {
	id, k := splitToken(d.Step)
	if i := r.plan.index(id); i >= 0 && r.asked(i, k) == forContract {
		r.weighed[d.Step] = d.Weighed
	}
}

// consult asks a person about a call, where somebody is to be asked, and reports whether it begins.
func (r *run) consult(i, k int) bool {
	name := r.name(i, k)
	if r.person(i, k) == forContract {
		r.weighed[name] = r.weigh(i, k)
	}
	kind := r.person(i, k)
	if kind == "" {
		return true
	}
	if err := r.show(i, k); err != nil {
		r.of(i, k).fail(err)
		return false
	}
	a := r.people(name, kind)
	if !a.takes(kind) {
		panic(fmt.Sprintf("%s is asked for: %s; %+v is no answer", name, kind, a)) // whoever made up the people
	}
	r.answered(i, k, kind, &a)
	return r.said[name]
}

// show returns why a person can't be shown what a call would be called with.
func (r *run) show(i, k int) *Err {
	var item []byte
	if k >= 0 {
		item = r.steps[i].list[k]
	}
	if _, err := r.plan.Question(i, item, r.sight()); err != nil {
		return err
	}
	if !r.plan.Steps[i].ForEach {
		return r.resolve(i)
	}
	if k >= 0 {
		return r.resolveItem(i, k)
	}
	list, err := r.plan.Items(i, r.sight())
	for _, item := range list {
		if _, err := r.plan.ItemArguments(i, item, r.sight()); err != nil {
			return err
		}
	}
	return err
}

// weigh tells whether the contract of a call's tool asks for an approval. What can't be told means yes. The arguments are
// to it what the result of a step is to a condition of the plan.
func (r *run) weigh(i, k int) *Told {
	err := r.resolve
	args := &r.steps[i].Arguments
	if k >= 0 {
		err = func(i int) *Err { return r.resolveItem(i, k) }
		args = &r.steps[i].Items[k].Arguments
	}
	if why := err(i); why != nil {
		return &Told{Err: why}
	}
	text := strings.ReplaceAll(r.contracts[r.plan.Steps[i].Tool].Approval, "$args", "$ref:args")
	c, bad := parseCondition(&value{kind: '"', text: text})
	if bad != nil {
		return &Told{Err: &Err{Code: codeCondition, Message: bad.Error()}}
	}
	p := &Plan{Steps: []PlanStep{{ID: "args", condition: c}}}
	holds, known, why := p.comesTo(0, Sight{Result: func(int) ([]byte, bool) { return *args, true }})
	return &Told{Holds: holds || !known, Err: why}
}
