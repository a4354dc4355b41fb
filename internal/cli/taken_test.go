package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

const refundPlan = `{"steps":[
	{"id":"pay","tool":"process_payment"},{"id":"confirm","tool":"confirm_order","arguments":{"receipt":"$ref:pay"}},
	{"id":"report","tool":"report_failure","if":"$status:pay == 'failed'","arguments":{"error":"$error:pay"}},
	{"id":"mail","tool":"send","arguments":{"ticket":"$ref:report.ticket"}}]}`

// refund is the document of a run of refundPlan: one whose payment was declined, or one that went well.
func refund(declined bool) *outcome.Run {
	doc := &outcome.Run{
		Version: 1, Run: "refund", Tenant: "default", Generation: 7, Digest: strings.Repeat("0123456789abcdef", 4), Plan: json.RawMessage(refundPlan),
		Status: outcome.Succeeded, Submitted: noon, Started: noon, Finished: noon.Add(time.Second),
		Stats: outcome.Stats{Steps: 4, Succeeded: 2, NotTaken: 2, ElapsedMS: 1000, BytesReturned: 12},
		Outcome: &outcome.Outcome{
			Run: "refund", Status: outcome.Succeeded, NotTaken: []string{"report", "mail"},
			Results: outcome.Results{{Step: "pay", JSON: json.RawMessage(`{"id":1}`)}, {Step: "confirm", JSON: json.RawMessage(`true`)},
				{Step: "report", JSON: json.RawMessage(`null`)}, {Step: "mail", JSON: json.RawMessage(`null`)}},
		},
		Steps: []outcome.Step{
			{ID: "pay", Tool: "process_payment", Status: outcome.StepSucceeded, Attempts: 1, Worker: "w-1", Bytes: 8},
			{ID: "confirm", Tool: "confirm_order", Status: outcome.StepSucceeded, Attempts: 1, Worker: "w-1", Bytes: 4},
			{ID: "report", Tool: "report_failure", Status: outcome.StepNotTaken},
			{ID: "mail", Tool: "send", Status: outcome.StepNotTaken},
		},
	}
	if declined {
		why := fault.New(fault.ToolFailed, "your card was declined")
		why.ToolCode = "card_declined"
		skipped := fault.New(fault.Skipped, "Skipped because dependency 'pay' failed")
		doc.Stats = outcome.Stats{Steps: 4, Succeeded: 2, Failed: 1, Skipped: 1, ElapsedMS: 1000, BytesReturned: 12}
		doc.Outcome.NotTaken, doc.Outcome.Results = nil, outcome.Results{{Step: "report", JSON: json.RawMessage(`{"ticket":7}`)}, {Step: "mail", JSON: json.RawMessage(`true`)}}
		doc.Outcome.Errors = []outcome.StepError{
			{Step: "pay", Code: fault.ToolFailed, Message: why.Message, Attempts: 1, HandledBy: "report"},
			{Step: "confirm", Code: fault.Skipped, Message: skipped.Message},
		}
		doc.Steps[0].Status, doc.Steps[0].Error = outcome.StepFailed, why
		doc.Steps[1] = outcome.Step{ID: "confirm", Tool: "confirm_order", Status: outcome.StepSkipped, Error: skipped}
		doc.Steps[2].Status, doc.Steps[2].Attempts, doc.Steps[2].Worker = outcome.StepSucceeded, 1, "w-1"
		doc.Steps[3].Status, doc.Steps[3].Attempts, doc.Steps[3].Worker = outcome.StepSucceeded, 1, "w-1"
	}
	doc.Outcome.Stats = doc.Stats
	return doc
}

// What the person sees who waits for a run with a condition: while it runs, and when it is over.
func TestGoldenConditions(t *testing.T) {
	t.Parallel()
	a, out, errs := paper("text")
	for _, declined := range []bool{false, true} {
		doc := refund(declined)
		fmt.Fprintf(out, "==== declined: %v\n", declined)
		require.NoError(t, a.showRun(doc, false))
		for _, id := range []string{"pay", "report", "mail"} {
			fmt.Fprintln(out, "----")
			require.NoError(t, a.writeStep(out, accountOf(doc), findStep(doc, id)))
		}
		fmt.Fprintf(out, "----\n%s\n---- lines\n", a.summary(doc.Outcome))
		p := parsed(t, refundPlan)
		l := &lines{w: out, plan: func() *plan.Plan { return p }}
		g := newProgress("refund", p, noon)
		for _, e := range eventsOf(doc) {
			l.event(e)
			g.apply(e, noon)
		}
		fmt.Fprintf(out, "---- live\n%s\n", strings.Join(g.lines(style{}, 90, 24, noon), "\n"))
		require.NoError(t, a.outcome(doc.Outcome), "a run whose failure was handled succeeded")
	}
	waits := refund(false)
	waits.Status, waits.Outcome, waits.Stats = outcome.Running, nil, outcome.Stats{Steps: 4, Succeeded: 2, NotTaken: 1}
	waits.Steps[3].Status, waits.Steps[3].Waiting = outcome.StepWaiting, "its condition to be read"
	fmt.Fprintln(out, "==== waits")
	require.NoError(t, a.showRun(waits, false))
	require.NoError(t, a.showRuns([]client.Summary{{Run: "refund", Status: outcome.Succeeded, Submitted: noon, Stats: refund(false).Stats}}, noon))
	golden(t, "conditions", out.String()+"==== talk\n"+errs.String())
}

