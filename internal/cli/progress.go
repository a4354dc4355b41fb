package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// progress is what a terminal shows of a run: where each step stands, as far as events tell. It is plain data; the
// clock is an argument and somebody else draws it.
type progress struct {
	run   string
	plan  *plan.Plan
	waves [][]int
	steps []stepView
	begun bool
	began time.Time // when the first event came
	over  bool
	end   time.Time

	early map[string]client.Event // the last of each step that the plan doesn't have yet
	told  string                  // the last that people were told by an agent, with its step
}

type stepView struct {
	status  outcome.StepStatus
	attempt int
	ms      float64
	queued  float64
	waiting string    // what a step that is sent waits for, as last heard
	since   time.Time // when it became ready, by the reader's clock
	retryAt time.Time
	why     string
	handled string // the step that dealt with its failure
	inside  int    // steps of its own plan, and of those within, that are over
	told    string // the last that people were told within it
}

func newProgress(run string, p *plan.Plan, now time.Time) *progress {
	g := &progress{run: run, plan: p, waves: p.Waves(), steps: make([]stepView, len(p.Steps)), began: now}
	for i := range g.steps {
		g.steps[i].status = outcome.StepWaiting
	}
	return g
}

// amend goes on with the plan as it is after an amendment. What was discarded is shown no more.
func (g *progress) amend(p *plan.Plan, now time.Time) {
	before := *g
	g.plan, g.waves, g.steps = p, p.Waves(), make([]stepView, len(p.Steps))
	for i := range g.steps {
		g.steps[i].status = outcome.StepWaiting
		if old, ok := before.plan.Index(p.Steps[i].ID); ok {
			g.steps[i] = before.steps[old]
		}
		if e, told := g.early[p.Steps[i].ID]; told {
			g.step(e, now)
			delete(g.early, e.Step)
		}
	}
	if g.begun && !g.over {
		g.markReady(now)
	}
}

// mostWritten is how much is seen of what a step writes, in bytes.
const mostWritten = 60

// apply takes an event that came at now.
func (g *progress) apply(e client.Event, now time.Time) {
	switch e.Kind {
	case subjects.EventStart:
		g.begun = true
	case subjects.EventStep:
		g.begun = true
		g.step(e, now)
	case subjects.EventProgress:
		if i, ok := g.plan.Index(e.Step); ok && !g.steps[i].status.Terminal() {
			g.step(client.Event{Step: e.Step, Status: outcome.StepRunning, Attempt: e.Attempt, Waiting: howFar(e)}, now)
		}
	case subjects.EventToken:
		if i, ok := g.plan.Index(e.Step); ok && !g.steps[i].status.Terminal() {
			g.step(client.Event{Step: e.Step, Status: outcome.StepRunning, Attempt: e.Attempt, Waiting: oneLine(text.Last(e.Text, mostWritten))}, now)
		}
	case subjects.EventQuestion:
		if i, ok := g.plan.Index(e.Step); ok && !g.steps[i].status.Terminal() && e.Revision == 0 && e.Round == nil { // of the step itself
			g.step(client.Event{Step: e.Step, Status: outcome.StepAsking, Waiting: e.Waiting}, now)
		}
	case subjects.EventMessage:
		g.tell(e)
	case subjects.EventEnd:
		g.over, g.end = true, now
		g.dealtWith(e.Outcome)
	}
	if g.begun && !g.over {
		g.markReady(now)
	}
}

// tell takes what an agent tells people, which may stand in a plan within a step.
func (g *progress) tell(e client.Event) {
	outermost, _, _ := strings.Cut(e.Agent, "/")
	id, _, _ := subjects.SplitItem(outermost)
	if i, ok := g.plan.Index(id); ok {
		g.steps[i].told = agents.Brief(e.Message, agents.MostOfMessage)
		g.told = oneLine(id) + ": " + g.steps[i].told
	}
}

// dealtWith notes which failures were dealt with, and by which steps: only the outcome knows.
func (g *progress) dealtWith(out *outcome.Outcome) {
	if out == nil {
		return
	}
	for _, e := range out.Errors {
		if i, ok := g.plan.Index(e.Step); ok {
			g.steps[i].handled = e.HandledBy
		}
	}
}

