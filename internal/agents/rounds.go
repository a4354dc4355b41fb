package agents

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// Place says where a step stands in the loop of an agent's step: in which round, and as which of its calls; what is
// empty for the call of the planner. ok is false for a step that belongs to no round.
func Place(agent, step string) (round int, what string, ok bool) {
	rest, within := strings.CutPrefix(step, agent+"/=")
	number, what, called := strings.Cut(rest, "/")
	round, err := strconv.Atoi(number)
	if !within || !called || err != nil {
		return 0, "", false
	}
	if step == subjects.OwnCall(agent+"/="+number, "plan") {
		what = ""
	}
	return round, what, true
}

// earlier is a step that stands for the results of an earlier round: nothing that a planner has asked for.
var earlier = regexp.MustCompile(`^r[0-9]+$`)

// summary is what the call of a round is that has a summary made of the oldest ones.
const summary = "=summary"

// guard begins what the calls of a round are that ask guards.
const guard = "=guard-"

// ownCall reports whether what Place returned is a call that the agent makes for itself, beside that of its planner.
func ownCall(what string) bool { return what == summary || strings.HasPrefix(what, guard) }

// begun returns what Place returned without the step in which stands what began while the planner wrote: that is the call
// under the id behind it. early is false for all else, and call empty for the step itself.
func begun(what string) (call string, early bool) {
	if what == plan.StreamStep {
		return "", true
	}
	if rest, in := strings.CutPrefix(what, plan.StreamStep+"/"); in {
		return rest, true
	}
	return what, false
}

// Earlier reports whether what Place returned is a step that stands for the results of an earlier round.
func Earlier(what string) bool { return earlier.MatchString(what) }

// Round is what one round of an agent came to.
type Round struct {
	Number  int
	Planner outcome.StepStatus
	// Calls are how often the planner was called, more than once where it was tried again. Took is what its last attempt
	// took.
	Calls int
	Took  time.Duration
	// Used is what the planner said that its answer took, with what guards and who made a summary said; nil where nobody
	// said anything.
	Used *agent.Tokens
	// Steps are the calls that it answered with, Failed those of them that did not succeed.
	Steps, Failed int
	// Refused is the code of why its answer came to nothing; empty where it did not.
	Refused fault.Code
	// Unasked is whether its planner will never be asked, such as where the budget was used up before.
	Unasked bool

	calls map[string]outcome.StepStatus // by id
}

// NoBlob is for what is not worth fetching a large answer of a planner for: what it took is not known then.
func NoBlob(*outcome.Handle) (json.RawMessage, error) { return nil, nil }

// RoundsOf reads the rounds of an agent's step; none of nil. blob returns a result that lies elsewhere; what it can't return
// counts as a planner that said nothing.
func RoundsOf(of *outcome.Step, blob func(*outcome.Handle) (json.RawMessage, error)) (rounds []Round) {
	if of == nil {
		return nil
	}
	for k := range of.Steps {
		s := &of.Steps[k]
		n, what, ok := Place(of.ID, s.ID)
		if !ok || n < 0 || n > len(rounds) { // they stand in their order
			continue
		}
		if n == len(rounds) {
			rounds = append(rounds, Round{Number: n, calls: map[string]outcome.StepStatus{}})
		}
		rounds[n].add(s, what, blob)
	}
	for _, x := range of.Refused {
		if x.Round >= 0 && x.Round < len(rounds) && len(x.Problems) > 0 {
			rounds[x.Round].Refused = x.Problems[0].Code
		}
	}
	for n := range rounds {
		rounds[n].count()
	}
	return rounds
}

func (r *Round) add(s *outcome.Step, what string, blob func(*outcome.Handle) (json.RawMessage, error)) {
	switch {
	case what == "":
		_, took := s.Took()
		r.Planner, r.Calls, r.Took, r.Unasked = s.Status, s.Attempts, took, neverAsked(s)
		r.uses(used(s, blob))
	case ownCall(what):
		r.uses(used(s, blob))
	case what == plan.StreamStep: // it calls nothing; what stands in it comes again once the answer is whole
		for k := range s.Steps {
			if id := strings.TrimPrefix(s.Steps[k].ID, s.ID+"/"); called(&s.Steps[k]) {
				r.calls[id] = s.Steps[k].Status
			}
		}
	case !Earlier(what) && called(s):
		r.calls[what] = s.Status
	}
}

// count counts the calls.
func (r *Round) count() {
	for _, status := range r.calls {
		if r.Steps++; status.Unsuccessful() {
			r.Failed++
		}
	}
	r.calls = nil
}

// called reports whether a step of a round is a call: no value, and nothing that the round left to the planner's next answer.
func called(s *outcome.Step) bool {
	return (s.Tool != "" || len(s.Steps) > 0) && (!s.Discarded || s.Attempts > 0 || s.Status != outcome.StepCancelled)
}

