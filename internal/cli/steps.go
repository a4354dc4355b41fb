package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// retriedFrom says which run this one tries again.
func retriedFrom(doc *outcome.Run) string {
	if doc.RetryFrom == "" {
		return doc.RetryOf
	}
	return doc.RetryOf + ", from step " + doc.RetryFrom
}

// stepsLine counts a run's steps by where they stand, those that are over first.
func stepsLine(doc *outcome.Run) string {
	s, open, reused, unneeded, all := doc.Stats, map[outcome.StepStatus]int{}, 0, 0, 0
	eachStep(doc.Steps, func(s *outcome.Step) {
		if agents.Unneeded(s) && s.Status == outcome.StepNotTaken {
			unneeded++
			return
		}
		all++
		open[s.Status]++
		if s.Reused {
			reused++
		}
	})
	s.NotTaken = max(s.NotTaken-unneeded, 0)
	var errors []outcome.StepError
	if doc.Outcome != nil {
		errors = doc.Outcome.Errors
	}
	var parts []string
	for _, n := range []struct {
		n    int
		what string
	}{
		{s.Succeeded, "succeeded"}, {s.Failed, "failed"}, {s.Skipped, "skipped"}, {s.Cancelled, "cancelled"}, {s.NotTaken, "not taken"},
		{open[outcome.StepRunning], "running"}, {open[outcome.StepReady], "on their way"},
		{open[outcome.StepRetrying], "retrying"}, {open[outcome.StepWaiting], "waiting"}, {open[outcome.StepAsking], "waiting for a person"},
	} {
		if n.n == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", n.n, n.what)
		if _, handled := handlers(errors, outcome.StepStatus(n.what)); handled > 0 {
			text += fmt.Sprintf(" (%d handled)", handled)
		}
		if n.what == "succeeded" && reused > 0 {
			text += fmt.Sprintf(" (%d reused)", reused)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return fmt.Sprint(all)
	}
	return fmt.Sprintf("%d: %s", all, strings.Join(parts, ", "))
}

// eachStep calls do with steps and, behind each, those of its own plan, or of the plans of its items.
func eachStep(steps []outcome.Step, do func(*outcome.Step)) {
	for i := range steps {
		do(&steps[i])
		eachStep(steps[i].Steps, do)
		for k := range steps[i].Items {
			eachStep(steps[i].Items[k].Steps, do)
		}
	}
}

// progressLine draws how much of a run is over. A for_each step counts by its items, once it has any. Of an agent and a
// loop nobody knows how much is to come: what is over within them is told beside.
func progressLine(doc *outcome.Run, st style) string {
	over, within := 0.0, 0
	for i := range doc.Steps {
		s := &doc.Steps[i]
		switch {
		case s.Status.Terminal():
			over++
		case len(s.Items) > 0:
			done, _ := itemsOver(s)
			over += float64(done) / float64(len(s.Items))
		default:
			eachStep(s.Steps, func(s *outcome.Step) {
				if s.Status.Terminal() && !agents.Unneeded(s) {
					within++
				}
			})
		}
	}
	beside := ""
	if within > 0 {
		beside = ", and " + text.Count(within, "step") + " within over"
	}
	share := over / float64(len(doc.Steps))
	full := int(share * barWidth)
	return st.green(strings.Repeat("█", full)+strings.Repeat("░", barWidth-full)) + fmt.Sprintf("  %d %%", int(share*100)) + beside
}

// itemsOver counts the items of a for_each step that are over, and those of them that did not succeed.
func itemsOver(s *outcome.Step) (over, failed int) {
	for i := range s.Items {
		if status := s.Items[i].Status; status.Terminal() {
			over++
			if status != outcome.StepSucceeded {
				failed++
			}
		}
	}
	return over, failed
}

// itemsLine says in a few words how far a for_each step is.
func itemsLine(s *outcome.Step) string {
	over, failed := itemsOver(s)
	text := fmt.Sprintf("items %d/%d", over, len(s.Items))
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}

// stepTable lists the steps of a run; of one that is not over also what they wait for.
func (a *app) stepTable(doc *outcome.Run, items bool) *table {
	st := a.style
	head := func(s string) cell { return cell{text: s, paint: st.dim} }
	right := func(s string) cell { return cell{text: s, paint: st.dim, right: true} }
	top := []cell{head(" "), head("STEP"), head("TOOL"), head("STATUS"), right("TRIES"), right("TOOK"), head("WORKER")}
	active := doc.Status == outcome.Running
	if active {
		top = append(top, head("WAITING"))
	}
	t, of := &table{}, accountOf(doc)
	t.add(append(top, head("RESULT"))...)
	var rows func(steps []outcome.Step, indent string)
	rows = func(steps []outcome.Step, indent string) { // each before those of its own plan and, where they are wanted, its items
		for i := range steps {
			if agents.Unneeded(&steps[i]) {
				continue
			}
			t.add(a.stepRow(of, &steps[i], indent, active)...)
			rows(steps[i].Steps, indent+"  ")
			if items {
				rows(steps[i].Items, indent+"  ")
			}
		}
	}
	rows(doc.Steps, "")
	return t
}

func (a *app) stepRow(of *account, s *outcome.Step, indent string, active bool) []cell {
	color := func(text string) string { return of.paint(a.style, s, text) }
	tries, spent := "", ""
	if n := triesOf(s); n > 0 {
		tries = fmt.Sprint(n)
	}
	if _, ran := s.Took(); ran > 0 {
		spent = took(ran)
	}
	row := []cell{
		{text: mark(s.Status), paint: color}, plain(indent + oneLine(s.ID)), plain(doesIn(of, s)), {text: of.words(s), paint: color},
		{text: tries, right: true}, {text: spent, right: true}, plain(workersOf(s)),
	}
	if active {
		row = append(row, cell{text: waitingLine(s), paint: a.style.yellow})
	}
	return append(row, plain(of.result(s)))
}

// doesIn names what a step of a run's document does.
func doesIn(of *account, s *outcome.Step) string {
	if words, own := agents.OwnWords(s); own {
		return oneLine(words)
	}
	if s.Tool == "" && len(s.Steps) > 0 { // what is known of one in a round, whose plan is a planner's answer
		if subjects.IsIteration(subjects.ScopeOf(s.Steps[0].ID)) {
			return cmp.Or(loopIn(of.plan, s.ID), "loop")
		}
		return "plan"
	}
	return does(of.plan, s.ID, s.Tool)
}

// loopIn names the loop that a step of a run's plan is, "" for none.
func loopIn(p *plan.Plan, token string) string {
	if p != nil {
		if s, _, ok := p.Find(token); ok && s.Repeat != nil {
			return "loop of " + cmp.Or(oneLine(s.Does().Tool), "a plan")
		}
	}
	return ""
}

// does names what a step does: the tool that it calls, an agent or a plan of its own that it has, a loop or a value that it is. p is the plan
// of the run, nil where it isn't to be had.
func does(p *plan.Plan, token, tool string) string {
	if tool == "" && p != nil {
		if loop := loopIn(p, token); loop != "" {
			return loop
		}
		if s, _, ok := p.Find(token); ok && s.Plan != nil {
			return "plan"
		}
	}
	if plan.IsInline(tool) {
		return "agent"
	}
	return cmp.Or(oneLine(tool), "value")
}

// triesOf counts the attempts of a step; of a for_each step, those of the item that had the most.
func triesOf(s *outcome.Step) int {
	if len(s.Items) == 0 {
		return s.Attempts
	}
	most := 0
	for i := range s.Items {
		most = max(most, s.Items[i].Attempts)
	}
	return most
}

// workersOf names who executed a step, or its items.
func workersOf(s *outcome.Step) string {
	if len(s.Items) == 0 {
		return oneLine(s.Worker)
	}
	var names []string
	for i := range s.Items {
		if w := oneLine(s.Items[i].Worker); w != "" && !slices.Contains(names, w) {
			names = append(names, w)
		}
	}
	if len(names) > 2 {
		return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
	}
	return strings.Join(names, ", ")
}

// waitingLine says what a step waits for: other steps, by their names, or what stands in its way.
func waitingLine(s *outcome.Step) string {
	text := oneLine(s.Waiting)
	if stands := agents.Standing(s); stands != "" && !s.Status.Terminal() && s.Status != outcome.StepAsking {
		text = stands
	}
	switch {
	case text == "" || s.Status.Terminal():
		return ""
	case s.Status == outcome.StepWaiting, s.Status == outcome.StepAsking, s.Status == outcome.StepRunning,
		strings.HasPrefix(text, "a worker of "), strings.HasPrefix(text, "its list"):
		return "for " + text
	}
	return text
}

// maxResultLine bounds what a table shows of a result, in bytes.
const maxResultLine = 200

// result says in one line what a step came to so far.
func (a *account) result(s *outcome.Step) string {
	switch {
	case s.Status == outcome.StepNotTaken:
		return a.why(s)
	case s.Error != nil && len(s.Items) > 0:
		return itemsLine(s) + "; " + oneLine(errorCode(s.Error)+": "+s.Error.Message)
	case s.Error != nil:
		return oneLine(errorCode(s.Error) + ": " + s.Error.Message)
	case len(s.Items) > 0:
		return itemsLine(s)
	}
	raw := s.Result
	if raw == nil && a.doc.Outcome != nil {
		raw, _ = a.doc.Outcome.Results.Get(s.ID)
	}
	if raw == nil {
		if s.Bytes > 0 {
			return size(s.Bytes)
		}
		return ""
	}
	if why := a.refused[s.ID]; why != "" {
		return "refused: " + oneLine(why)
	}
	if said := agents.Answered(raw); said != "" && s.ID == subjects.OwnCall(subjects.ScopeOf(s.ID), "plan") {
		return said
	}
	if len(raw) > maxResultLine {
		return oneLine(string(bytes.ToValidUTF8(raw[:maxResultLine], nil))) + "… (" + size(int64(len(raw))) + ")"
	}
	return oneLine(string(raw))
}

// showStep prints one step as a whole; a result that lies in a blob is fetched.
func (a *app) showStep(ctx context.Context, s *session, doc *outcome.Run, id string) error {
	step := findStep(doc, id)
	if step == nil {
		return fault.New(fault.NotFound, "run %s has no step %q", doc.Run, id)
	}
	if step.Result == nil && doc.Outcome != nil && step.Status != outcome.StepNotTaken { // it has none, and stands there as null
		step.Result, _ = doc.Outcome.Results.Get(id)
	}
	if step.Result == nil && step.Blob != nil {
		raw, err := s.client.Blob(ctx, step.Blob)
		if err != nil {
			return err
		}
		step.Result = raw
	}
	if a.json() {
		return a.printJSON(step)
	}
	return a.writeStep(a.stdout, accountOf(doc), step)
}

// findStep finds a step, or an item of one; nil for none.
func findStep(doc *outcome.Run, id string) *outcome.Step { return findIn(doc.Steps, id) }

func findIn(steps []outcome.Step, id string) *outcome.Step {
	for i := range steps {
		s := &steps[i]
		if s.ID == id {
			return s
		}
		if found := findIn(s.Items, id); found != nil {
			return found
		}
		if found := findIn(s.Steps, id); found != nil {
			return found
		}
	}
	return nil
}

func (a *app) writeStep(w io.Writer, of *account, s *outcome.Step) error {
	var b bytes.Buffer
	st := a.style
	fmt.Fprintf(&b, "%s  %s  %s\n", st.bold(oneLine(s.ID)), st.dim(doesIn(of, s)), of.paint(st, s, of.words(s)))
	if s.Status == outcome.StepNotTaken {
		fmt.Fprintf(&b, "%s\n", of.why(s))
	}
	if n := triesOf(s); n > 0 {
		by := workersOf(s)
		if by != "" {
			by = " by " + by
		}
		fmt.Fprintf(&b, "%s%s\n", text.Count(n, "attempt"), by)
	}
	writeTries(&b, st, s.Tries)
	if len(s.Items) > 0 {
		fmt.Fprintf(&b, "%s\n", itemsLine(s))
	}
	if why := of.refused[s.ID]; why != "" {
		fmt.Fprintf(&b, "refused: %s\n", oneLine(why))
	}
	writeAgent(&b, s)
	writeAnswered(&b, s.Answer, s.Tool)
	for _, x := range s.Answers {
		fmt.Fprintf(&b, "what its tool asked: %s\n", answeredLine(x))
		if x.Reason != "" {
			fmt.Fprintf(&b, "reason: %s\n", oneLine(x.Reason))
		}
	}
	if counts := countAnswers(s.Items); counts != "" {
		fmt.Fprintf(&b, "answers: %s\n", counts)
	}
	if waits := waitingLine(s); waits != "" {
		fmt.Fprintf(&b, "waiting: %s\n", waits)
	}
	if s.Error != nil {
		fmt.Fprintf(&b, "\n%s %s\n", st.red(oneLine(errorCode(s.Error))+":"), oneLine(s.Error.Message))
		if s.Error.Hint != "" {
			fmt.Fprintf(&b, "  %s %s\n", st.dim("hint:"), oneLine(s.Error.Hint))
		}
		writePart(&b, st, "details", s.Error.Details)
	}
	writePart(&b, st, "arguments", s.Arguments)
	writePart(&b, st, "result", s.Result)
	_, err := w.Write(b.Bytes())
	return err
}

// writeAgent writes what an agent's rounds came to, which of its answers came to nothing, and what people have said to it.
func writeAgent(b *bytes.Buffer, s *outcome.Step) {
	if !agents.IsAgent(s) {
		return
	}
	fmt.Fprintf(b, "%s\n", agents.Whole(s, agents.RoundsOf(s, agents.NoBlob), agents.NoBlob))
	for _, line := range slices.Concat(agents.Refusals(s), agents.Said(s)) {
		fmt.Fprintf(b, "%s\n", oneLine(line))
	}
}

// writeTries lists the attempts of a step that had more than one.
func writeTries(b *bytes.Buffer, st style, tries []outcome.Try) {
	var t table
	for _, x := range tries {
		came, color := "succeeded", st.green
		switch {
		case x.Asked:
			came, color = "asked a person", st.yellow
		case x.Code != "":
			came, color = cmp.Or(oneLine(x.ToolCode), string(x.Code)), st.red
		}
		spent, by := "", "decided by the orchestrator"
		if x.Worker != "" {
			by = oneLine(x.Worker)
		}
		if !x.Started.IsZero() {
			spent = took(x.Ended.Sub(x.Started))
		}
		if x.Deliveries > 1 {
			by += fmt.Sprintf(", handed out %d times", x.Deliveries)
		}
		t.add(cell{text: fmt.Sprint(x.Attempt), right: true}, cell{text: came, paint: color}, cell{text: spent, right: true}, plain(by))
	}
	t.write(b, "  ", 0)
}

const barWidth = 24
