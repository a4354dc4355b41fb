package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Of a cancel and a deadline one wins, and what the run came to has to be what the winner's record says.
func TestARunEndsAsItsStopRecordSays(t *testing.T) {
	t.Parallel()
	const id = "late-a1.1-7"
	run := subjects.NewRun("t", id)
	for reason, want := range map[string]int{"expired": 0, "cancelled": 1} {
		ev := &Evidence{Kept: true}
		c := &checker{ev: ev, report: &Report{Counts: map[string]int{}}, runs: map[runKey]*runView{}}
		r := c.run("t", id)
		r.plans[1] = ""
		c.readRecord(r, must1(subjects.ParseRecord(subjects.StopRecord(run, 1, 1))), kv.Entry{
			Subject: subjects.StopRecord(run, 1, 1), Seq: 2, Data: []byte(`{"reason":"` + reason + `","by":"somebody"}`),
		}, false)
		r.doc = &outcome.Run{Tenant: "t", Run: id, Generation: 1, Status: outcome.Expired, Outcome: &outcome.Outcome{Status: outcome.Expired}}
		r.doc.Steps, r.doc.Outcome.Errors = unbegun(t, r.work)
		c.checkDocument(r)
		require.Len(t, c.report.Violations, want, "%s: %v", reason, c.report.Violations)
		require.Equal(t, 1, c.report.Counts[sometimesExpired])
	}
}

// unbegun is what a run has of its steps that was stopped before any of them was decided.
func unbegun(t *testing.T, w *Work) (steps []outcome.Step, errors []outcome.StepError) {
	t.Helper()
	p, err := reference.Parse(w.Plan)
	require.NoError(t, err)
	for _, s := range p.Steps {
		steps = append(steps, outcome.Step{ID: s.ID, Status: outcome.StepCancelled})
		errors = append(errors, outcome.StepError{Step: s.ID, Code: fault.Cancelled})
	}
	return steps, errors
}

func must1[T any](v T, ok bool) T {
	if !ok {
		panic("not a record")
	}
	return v
}
