package reference_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/reference"
)

func fails(code string, retryable bool) reference.Script {
	e := reference.Err{Code: code, Message: "503 from upstream", Retryable: retryable}
	return reference.Script{Reply: reference.Reply{Err: &e}}
}

func gives(body string) reference.Script {
	return reference.Script{Reply: reference.Reply{Body: []byte(body)}}
}

func run(t *testing.T, plan string, contracts map[string]reference.Contract, scripts map[string]reference.Script) *reference.Result {
	t.Helper()
	r, err := reference.Run([]byte(plan), contracts, reference.Case{Scripts: scripts}.Call)
	require.NoError(t, err)
	return r
}

func statuses(r *reference.Result) map[string]string {
	all := map[string]string{}
	for id, s := range r.Steps {
		all[id] = s.Status
	}
	return all
}

// The example of the guide that the language comes from.
func TestRunFailForward(t *testing.T) {
	t.Parallel()
	r := run(t, `{"steps":[
		{"id":"s1","tool":"flaky_api","arguments":"{}"},
		{"id":"s2","tool":"reliable_api","arguments":"{}"},
		{"id":"s3","tool":"process","arguments":"{\"data\": \"$ref:s1\"}"},
		{"id":"s4","tool":"process","depends_on":["s3"]}],
		"output_steps":["s4","s3","s2"]}`,
		map[string]reference.Contract{"flaky_api": {MaxAttempts: 3}},
		map[string]reference.Script{"s1": fails("tool_failed", true), "s2": gives(`{"temp":21}`)})
	require.Equal(t, "partial", r.Status)
	require.Equal(t, []reference.Output{{Step: "s2", JSON: []byte(`{"temp":21}`)}}, r.Results)
	require.Equal(t, []reference.StepError{
		{Step: "s1", Code: "tool_failed", Message: "503 from upstream", Attempts: 3},
		{Step: "s3", Code: "skipped", Message: "Skipped because dependency 's1' failed"},
		{Step: "s4", Code: "skipped", Message: "Skipped because dependency 's3' failed"},
	}, r.Errors)
	require.Nil(t, r.Steps["s3"].Arguments)
	require.Equal(t, "{}", string(r.Steps["s1"].Arguments))
}

func TestRunFirstUnsuccessfulInOrderOfSteps(t *testing.T) {
	t.Parallel()
	r := run(t, `{"steps":[{"id":"z","tool":"x","arguments":{"x":["$ref:c","$ref:b","$ref:opt","$ref:ok"]}},
		{"id":"opt","tool":"x","optional":true},{"id":"ok","tool":"x"},{"id":"b","tool":"x"},{"id":"c","tool":"x"}]}`, nil,
		map[string]reference.Script{"opt": fails("tool_failed", true), "b": fails("timeout", false), "c": fails("worker_lost", false)})
	require.Equal(t, "Skipped because dependency 'b' failed", r.Steps["z"].Message)
	require.Equal(t, "partial", r.Status)
}

func TestRunOptional(t *testing.T) {
	t.Parallel()
	plan := `{"steps":[{"id":"a","tool":"x","optional":true},{"id":"b","tool":"x","optional":true,"depends_on":["c"]},
		{"id":"c","tool":"x","optional":true,"arguments":{"x":"$ref:a.y"}},
		{"id":"d","tool":"x","arguments":{"x":"$ref:a || $ref:c.x || 0","y":"${ref:a}"}}],"output_steps":["a"]}`
	r := run(t, plan, nil, map[string]reference.Script{"a": fails("tool_terminal", true), "d": {Echo: true}})
	require.Equal(t, "succeeded", r.Status, "nothing but an optional step failed")
	require.Equal(t, `{"x":0,"y":"null"}`, string(r.Steps["d"].Result))
	require.Len(t, r.Errors, 1)
	require.Empty(t, r.Results)
}