// uses adds what a call took for the agent itself.
func (r *Round) uses(took *agent.Tokens) {
	switch {
	case took == nil:
	case r.Used == nil:
		r.Used = took
	default:
		sum := *r.Used
		sum.InputTokens, sum.OutputTokens, sum.CostUSD = sum.InputTokens+took.InputTokens, sum.OutputTokens+took.OutputTokens, sum.CostUSD+took.CostUSD
		r.Used = &sum
	}
}

// used reads what a planner, a guard or who made a summary said of its answer.
func used(s *outcome.Step, blob func(*outcome.Handle) (json.RawMessage, error)) *agent.Tokens {
	raw := s.Result
	if raw == nil && s.Blob != nil && !s.Text {
		raw, _ = blob(s.Blob) // else it is not known
	}
	var said struct {
		Usage *agent.Tokens `json:"usage"`
	}
	if json.Unmarshal(raw, &said) != nil || said.Usage == nil || said.Usage.InputTokens+said.Usage.OutputTokens == 0 && said.Usage.CostUSD == 0 {
		return nil // a model whose provider counts nothing says its name alone
	}
	return said.Usage
}

// Whole says in one line what the rounds of an agent's step came to together, and what the planners, guards and summaries of agents
// below it took.
func Whole(of *outcome.Step, rounds []Round, blob func(*outcome.Handle) (json.RawMessage, error)) string {
	own := Summary(rounds)
	var below Round
	for k := range of.Steps { // these are its own
		for s := range within(&of.Steps[k]) {
			planner := s.ID == subjects.OwnCall(subjects.ScopeOf(s.ID), "plan")
			if planner {
				below.Calls += s.Attempts
			}
			if planner || ownCall(s.ID[strings.LastIndexByte(s.ID, '/')+1:]) {
				below.uses(used(s, blob))
			}
		}
	}
	if below.Calls == 0 {
		return own
	}
	parts := append([]string{own + "; agents below: " + text.Count(below.Calls, "call") + " of planners"}, spent(below.Used)...)
	return strings.Join(parts, ", ")
}

// spent says what was taken: nothing where nobody said anything, and no cost where there is none.
func spent(took *agent.Tokens) (words []string) {
	if took == nil {
		return nil
	}
	words = append(words, fmt.Sprintf("%d tokens in, %d out", took.InputTokens, took.OutputTokens))
	if took.CostUSD > 0 {
		words = append(words, dollars(took.CostUSD))
	}
	return words
}

// Table is a line of cells for each round, with a head.
func Table(rounds []Round) [][]string {
	lines := [][]string{{"ROUND", "PLANNER", "TOOK", "TOKENS IN", "OUT", "COST", "CALLS"}}
	for _, r := range rounds {
		in, out, cost := "-", "-", "-"
		if r.Used != nil {
			in, out = strconv.FormatInt(r.Used.InputTokens, 10), strconv.FormatInt(r.Used.OutputTokens, 10)
			if r.Used.CostUSD > 0 {
				cost = dollars(r.Used.CostUSD)
			}
		}
		calls := strconv.Itoa(r.Steps)
		if r.Failed > 0 {
			calls += fmt.Sprintf(" (%d did not succeed)", r.Failed)
		}
		if r.Refused != "" {
			calls += ", refused: " + string(r.Refused)
		}
		planner := string(r.Planner)
		if r.Unasked {
			planner = "not asked"
		}
		lines = append(lines, []string{strconv.Itoa(r.Number), planner, r.Took.Round(10 * time.Microsecond).String(), in, out, cost, calls})
	}
	return lines
}

// dollars writes what something cost, to a billionth, as models are counted: sums of such are no longer than that.
func dollars(x float64) string {
	return "$" + strconv.FormatFloat(math.Round(x*1e9)/1e9, 'f', -1, 64)
}

// Summary says in one line what the rounds came to together; one whose planner is never asked is none.
func Summary(rounds []Round) string {
	var all Round
	asked := 0
	for _, r := range rounds {
		if !r.Unasked {
			asked++
		}
		all.Calls, all.Steps = all.Calls+r.Calls, all.Steps+r.Steps
		all.uses(r.Used)
	}
	parts := []string{text.Count(asked, "round"), text.Count(all.Calls, "call") + " of the planner", text.Count(all.Steps, "call") + " that it asked for"}
	return strings.Join(append(parts, spent(all.Used)...), ", ")
}

// Unneeded reports whether a step is the summary of a round before which nothing was to be cut, or what began while a planner
// wrote, of which there is nothing: agents that may have such have one in each round.
func Unneeded(s *outcome.Step) bool {
	scope := subjects.ScopeOf(s.ID)
	return s.Status == outcome.StepNotTaken && s.ID == subjects.OwnCall(scope, summary[1:]) || streamed(s) && len(s.Steps) == 0
}

