package orchestrator

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// In three of five worlds the agent has guards: one on calls, which does not let an item of its second round pass, and one on
// results, which does not let what a call of its second round returns pass: a number that is no agent's input. In one of
// them the guards are tools, which look at its input and its output, too.

// guards reports whether this is such a world.
func (w *world) guards() bool { return w.seed%5 < 3 }

// judges reports whether the guards are tools.
func (w *world) judges() bool { return w.seed%5 == 2 }

// simJudge is that tool.
const simJudge = "judge/a"

// judged is what it says, and notes which calls it was asked about.
func (x *truth) judged(args []byte) []byte {
	var g struct {
		On, Step, Tool string
		Args           struct{ I int }
		Result         struct{ N int }
	}
	pass := json.Unmarshal(args, &g) == nil && g.Args.I != 2 && (g.Tool != simOpener || g.Result.N != 103)
	if x.allowed == nil {
		x.allowed = map[string]bool{}
	}
	if pass && g.On == plan.OnCall {
		x.allowed[g.Step] = true
	}
	return fmt.Appendf(nil, `{"pass":%v}`, pass)
}

// judgedDispatched checks that nothing of the agent is handed to a worker before its guards have let it pass that are tools.
func (t *truths) judgedDispatched(x *truth, a subjects.Attempt) {
	switch {
	case !t.w.judges():
	case a.Tool == simJudge:
		t.w.stats["a guard was asked"]++
	case a.Step == "a/=0/=plan" && !x.succeeded["a/=0/=guard-0"]:
		t.w.violate("A9", "the planner was asked before the agent's input has passed")
	case a.Tool != simPlanner && ofTheAgent(a.Step) && !x.allowed[a.Step]:
		t.w.violate("A9", "%s was dispatched before a guard has let it pass", a.MessageID())
	}
}

func (w *world) simGuards() string {
	if !w.guards() {
		return "null"
	}
	if w.judges() {
		return fmt.Sprintf(`[{"on":"input","tool":%[1]q},{"on":"call","tool":%[1]q},{"on":"result","tool":%[1]q},{"on":"output","tool":%[1]q}]`, simJudge)
	}
	return `[{"on":"call","when":"$args.i != 2"},{"on":"result","when":"$tool != 'opener/a' or $result.n != 103"}]`
}

// guardedDispatched checks that nothing is handed to a worker that a guard does not let pass, nor what waits for such.
func (t *truths) guardedDispatched(x *truth, a subjects.Attempt) {
	t.judgedDispatched(x, a)
	if t.w.guards() && (strings.HasSuffix(a.Step, "/g=1") || a.Step == simBehind) {
		t.w.violate("A9", "%s was dispatched past a guard", a.MessageID())
	}
}

// checkGuarded checks that what a call returned has not passed its guard, and that the items of none have.
func (t *truths) checkGuarded(x *truth, doc *outcome.Run) {
	if !t.w.guards() {
		return
	}
	eachStep(doc.Steps, func(st *outcome.Step) {
		switch {
		case !strings.HasSuffix(st.ID, "/w"):
		case st.Status == outcome.StepSucceeded:
			t.w.violate("A9", "%s has passed a guard", st.ID)
		case st.Error != nil && st.Error.Code == fault.Rejected && x.succeeded[st.ID]:
			t.w.stats["a guard said no to a result"]++
		}
	})
	for step := range x.succeeded {
		if strings.HasSuffix(step, "/g=1") {
			t.w.violate("A9", "%s has passed a guard", step)
		}
	}
}