func (g *progress) step(e client.Event, now time.Time) {
	i, ok := g.plan.Index(e.Step)
	if !ok {
		g.within(e, now)
		return
	}
	s := &g.steps[i]
	s.status, s.attempt, s.ms, s.queued, s.retryAt, s.waiting = e.Status, e.Attempt, e.MS, e.QueuedMS, e.RetryAt, e.Waiting
	if s.since.IsZero() {
		s.since = now
	}
	switch {
	case e.Error != nil:
		s.why = oneLine(e.Error.Message)
	case e.Status == outcome.StepNotTaken:
		s.why = untaken(g.plan, e.Step, g.status)
	}
}

// within takes an event of a step that stands in the plan of another, or that an amendment brought which is not known
// yet.
func (g *progress) within(e client.Event, now time.Time) {
	outermost, _, inner := strings.Cut(e.Step, "/")
	id, _, item := subjects.SplitItem(outermost)
	i, ok := g.plan.Index(id)
	switch {
	case ok && inner:
		if s := &g.steps[i]; s.status == outcome.StepReady || s.status == outcome.StepWaiting {
			s.status, s.since = outcome.StepRunning, now
		}
		if e.Status.Terminal() {
			g.steps[i].inside++
		}
	case !ok && !inner && !item:
		if g.early == nil {
			g.early = map[string]client.Event{}
		}
		g.early[e.Step] = e
	}
}

func (g *progress) status(step int) outcome.StepStatus { return g.steps[step].status }

// markReady finds the steps whose inputs are there. No event tells that a step was sent to the workers, but the plan
// does.
func (g *progress) markReady(now time.Time) {
	barrier := len(g.waves)
	if g.plan.Schedule == plan.Waves {
		barrier = g.firstOpenWave()
	}
	for i := range g.steps {
		if g.steps[i].status == outcome.StepWaiting && g.plan.Steps[i].Depth <= barrier && g.fed(i) {
			g.steps[i].status, g.steps[i].since = outcome.StepReady, now
		}
	}
}

func (g *progress) firstOpenWave() int {
	for n, wave := range g.waves {
		for _, i := range wave {
			if !g.steps[i].status.Terminal() {
				return n
			}
		}
	}
	return len(g.waves)
}

// fed reports whether all that a step waits for has succeeded, or is over and optional. A step with a condition counts
// as fed once all is over: an event tells at once where it isn't taken.
func (g *progress) fed(i int) bool {
	if g.plan.Language > 1 {
		return g.decided(i)
	}
	for _, dep := range g.plan.Steps[i].Deps {
		status := g.steps[dep].status
		if status != outcome.StepSucceeded && !(g.plan.Steps[dep].Optional && status.Terminal()) {
			return false
		}
	}
	return true
}

// decided reports whether all that a step refers to is over, and each need of it is met.
func (g *progress) decided(i int) bool {
	s := &g.plan.Steps[i]
	if slices.ContainsFunc(s.Deps, func(d int) bool { return !g.steps[d].status.Terminal() }) {
		return false
	}
	return !slices.ContainsFunc(s.Needs, func(n plan.Need) bool {
		if _, lacks := lacking(n, g.status); lacks {
			return true
		}
		return !n.Ended && !slices.ContainsFunc(n.Steps, func(d int) bool {
			return !g.steps[d].status.Unsuccessful() || g.plan.Steps[d].Optional || s.Regards(d)
		})
	})
}

// lines draws the run in at most rows lines: one for each step where they fit, otherwise one for each wave.
func (g *progress) lines(st style, width, rows int, now time.Time) []string {
	out := []string{g.head(st, now)}
	if len(g.steps) <= rows-2 {
		return append(out, g.stepLines(st, width, now)...)
	}
	if g.told == "" || rows < 4 {
		return append(out, g.waveLines(st, rows-2)...)
	}
	return append(append(out, g.waveLines(st, rows-3)...), "  "+st.bold("message")+"  "+g.told)
}

func (g *progress) head(st style, now time.Time) string {
	if g.over {
		now = g.end
	}
	done := 0
	for i := range g.steps {
		if g.steps[i].status.Terminal() {
			done++
		}
	}
	state := fmt.Sprintf("%d of %s", done, text.Count(len(g.steps), "step"))
	if !g.begun && !g.over {
		state = "waits for an orchestrator"
	}
	return st.bold(oneLine(g.run)) + st.dim("  "+state+"  "+took(now.Sub(g.began)))
}

