package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/outcome"
)

// helped is the document of a run of "agents run" whose agent had one below: of that an answer was refused, and it was spoken to. A round
// of the agent was begun and not asked, as its budget was used up, and each had a summary that nobody needed.
func helped() *outcome.Run {
	one, verified := 1, true
	planner := func(id, answer string) outcome.Step {
		return outcome.Step{ID: id, Tool: "model", Status: outcome.StepSucceeded, Attempts: 1, Worker: "w-1", Result: json.RawMessage(answer)}
	}
	failed := func(id string, status outcome.StepStatus, code fault.Code) outcome.Step {
		return outcome.Step{ID: id, Tool: "divide", Status: status, Error: fault.New(code, "of a test")}
	}
	why := fault.New(fault.BudgetExceeded, "the agent's budget of 2 steps is used up")
	summary := func(round string) outcome.Step {
		return outcome.Step{ID: round + "/=summary", Tool: "sum", Status: outcome.StepNotTaken}
	}
	child := outcome.Step{ID: "agent/=0/c", Tool: "child", Status: outcome.StepSucceeded, Result: json.RawMessage(`7`),
		Refused: []outcome.Refused{{Round: 0, Problems: []fault.Problem{{Code: fault.InvalidValue, Path: "/steps", Message: "steps must be an array, but is a string"}}, Count: 1}},
		Said: []outcome.Said{{ID: "m1", By: "ann", Verified: verified, Round: &one, Content: json.RawMessage(`"Take the train."`)},
			{ID: "m2", By: "ben", Interrupt: true, Content: json.RawMessage(`"Stop."`)}},
		Steps: []outcome.Step{planner("agent/=0/c/=0/=plan", `{"steps":"garbage"}`), summary("agent/=0/c/=0"),
			planner("agent/=0/c/=1/=plan", `{"steps":[{"id":"x","tool":"divide"},{"id":"y","tool":"divide"},{"id":"z","tool":"divide"},{"id":"w","tool":"divide"}]}`),
			failed("agent/=0/c/=1/x", outcome.StepFailed, fault.ToolFailed), failed("agent/=0/c/=1/y", outcome.StepFailed, fault.ToolFailed),
			failed("agent/=0/c/=1/z", outcome.StepCancelled, fault.Cancelled), failed("agent/=0/c/=1/w", outcome.StepSkipped, fault.Skipped),
			planner("agent/=0/c/=2/=plan", `{"output":7}`)}}
	agent := outcome.Step{ID: "agent", Tool: "parent", Status: outcome.StepFailed, Error: why,
		Said: []outcome.Said{{ID: "m0", By: "ann", Round: &one, Content: json.RawMessage(`"Be quick."`)}},
		Steps: []outcome.Step{planner("agent/=0/=plan", `{"steps":[{"id":"c","tool":"child"}],"usage":{"input_tokens":900,"output_tokens":40}}`), child,
			summary("agent/=0"), {ID: "agent/=1/=plan", Tool: "model", Status: outcome.StepCancelled}}}
	stats := outcome.Stats{Steps: 13, Succeeded: 5, Failed: 3, Skipped: 1, Cancelled: 2, NotTaken: 2, ElapsedMS: 1000}
	doc := &outcome.Run{Version: 1, Run: "helped", Tenant: "default", Generation: 7, Digest: strings.Repeat("0123456789abcdef", 4),
		Plan: json.RawMessage(`{"steps":[{"id":"agent","tool":"parent"}]}`), Status: outcome.Failed, Submitted: noon, Started: noon, Finished: noon.Add(time.Second),
		Stats: stats, Steps: []outcome.Step{agent}, Outcome: &outcome.Outcome{Run: "helped", Status: outcome.Failed, Stats: stats}}
	for _, e := range []outcome.StepError{{Step: "agent/=0/c/=1/x", Code: fault.ToolFailed}, {Step: "agent/=0/c/=1/y", Code: fault.ToolFailed},
		{Step: "agent/=0/c/=1/z", Code: fault.Cancelled}, {Step: "agent/=0/c/=1/w", Code: fault.Skipped}} {
		e.Message, e.HandledBy = "of a test", "agent/=0/c"
		doc.Outcome.Errors = append(doc.Outcome.Errors, e)
	}
	doc.Outcome.Errors = append(doc.Outcome.Errors, outcome.StepError{Step: "agent", Code: why.Code, Message: why.Message})
	return doc
}

// What a person sees of an agent below another: what was said to it and when it was told, which of its answers came to nothing and why, in
// all that tells of a run. Summaries that nobody needed are not counted, and what was dealt with is counted as what it came to.
func TestGoldenAgentsBelow(t *testing.T) {
	t.Parallel()
	a, out, errs := paper("text")
	doc := helped()
	require.NoError(t, a.showRun(doc, false))
	for _, id := range []string{"agent", "agent/=0/c", "agent/=0/c/=0/=plan"} {
		fmt.Fprintln(out, "----")
		require.NoError(t, a.writeStep(out, accountOf(doc), findStep(doc, id)))
	}
	fmt.Fprintf(out, "---- the outcome\n%s\n---- agents run\n", a.summary(doc.Outcome))
	a.tellRounds(doc, agents.NoBlob)
	out.WriteString(errs.String())

	fmt.Fprintln(out, "==== while it runs, with more than is read")
	child := &doc.Steps[0].Steps[1]
	for range 9 {
		child.Said = append(child.Said, child.Said[1])
	}
	doc.Status, doc.Outcome = outcome.Running, nil
	require.NoError(t, a.showRun(doc, false))
	errs.Reset()
	a.tellRounds(doc, agents.NoBlob)
	golden(t, "agents_below", out.String()+"---- agents run\n"+errs.String())
}