func TestRunAttempts(t *testing.T) {
	t.Parallel()
	flaky := func(code string, retryable bool, n int) reference.Script {
		s := gives("1")
		for range n {
			s.Failures = append(s.Failures, reference.Err{Code: code, Retryable: retryable})
		}
		return s
	}
	tests := []struct {
		retry    string
		script   reference.Script
		status   string
		attempts int
	}{
		{"", gives("1"), "succeeded", 1},
		{"", flaky("tool_failed", true, 2), "succeeded", 3},
		{"", flaky("timeout", true, 2), "succeeded", 3},
		{"", flaky("tool_failed", true, 3), "failed", 3},
		{"", flaky("tool_failed", false, 1), "failed", 1},
		{"", flaky("tool_terminal", true, 1), "failed", 1},
		{"", flaky("worker_lost", true, 1), "failed", 1},
		{`,"retry":{"max_attempts":5}`, flaky("tool_failed", true, 4), "succeeded", 5},
		{`,"retry":{"max_attempts":1}`, flaky("tool_failed", true, 1), "failed", 1},
		{`,"retry":null`, flaky("tool_failed", true, 2), "succeeded", 3},
		{"", gives("\xff"), "failed", 1},
	}
	for _, tt := range tests {
		r := run(t, `{"steps":[{"id":"a","tool":"x"`+tt.retry+`}]}`,
			map[string]reference.Contract{"x": {MaxAttempts: 3}}, map[string]reference.Script{"a": tt.script})
		require.Equal(t, tt.status, r.Steps["a"].Status)
		require.Equal(t, tt.attempts, r.Steps["a"].Attempts)
		require.Equal(t, tt.status, r.Status)
	}
}

func TestRunUnresolved(t *testing.T) {
	t.Parallel()
	r := run(t, `{"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x","arguments":{"$ref":"a"}},
		{"id":"c","tool":"x","arguments":{"x":"$ref:a.y"}},{"id":"d","tool":"x","depends_on":["c"]}]}`, nil,
		map[string]reference.Script{"a": gives("7")})
	require.Equal(t, "invalid_arguments", r.Steps["b"].Code)
	require.Equal(t, "unresolved_ref", r.Steps["c"].Code)
	require.Zero(t, r.Steps["c"].Attempts)
	require.Equal(t, "skipped", r.Steps["d"].Status)
}

const stopPlan = `{"on_failure":"stop","steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x"},{"id":"c","tool":"x","depends_on":["a"]},
	{"id":"d","tool":"x","depends_on":["b"]},{"id":"e","tool":"x","depends_on":["c","d"]},{"id":"f","tool":"x","depends_on":["d"]}]}`

func TestRunStop(t *testing.T) {
	t.Parallel()
	r := run(t, stopPlan, nil, map[string]reference.Script{"a": gives("1"), "b": fails("tool_failed", false)})
	require.Equal(t, "partial", r.Status)
	require.Equal(t, map[string]string{
		"a": "succeeded", "b": "failed", "c": "cancelled", "d": "skipped", "e": "skipped", "f": "skipped",
	}, statuses(r))
}

func decided(step string, s reference.Script) reference.Decided {
	return reference.Decided{Step: step, Reply: s.Reply}
}

func cancelledByOwner(step string) reference.Decided {
	return reference.Decided{Step: step, ByOwner: true, Reply: reference.Reply{Err: &reference.Err{Code: "cancelled"}}}
}