func (g *progress) stepLines(st style, width int, now time.Time) []string {
	var t table
	for n, wave := range g.waves {
		for k, i := range wave {
			label := ""
			if k == 0 {
				label = fmt.Sprintf("wave %d", n+1)
			}
			s := &g.steps[i]
			color := func(text string) string {
				if s.handled != "" {
					return st.yellow(text)
				}
				return st.step(s.status, text)
			}
			t.add(cell{text: label, paint: st.dim}, cell{text: mark(s.status), paint: color}, plain(g.plan.Steps[i].ID),
				cell{text: does(g.plan, g.plan.Steps[i].ID, g.plan.Steps[i].Tool), paint: st.dim}, cell{text: strings.TrimLeft(g.state(i, now)+g.steps[i].message(), " "), paint: color})
		}
	}
	var b strings.Builder
	t.write(&b, "  ", width-1)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// inWordsOver says how far the plan of a step is.
func inWordsOver(steps int) string { return text.Count(steps, "step") + " within it over" }

// message is what a step adds to where it stands: the last that people were told within it.
func (s *stepView) message() string {
	if s.told == "" {
		return ""
	}
	return "  says: " + s.told
}

// state says in words where a step stands.
func (g *progress) state(i int, now time.Time) string {
	s := &g.steps[i]
	switch s.status {
	case outcome.StepSucceeded:
		text := spentBy(s.attempt, s.queued, s.ms, s.inside > 0)
		if s.attempt > 1 {
			text = strings.TrimLeft(fmt.Sprintf("%s  attempt %d", text, s.attempt), " ")
		}
		return text
	case outcome.StepReady, outcome.StepRunning, outcome.StepAsking:
		text := inWords(s.status) + "  " + took(now.Sub(s.since).Truncate(100*time.Millisecond))
		if s.waiting != "" {
			text += "  " + oneLine(s.waiting)
		}
		if s.inside > 0 {
			text += "  " + inWordsOver(s.inside)
		}
		return text
	case outcome.StepRetrying:
		if s.retryAt.IsZero() && s.waiting != "" {
			return oneLine(s.waiting)
		}
		text := fmt.Sprintf("attempt %d failed: %s", s.attempt, s.why)
		if wait := s.retryAt.Sub(now); wait > 0 {
			text = fmt.Sprintf("again in %s, %s", took(wait.Truncate(100*time.Millisecond)), text)
		}
		return text
	case outcome.StepWaiting:
		return g.waitsFor(i)
	default:
		if s.status == outcome.StepNotTaken && s.why != "" {
			return s.why // the mark says the rest
		}
		text := inWords(s.status)
		if s.handled != "" {
			text += ", handled by " + oneLine(s.handled)
		}
		if s.why == "" {
			return text
		}
		return text + ": " + s.why
	}
}

func (g *progress) waitsFor(i int) string {
	var open []string
	for _, dep := range g.plan.Steps[i].Deps {
		if !g.steps[dep].status.Terminal() {
			open = append(open, g.plan.Steps[dep].ID)
		}
	}
	switch {
	case len(open) == 0:
		return "waits"
	case len(open) > 3:
		return fmt.Sprintf("waits for %s and %d more", open[0], len(open)-1)
	default:
		return "waits for " + strings.Join(open, ", ")
	}
}

// waveLines draws a bar for each wave. Where even those are too many, the first ones that are not over are shown.
func (g *progress) waveLines(st style, rows int) []string {
	first := 0
	if rows = max(rows, 1); len(g.waves) > rows {
		first = min(g.firstOpenWave(), len(g.waves)-rows)
	}
	var t table
	for n := first; n < min(first+rows, len(g.waves)); n++ {
		done, failed, running, queued, asking := 0, 0, 0, 0, 0
		for _, i := range g.waves[n] {
			switch status := g.steps[i].status; {
			case status == outcome.StepReady:
				queued++
			case status == outcome.StepRunning:
				running++
			case status == outcome.StepAsking:
				asking++
			case status.Terminal():
				done++
				if status.Unsuccessful() {
					failed++
				}
			}
		}
		full := barWidth * done / len(g.waves[n])
		note := ""
		for _, x := range []struct {
			n    int
			what string
		}{{running, "running"}, {queued, "queued"}, {asking, "asking"}, {failed, "not succeeded"}} {
			if x.n > 0 {
				note = strings.TrimLeft(fmt.Sprintf("%s  %d %s", note, x.n, x.what), " ")
			}
		}
		t.add(cell{text: fmt.Sprintf("wave %d", n+1), paint: st.dim},
			cell{text: strings.Repeat("█", full) + strings.Repeat("░", barWidth-full), paint: st.green},
			cell{text: fmt.Sprintf("%d/%d", done, len(g.waves[n])), right: true}, cell{text: note, paint: st.yellow})
	}
	var b strings.Builder
	t.write(&b, "  ", 0)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
