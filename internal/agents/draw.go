package agents

import (
	"fmt"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
)

// Look is how the lines of a view look.
type Look struct {
	Bold, Dim func(string) string
	// Status colours what stands for a status, Mark and Words say it in a column and in words.
	Status      func(outcome.StepStatus, string) string
	Mark, Words func(outcome.StepStatus) string
	Took        func(time.Duration) string
}

// Lines draws the view in at most rows lines: its last rounds with their calls, as far as there is room for them, and a
// line for each before. What strangers wrote is made harmless here.
func (v *View) Lines(look Look, rows int, now time.Time) []string {
	if !v.ended.IsZero() {
		now = v.ended
	}
	room := max(rows-2, 1) // the head is one line, what is typed another
	var last [][]string    // of each round, the last first
	for n := len(v.rounds) - 1; n >= 0; n-- {
		if room == 1 && n > 0 {
			last = append(last, []string{"  " + look.Dim("… "+text.Count(n+1, "round")+" before")})
			break
		}
		lines := v.rounds[n].lines(look, n, now, room-min(n, 1)) // of those before, a line at least
		last, room = append(last, lines), room-len(lines)
	}
	out := []string{v.head(look, now)}
	for n := len(last) - 1; n >= 0; n-- {
		out = append(out, last[n]...)
	}
	return out
}

func (v *View) head(look Look, now time.Time) string {
	parts := []string{look.Bold(text.OneLine(v.run))}
	var all Round
	for _, r := range v.rounds {
		all.uses(r.used)
	}
	switch n := len(v.rounds); {
	case n > 0:
		over, calls := v.rounds[n-1].counts()
		parts = append(parts, fmt.Sprintf("round %d", n-1), fmt.Sprintf("%d of %s over", over, text.Count(calls, "call")))
	case v.says != "":
		parts = append(parts, "waits for "+text.OneLine(text.Clip(v.says, mostSaid)))
	default:
		parts = append(parts, "waits for its planner")
	}
	parts = append(append(parts, spent(all.Used)...), look.Took(now.Sub(v.began).Truncate(100*time.Millisecond)))
	return parts[0] + look.Dim("  "+strings.Join(parts[1:], "  "))
}

// counts counts the calls that the planner asked for, and those of them that are over.
func (r *viewRound) counts() (over, calls int) {
	for _, s := range r.calls {
		if !s.asked() {
			continue
		}
		if calls++; s.status.Terminal() {
			over++
		}
	}
	return over, calls
}

// asked reports whether it is a call that the planner asked for: no value, which calls nothing, and nothing that the agent calls
// for itself.
func (s *viewStep) asked() bool { return (s.tool != "" || s.holds) && !ownCall(s.id) }

// lines draws a round in at most rows lines: all of it, or its head alone, which counts the calls then.
func (r *viewRound) lines(look Look, n int, now time.Time, rows int) []string {
	p := &r.planner
	head := fmt.Sprintf("  %s  %s %s", look.Dim(fmt.Sprintf("round %d", n)), look.Status(p.status, look.Mark(p.status)), "planner")
	if state := p.state(look, now); state != "" {
		head += "  " + look.Status(p.status, state)
	}
	if r.used != nil {
		head += "  " + look.Dim(spentTokens(r))
	}
	over, calls := r.counts()
	if len(r.calls)+1 > rows {
		failed := 0
		for _, s := range r.calls {
			if s.asked() && s.status.Unsuccessful() {
				failed++
			}
		}
		head += fmt.Sprintf("  %d of %s over", over, text.Count(calls, "call"))
		if failed > 0 {
			head += fmt.Sprintf(", %d did not succeed", failed)
		}
		return append([]string{head}, r.open(look, now, rows-1)...)
	}
	out := []string{head}
	for _, s := range r.calls {
		out = append(out, s.line(look, r.width(), now))
	}
	return out
}

// open draws the calls that are not over, and those by which people were told something, as many as there is room for.
func (r *viewRound) open(look Look, now time.Time, rows int) (lines []string) {
	for _, s := range r.calls {
		at := !s.status.Terminal() && s.status != outcome.StepWaiting && s.status != ""
		if len(lines) < rows && (at || s.told != "") {
			lines = append(lines, s.line(look, r.width(), now))
		}
	}
	return lines
}

// most columns of a name, and bytes of what anybody says.
const (
	mostName = 24
	mostSaid = 200
	// mostWritten is how much is seen of the end of what a planner writes.
	mostWritten = 60
)

// width is the columns of the longest name of a round's calls.
func (r *viewRound) width() int {
	n := 0
	for _, s := range r.calls {
		n = max(n, min(text.Columns(text.OneLine(s.id)), mostName))
	}
	return n
}

func (s *viewStep) line(look Look, width int, now time.Time) string {
	name, columns := text.Fit(text.OneLine(s.id), mostName)
	line := "    " + look.Status(s.status, look.Mark(s.status)) + "  " + name + strings.Repeat(" ", max(0, width-columns))
	if s.tool != "" {
		tool, _ := text.Fit(text.OneLine(s.tool), 2*mostName)
		line += "  " + look.Dim(tool)
	}
	if state := s.state(look, now); state != "" {
		line += "  " + look.Status(s.status, state)
	}
	return line
}

// state says in words where a step stands.
func (s *viewStep) state(look Look, now time.Time) string {
	var parts []string
	switch {
	case s.status == outcome.StepSucceeded:
		if s.ms > 0 {
			parts = append(parts, look.Took(time.Duration(s.ms*float64(time.Millisecond))))
		}
	case s.status == "":
		return ""
	case s.status.Terminal():
		parts = append(parts, look.Words(s.status))
	case s.status == outcome.StepWaiting || s.since.IsZero():
		parts = append(parts, look.Words(s.status))
	default:
		parts = append(parts, look.Words(s.status), look.Took(now.Sub(s.since).Truncate(100*time.Millisecond)))
	}
	if s.attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", s.attempt))
	}
	if s.over > 0 && !s.status.Terminal() {
		parts = append(parts, text.Count(s.over, "step")+" within it over")
	}
	if s.says != "" && !s.status.Terminal() {
		parts = append(parts, text.OneLine(text.Clip(s.says, mostSaid)))
	}
	if s.told != "" {
		parts = append(parts, s.told)
	}
	if s.why != "" {
		parts = append(parts, text.OneLine(text.Clip(s.why, mostSaid)))
	}
	return strings.Join(parts, "  ")
}

func spentTokens(r *viewRound) string { return strings.Join(spent(r.used), ", ") }
