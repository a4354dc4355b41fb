package chaos

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// ledgerOf is a run of which records are read one after the other.
type ledgerOf struct {
	c   *checker
	r   *runView
	run subjects.Run
	seq uint64
}

func newLedger(id string) *ledgerOf {
	c := &checker{ev: &Evidence{Kept: true}, report: &Report{Counts: map[string]int{}}, runs: map[runKey]*runView{}}
	return &ledgerOf{c: c, r: c.run("t", id), run: subjects.NewRun("t", id), seq: 1}
}

func (l *ledgerOf) read(subject string, header nats.Header, body []byte) {
	l.seq++
	l.c.readRecord(l.r, must1(subjects.ParseRecord(subject)), kv.Entry{
		Subject: subject, Seq: l.seq, Header: header, Data: body, Time: time.Unix(0, int64(l.seq)),
	}, false)
}

func (l *ledgerOf) told(step, what string, header nats.Header, body []byte) {
	l.read(subjects.ToldRecord(l.run, 1, step, what, 1), header, body)
}

func (l *ledgerOf) returned(step, body string) {
	header, data := wire.Result{Body: []byte(body)}.Message()
	l.read(subjects.StepRecord(subjects.Attempt{Run: l.run, Generation: 1, Tool: "try3_all", Step: step, Number: 1}, 1), header, data)
}

// TestWhatDoesNotFitTheStateHasFailed: a success that a record holds against the schema of the state is decided by that
// record, and nothing that needs it begins before.
func TestWhatDoesNotFitTheStateHasFailed(t *testing.T) {
	t.Parallel()
	for _, fits := range []bool{true, false} {
		l := newLedger("chain-state")
		l.returned("s0", `{"v":1}`)
		says := wire.Told{Holds: fits}
		if !fits {
			says.Error = fault.New(fault.StateInvalid, "it has no w")
		}
		header, body := says.Message()
		l.told("s0", subjects.ToldState, header, body)

		before, ok := l.r.decisions(1, 2)
		require.True(t, ok)
		require.Empty(t, before, "nobody knows yet whether it fits")
		decided, ok := l.r.decisions(1, math.MaxInt64)
		require.True(t, ok)
		require.Len(t, decided, 1)
		begun, err := reference.Begun(l.r.work.Plan, l.r.work.Contracts, decided)
		require.NoError(t, err)
		require.Equal(t, fits, begun["s1"], "s1 needs what s0 returned")
		if fits {
			require.Nil(t, decided[0].Reply.Err)
			continue
		}
		require.Equal(t, string(fault.StateInvalid), decided[0].Reply.Err.Code)
		l.c.checkBegun(l.r, "s1", journal.Event{Step: "s1", Generation: 1, At: 4})
		require.Len(t, l.c.report.Violations, 1, "s1 began, and can't have")
	}
}

// TestEachKindOfToldRecordIsReadAsWhatItIs: what a contract's condition came to is not that of the step, and outputs and
// loops decide nothing by themselves.
func TestEachKindOfToldRecordIsReadAsWhatItIs(t *testing.T) {
	t.Parallel()
	l := newLedger("branch-told")
	header, holds := wire.Told{Holds: true}.Message()
	for _, what := range []string{subjects.ToldIf, subjects.ToldApproval, subjects.ToldUntil, subjects.ToldOutput, subjects.ToldState} {
		l.told("s0", what, header, holds)
	}
	decided, ok := l.r.decisions(1, math.MaxInt64)
	require.True(t, ok)
	require.Equal(t, []reference.Decided{
		{Step: "s0", Told: &reference.Told{Holds: true}}, {Step: "s0", Weighed: &reference.Told{Holds: true}},
	}, decided, "and a fit of what nobody returned is none")
}

// nestedValue looks for a run of plans within steps with a value in one of those that came to something.
func nestedValue(t *testing.T) (l *ledgerOf, all map[string]*reference.Result, token string) {
	t.Helper()
	for n := range 2_000 {
		l = newLedger(fmt.Sprint("nest-", n))
		all, err := l.r.work.nested.Run(l.r.work.Contracts)
		require.NoError(t, err)
		p, report := plan.Parse(l.r.work.Plan, nil)
		require.NotNil(t, p, "%v", report.Problems)
		for scope, res := range all {
			for id, s := range res.Steps {
				step, _, ok := p.Find(scope + id)
				if scope != "" && ok && step.Value && s.Result != nil {
					return l, all, scope + id
				}
			}
		}
	}
	require.Fail(t, "no plan has one")
	return nil, nil, ""
}

// TestValuesWithinAreCompared: a record that says what a value came to in a plan of a step is held against the
// reference, and names a step that there is.
func TestValuesWithinAreCompared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ invariant, says string }{
		"right": {}, "another": {"I6", "in the reference it is"}, "failed": {"I6", "failed with condition_failed"}, "nowhere": {"I8", "hasn't got"},
	} {
		l, all, token := nestedValue(t)
		step, _ := nestedStep(all, token)
		says := wire.ToldValue{Value: step.Result}
		switch name {
		case "another":
			says.Value = []byte(`"other"`)
		case "failed":
			says = wire.ToldValue{Error: fault.New(fault.ConditionFailed, "no")}
		case "nowhere":
			token = strings.TrimSuffix(token, "/") + "/none"
		}
		header, body := says.Message()
		l.told(token, subjects.ToldValue, header, body)
		l.c.checkTold(l.r)
		l.c.checkNestedTold(l.r, all)
		if c.invariant == "" {
			require.Empty(t, l.c.report.Violations)
			continue
		}
		require.Len(t, l.c.report.Violations, 1, name)
		require.Equal(t, c.invariant, l.c.report.Violations[0].Invariant, name)
		require.Contains(t, l.c.report.Violations[0].Text, c.says, name)
	}
}
