package dryrun

import (
	"fmt"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agentcheck"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// manyItems is the length from which on a list is worth a notice.
const manyItems = 1_000

// noticed collects notices.
type noticed []outcome.Notice

func (n *noticed) tool(kind outcome.NoticeKind, name, format string, args ...any) {
	*n = append(*n, outcome.Notice{Kind: kind, Tool: name, Message: fmt.Sprintf(format, args...)})
}

func (n *noticed) step(kind outcome.NoticeKind, id, format string, args ...any) {
	*n = append(*n, outcome.Notice{Kind: kind, Step: id, Message: fmt.Sprintf(format, args...)})
}

// notices says which limits the run meets, and what is worth knowing before it begins: of its tools, of all of it, of
// its steps.
func (w *described) notices(used []*known) []outcome.Notice {
	t := w.trial
	var n noticed
	for _, k := range used {
		if k.calls > 0 {
			k.notices(&n)
			t.catalog.noticesOfRounds(k, &n)
		}
	}
	if t.plan.TimeoutSet {
		n.step(outcome.NoticeTimeout, "", "the run is stopped %s after its submission, with what it has until then",
			t.plan.Timeout)
	}
	w.noticesOfQuestions(&n)
	for s := range t.plan.All() {
		if numbers := w.of[s]; len(numbers) > 0 {
			w.noticesOf(numbers[0], &n)
		}
	}
	return n
}

func (k *known) notices(n *noticed) {
	c := &k.Contract
	if k.Definition.Annotations.Destructive() {
		calls := text.Count(k.calls, "call")
		n.tool(outcome.NoticeDestructive, k.name, "may destroy or overwrite, as it says of itself; %s", calls)
	}
	if c.AtMostOnce {
		n.tool(outcome.NoticeAtMostOnce, k.name, "a call whose worker dies ends with outcome_unknown, and is not tried again")
	}
	if k.atOnce > c.Limit {
		n.tool(outcome.NoticeLimit, k.name, "%d calls are ready at once, and %d may run at a time, over all runs",
			k.atOnce, c.Limit)
	}
	if c.WaitTimeout > 0 {
		n.tool(outcome.NoticeWait, k.name, "a call that no worker takes within %s fails", c.WaitTimeout)
	}
	if c.Asks {
		n.tool(outcome.NoticeQuestion, k.name, "may ask a person in the middle of a call, who is then waited for; made up, it does not")
	}
	if c.Batch != nil {
		n.tool(outcome.NoticeBatch, k.name, "a worker gathers up to %d single calls into one, for up to %s",
			c.Batch.MaxItems, c.Batch.Wait())
	}
}

// noticesOfRounds says what the rounds of an agent may ask people, and those of agents below it. Whether they do nobody
// knows before: in a dry run none is made. What groups and searches hold is not looked at.
func (c *catalog) noticesOfRounds(k *known, n *noticed) {
	if k.Definition.Agent == nil {
		return
	}
	for _, x := range c.reached(k.name) {
		at := ""
		if x.Definition.Name != k.name {
			at = ", in rounds of the agent " + k.name
		}
		say := func(what string) { n.tool(outcome.NoticeQuestion, x.Definition.Name, "%s%s", what, at) }
		asks := agentcheck.AsksOf(x.Definition)
		if asks.Rounds {
			say("a person approves of each of its rounds before anything of it runs")
		}
		if asks.Planner {
			say("its planner may ask a person, who is then waited for")
		}
		if len(asks.Guards) > 0 {
			say("its guards may ask a person, about: " + strings.Join(asks.Guards, ", "))
		}
		switch rule := x.Contract.Approval; {
		case x.Definition.Agent != nil || rule == "":
		case rule == tool.AlwaysApprove:
			say("its calls wait for a person's approval")
		default:
			say("its calls wait for a person's approval, where " + string(rule))
		}
		if x.Contract.Asks && x.Definition.Agent == nil {
			say("may ask a person in the middle of a call")
		}
	}
}

func (w *described) noticesOf(i int, n *noticed) {
	t := w.trial
	x, p := t.at(i), t.machine.PlanStep(i)
	_, id := t.place(i)
	if p.Timeout > 0 && !p.Ask { // what asks says it with the question
		execution := time.Duration(0) // of a step with a plan of its own there is none
		if x.tool != nil {
			execution = x.tool.Contract.Timeout
		}
		n.step(outcome.NoticeTimeout, id, "fails %s after it is ready, queue and retries included%s",
			p.Timeout, longer(execution, p.Timeout))
	}
	if failed, err := w.failedItems(i); failed > 0 {
		n.step(outcome.NoticeItems, id, "%d of %s fail; the first by %s: %s",
			failed, text.Count(len(x.list), "item"), err.Code, err.Message)
	}
	if len(x.list) >= manyItems {
		n.step(outcome.NoticeLarge, id, "%d items, and as many calls", len(x.list))
	}
	if x.size > wire.InlineLimit {
		n.step(outcome.NoticeLarge, id, "arguments of %d bytes, which travel by the object store", x.size)
	}
	if p.If != nil {
		taken := "is taken"
		if t.machine.StepStatus(i) == outcome.StepNotTaken {
			taken = "is not taken"
		}
		n.step(outcome.NoticeCondition, id, "what tools return decides whether it is taken; made up, it %s", taken)
	}
	if p.Repeat != nil && p.Repeat.Until != nil {
		n.step(outcome.NoticeGuess, id, "what tools return decides how often it runs: at most %s", text.Count(p.Repeat.Max, "time"))
	}
	if x.guessed {
		hint := ""
		if !x.sure {
			hint = `; "examples" in the output schema of the tool that it comes from would show more`
		}
		n.step(outcome.NoticeGuess, id, "the length of its list depends on what tools return; made up, it has %s%s",
			text.Count(len(x.list), "item"), hint)
	}
}

// failedItems counts the items that fail a step in part, and returns what the first of them fails with.
func (w *described) failedItems(i int) (n int, first *fault.Error) {
	t := w.trial
	if t.machine.StepStatus(i) != outcome.StepSucceeded {
		return 0, nil // the step's own error says it
	}
	for k := range t.at(i).list {
		if err, _ := t.machine.Failure(machine.Call{Step: i, Item: k + 1}); err != nil {
			if n++; first == nil {
				first = err
			}
		}
	}
	return n, first
}

// longer says that one execution may take longer than its step.
func longer(execution, step time.Duration) string {
	if execution <= step {
		return ""
	}
	return fmt.Sprintf("; one execution of its tool may take %s", execution)
}
