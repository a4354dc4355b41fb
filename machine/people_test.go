package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// people are those who are asked in a world, and the owner who asks them.
type people struct {
	questions []machine.Call // that somebody is to be told of
	weigh     []machine.Call // calls of which is to be told whether their contract asks
	expire    []machine.Question
	answers   map[question]bool // that have a record
	weighed   map[machine.Call]*machine.Told
	did       map[string]int
}

// question is the key of the record of an answer.
type question struct {
	machine.Call
	number int
}

// whatPeopleDid is what happens in some of the worlds that nothing stops.
var whatPeopleDid = []string{"approve", "reject", "expire", "a value", "edited arguments", "a void answer", "late, and in time for the record", "nothing to show", "told its tool"}

func newPeople() people {
	return people{answers: map[question]bool{}, weighed: map[machine.Call]*machine.Told{}, did: map[string]int{}}
}

func (p *people) take(e *machine.Effects) {
	p.questions = append(p.questions, e.Ask...)
	p.weigh = append(p.weigh, e.Weigh...)
	p.expire = append(p.expire, e.Expire...)
}

func (p *people) wait() bool { return len(p.questions)+len(p.weigh)+len(p.expire) > 0 }

func (p *people) forget() { p.questions, p.weigh, p.expire = nil, nil, nil }

// once takes note of the record of an answer; false where there is one.
func (p *people) once(a *machine.Answer) bool {
	key := question{a.Call, a.Number}
	if p.answers[key] {
		return false
	}
	p.answers[key] = true
	return true
}

func (p *people) count(into map[string]int) {
	for what, n := range p.did {
		into[what] += n
	}
}

// mayBegin is I13: nothing begins that a person was to be asked about and has not approved of.
func (p *people) mayBegin(t testing.TB, w *world, m *machine.Run, c machine.Call) {
	step := &w.plan.Steps[c.Step]
	whole := machine.Call{Step: c.Step}
	approved := func(c machine.Call) bool { return m.Approved(c) }
	require.True(t, w.plan.Approval == nil || approved(machine.Call{Step: machine.ThePlan}), "a step of a plan began that nobody approved of: %s", w.c.Plan)
	require.False(t, step.Ask, "what asks a person was executed: %s", w.c.Plan)
	switch rule := w.c.Contracts[step.Tool].Approval; {
	case step.Approval != nil && step.Approval.All:
		require.True(t, approved(whole), "%s began without an approval: %s", w.token(c), w.c.Plan)
	case step.Approval != nil || rule == "always":
		require.True(t, approved(c), "%s began without an approval: %s", w.token(c), w.c.Plan)
	case rule != "":
		told := p.weighed[c]
		require.NotNil(t, told, "%s began, and nobody found out whether it may: %s", w.token(c), w.c.Plan)
		require.True(t, approved(c) || !told.Holds && told.Error == nil, "%s began without an approval: %s", w.token(c), w.c.Plan)
	}
}

// hears makes sure that an attempt is told what was answered to the question before it, and nothing else.
func (p *people) hears(t testing.TB, w *world, m *machine.Run, key attempt) {
	if !m.Open(key.Call, key.number) {
		return // it was asked for twice, and is decided
	}
	q, a := m.Inquiry(key.Call)
	asked := 0
	for n := 1; n < key.number; n++ {
		if w.c.Call(w.token(key.Call), "", nil, n).Asks {
			asked = n
		}
	}
	if asked == 0 {
		require.Nil(t, q, "%s is told something, and has asked nothing: %s", w.token(key.Call), w.c.Plan)
		return
	}
	require.NotNil(t, q, "attempt %d of %s is told nothing: %s", key.number, w.token(key.Call), w.c.Plan)
	require.Equal(t, asked, q.Attempt)
	require.Equal(t, w.c.Say(w.token(key.Call), "ask").Value, a.Value, "%s: %s", w.token(key.Call), w.c.Plan)
	p.did["told its tool"]++
}

