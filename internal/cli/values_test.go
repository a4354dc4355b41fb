package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

const invoicePlan = `{"steps":[
	{"id":"order","tool":"get_order"},{"id":"total","value":{"$calc":"sum($ref:order.lines[*].net)"}},
	{"id":"share","value":{"$calc":"$ref:total / $ref:order.parts"}},{"id":"mail","tool":"send","arguments":{"share":"$ref:share"}}]}`

// What the person sees of a run with values: one that is there, and one that could not be calculated.
func TestGoldenOfValues(t *testing.T) {
	t.Parallel()
	a, out, errs := paper("text")
	wrong := fault.New(fault.ConditionFailed, "`/` at byte 11: a division by zero").WithHint("ask first: `divisor == 0 ? null : … / divisor`")
	skipped := fault.New(fault.Skipped, "Skipped because dependency 'share' failed")
	doc := &outcome.Run{
		Version: 1, Run: "invoice", Tenant: "default", Generation: 7, Digest: strings.Repeat("0123456789abcdef", 4), Plan: json.RawMessage(invoicePlan),
		Status: outcome.Partial, Submitted: noon, Started: noon, Finished: noon.Add(time.Second),
		Stats: outcome.Stats{Steps: 4, Succeeded: 2, Failed: 1, Skipped: 1, ElapsedMS: 1000, BytesReturned: 12},
		Outcome: &outcome.Outcome{
			Run: "invoice", Status: outcome.Partial,
			Results: outcome.Results{{Step: "order", JSON: json.RawMessage(`{"parts":0}`)}, {Step: "total", JSON: json.RawMessage(`204.29`)}},
			Errors: []outcome.StepError{
				{Step: "share", Code: wrong.Code, Message: wrong.Message, Hint: wrong.Hint}, {Step: "mail", Code: fault.Skipped, Message: skipped.Message},
			},
		},
		Steps: []outcome.Step{
			{ID: "order", Tool: "get_order", Status: outcome.StepSucceeded, Attempts: 1, Worker: "w-1", Bytes: 11},
			{ID: "total", Status: outcome.StepSucceeded, Decided: noon, Bytes: 6},
			{ID: "share", Status: outcome.StepFailed, Decided: noon, Error: wrong},
			{ID: "mail", Tool: "send", Status: outcome.StepSkipped, Error: skipped},
		},
	}
	doc.Outcome.Stats = doc.Stats
	require.NoError(t, a.showRun(doc, false))
	for _, id := range []string{"total", "share"} {
		fmt.Fprintln(out, "----")
		require.NoError(t, a.writeStep(out, accountOf(doc), findStep(doc, id)))
	}
	p := parsed(t, invoicePlan)
	l := &lines{w: out, plan: func() *plan.Plan { return p }}
	g := newProgress("invoice", p, noon)
	fmt.Fprintln(out, "---- lines")
	for _, e := range eventsOf(doc) {
		l.event(e)
		g.apply(e, noon)
	}
	fmt.Fprintf(out, "---- live\n%s\n", strings.Join(g.lines(style{}, 90, 24, noon), "\n"))
	golden(t, "values_run", out.String()+"==== talk\n"+errs.String())
}
