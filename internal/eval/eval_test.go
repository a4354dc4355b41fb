package eval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/eval"
	"github.com/stepjet/stepjet/outcome"
)

func TestEqual(t *testing.T) {
	t.Parallel()
	tests := []struct {
		answer, result string
		equal          bool
	}{
		{`625.0`, `625`, true},
		{`625.0`, `{"result":625.0}`, true},
		{`625.0`, `{"result":"625.0"}`, false}, // a string is no number
		{`625.0`, `"625"`, false},
		{`625.0`, `{"other":625}`, false},
		{`625`, `625.4`, true}, // published without decimals
		{`625`, `625.6`, false},
		{`625.0`, `625.04`, true},
		{`625.0`, `625.06`, false},
		{`9.89`, `9.894999`, true},
		{`9.89`, `9.8951`, false},
		{`2.68`, `2.675`, true}, // a tie may go either way
		{`2.67`, `2.675`, true},
		{`1000000000`, `1000000999`, true}, // relative error below 1e-6
		{`1000000000`, `1000001001`, false},
		{`-0.5`, `-0.54`, true},
		{`-0.5`, `-0.56`, false},
		{`1e-3`, `0.0012`, true}, // three decimals
		{`1e-3`, `0.0016`, false},
		{`1.5e3`, `1500.4`, true},
		{`1.5e3`, `1500.6`, false},
		{`0`, `0.4`, true},
		{`0`, `null`, false},
		{`5`, `[5]`, false},
		{`"blue"`, `"blue"`, true},
		{`"blue"`, `{"result":"blue"}`, true},
		{`"blue"`, `"green"`, false},
		{`{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1.0}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1,2]`, `[1]`, false},
		{`[1]`, `{"result":[1]}`, true},
		{`true`, `true`, true},
		{`null`, `null`, true},
		{`null`, `{"result":null}`, true},
		{`12345678901234567890123`, `12345678901234567890123`, true},
		{`["12345678901234567890"]`, `[12345678901234567890]`, false},
		{`true`, `not json`, false},
	}
	for _, tt := range tests {
		require.Equal(t, tt.equal, eval.Equal([]byte(tt.answer), []byte(tt.result)), "%s against %s", tt.answer, tt.result)
	}
}

// Answers and results come from files and tools: whatever they are, comparing them ends, and a value equals itself.
func FuzzEqual(f *testing.F) {
	f.Add([]byte(`1e400`), []byte(`{"result":1}`))
	f.Add([]byte(`-`), []byte(`{"result":{"result":1}}`))
	f.Add([]byte(`1e999999999`), []byte(`1e-999999999`))
	f.Fuzz(func(t *testing.T, answer, result []byte) {
		eval.Equal(answer, result)
		if json.Valid(answer) {
			require.True(t, eval.Equal(answer, answer), "%s", answer)
		}
	})
}

func TestRead(t *testing.T) {
	t.Parallel()
	cases, err := eval.Read(strings.NewReader("{\"name\":\"a\",\"plan\":{\"steps\": [ ]},\"answer\":1.50}\n\n  {\"plan\":[],\"answer\":null,\"question\":\"?\"}\n"))
	require.NoError(t, err)
	require.Equal(t, []eval.Case{
		{Name: "a", Plan: json.RawMessage(`{"steps": [ ]}`), Answer: json.RawMessage(`1.50`)},
		{Name: "line 3", Plan: json.RawMessage(`[]`), Answer: json.RawMessage(`null`)},
	}, cases)
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, message string }{
		"empty":     {"\n\n", "no cases"},
		"no JSON":   {"{\"plan\":{},\"answer\":1}\nnope\n", "line 2"},
		"no plan":   {"{\"answer\":1}", "line 1 has no plan"},
		"no answer": {"{\"plan\":{}}", "or no answer"},
		"too long":  {strings.Repeat("x", 5<<20), "line 1 can't be read"},
	} {
		_, err := eval.Read(strings.NewReader(tt.file))
		require.ErrorContains(t, err, tt.message, name)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), name)
	}
}

// answering returns each plan, a bare JSON value here, back as the result of its one output step.
func answering(_ context.Context, plan []byte) (*outcome.Outcome, error) {
	return &outcome.Outcome{
		Run: "r", Status: outcome.Succeeded, Results: outcome.Results{{Step: "s", JSON: plan}},
		Stats: outcome.Stats{Steps: 3, Succeeded: 3},
	}, nil
}

