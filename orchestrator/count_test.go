package orchestrator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// backlogged is a loop that has so many runs of one step, and holds each back.
func backlogged(t testing.TB, runs int) *loop {
	l := newWorld(1, none, false).newOrch("o", 0).loops.all[0]
	p, report := plan.Parse([]byte(`{"steps":[{"id":"a","tool":"t"}]}`), nil)
	require.Empty(t, report.Problems)
	contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 1}}
	at := epoch
	for i := range l.cursors.owned {
		l.cursors.owned[i] = &cursor{caughtUp: true}
	}
	for i := range runs {
		r := runOf("t", fmt.Sprint("r", i))
		r.phase, r.plan, r.timer, r.start = running, p, -1, &wire.Start{}
		r.machine = machine.New(p, machine.Start{Key: "t", Submitted: at, Started: at, Contracts: contracts})
		var out machine.Effects
		r.machine.Begin(&out)
		l.runs.add(r)
		l.dispatcher.lane(r, 0).calls.push(holding(out.Dispatch[0], 0))
	}
	return l
}

// counted counts the demand of a loop, and returns how long each of its turns took.
func counted(l *loop) (answer wire.DemandAnswer, turns []time.Duration) {
	done := false
	c := &count{loop: l, asked: map[string]wire.DemandSince{"t": {}}, told: func(a wire.DemandAnswer) { answer, done = a, true }}
	l.mail.items = nil
	l.post(func() { c.from(0) })
	for !done {
		began := time.Now()
		l.turn(nil)
		turns = append(turns, time.Since(began))
	}
	return answer, turns
}

// TestCountingTakesTurns: what is held back is counted in so many turns that none is long, and all of it once.
func TestCountingTakesTurns(t *testing.T) {
	const runs = 50_000
	l := backlogged(t, runs)
	answer, turns := counted(l)
	require.Equal(t, ^uint64(0), answer.Serves)
	require.Zero(t, answer.Unsure)
	require.Equal(t, runs, answer.Tools["t"].Held)
	require.Greater(t, len(turns), runs/countAtOnce)

	p := l.runs.oldest[7].runs[0].id.Partition()
	l.runs.oldest[p].runs[0].uncompared = true
	l.cursors.shared[8] = true
	of := len(l.runs.oldest[p].runs) + len(l.runs.oldest[8].runs)
	answer, _ = counted(l)
	require.Equal(t, uint64(1<<p|1<<8), answer.Unsure)
	require.Equal(t, ^answer.Unsure, answer.Serves)
	require.Equal(t, runs-of, answer.Tools["t"].Held, "nothing of those counts")
	require.Equal(t, 7, p)
	require.Len(t, l.runs.oldest, subjects.Partitions)
}

// BenchmarkDemand measures the turns of a loop that has 100,000 runs and holds each back, while it counts them.
func BenchmarkDemand(b *testing.B) {
	l := backlogged(b, 100_000)
	var longest, all time.Duration
	for b.Loop() {
		_, turns := counted(l)
		longest = max(longest, slices.Max(turns))
		for _, t := range turns {
			all += t
		}
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-turn")
	b.ReportMetric(float64(all.Microseconds())/1000/float64(b.N), "ms-in-all")
}

// TestTheLongestWaitingRunsAreNamed: as many as an answer has room for, those that have waited longest.
func TestTheLongestWaitingRunsAreNamed(t *testing.T) {
	const runs = 1000
	l := backlogged(t, runs)
	for i, rs := range l.runs.oldest {
		for k, r := range rs.runs {
			contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 1}}
			at := epoch.Add(-time.Duration(i+64*k) * time.Second)
			r.machine = machine.New(r.plan, machine.Start{Key: "t", Submitted: at, Started: at, Contracts: contracts})
			var out machine.Effects
			r.machine.Begin(&out)
		}
	}
	var answer wire.DemandAnswer
	ask := func(named bool, over time.Duration) {
		c := &count{loop: l, named: named, over: over, asked: map[string]wire.DemandSince{"t": {}}, told: func(a wire.DemandAnswer) { answer = a }}
		l.mail.items = nil
		l.post(func() { c.from(0) })
		for range 10 {
			l.turn(nil)
		}
	}
	ask(false, 0)
	require.Empty(t, answer.Runs)
	require.Equal(t, runs, answer.Tools["t"].Held)
	ask(true, 0)
	require.Len(t, answer.Runs, wire.MaxWaitingRuns)
	require.Equal(t, runs-wire.MaxWaitingRuns, answer.More)
	require.Equal(t, answer.Tools["t"].OldestMS, answer.Runs[0].MS)
	require.True(t, slices.IsSortedFunc(answer.Runs, func(a, b wire.WaitingRun) int { return int(b.MS - a.MS) }))
	least := time.Duration(answer.Runs[99].MS) * time.Millisecond
	ask(true, least)
	require.Len(t, answer.Runs, wire.MaxWaitingRuns)
	require.Less(t, answer.More, 64)
	ask(true, time.Hour)
	require.Empty(t, answer.Runs)
	require.Zero(t, answer.More)
}
