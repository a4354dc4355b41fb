package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// userName names who runs the command, for the record.
func userName(getenv func(string) string) string {
	if name := cmp.Or(getenv("USER"), getenv("LOGNAME")); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "stepjet"
}

// answerCommand is the command that answers a question. where are the arguments that lead to its run.
func answerCommand(q *outcome.Question, where string) string {
	of := q.Run + " " + q.Step
	if followsAnother(q) {
		of += " --digest " + q.Digest
	}
	of += where
	if q.Kind == outcome.Ask {
		return "stepjet questions answer " + of + " VALUE"
	}
	return "stepjet approve " + of + ", or stepjet reject " + of
}

// followsAnother reports whether something else may have been asked before under the step of a question: an amendment behind its
// plan, a round behind another one, a tool that asks again. Who looked at that must not answer this by the same words.
func followsAnother(q *outcome.Question) bool {
	return q.Number > 1 || q.Revision > 0 || q.Round != nil && *q.Round > 0
}

// answeredLine says what a person decided, who, and when, in one line.
func answeredLine(a *outcome.Answered) string {
	var b strings.Builder
	b.WriteString(oneLine(a.Decision))
	if a.By != "" {
		fmt.Fprintf(&b, " by %s", oneLine(a.By))
		if !a.Verified {
			b.WriteString(" (unverified)")
		}
	}
	if !a.At.IsZero() {
		fmt.Fprintf(&b, " at %s", a.At.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// standsLine is answeredLine to who has answered, and says whether that had been said before.
func standsLine(a *client.Answered) string {
	if a.Already {
		return answeredLine(&a.Answered) + already
	}
	return answeredLine(&a.Answered)
}

// stoppedLine says what stop of a run stands: whose it was, where that is not who asked.
func stoppedLine(x *client.Stopped) string {
	switch {
	case !x.Already:
		return string(x.Status)
	case x.By == "":
		return string(x.Status) + already
	}
	return string(x.Status) + " by " + oneLine(x.By) + already
}

// already is said of what stood before it was asked for.
const already = ", already"

// lastAsked returns the last amendment of a plan that anybody was asked about; nil for none.
func lastAsked(doc *outcome.Run, step string) *outcome.Amendment {
	for i := range slices.Backward(doc.Amendments) {
		if x := &doc.Amendments[i]; x.Step == step && x.Digest != "" {
			return x
		}
	}
	return nil
}

// writeAnswered says of a step what a person decided who was asked: who, when and why, and what of the step is theirs.
func writeAnswered(b *bytes.Buffer, a *outcome.Answered, tool string) {
	if a == nil {
		return
	}
	fmt.Fprintf(b, "%s\n", answeredLine(a))
	if a.Reason != "" {
		fmt.Fprintf(b, "reason: %s\n", oneLine(a.Reason))
	}
	if a.Arguments != nil {
		b.WriteString("called with the arguments of who approved, and not with the plan's\n")
	}
	if a.Decision == outcome.DecisionAnswered && tool != "ask" {
		fmt.Fprintf(b, "%s was not called: the result is what that person wrote\n", oneLine(tool))
	}
}

// writeAnswers lists what people decided in a run, of steps at every depth, nothing where nobody was asked; of items, each
// where they are asked for, else how many were decided how.
func writeAnswers(b *bytes.Buffer, st style, doc *outcome.Run, items bool, width int) {
	var t table
	add := func(step, tool string, x *outcome.Answered) {
		if x == nil {
			return
		}
		line := answeredLine(x)
		switch {
		case x.Arguments != nil:
			line += ", with other arguments"
		case x.Decision == outcome.DecisionAnswered && tool != "ask" && tool != "":
			line += ", in place of the tool"
		}
		if x.Reason != "" {
			line += ": " + clipLine(x.Reason)
		}
		t.add(cell{text: oneLine(step), paint: st.bold}, plain(line))
	}
	add("the plan", "", doc.Approval)
	var each func([]outcome.Step)
	each = func(steps []outcome.Step) {
		for i := range steps {
			s := &steps[i]
			if round, is := strings.CutSuffix(s.ID, "/"+plan.PlannerStep); is {
				add(round, "", s.Answer) // it was asked of the round
			} else {
				add(s.ID, s.Tool, s.Answer)
			}
			for _, x := range s.Answers { // to what its tool or a guard asked
				add(s.ID, "", x)
			}
			if counts := countAnswers(s.Items); counts != "" && !items {
				t.add(cell{text: oneLine(s.ID), paint: st.bold}, plain("items: "+counts))
			} else if items {
				each(s.Items)
			}
			each(s.Steps)
		}
	}
	each(doc.Steps)
	if len(t.rows) > 0 {
		b.WriteByte('\n')
		t.write(b, "", width)
	}
}

// countAnswers counts what was said of items and of steps of their plans, "" for nothing.
func countAnswers(items []outcome.Step) string {
	counts := map[string]int{}
	var each func([]outcome.Step)
	each = func(steps []outcome.Step) {
		for i := range steps {
			if x := steps[i].Answer; x != nil {
				counts[x.Decision]++
			}
			for _, x := range steps[i].Answers {
				counts[x.Decision]++
			}
			each(steps[i].Items)
			each(steps[i].Steps)
		}
	}
	each(items)
	var parts []string
	for _, decision := range []string{outcome.DecisionApproved, outcome.DecisionRejected, outcome.DecisionAnswered, outcome.DecisionExpired} {
		if n := counts[decision]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, decision))
		}
	}
	return strings.Join(parts, ", ")
}
