package agentdemo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/internal/graph"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
)

type times struct{ up, took, away time.Duration }

// Report is what came of a demonstration.
type Report struct {
	Status  outcome.RunStatus
	Rounds  []agents.Round
	Calls   []Call
	Letter  string // what the agent wrote, as it lies on the disk
	Letters int    // how often that was written
	// Asked are the rounds that the planner was asked about, in that order; Repeated how often about one that it had
	// been asked about before.
	Asked    []int
	Repeated int
	// Returned are the bytes of the tools' results, Shown those of them that the planner read.
	Returned, Shown int64
	// Left is what was left of the budget when the planner was asked for the last time.
	Left left
	Up   time.Duration // until an agent could be called
	Took time.Duration // from submit to outcome
	Away time.Duration // from the kill until the run had gone on as far as the question to a person
}

// Call is one call that the planner asked for.
type Call struct {
	Round      int
	Name, Tool string
	Status     outcome.StepStatus
	Took       time.Duration
	Bytes      int64
	Why        string // it did not succeed
	Answered   string // what a person decided
}

func (s *show) report(doc *outcome.Run, out *outcome.Outcome, t times) (*Report, error) {
	r := &Report{Status: out.Status, Rounds: agents.RoundsOf(agents.At(doc, agents.Step), nil), Letters: int(s.desk.written.Load()),
		Up: t.up, Took: t.took, Away: t.away}
	s.planner.mu.Lock()
	r.Asked, r.Left = s.planner.asked, s.planner.last.Budget
	for _, round := range s.planner.last.Rounds {
		for _, x := range round.Records {
			r.Shown += int64(len(x.Result))
		}
	}
	s.planner.mu.Unlock()
	r.Repeated = len(r.Asked) - len(r.Rounds)
	for i := range doc.Steps[0].Steps {
		r.add(&doc.Steps[0].Steps[i])
	}
	var wrote struct{ Wrote string }
	raw, _ := out.Results.Get(agents.Step)
	if err := json.Unmarshal(raw, &wrote); err != nil {
		return nil, fmt.Errorf("the agent came to %s: %s", out.Status, out.JSON())
	}
	body, err := os.ReadFile(filepath.Join(s.desk.dir, filepath.Base(wrote.Wrote)))
	r.Letter = string(body)
	return r, err
}

func (r *Report) add(s *outcome.Step) {
	round, name, ok := agents.Place(agents.Step, s.ID)
	if !ok || s.Tool == "" || name == "" || agents.Earlier(name) {
		return
	}
	_, ran := s.Took()
	c := Call{Round: round, Name: name, Tool: s.Tool, Status: s.Status, Took: ran, Bytes: s.Bytes}
	if s.Error != nil {
		c.Why = fmt.Sprintf("%s: %s", s.Error.Code, s.Error.Message)
	}
	if s.Answer != nil {
		c.Answered = s.Answer.Decision + " by " + s.Answer.By
	}
	if s.Status == outcome.StepSucceeded {
		r.Returned += s.Bytes
	}
	r.Calls = append(r.Calls, c)
}

// Lost names what the kill lost, or had done twice; empty for nothing.
func (r *Report) Lost() (lost []string) {
	if r.Status != outcome.Succeeded {
		lost = append(lost, fmt.Sprintf("the run: it %s", r.Status))
	}
	if r.Repeated != 0 {
		lost = append(lost, text.Count(r.Repeated, "answer")+" of the planner")
	}
	if r.Letters != 1 {
		lost = append(lost, fmt.Sprintf("the letter: it was written %d times", r.Letters))
	}
	return lost
}