// eventsOf are the events that a run's document stands for, and one of a run that nobody knows the plan of.
func eventsOf(doc *outcome.Run) []client.Event {
	events := []client.Event{{Kind: subjects.EventStart, Run: doc.Run, Steps: len(doc.Steps)}}
	for i := range doc.Steps {
		s := &doc.Steps[i]
		events = append(events, client.Event{Kind: subjects.EventStep, Step: s.ID, Tool: s.Tool, Status: s.Status, Attempt: s.Attempts, Error: s.Error})
	}
	return append(events, client.Event{Kind: subjects.EventEnd, Outcome: doc.Outcome})
}

// Without a plan at hand a line says what happened, and not why.
func TestNotTakenWithoutAPlan(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	l := &lines{w: &b, plan: func() *plan.Plan { return nil }}
	l.event(client.Event{Kind: subjects.EventStep, Step: "report", Tool: "t", Status: outcome.StepNotTaken})
	l.plan = nil
	l.event(client.Event{Kind: subjects.EventStep, Step: "report", Tool: "t", Status: outcome.StepNotTaken})
	require.Equal(t, "not taken  report  t\nnot taken  report  t\n", b.String())
	doc := refund(false)
	doc.Plan = nil
	require.Empty(t, accountOf(doc).why(&doc.Steps[2]))
}

// While a step may still be taken a terminal shows what it waits for, and one whose failure somebody deals with lets
// that one be queued.
func TestProgressOfConditions(t *testing.T) {
	t.Parallel()
	g := newProgress("refund", parsed(t, refundPlan), noon)
	g.apply(client.Event{Kind: subjects.EventStart}, noon)
	require.Equal(t, outcome.StepReady, g.status(0))
	require.Equal(t, outcome.StepWaiting, g.status(2))
	require.Equal(t, "waits for pay", g.state(2, noon))
	g.apply(client.Event{Kind: subjects.EventStep, Step: "pay", Status: outcome.StepFailed, Error: fault.New(fault.ToolFailed, "no")}, noon)
	require.Equal(t, outcome.StepWaiting, g.status(1), "it needs the result")
	require.Equal(t, outcome.StepReady, g.status(2))
	require.Equal(t, outcome.StepWaiting, g.status(3))
}

// A step that waits for a person says so in a terminal from the question on: nothing of it is queued.
func TestProgressOfQuestions(t *testing.T) {
	t.Parallel()
	g := newProgress("trip", parsed(t, `{"steps":[{"id":"day","tool":"ask","arguments":{"question":"Which day?"}},{"id":"book","tool":"book","arguments":{"day":"$ref:day"}}]}`), noon)
	asks := client.Event{Kind: subjects.EventQuestion, Step: "day", Status: outcome.StepAsking, Waiting: "Which day?"}
	g.apply(client.Event{Kind: subjects.EventStart}, noon)
	g.apply(asks, noon)
	later := noon.Add(600 * time.Millisecond)
	require.Equal(t, "asking  600 ms  Which day?", g.state(0, later))
	require.Equal(t, "  wave 1  ░░░░░░░░░░░░░░░░░░░░░░░░  0/1  1 asking", g.waveLines(style{}, 24)[0])
	for _, other := range []client.Event{{Step: subjects.RootScope}, {Step: "book", Revision: 1}, {Step: "book", Round: new(int)}} { // of plans and rounds
		other.Kind, other.Status = subjects.EventQuestion, outcome.StepAsking
		g.apply(other, later)
	}
	require.Equal(t, "waits for day", g.state(1, later))
	g.apply(client.Event{Kind: subjects.EventStep, Step: "day", Status: outcome.StepSucceeded}, later)
	g.apply(asks, later) // which comes late
	require.Equal(t, outcome.StepSucceeded, g.status(0))
	require.Equal(t, "queued  0 ms", g.state(1, later))
}

// An agent that waits for its round to be approved says so, and of one that works it is told how much is over, since nobody
// knows how much is to come.
func TestWhatAnAgentOfARunIsAbout(t *testing.T) {
	t.Parallel()
	planner := outcome.Step{ID: "a/=0/=plan", Tool: "model", Status: outcome.StepSucceeded}
	asks := outcome.Step{ID: "a", Tool: "clerk", Status: outcome.StepAsking, Waiting: "an approval of round 0", Steps: []outcome.Step{planner}}
	require.Equal(t, "for an approval of round 0", waitingLine(&asks))
	works := outcome.Step{ID: "a", Tool: "clerk", Status: outcome.StepRunning, Steps: []outcome.Step{
		planner, {ID: "a/=0/=summary", Tool: "sum", Status: outcome.StepNotTaken}, {ID: "a/=0/x", Tool: "t", Status: outcome.StepSucceeded}, {ID: "a/=0/y", Tool: "t", Status: outcome.StepRunning},
		{ID: "a/=0/l", Status: outcome.StepRunning, Steps: []outcome.Step{{ID: "a/=0/l/=0/z", Tool: "t", Status: outcome.StepRunning}}},
		{ID: "a/=0/p", Status: outcome.StepRunning, Steps: []outcome.Step{{ID: "a/=0/p/q", Tool: "t", Status: outcome.StepRunning}}}, {ID: "a/=0/v", Status: outcome.StepWaiting},
	}}
	require.Equal(t, "for 4 calls of round 0, 1 over", waitingLine(&works))
	doc := &outcome.Run{Run: "r", Status: outcome.Running, Steps: []outcome.Step{works, {ID: "b", Tool: "t", Status: outcome.StepSucceeded}}}
	require.Equal(t, "████████████░░░░░░░░░░░░  50 %, and 2 steps within over", progressLine(doc, style{}))
	of := accountOf(doc)
	for i, want := range map[int]string{2: "t", 4: "loop", 5: "plan", 6: "value"} {
		require.Equal(t, want, doesIn(of, &works.Steps[i]))
	}
	a, out, _ := paper("text")
	require.NoError(t, a.showRun(doc, false))
	require.NotContains(t, out.String(), "summary")
}
