package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/internal/cli/screen"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// reporter tells a person how a run goes.
type reporter interface {
	event(e client.Event)
	close()
}

// silent tells nothing.
type silent struct{}

func (silent) event(client.Event) {}
func (silent) close()             {}

// report picks how to tell of a run: redrawn lines on a terminal, one line for each event otherwise. now reads the plan
// of the run once it was amended; it returns nil where that isn't to be had.
func (a *app) report(run string, p *plan.Plan, now func() *plan.Plan) reporter {
	if a.flags.quiet {
		return silent{}
	}
	if p != nil && a.screen != nil && a.screen.Redraws() {
		return newLive(a.screen, a.errStyle, planned{newProgress(run, p, time.Now()), now})
	}
	return &lines{w: a.stderr, st: a.errStyle, where: asTyped(argumentsOf(a)), plan: func() *plan.Plan { return p }}
}

// lines writes one line for each event.
type lines struct {
	w     io.Writer
	st    style
	where string         // arguments that lead to the run, for commands to type next
	alike map[string]int // steps told of that stood alike: the same tool, status and reason

	plan   func() *plan.Plan // of the run, nil where it isn't to be had; asked once a step was not taken
	status map[string]outcome.StepStatus
	inside map[string]bool // steps of which something within was told
}

func (l *lines) close() {}

func (l *lines) event(e client.Event) {
	switch e.Kind {
	case subjects.EventStart:
		_, _ = fmt.Fprintf(l.w, "started    %s  %s\n", oneLine(e.Run), text.Count(e.Steps, "step"))
	case subjects.EventStep:
		l.note(e)
		if e.Tool = words(e); e.Status.Terminal() || !e.RetryAt.IsZero() || l.fewAlike(e) {
			_, _ = fmt.Fprintln(l.w, l.step(e))
		}
	case subjects.EventProgress:
		_, _ = fmt.Fprintln(l.w, l.st.dim(fmt.Sprintf("%-9s", "says"))+"  "+oneLine(e.Step)+"  "+howFar(e))
	case subjects.EventMessage:
		_, _ = fmt.Fprintln(l.w, l.st.bold(fmt.Sprintf("%-9s", "message"))+"  "+oneLine(e.Step)+"  "+agents.Brief(e.Message, agents.MostOfMessage))
	case subjects.EventToken:
		_, _ = fmt.Fprintln(l.w, l.st.dim(fmt.Sprintf("%-9s", "writes"))+"  "+oneLine(e.Step)+"  "+clipLine(e.Text))
	case subjects.EventQuestion:
		line := l.st.yellow(fmt.Sprintf("%-9s", "asks")) + "  " + planOf(e.Step)
		if e.Revision > 0 {
			line += fmt.Sprintf("  revision %d", e.Revision)
		}
		if e.Round != nil {
			line += fmt.Sprintf("  round %d", *e.Round)
		}
		if e.Waiting != "" {
			line += "  " + clipLine(e.Waiting)
		}
		_, _ = fmt.Fprintf(l.w, "%s  (to answer: stepjet questions show %s %s%s)\n", line, oneLine(e.Run), oneLine(e.Step), l.where)
	case subjects.EventAmend:
		_, _ = fmt.Fprintln(l.w, l.amended(e))
	case client.EventLeftAlone:
		_, _ = fmt.Fprintln(l.w, leftAlone(l.st, e))
	case subjects.EventConflict:
		for _, p := range e.Problems {
			_, _ = fmt.Fprintf(l.w, "%s  %s\n", l.st.red("conflict "), oneLine(p.Message))
		}
	}
}

// leftAlone says that the owner of a run leaves it alone, and that it is waited for.
func leftAlone(st style, e client.Event) string {
	return st.yellow(fmt.Sprintf("%-9s", "waits")) + "  " + oneLine(e.Error.Message) +
		fmt.Sprintf("; it goes on once one is there that knows its version, for which this waits %s at most", took(client.MostAlone))
}

