package agents

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// View is what a terminal shows of an agent's run while it goes on: its rounds as they form, as far as events and the
// run's document tell. It is plain data; the clock is an argument and somebody else draws it.
type View struct {
	run    string
	agent  string // the step
	began  time.Time
	ended  time.Time // zero: it goes on
	rounds []*viewRound
	says   string // what the agent's step itself waits for
}

// viewRound is a round: the call of the planner, and the calls that it answered with, in the answer's order once that
// was read.
type viewRound struct {
	planner viewStep
	used    *agent.Tokens
	read    bool // the planner's answer is in
	calls   []*viewStep
}

type viewStep struct {
	id, tool string
	status   outcome.StepStatus
	since    time.Time // when it was first heard of as begun, by the reader's clock
	ms       float64
	attempt  int
	why      string // it failed
	says     string // what it waits for, how far it is, or the end of what it writes
	writes   bool   // says is the latter
	over     int    // steps within it that are over
	holds    bool   // it has steps within it
	early    bool   // it began while the planner wrote, and is not heard of otherwise
	told     string // the last that it has told people
}

// NewView returns the view of a run whose step is an agent.
func NewView(run, agent string, now time.Time) *View {
	return &View{run: run, agent: agent, began: now}
}

// round returns a round, which may be new, and so may those before it; nil for what is no number of one.
func (v *View) round(n int) *viewRound {
	if n < 0 || n > len(v.rounds)+1000 { // of a peer that counts otherwise
		return nil
	}
	for len(v.rounds) <= n {
		v.rounds = append(v.rounds, &viewRound{})
	}
	return v.rounds[n]
}

// step returns a call of a round, which may be new.
func (r *viewRound) step(id string) *viewStep {
	for _, s := range r.calls {
		if s.id == id {
			return s
		}
	}
	s := &viewStep{id: id}
	r.calls = append(r.calls, s)
	return s
}

// at returns what of the view stands for a step of the run, and whether the step lies inside of that; nil for none.
func (v *View) at(step string) (s *viewStep, inside bool) {
	n, what, ok := Place(v.agent, step)
	if !ok || Earlier(what) {
		return nil, false
	}
	r := v.round(n)
	if r == nil {
		return nil, false
	}
	if what == "" {
		return &r.planner, false
	}
	what, early := begun(what)
	if what == "" { // it does nothing itself
		return nil, false
	}
	outermost, _, inner := strings.Cut(what, "/")
	id, _, item := subjects.SplitItem(outermost)
	if id == "" { // a call that the agent makes for itself
		id, item = outermost, false
	}
	s = r.step(id)
	if early && s.status != "" && !s.early {
		return nil, false // its answer has it
	}
	return s.stands(early), inner || item
}

// stands takes that a call is heard of as one that began while the planner wrote, or as one of its answer. What was dropped
// of an attempt that came to none may be anything in the next.
func (s *viewStep) stands(early bool) *viewStep {
	dropped := s.status == outcome.StepCancelled || s.status == outcome.StepSkipped
	switch {
	case s.status == "":
		s.early = early
	case s.early && dropped:
		*s = viewStep{id: s.id, early: early}
	case !early:
		s.early = false
	}
	return s
}

// Apply takes an event that came at now. stale says that the run's document tells more by now.
func (v *View) Apply(e client.Event, now time.Time) (stale bool) {
	switch e.Kind {
	case subjects.EventEnd:
		v.ended = now
		return false
	case subjects.EventStart:
		return true
	case subjects.EventToken:
		if s, inside := v.at(e.Step); s != nil && !inside {
			s.write(e, now)
		}
		return false
	case subjects.EventMessage:
		v.tell(e.Message)
		return false
	case subjects.EventProgress, subjects.EventQuestion:
		e.Status = outcome.StepRunning
		if e.Kind == subjects.EventQuestion {
			e.Status = outcome.StepAsking
		}
	case subjects.EventStep:
	default:
		return false
	}
	if e.Step == v.agent {
		v.says = e.Waiting
		return false
	}
	s, inside := v.at(e.Step)
	switch {
	case s == nil:
		return false
	case inside:
		s.within(e, now)
		return false
	}
	known := s.tool != ""
	s.take(e, now)
	n, what, _ := Place(v.agent, e.Step)
	return what == "" && e.Status.Terminal() && !v.rounds[n].read || !known && e.Tool == ""
}

// tell takes what people are told, by the call of a round or within one.
func (v *View) tell(m *outcome.Message) {
	if s, _ := v.at(m.Step); s != nil {
		s.told = Brief(m, mostSaid)
	}
}

