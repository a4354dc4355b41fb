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

// simJudge is that tool, and judgeTakes the tokens that it tells of.
const (
	simJudge   = "judge/a"
	judgeTakes = 150
)

// judged is what it says, and notes which calls it was asked about. It has a model of its own.
func (x *truth) judged(a subjects.Attempt, args []byte) []byte {
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
	if x.spent.judges == nil {
		x.spent.judges = map[string]int64{}
	}
	x.spent.judges[a.MessageID()] = judgeTakes
	return fmt.Appendf(nil, `{"pass":%v,"usage":{"input_tokens":%d}}`, pass, judgeTakes)
}

// askedAbout is the call that a guard is asked about; empty for what goes in and out of the agent, and for what is no guard.
func (x *truth) askedAbout(m *message) {
	if m.attempt.Tool != simJudge {
		return
	}
	var g struct{ Step string }
	_ = json.Unmarshal(m.body, &g)
	if x.about == nil {
		x.about = map[string]string{}
	}
	x.about[m.attempt.Step] = g.Step
}

// notAskedAgain reports whether a call, or a guard, has failed so that it could be made again, and it or what it was asked about was given up
// meanwhile: an item of a list of which another has failed, or what an amendment of the round discards.
func (t *truths) notAskedAgain(x *truth, guard string) bool {
	if !x.undecided(guard) && x.siblingFailed(guard) { // an item itself, which a guard did not let another pass beside
		t.w.stats["an item was not made again beside one that failed"]++
		return true
	}
	call, is := x.about[guard]
	if !is || call == "" || x.undecided(guard) {
		return false
	}
	if x.siblingFailed(call) {
		t.w.stats["a guard was not asked again about an item that was given up"]++
		return true
	}
	if x.roundAmends().discards[call] {
		t.w.stats["a guard was not asked again about what was discarded"]++
		return true
	}
	return false
}

// siblingFailed reports whether a call is an item of a list of which another has failed.
func (x *truth) siblingFailed(call string) bool {
	list, _, isItem := subjects.SplitItem(call)
	for other := range x.final {
		if of, _, _ := subjects.SplitItem(other); isItem && other != call && of == list && !x.succeeded[other] {
			return true
		}
	}
	return false
}

// judgedDispatched checks that nothing of the agent is handed to a worker before its guards have let it pass that are tools.
func (t *truths) judgedDispatched(x *truth, a subjects.Attempt) {
	switch {
	case !t.w.judges():
	case a.Tool == simJudge:
		t.w.stats["a guard was asked"]++
	case a.Step == "a/=0/=plan" && !x.succeeded["a/=0/=guard-0"]:
		t.w.violate("A9", "the planner was asked before the agent's input has passed")
	case !asksAhead(a) && ofTheAgent(a.Step) && !x.allowed[a.Step]:
		t.w.violate("A9", "%s was dispatched before a guard has let it pass", a.MessageID())
	}
}

func (w *world) simGuards() string {
	if w.peopleGuard() {
		return `[{"on":"call","when":"$args.i != 1","else":"ask"},{"on":"call","when":"$args.i == null or $args.i > 1","else":"ask"}]`
	}
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
	t.peopleDispatched(x, a)
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