// howFar is what the worker of a step says of how far it is.
func howFar(e client.Event) string {
	p := e.Progress
	var parts []string
	switch {
	case p.Total > 0:
		parts = append(parts, fmt.Sprintf("%g of %g", p.Done, p.Total))
	case p.Done > 0:
		parts = append(parts, fmt.Sprintf("%g", p.Done))
	}
	if p.Message != "" {
		parts = append(parts, clipLine(p.Message))
	}
	return strings.Join(parts, "  ")
}

func (l *lines) amended(e client.Event) string {
	parts := []string{fmt.Sprintf("%-9s", "amended"), planOf(e.Step), fmt.Sprintf("revision %d", e.Revision)}
	if e.Steps > 0 {
		parts = append(parts, text.Count(e.Steps, "step"))
	}
	if e.By != "" {
		parts = append(parts, "by "+oneLine(e.By))
	}
	return strings.Join(parts, "  ")
}

// planOf names the plan of a step, or of the run.
func planOf(step string) string {
	if step == subjects.RootScope {
		return "the plan"
	}
	return oneLine(step)
}

func (l *lines) step(e client.Event) string {
	parts := []string{l.st.step(e.Status, fmt.Sprintf("%-9s", inWords(e.Status))), e.Step, l.st.dim(l.does(e))}
	if times := spentBy(e.Attempt, e.QueuedMS, e.MS, l.inside[e.Step]); times != "" {
		parts = append(parts, times)
	}
	if e.Attempt > 1 || e.Status == outcome.StepRetrying && e.Attempt > 0 {
		parts = append(parts, fmt.Sprintf("attempt %d", e.Attempt))
	}
	if e.Waiting != "" {
		parts = append(parts, oneLine(e.Waiting))
	}
	if !e.RetryAt.IsZero() {
		parts = append(parts, "again at "+e.RetryAt.Local().Format("15:04:05.000"))
	}
	if e.Error != nil {
		parts = append(parts, oneLine(errorCode(e.Error)+": "+e.Error.Message))
	}
	if why := l.untaken(e); why != "" {
		parts = append(parts, why)
	}
	return strings.Join(parts, "  ")
}

// does names what the step of an event does.
func (l *lines) does(e client.Event) string {
	if e.Tool != "" || l.plan == nil {
		return does(nil, e.Step, e.Tool)
	}
	return does(l.plan(), e.Step, e.Tool)
}

// note keeps how a step ended.
func (l *lines) note(e client.Event) {
	if outermost, _, within := strings.Cut(e.Step, "/"); within {
		if l.inside == nil {
			l.inside = map[string]bool{}
		}
		l.inside[outermost] = true
	}
	if e.Status.Terminal() {
		if l.status == nil {
			l.status = map[string]outcome.StepStatus{}
		}
		l.status[e.Step] = e.Status
	}
}

// untaken says why a step was not taken; "" for any other, and where nobody knows.
func (l *lines) untaken(e client.Event) string {
	if e.Status != outcome.StepNotTaken || l.plan == nil {
		return ""
	}
	p := l.plan()
	return untaken(p, e.Step, func(step int) outcome.StepStatus { return l.status[p.Steps[step].ID] })
}

// mostAlike is how many steps are told of that stand alike. A thousand that wait for the same worker say it no better.
const mostAlike = 5

func (l *lines) fewAlike(e client.Event) bool {
	if l.alike == nil {
		l.alike = map[string]int{}
	}
	key := e.Tool + " " + string(e.Status) + " " + digits.ReplaceAllString(e.Waiting, "0")
	l.alike[key]++
	if l.alike[key] == mostAlike+1 {
		_, _ = fmt.Fprintf(l.w, "%s  %s  more of them\n", l.st.step(e.Status, fmt.Sprintf("%-9s", inWords(e.Status))), l.st.dim(l.does(e)))
	}
	return l.alike[key] <= mostAlike
}

var digits = regexp.MustCompile("[0-9]+")

// words names what the step of an event does, for those of agents' rounds.
func words(e client.Event) string {
	if own, ok := agents.OwnWords(&outcome.Step{ID: e.Step, Tool: e.Tool}); ok {
		return own
	}
	return e.Tool
}