func TestRunKeepsTheOrderAndCounts(t *testing.T) {
	t.Parallel()
	var cases []eval.Case
	for i := range 200 {
		answer := i
		if i%50 == 7 {
			answer = i + 1000
		}
		cases = append(cases, eval.Case{
			Name: fmt.Sprint(i), Plan: json.RawMessage(fmt.Sprint(i)), Answer: json.RawMessage(fmt.Sprint(answer)),
		})
	}
	var flying, most atomic.Int64
	run := func(ctx context.Context, plan []byte) (*outcome.Outcome, error) {
		now := flying.Add(1)
		defer flying.Add(-1)
		for {
			if m := most.Load(); now <= m || most.CompareAndSwap(m, now) {
				break
			}
		}
		return answering(ctx, plan)
	}
	told := 0
	r := eval.Run(t.Context(), cases, run, eval.Options{InFlight: 8, Progress: func(done, total int, _ eval.Verdict) {
		told++
		require.Equal(t, told, done)
		require.Equal(t, 200, total)
	}})
	require.Equal(t, 200, told)
	require.LessOrEqual(t, most.Load(), int64(8))
	require.Equal(t, 200, r.Total)
	require.Equal(t, 196, r.Right)
	require.Equal(t, 600, r.Steps)
	require.Equal(t, 600, r.Succeeded)
	for i, v := range r.Verdicts {
		require.Equal(t, fmt.Sprint(i), v.Name)
	}
	wrong := r.Wrong()
	require.Len(t, wrong, 4)
	require.Equal(t, "want 1007, got 7", wrong[0].Why)
}

func TestVerdictsOfRunsWithoutAnswer(t *testing.T) {
	t.Parallel()
	outcomes := map[string]*outcome.Outcome{
		`"rejected"`: {Run: "r", Status: outcome.Rejected, Problems: []fault.Problem{{Code: fault.Cycle, Path: "/steps/0", Message: "a -> a"}}},
		`"failed"`:   {Run: "r", Status: outcome.Failed, Errors: []outcome.StepError{{Step: "s1", Code: fault.ToolFailed, Message: "503"}}},
		`"empty"`:    {Run: "r", Status: outcome.Succeeded},
		`"several"`:  {Run: "r", Status: outcome.Succeeded, Results: outcome.Results{{Step: "a", JSON: []byte("1")}, {Step: "b", JSON: []byte("2")}}},
	}
	outcomes[`"branch"`] = &outcome.Outcome{
		Run: "r", Status: outcome.Succeeded, NotTaken: []string{"no"}, Stats: outcome.Stats{Steps: 2, Succeeded: 1, NotTaken: 1},
		Results: outcome.Results{{Step: "no", JSON: []byte("null")}, {Step: "yes", JSON: []byte("42")}},
	}
	outcomes[`"untaken"`] = &outcome.Outcome{Run: "r", Status: outcome.Succeeded, NotTaken: []string{"a"}, Results: outcome.Results{{Step: "a", JSON: []byte("null")}}}
	run := func(_ context.Context, plan []byte) (*outcome.Outcome, error) {
		if o := outcomes[string(plan)]; o != nil {
			return o, nil
		}
		return nil, errors.New("no server")
	}
	one := func(plan, answer string) eval.Verdict {
		r := eval.Run(t.Context(), []eval.Case{{Name: "x", Plan: []byte(plan), Answer: []byte(answer)}}, run, eval.Options{})
		return r.Verdicts[0]
	}
	require.Equal(t, `rejected: cycle at "/steps/0": a -> a`, one(`"rejected"`, "1").Why)
	require.Equal(t, "failed: step s1: tool_failed: 503", one(`"failed"`, "1").Why)
	require.Equal(t, "succeeded: no result", one(`"empty"`, "1").Why)
	require.Equal(t, "no server", one(`"other"`, "1").Why)
	require.True(t, one(`"several"`, `{"a":1,"b":2}`).Right)
	require.Equal(t, `want {"a":2}, got {"a":1,"b":2}`, one(`"several"`, `{"a":2}`).Why)
	branch := one(`"branch"`, "42")
	require.True(t, branch.Right, "the answer is that of the branch that was taken")
	require.Equal(t, 1, branch.Steps)
	require.Equal(t, "succeeded: no result", one(`"untaken"`, "null").Why)
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	r := eval.Run(ctx, []eval.Case{{Name: "x", Plan: []byte("1"), Answer: []byte("1")}}, answering, eval.Options{})
	require.Equal(t, "not started: enough", r.Verdicts[0].Why)
	require.Zero(t, r.Right)
	require.Zero(t, r.StepsPerSecond())
}

func TestReportJSON(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	now := func() time.Time { at = at.Add(2 * time.Millisecond); return at }
	cases := []eval.Case{
		{Name: "right", Plan: []byte(`7`), Answer: []byte(`7.0`)},
		{Name: "wrong", Plan: []byte(`8`), Answer: []byte(`9`)},
	}
	r := eval.Run(t.Context(), cases, answering, eval.Options{InFlight: 1, Now: now})
	b, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"total": 2, "right": 1, "steps": 6, "elapsed_ms": 10, "p50_ms": 2, "p99_ms": 2, "steps_per_second": 600,
		"differed": [{"name":"wrong","run":"r","right":false,"status":"succeeded","want":9,"got":8,"why":"want 9, got 8","steps":3,"ms":2}],
		"cases": [
			{"name":"right","run":"r","right":true,"status":"succeeded","want":7.0,"got":7,"steps":3,"ms":2},
			{"name":"wrong","run":"r","right":false,"status":"succeeded","want":9,"got":8,"why":"want 9, got 8","steps":3,"ms":2}]}`, string(b))
}
