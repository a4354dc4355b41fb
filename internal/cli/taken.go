package cli

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// untaken says in a few words why a step was not taken; "" where its plan is not at hand.
func untaken(p *plan.Plan, id string, status func(step int) outcome.StepStatus) string {
	if p == nil {
		return ""
	}
	i, ok := p.Index(id)
	if !ok {
		return ""
	}
	for _, n := range p.Steps[i].Needs {
		if d, is := lacking(n, status); is {
			return "refers to " + p.Steps[d].ID + ", which was not taken"
		}
	}
	if c := p.Steps[i].If; c != nil {
		return "its condition was false: " + oneLine(c.Text())
	}
	return ""
}

// lacking returns the step that was not taken and for which a need has nothing else.
func lacking(n plan.Need, status func(step int) outcome.StepStatus) (step int, is bool) {
	if n.Ended || !n.Data {
		return 0, false
	}
	for _, d := range n.Steps {
		switch status(d) {
		case outcome.StepSucceeded:
			return 0, false
		case outcome.StepNotTaken:
			if !is {
				step, is = d, true
			}
		default: // it failed, which is its own matter
		}
	}
	return step, is
}

// account is what the document of a run says of its steps beyond each one's own part.
type account struct {
	doc     *outcome.Run
	plan    *plan.Plan                    // nil where no step needs it
	status  map[string]outcome.StepStatus // likewise
	handled map[string]string             // by which step a failure was dealt with
	refused map[string]string             // why what a planner answered came to nothing, by its call
}

func accountOf(doc *outcome.Run) *account {
	a := &account{doc: doc, handled: map[string]string{}, refused: agents.RefusedCalls(doc)}
	if doc.Outcome != nil {
		for _, e := range doc.Outcome.Errors {
			if e.HandledBy != "" {
				a.handled[e.Step] = e.HandledBy
			}
		}
	}
	for i := range doc.Steps {
		if s := &doc.Steps[i]; s.Status == outcome.StepNotTaken || s.Tool == "" { // a value, or one with a plan of its own
			a.plan, a.status = plan.Accepted(doc.Plan, doc.Templates), make(map[string]outcome.StepStatus, len(doc.Steps))
			break
		}
	}
	if a.status != nil {
		for i := range doc.Steps {
			a.status[doc.Steps[i].ID] = doc.Steps[i].Status
		}
	}
	return a
}

// words is a step's status as people say it.
func (a *account) words(s *outcome.Step) string {
	switch by := a.handled[s.ID]; {
	case s.Status == outcome.StepFailed && by != "":
		return "failed, handled by " + oneLine(by)
	case s.Reused:
		return inWords(s.Status) + ", reused"
	case s.Status == outcome.StepReady:
		return string(s.Status)
	}
	return inWords(s.Status)
}

// paint colours what is said of a step. A failure that was dealt with is no alarm.
func (a *account) paint(st style, s *outcome.Step, text string) string {
	if a.handled[s.ID] != "" && s.Status == outcome.StepFailed {
		return st.yellow(text)
	}
	return st.step(s.Status, text)
}

// why says why a step was not taken.
func (a *account) why(s *outcome.Step) string {
	return untaken(a.plan, s.ID, func(step int) outcome.StepStatus { return a.status[a.plan.Steps[step].ID] })
}

// handlers names the steps that dealt with steps which came to a status, each once, and counts those: an agent is told of
// what failed, and of what did not run for that or was cancelled.
func handlers(errors []outcome.StepError, status outcome.StepStatus) (names string, handled int) {
	var all []string
	seen := map[string]bool{}
	for _, e := range errors {
		if e.HandledBy == "" || statusOf(e.Code) != status {
			continue
		}
		handled++
		if !seen[e.HandledBy] {
			seen[e.HandledBy] = true
			all = append(all, oneLine(e.HandledBy))
		}
	}
	if len(all) > mostHandlers {
		return all[0] + " and others", handled
	}
	return strings.Join(all, ", "), handled
}

// statusOf is the status of a step that has an error.
func statusOf(code fault.Code) outcome.StepStatus {
	switch code {
	case fault.Skipped:
		return outcome.StepSkipped
	case fault.Cancelled:
		return outcome.StepCancelled
	default: // any other is a failure
		return outcome.StepFailed
	}
}

// mostHandlers is how many steps a line names that dealt with failures.
const mostHandlers = 3

// errorCode is the code of an error, with that of its tool.
func errorCode(e *fault.Error) string {
	if e.ToolCode != "" && e.ToolCode != string(e.Code) {
		return string(e.Code) + " (" + e.ToolCode + ")"
	}
	return string(e.Code)
}

// inWords is a status as people say it: a step that is ready has been sent, and no worker is known to have it.
func inWords(s outcome.StepStatus) string {
	switch s {
	case outcome.StepReady:
		return "queued"
	case outcome.StepNotTaken:
		return "not taken"
	default:
		return string(s)
	}
}