// spentBy is spent, of a step whose own plan or rounds took the time: nothing of it was queued.
func spentBy(attempt int, queuedMS, ranMS float64, within bool) string {
	if within && attempt == 0 && ranMS == 0 && queuedMS > 0 {
		return tookMS(queuedMS)
	}
	return spent(queuedMS, ranMS)
}

// spent says how long a step executed, and how long it was queued before where that is most of it.
func spent(queuedMS, ranMS float64) string {
	text := ""
	if ranMS > 0 {
		text = tookMS(ranMS)
	}
	if queuedMS >= 100 && queuedMS > ranMS {
		text = strings.TrimLeft(text+" after "+tookMS(queuedMS)+" queued", " ")
	}
	return text
}

// redrawEvery keeps the drawing smooth without being work.
const redrawEvery = 80 * time.Millisecond

// picture is what live draws: plain data, which events change.
type picture interface {
	// apply takes an event that came at now. stale says that something has to be read anew.
	apply(e client.Event, now time.Time) (stale bool)
	// read reads it; it is called without anything locked. change brings it in, nil for none; again says to read once more
	// in a moment.
	read() (change func(now time.Time) (again bool))
	lines(st style, width, rows int, now time.Time) []string
}

// readAgain is when something is read once more that wasn't there yet.
const readAgain = 500 * time.Millisecond

// live redraws the lines of a run in place. It owns two goroutines, which close ends: reading the plan anew must not
// hold the drawing up.
type live struct {
	screen *screen.Screen
	st     style
	stop   chan struct{}
	stale  chan struct{} // something has to be read anew
	ends   sync.WaitGroup
	mu     sync.Mutex
	of     picture
}

func newLive(on *screen.Screen, st style, of picture) *live {
	l := &live{screen: on, st: st, of: of, stop: make(chan struct{}), stale: make(chan struct{}, 1)}
	l.ends.Go(l.loop)
	l.ends.Go(l.follow)
	return l
}

func (l *live) event(e client.Event) {
	if e.Kind == client.EventLeftAlone { // it stands above what is drawn
		_, _ = fmt.Fprintln(l.screen, leftAlone(l.st, e))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of.apply(e, time.Now()) {
		select {
		case l.stale <- struct{}{}:
		default: // it is about to be read
		}
	}
}

// follow reads what has to be read anew, at the end once more where that was still to come: what is drawn last stays.
func (l *live) follow() {
	again := time.NewTimer(0)
	defer again.Stop()
	<-again.C
	waits := false // for again
	for {
		select {
		case <-l.stop:
			select {
			case <-l.stale:
				waits = true
			default:
			}
			if waits {
				l.read()
			}
			return
		case <-l.stale:
		case <-again.C:
		}
		if waits = l.read(); waits {
			again.Reset(readAgain)
		}
	}
}

// read brings in what is read anew. again says to do so once more in a moment.
func (l *live) read() (again bool) {
	change := l.of.read()
	if change == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return change(time.Now())
}

func (l *live) loop() {
	t := time.NewTicker(redrawEvery)
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-t.C:
			l.draw()
		}
	}
}

func (l *live) close() {
	close(l.stop)
	l.ends.Wait()
	l.draw()
	l.screen.Done()
}

func (l *live) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	width, rows := l.screen.Size()
	l.screen.Draw(l.of.lines(l.st, width, rows, time.Now()))
}

// planned draws the progress of a plan, and reads the plan whenever it was amended.
type planned struct {
	*progress
	plan func() *plan.Plan
}

func (p planned) apply(e client.Event, now time.Time) (stale bool) {
	p.progress.apply(e, now)
	return e.Kind == subjects.EventAmend && e.Step == subjects.RootScope
}

func (p planned) read() func(time.Time) bool {
	now := p.plan()
	if now == nil {
		return nil
	}
	return func(t time.Time) bool {
		p.amend(now, t)
		return false
	}
}
