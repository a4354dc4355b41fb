package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/stepjet/stepjet/client"
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

// report picks how to tell of a run: redrawn lines on a terminal, one line for each event otherwise.
func (a *app) report(run string, p *plan.Plan) reporter {
	if a.flags.quiet {
		return silent{}
	}
	if p != nil && a.terminal {
		return newLive(a.stderr, a.errStyle, newProgress(run, p, time.Now()))
	}
	return &lines{w: a.stderr, st: a.errStyle}
}

// lines writes one line for each event.
type lines struct {
	w  io.Writer
	st style
}

func (l *lines) close() {}

func (l *lines) event(e client.Event) {
	switch e.Kind {
	case subjects.EventStart:
		_, _ = fmt.Fprintf(l.w, "started    %s  %s\n", oneLine(e.Run), count(e.Steps, "step"))
	case subjects.EventStep:
		_, _ = fmt.Fprintln(l.w, l.step(e))
	case subjects.EventConflict:
		for _, p := range e.Problems {
			_, _ = fmt.Fprintf(l.w, "%s  %s\n", l.st.red("conflict "), oneLine(p.Message))
		}
	}
}

func (l *lines) step(e client.Event) string {
	parts := []string{l.st.step(e.Status, fmt.Sprintf("%-9s", e.Status)), e.Step, l.st.dim(e.Tool)}
	if e.MS > 0 {
		parts = append(parts, tookMS(e.MS))
	}
	if e.Attempt > 1 || e.Status == outcome.StepRetrying {
		parts = append(parts, fmt.Sprintf("attempt %d", e.Attempt))
	}
	if e.Error != nil {
		parts = append(parts, oneLine(string(e.Error.Code)+": "+e.Error.Message))
	}
	return strings.Join(parts, "  ")
}

// redrawEvery keeps the drawing smooth without being work.
const redrawEvery = 80 * time.Millisecond

// live redraws the lines of a run in place. It owns one goroutine, which close ends.
type live struct {
	w     io.Writer
	st    style
	stop  chan struct{}
	done  chan struct{}
	mu    sync.Mutex
	g     *progress
	drawn int // lines on the screen
}

func newLive(w io.Writer, st style, g *progress) *live {
	l := &live{w: w, st: st, g: g, stop: make(chan struct{}), done: make(chan struct{})}
	go l.loop()
	return l
}

func (l *live) event(e client.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.g.apply(e, time.Now())
}

func (l *live) loop() {
	defer close(l.done)
	t := time.NewTicker(redrawEvery)
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			l.draw()
			return
		case <-t.C:
			l.draw()
		}
	}
}

func (l *live) close() {
	close(l.stop)
	<-l.done
}

// draw goes back to the first line and writes each anew. A line never reaches the last column, so none wraps.
func (l *live) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	width, rows := sizeOf(l.w)
	now := l.g.lines(l.st, width, rows, time.Now())
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", l.drawn)
	}
	for _, line := range now {
		b.WriteString("\r\x1b[2K" + line + "\n")
	}
	for range l.drawn - len(now) {
		b.WriteString("\r\x1b[2K\n")
	}
	l.drawn = max(l.drawn, len(now))
	_, _ = io.WriteString(l.w, b.String())
}