// consult lets something happen about what people are asked.
func (w *world) consult(m *machine.Run, e *machine.Effects) {
	p := &w.people
	switch {
	case len(p.weigh) > 0:
		c := p.weigh[0]
		p.weigh = p.weigh[1:]
		w.weigh(m, c)
	case len(p.expire) > 0:
		q := p.expire[0]
		p.expire = p.expire[1:]
		if open := m.Question(q.Call); open != nil && !w.shown(m, open) {
			return
		}
		if w.says(&q).Decision == "expire" || w.liar && w.Intn(2) == 0 {
			w.answer(q, &machine.Answer{Decision: machine.Expire})
			return
		} // else somebody answers after all, before that is recorded
		w.ask(m, q.Call, e)
	default:
		c := p.questions[0]
		p.questions = p.questions[1:]
		w.ask(m, c, e)
	}
}

// weigh records whether the contract of a call asks for an approval.
func (w *world) weigh(m *machine.Run, c machine.Call) {
	if !m.Weighing(c) {
		return
	}
	told := machine.Told{Call: c, Approval: true, Holds: true}
	args, err := w.arguments(m, c)
	if told.Error = err; err == nil {
		w.args[c] = args
		told.Holds, told.Error = m.Contract(c.Step).WantsApproval(args)
	}
	w.create(machine.Record{Told: &told})
}

// ask shows a question to whoever is asked, as an owner does, and has it answered.
func (w *world) ask(m *machine.Run, c machine.Call, e *machine.Effects) {
	q := m.Question(c)
	if q == nil {
		return
	}
	if !w.shown(m, q) {
		return
	}
	says := w.says(q)
	switch {
	case w.Intn(5) == 0:
		w.mistake(q)
		return
	case says.Decision == "expire": // its time comes, and that of all others that end by then
		w.now = q.Until
		m.Tick(w.now, e)
		return
	case !q.Until.IsZero() && w.Intn(3) == 0:
		w.people.did["late, and in time for the record"]++
		w.now = q.Until
		m.Tick(w.now, e)
	}
	w.answer(*q, inTheWords(says))
	if w.Intn(4) == 0 { // and somebody else, too late
		w.answer(*q, &machine.Answer{Decision: machine.Reject, By: "bob"})
	}
}

// inTheWords returns the record of what a person says.
func inTheWords(says reference.Answer) *machine.Answer {
	a := &machine.Answer{Decision: says.Decision, Value: says.Value, Arguments: says.Arguments, By: "ann"}
	if says.Decision == "reject" {
		a.Reason = "no"
	}
	return a
}

// says is what a person answers. Nobody is silent whose question has no end.
func (w *world) says(q *machine.Question) reference.Answer {
	token := subjects.RootScope
	if q.Step != machine.ThePlan {
		token = w.token(q.Call)
	}
	if w.liar && w.Intn(3) == 0 {
		return reference.Answer{Decision: machine.Reject}
	}
	says := w.c.Say(token, string(q.Kind))
	if says.Decision == "expire" && q.Until.IsZero() {
		return reference.Answer{Decision: machine.Reject}
	}
	return says
}

// shown reports whether there is something to show, and records why not.
func (w *world) shown(m *machine.Run, q *machine.Question) bool {
	err := w.show(m, q)
	if err != nil {
		w.answer(*q, &machine.Answer{Error: err})
	}
	return err == nil
}