// Counted returns what an outcome counts of steps, without what it doesn't list: a summary that nobody needed is no step that
// was not taken, for people.
func Counted(o *outcome.Outcome) outcome.Stats {
	st := o.Stats
	unlisted := max(st.NotTaken-len(o.NotTaken), 0)
	st.NotTaken, st.Steps = st.NotTaken-unlisted, st.Steps-unlisted
	return st
}

// streamed reports whether a step is that in which stands what began while a planner wrote.
func streamed(s *outcome.Step) bool {
	scope := subjects.ScopeOf(s.ID)
	return subjects.IsIteration(scope) && s.ID == subjects.InScope(scope, plan.StreamStep)
}

// Standing says where an agent stands that is not over: in which round, and whether its planner is asked or its calls run.
func Standing(s *outcome.Step) string {
	round, calls, over, thinks := -1, 0, 0, false
	for k := range s.Steps {
		n, what, ok := Place(s.ID, s.Steps[k].ID)
		if !ok || n < round || Earlier(what) || ownCall(what) || what == plan.StreamStep {
			continue
		}
		if n > round {
			round, calls, over = n, 0, 0
		}
		if what == "" {
			thinks = !s.Steps[k].Status.Terminal()
			continue
		}
		if !called(&s.Steps[k]) {
			continue
		}
		if calls++; s.Steps[k].Status.Terminal() {
			over++
		}
	}
	switch {
	case round < 0:
		return ""
	case thinks:
		return fmt.Sprintf("the planner, round %d", round)
	}
	return fmt.Sprintf("%s of round %d, %d over", text.Count(calls, "call"), round, over)
}

// OwnWords says what a step of a round is for which the name of a tool says too little: the planner's call, and what
// stands for an earlier round's results. ok is false for all others.
func OwnWords(s *outcome.Step) (words string, ok bool) {
	scope := subjects.ScopeOf(s.ID)
	if !subjects.IsIteration(scope) {
		return "", false
	}
	last := strings.TrimPrefix(s.ID, scope+"/")
	switch {
	case s.ID == subjects.OwnCall(scope, "plan"):
		return s.Tool + ", the planner", true
	case last == summary:
		return s.Tool + ", a summary of the oldest rounds", true
	case last == plan.StreamStep:
		return "calls while it writes", true
	case s.Tool == last && Earlier(last):
		return "results of round " + last[1:], true
	}
	return "", false
}

// Answered says in a few words what a planner's answer holds; "" for what is none.
func Answered(raw json.RawMessage) string {
	var a struct {
		Steps    []json.RawMessage `json:"steps"`
		Calls    []json.RawMessage `json:"calls"`
		Commands []json.RawMessage `json:"execution_commands"`
		Output   json.RawMessage   `json:"output"`
		Usage    *agent.Tokens     `json:"usage"`
	}
	if json.Unmarshal(raw, &a) != nil {
		return ""
	}
	var parts []string
	values := 0
	for _, raw := range a.Steps {
		var step struct {
			Value json.RawMessage `json:"value"`
		}
		if json.Unmarshal(raw, &step) == nil && step.Value != nil {
			values++
		}
	}
	if n := len(a.Steps) - values + len(a.Calls) + len(a.Commands); n > 0 {
		parts = append(parts, text.Count(n, "call"))
	}
	if a.Output != nil && string(a.Output) != "null" {
		parts = append(parts, "an output")
	}
	return strings.Join(append(parts, spent(a.Usage)...), ", ")
}

// Told names the steps of an agent's run for people.
type Told struct {
	last  string
	early map[string]bool // calls whose end was told while the planner wrote, by the tokens that they have once its answer is whole
}

// Name returns the name of a step that came to a status, and, for the first that is told of a round, the round's. known is
// false for what is not worth a line, as what was told already while the planner wrote.
func (t *Told) Name(agent, step string, status outcome.StepStatus) (heading, name string, known bool) {
	round, what, in := Place(agent, step)
	if !in {
		return "", step, true
	}
	what, early := begun(what)
	token := fmt.Sprintf("%d/%s", round, what)
	switch {
	case early && what == "", Earlier(what), !early && t.early[token]:
		return "", "", false
	case early && (status == outcome.StepSucceeded || status == outcome.StepFailed): // else another answer may have it as anything
		if t.early == nil {
			t.early = map[string]bool{}
		}
		t.early[token] = true
	case what == "":
		what = "the planner"
	case what == summary:
		what = "a summary"
	}
	if now := fmt.Sprintf("round %d", round); now != t.last {
		t.last, heading = now, now
	}
	return heading, what, true
}