func TestRunStopped(t *testing.T) {
	t.Parallel()
	ok, bad := gives("1"), fails("tool_failed", true)
	tests := []struct {
		name    string
		plan    string
		decided []reference.Decided
		status  string
		steps   map[string]string
	}{
		{"the failure comes first", stopPlan,
			[]reference.Decided{decided("b", bad), decided("a", ok)}, "partial",
			map[string]string{"a": "succeeded", "b": "failed", "c": "cancelled", "d": "skipped", "e": "skipped", "f": "skipped"}},
		{"the other one is cancelled", stopPlan,
			[]reference.Decided{decided("b", bad), cancelledByOwner("a")}, "failed",
			map[string]string{"a": "cancelled", "b": "failed", "c": "cancelled", "d": "skipped", "e": "skipped", "f": "skipped"}},
		{"a second failure stops nothing more", stopPlan,
			[]reference.Decided{decided("b", bad), decided("a", bad)}, "failed",
			map[string]string{"a": "failed", "b": "failed", "c": "cancelled", "d": "skipped", "e": "skipped", "f": "skipped"}},
		{"the failure comes later", stopPlan,
			[]reference.Decided{decided("a", ok), decided("c", ok), decided("b", bad)}, "partial",
			map[string]string{"a": "succeeded", "b": "failed", "c": "succeeded", "d": "skipped", "e": "skipped", "f": "skipped"}},
		{"cancelled from outside", stopPlan,
			[]reference.Decided{decided("a", ok), {Stop: "cancelled"}, {Stop: "expired"}, cancelledByOwner("b"), cancelledByOwner("c")}, "cancelled",
			map[string]string{"a": "succeeded", "b": "cancelled", "c": "cancelled", "d": "cancelled", "e": "cancelled", "f": "cancelled"}},
		{"the next wave was not open yet", `{"schedule":"waves","steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x"},{"id":"c","tool":"x","depends_on":["a"]}]}`,
			[]reference.Decided{decided("a", ok), {Stop: "expired"}, decided("b", ok)}, "expired",
			map[string]string{"a": "succeeded", "b": "succeeded", "c": "cancelled"}},
		{"a stop that comes too late", `{"steps":[{"id":"a","tool":"x"}]}`,
			[]reference.Decided{decided("a", ok), {Stop: "expired"}}, "succeeded", map[string]string{"a": "succeeded"}},
	}
	for _, tt := range tests {
		r, err := reference.RunStopped([]byte(tt.plan), nil, tt.decided)
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.status, r.Status, tt.name)
		require.Equal(t, tt.steps, statuses(r), tt.name)
	}
}

func TestRunStoppedRefuses(t *testing.T) {
	t.Parallel()
	ok := gives("1")
	for name, records := range map[string][]reference.Decided{
		"decided before its dependency": {decided("c", ok)},
		"decided twice":                 {decided("a", ok), decided("a", ok)},
		"no step":                       {decided("zz", ok)},
		"open at the end":               {decided("a", ok)},
		"derived, and yet decided":      {decided("b", fails("tool_failed", false)), decided("d", ok)},
	} {
		_, err := reference.RunStopped([]byte(stopPlan), nil, records)
		require.Error(t, err, name)
	}
	waves := []byte(`{"schedule":"waves","steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x"},{"id":"c","tool":"x","depends_on":["a"]}]}`)
	_, err := reference.RunStopped(waves, nil, []reference.Decided{decided("a", ok), decided("c", ok), decided("b", ok)})
	require.Error(t, err, "c comes in the wave after b")
	_, err = reference.RunStopped(waves, nil, []reference.Decided{decided("a", ok), decided("b", ok), decided("c", ok)})
	require.NoError(t, err)
}

// A failed attempt that has another one left leaves its step open; once the run has stopped it doesn't.
func TestRunStoppedRetries(t *testing.T) {
	t.Parallel()
	three := map[string]reference.Contract{"x": {MaxAttempts: 3}}
	bad, ok := fails("tool_failed", true), gives("1")
	plan := []byte(`{"on_failure":"stop","steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x","retry":{"max_attempts":1}}]}`)
	r, err := reference.RunStopped(plan, three, []reference.Decided{decided("a", bad), decided("a", bad), decided("a", ok), decided("b", ok)})
	require.NoError(t, err)
	require.Equal(t, "succeeded", r.Status)
	require.Equal(t, 3, r.Steps["a"].Attempts)
	r, err = reference.RunStopped(plan, three, []reference.Decided{decided("b", bad), decided("a", bad)})
	require.NoError(t, err)
	require.Equal(t, "failed", r.Steps["a"].Status)
	require.Equal(t, 1, r.Steps["a"].Attempts)
}
