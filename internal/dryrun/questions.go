package dryrun

import (
	"fmt"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
)

// askTool stands for the built-in tool of steps that ask a person.
func askTool() *known {
	return &known{name: tool.AskTool, input: tool.AskInput(), result: []byte("null"), from: outcome.FromNothing}
}

// people answers what the run asks: every approval is given, and what a step asks for is made up as its schema says.
func (t *trial) people(round *machine.Effects) {
	for _, c := range round.Weigh {
		if t.machine.Weighing(c) {
			t.tell(machine.Record{Told: &machine.Told{Call: c, Approval: true, Holds: t.wantsApproval(c)}})
		}
	}
	for _, c := range round.Ask {
		q := t.machine.Question(c)
		if q == nil || t.cut != "" {
			continue
		}
		a := &machine.Answer{Call: c, Number: q.Number, Digest: q.Digest}
		switch {
		case q.Kind == outcome.Ask:
			a.Value, a.Error = t.answered(c)
		case c.Step != machine.ThePlan:
			a.Error = t.unworded(c)
		}
		if a.Value == nil && a.Error == nil {
			a.Decision = machine.Approve
		}
		if c.Step != machine.ThePlan && a.Error == nil { // else there is nothing to show, and nobody is asked
			t.at(c.Step).asked++
		}
		t.tell(machine.Record{Answer: a})
	}
}

// unworded is why the question of a call can't be put into words, where that is certain. Else there is a doubt.
func (t *trial) unworded(c machine.Call) *fault.Error {
	x, sc := t.at(c.Step), t.scopeOf(c.Step)
	var item []byte
	if c.Item > 0 {
		item = x.list[c.Item-1]
	}
	t.sure = x.sure
	_, err := sc.resolver.Question(c.Step-sc.first, item, sc.result)
	if err != nil && !t.sure {
		t.doubtOf(c, "/approval/ask", err)
		return nil
	}
	return err
}

// wantsApproval reports whether the contract's condition asks for an approval of a call with made-up arguments.
func (t *trial) wantsApproval(c machine.Call) bool {
	args, err := t.arguments(c)
	if err != nil || args == nil {
		return true
	}
	wanted, _ := t.machine.Contract(c.Step).WantsApproval(args)
	return wanted
}

// answered makes an answer up. The error is one that is certain: nobody could be asked.
func (t *trial) answered(c machine.Call) ([]byte, *fault.Error) {
	anything := []byte("null")
	args, err := t.arguments(c)
	switch {
	case err != nil:
		return nil, err
	case args == nil:
		return anything, nil
	}
	x := t.at(c.Step)
	if len(args) <= maxShown && x.shown == nil {
		x.shown, x.size = args, len(args)
	}
	asked, err := tool.ReadAsked(args)
	switch {
	case err != nil: // there is a doubt, where it is not certain
		return anything, nil
	case len(asked.Choices) > 0:
		return asked.Choices[0], nil
	case len(asked.Schema) == 0:
		return anything, nil
	}
	if schema, bad := tool.CompileSchema(asked.Schema); bad == nil {
		if sample := tool.SampleOf(schema); sample.JSON != nil {
			return sample.JSON, nil
		}
	}
	return anything, nil
}

// tell hands a record that decides no attempt to the machine.
func (t *trial) tell(rec machine.Record) {
	t.seq++
	rec.Seq, rec.Time = t.seq, began
	t.machine.Apply(rec, began, &t.effects)
	t.expand()
}

// noticesOfQuestions says who is asked before the run goes on.
func (w *described) noticesOfQuestions(n *noticed) {
	t := w.trial
	if a := t.plan.Approval; a != nil {
		n.step(outcome.NoticeQuestion, "", "nothing begins before a person approves of the plan%s", within(a.Timeout, t.machine, machine.Call{Step: machine.ThePlan}))
	}
	for p := range t.plan.All() {
		asked := 0
		for _, number := range w.of[p] {
			asked += t.at(number).asked
		}
		if asked == 0 {
			continue
		}
		c := machine.Call{Step: w.of[p][0]}
		_, id := t.place(c.Step)
		switch {
		case p.Ask:
			n.step(outcome.NoticeQuestion, id, "waits for a person's answer%s%s", each(asked), within(p.Timeout, t.machine, c))
		case p.Approval != nil:
			n.step(outcome.NoticeQuestion, id, "waits for a person's approval%s%s", each(asked), within(p.Approval.Timeout, t.machine, c))
		default:
			n.step(outcome.NoticeQuestion, id, "waits for a person's approval%s, which the contract of %s asks for", each(asked), p.Tool)
		}
	}
}

// each says that a person is asked more than once.
func each(asked int) string {
	if asked == 1 {
		return ""
	}
	return fmt.Sprintf(", %d times", asked)
}

// within says how long an answer may take, and what it comes to where there is none.
func within(timeout time.Duration, m *machine.Run, c machine.Call) string {
	if timeout == 0 {
		return ""
	}
	then := map[string]string{machine.Approve: "is taken as approved", machine.Reject: "is rejected", machine.Expire: "fails"}
	return fmt.Sprintf(", and %s after %s without one", then[m.OnTimeout(c)], timeout)
}