// Write prints the report. paint colours a text by an SGR code, or leaves it alone.
func (r *Report) Write(w io.Writer, paint func(code, text string) string) error {
	var b strings.Builder
	dim := func(t string) string { return paint("2", t) }
	fmt.Fprintf(&b, "%s  %s\n\n  %s\n\n", paint("1", "Stepjet"),
		dim("an agent with a scripted planner; server and tools here, orchestrators as processes, up in "+took(r.Up)), task)
	for n := range r.Rounds {
		if n == killRound {
			fmt.Fprintf(&b, "  %s\n", paint("31", "kill -9  the only orchestrator, while the planner thinks about round 2; then another is started"))
		}
		r.writeRound(&b, n, paint)
	}
	b.WriteByte('\n')
	var in, out int64
	var cost float64
	for _, x := range r.Rounds {
		if x.Used != nil {
			in, out, cost = in+x.Used.InputTokens, out+x.Used.OutputTokens, cost+x.Used.CostUSD
		}
	}
	failed := 0
	for _, c := range r.Calls {
		if c.Status.Unsuccessful() {
			failed++
		}
	}
	kept := "nothing that stood"
	lost := r.Lost()
	if len(lost) > 0 {
		kept = strings.Join(lost, ", ")
	}
	rows := [][3]string{
		{"rounds", fmt.Sprint(len(r.Rounds)), "one of them to go around a failure"},
		{"model calls", fmt.Sprint(len(r.Asked)), fmt.Sprintf("%d repeated", r.Repeated)},
		{"calls of tools", fmt.Sprint(len(r.Calls)), fmt.Sprintf("%d did not succeed, 1 approved by a person", failed)},
		{"tokens", graph.Thousands(int(in + out)), fmt.Sprintf("%s in, %s out; the budget has %s", graph.Thousands(int(in)),
			graph.Thousands(int(out)), graph.Thousands(budgetTokens))},
		{"cost", fmt.Sprintf("$%.4f", cost), fmt.Sprintf("the budget has $%.2f, and %d steps; the planner was told what is left", budgetUSD, budgetSteps)},
		{"tokens kept out", graph.Thousands(int(r.Returned-r.Shown) / 4), fmt.Sprintf("of %d KiB that tools returned, the planner read %s bytes",
			r.Returned>>10, graph.Thousands(int(r.Shown)))},
		{"time", took(r.Took), fmt.Sprintf("%s from the kill to the question that came next", took(r.Away))},
		{"the kill lost", fmt.Sprint(len(lost)), kept},
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "  %s  %s  %s\n", dim(pad(row[0], 16)), paint("1", strings.Repeat(" ", max(0, 9-utf8.RuneCountInString(row[1])))+row[1]), dim(row[2]))
	}
	fmt.Fprintf(&b, "\n%s  %s\n", paint("1", "The letter"), dim("written "+text.Count(r.Letters, "time")))
	for line := range strings.Lines(strings.TrimSpace(r.Letter)) {
		b.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeRound(b *strings.Builder, n int, paint func(code, text string) string) {
	x, dim := r.Rounds[n], func(t string) string { return paint("2", t) }
	used := ""
	if x.Used != nil {
		used = fmt.Sprintf("%s tokens in, %s out", graph.Thousands(int(x.Used.InputTokens)), graph.Thousands(int(x.Used.OutputTokens)))
	}
	line := func(label, mark, code, name, took, note string) {
		fmt.Fprintf(b, "  %s  %s %s  %9s  %s\n", dim(pad(label, 7)), paint(code, mark), pad(name, 18), took, dim(note))
	}
	line(fmt.Sprintf("round %d", n), "✓", "32", "the planner", took(x.Took), used)
	for _, c := range r.Calls {
		if c.Round != n {
			continue
		}
		mark, code, note := "✓", "32", fmt.Sprintf("%s bytes", graph.Thousands(int(c.Bytes)))
		if c.Status.Unsuccessful() {
			mark, code, note = "✗", "31", c.Why
			if c.Status == outcome.StepSkipped {
				mark, code, note = "-", "33", "skipped"
			}
		}
		if c.Answered != "" {
			note += ", " + c.Answered
		}
		ran := ""
		if c.Took > 0 {
			ran = took(c.Took)
		}
		line("", mark, code, c.Tool, ran, note)
	}
}

func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s))) }

func took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