// within takes an event of a step inside of a call.
func (s *viewStep) within(e client.Event, now time.Time) {
	s.holds = true
	if e.Status.Terminal() {
		s.over++
	}
	if !s.status.Terminal() {
		s.begin(outcome.StepRunning, now)
	}
}

func (s *viewStep) begin(status outcome.StepStatus, now time.Time) {
	if s.status = status; s.since.IsZero() {
		s.since = now
	}
}

// write takes a part of what it writes, of which the end is shown.
func (s *viewStep) write(e client.Event, now time.Time) {
	if s.status.Terminal() {
		return
	}
	if s.begin(outcome.StepRunning, now); !s.writes || e.Attempt > s.attempt {
		s.says = ""
	}
	s.writes, s.attempt = true, max(e.Attempt, s.attempt)
	s.says = text.Last(s.says+e.Text, mostWritten)
}

func (s *viewStep) take(e client.Event, now time.Time) {
	if s.status.Terminal() {
		return
	}
	s.begin(e.Status, now)
	if e.Tool != "" {
		s.tool = e.Tool
	}
	s.writes = false
	s.ms, s.attempt, s.says, s.why = e.MS, max(e.Attempt, s.attempt), e.Waiting, ""
	if p := e.Progress; p != nil {
		s.says = p.Message
	}
	if e.Error != nil {
		s.why = string(e.Error.Code) + ": " + e.Error.Message
	}
}

// Merge takes what the run's document has. stale says that it was of before a planner's answer that was told of. blob
// returns a result that lies elsewhere.
func (v *View) Merge(doc *outcome.Run, blob func(*outcome.Handle) (json.RawMessage, error), now time.Time) (stale bool) {
	for i := range doc.Steps {
		if doc.Steps[i].ID != v.agent {
			continue
		}
		order, counted := map[*viewRound]int{}, RoundsOf(&doc.Steps[i], blob)
		for _, x := range unfolded(doc.Steps[i].Steps) {
			n, what, ok := Place(v.agent, x.ID)
			s, inside := v.at(x.ID)
			if !ok || s == nil || inside {
				continue
			}
			if Unneeded(x) {
				v.rounds[n].drop(s)
				continue
			}
			r := v.rounds[n]
			s.merge(x, now)
			if n < len(counted) {
				r.used = counted[n].Used
			}
			if what == "" {
				r.read = x.Status.Terminal()
				continue
			}
			if !s.early {
				r.put(s, order[r])
				order[r]++
			}
		}
		for _, x := range doc.Steps[i].Refused {
			if r := v.round(x.Round); r != nil {
				r.planner.why = "refused: " + whyRefused(&x)
			}
		}
	}
	for _, x := range Messages(doc) {
		v.tell(x.Message)
	}
	return v.ended.IsZero() && slices.ContainsFunc(v.rounds, (*viewRound).forms)
}

// unfolded returns the steps of rounds, with what began while a planner wrote in the place of the step that it stands in.
func unfolded(steps []outcome.Step) (all []*outcome.Step) {
	for i := range steps {
		if all = append(all, &steps[i]); streamed(&steps[i]) {
			all = append(all[:len(all)-1], unfolded(steps[i].Steps)...)
		}
	}
	return all
}

// forms reports whether the document tells more in a moment: of what the planner answered, or of the calls that its answer
// becomes. An answer without calls ends the run.
func (r *viewRound) forms() bool {
	return r.planner.status == outcome.StepSucceeded && (!r.read || len(r.calls) == 0) && r.planner.why == ""
}

// drop takes a call away that nobody needed.
func (r *viewRound) drop(s *viewStep) {
	r.calls = slices.DeleteFunc(r.calls, func(x *viewStep) bool { return x == s })
}

// put moves a call to its place in the answer.
func (r *viewRound) put(s *viewStep, place int) {
	if at := slices.Index(r.calls, s); at > place {
		r.calls = slices.Insert(slices.Delete(r.calls, at, at+1), place, s)
	}
}

func (s *viewStep) merge(x *outcome.Step, now time.Time) {
	if s.tool == "" {
		s.tool = x.Tool
	}
	s.holds = s.holds || len(x.Steps)+len(x.Items) > 0
	if s.status.Terminal() || s.status != "" && !x.Status.Terminal() { // an event said it, and later
		return
	}
	_, ms := x.TookMS()
	if x.Status != outcome.StepWaiting {
		s.begin(x.Status, now)
	}
	s.status, s.ms, s.attempt, s.says = x.Status, ms, x.Attempts, x.Waiting
	if x.Error != nil {
		s.why = string(x.Error.Code) + ": " + x.Error.Message
	}
}