// show returns why there is nothing to show.
func (w *world) show(m *machine.Run, q *machine.Question) *fault.Error {
	if q.Step == machine.ThePlan || q.Asks != nil { // all that is asked stands in its record
		return nil
	}
	r, values := w.plan.NewResolver().Fates(m.Fate), w.valuesOf(m)
	step := &w.plan.Steps[q.Step]
	var list [][]byte
	var item []byte
	if step.ForEach != nil {
		var err *fault.Error
		if list, err = r.Items(q.Step, values); q.Item > 0 && err == nil {
			item = list[q.Item-1]
		}
		if _, worded := r.Question(q.Step, item, values); worded != nil {
			return worded
		}
		if err != nil {
			return err
		}
	} else if _, err := r.Question(q.Step, nil, values); err != nil {
		return err
	}
	if step.ForEach == nil || q.Item > 0 {
		args, err := w.arguments(m, q.Call)
		w.args[q.Call] = args
		return err
	}
	for _, item := range list {
		if _, err := r.ItemArguments(q.Step, item, values); err != nil {
			return err
		}
	}
	return nil
}

// mistake answers something else than what is asked, or another question, or in a way that is no answer to it.
func (w *world) mistake(q *machine.Question) {
	a := &machine.Answer{Decision: machine.Approve, By: "eve"}
	wrong := *q
	switch w.Intn(3) {
	case 0:
		wrong.Digest = otherDigest
	case 1: // which may be that of the question by the time that this is read: then it counts
		wrong.Number += 1 + w.Intn(2)
		a = inTheWords(w.says(q))
	default:
		a.Value, a.Arguments = []byte("1"), []byte("{}")
	}
	if w.answer(wrong, a) {
		w.people.did["a void answer"]++
	}
	w.people.questions = append(w.people.questions, q.Call) // whoever made it looks again
}

const otherDigest = "of something else"

// answer records an answer to a question.
func (w *world) answer(q machine.Question, a *machine.Answer) bool {
	a.Call, a.Number, a.Digest = q.Call, q.Number, q.Digest
	if !w.create(machine.Record{Answer: a}) {
		return false
	}
	what := a.Decision
	switch {
	case a.Error != nil:
		what = "nothing to show"
	case a.Value != nil:
		what = "a value"
	case a.Arguments != nil:
		what = "edited arguments"
	}
	w.people.did[what]++
	return true
}

// openQuestions returns the calls that somebody is asked about.
func openQuestions(m *machine.Run) (calls []machine.Call) {
	m.Questions(func(q *machine.Question) { calls = append(calls, q.Call) })
	return calls
}

// closed takes note of which questions a record ended without an answer.
func (p *people) closed(m *machine.Run, before []machine.Call) {
	for _, c := range before {
		answer, _ := m.Answered(c)
		if c.Step != machine.ThePlan && m.Question(c) == nil && answer == nil && m.StepStatus(c.Step) == outcome.StepCancelled {
			p.did["ended while somebody was asked"]++
		}
	}
}

// decidedByPeople is a record about a question as the reference wants it.
func (w *world) decidedByPeople(rec machine.Record) reference.Decided {
	if x := rec.Told; x != nil {
		told := &reference.Told{Holds: x.Holds}
		if x.Error != nil {
			told.Err = &reference.Err{Code: string(x.Error.Code), Message: x.Error.Message}
		}
		return reference.Decided{Step: w.token(x.Call), Weighed: told}
	}
	a := rec.Answer
	d := reference.Decided{Step: subjects.RootScope, Answer: &reference.Answer{
		Number: a.Number, Other: a.Digest == otherDigest, Decision: a.Decision, Value: a.Value, Arguments: a.Arguments,
		Refusal: "Rejected by " + a.By + " (unverified)",
	}}
	switch {
	case a.Error != nil:
		d.Answer.Err = &reference.Err{Code: string(a.Error.Code), Message: a.Error.Message, Hint: a.Error.Hint}
	case a.Decision == machine.Expire:
		d.Answer.Refusal = "nobody answered within 1m0s"
		d.Answer.Hint = "ask again with a longer timeout, or without one: it then waits as long as the run"
	case a.Reason != "":
		d.Answer.Refusal += ": " + a.Reason
	}
	if a.Step != machine.ThePlan {
		d.Step = w.token(a.Call)
	}
	return d
}
