package orchestrator

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/cost"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestWithoutAnObserverNothingIsAllocated(t *testing.T) {
	var (
		tell teller
		done = func(error) {}
		r    = &run{identity: identity{id: subjects.NewRun("acme", "r")}}
		rec  = &machine.Record{Seq: 7, Result: &machine.Result{}}
		s    = &sending{}
		doc  = &outcome.Run{Steps: make([]outcome.Step, 10)}
	)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tell.open(r)
		tell.dispatch(s, done)
		tell.record(r, rec, time.Time{})
		tell.finish(r, doc)
		tell.to.Close()
	}))
}

// TestWithoutAnObserverAStepCostsNothingMore: two tenths of the percent of a step's processor time that telemetry may cost
// where it is off (59 µs is the least that was ever measured, docs/performance.md).
func TestWithoutAnObserverAStepCostsNothingMore(t *testing.T) {
	var (
		tell teller
		r    = &run{identity: identity{id: subjects.NewRun("acme", "r")}}
		rec  = &machine.Record{Seq: 7, Result: &machine.Result{}}
		s    = &sending{}
		done = func(error) {}
	)
	each := cost.Each(1_000_000, func() {
		tell.dispatch(s, done)
		tell.record(r, rec, time.Time{})
	})
	t.Logf("%v a step", each)
	require.Less(t, each, 118*time.Nanosecond)
}

func TestADocumentWithoutValuesLeavesTheDocumentAlone(t *testing.T) {
	t.Parallel()
	step := outcome.Step{ID: "a", Arguments: []byte(`1`), Result: []byte(`2`)}
	step.Items = []outcome.Step{{ID: "a=0", Result: []byte(`3`), Attempts: 2}}
	doc := &outcome.Run{
		Run: "r", Plan: []byte(`{}`), Steps: []outcome.Step{step},
		Outcome: &outcome.Outcome{Run: "r", Results: outcome.Results{{Step: "a", JSON: []byte(`2`)}}},
	}
	before := string(doc.JSON())
	short := withoutValues(doc)
	require.Equal(t, before, string(doc.JSON()))
	require.Equal(t, &outcome.Run{
		Run: "r", Outcome: &outcome.Outcome{Run: "r"},
		Steps: []outcome.Step{{ID: "a", Items: []outcome.Step{{ID: "a=0", Attempts: 2, Items: []outcome.Step{}}}}},
	}, short)
}

// TestLogsOfAStepNameItsSampledTrace: who reads a line finds the trace, where somebody keeps it.
func TestLogsOfAStepNameItsSampledTrace(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	a := subjects.Attempt{Run: subjects.NewRun("acme", "r"), Generation: 1, Tool: "t", Step: "s", Number: 2}
	says := func(flags string) string {
		var out bytes.Buffer
		logOf(slog.New(slog.NewTextHandler(&out, nil)), &a, wire.Trace{Parent: "00-" + id + "-b7ad6b7169203331-" + flags}).Info("x")
		return out.String()
	}
	require.Contains(t, says("01"), "tenant=acme run=r step=s tool=t attempt=2 trace_id="+id)
	require.Contains(t, says("00"), "attempt=2\n")
}
