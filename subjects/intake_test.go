package subjects_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

func TestIntakeOfOneAndOfManyShards(t *testing.T) {
	t.Parallel()
	r := subjects.NewRun("acme", "order 42") // of partition 62
	require.Equal(t, "plan.submit.acme.order=2042", subjects.SubmitTo(r, 1))
	require.Equal(t, "plan.in.2.acme.order=2042", subjects.SubmitTo(r, 4))
	for _, subject := range []string{subjects.SubmitTo(r, 1), subjects.SubmitTo(r, 4)} {
		got, ok := subjects.ParseSubmit(subject)
		require.True(t, ok)
		require.Equal(t, r, got)
	}
	for _, subject := range []string{"", "plan", "plan.submit.a", "plan.in.0.a", "plan.submit.a.b.c", "x.submit.a.b", "plan.x.0.a.b"} {
		_, ok := subjects.ParseSubmit(subject)
		require.False(t, ok, subject)
	}
	require.Equal(t, subjects.IntakeFilter, subjects.ShardIntakeFilter(0, 1))
	require.Equal(t, subjects.IntakeTarget(), subjects.ShardIntakeTarget(0, 1))
	require.Equal(t, "plan.in.3.*.*", subjects.ShardIntakeFilter(3, 4))
	require.Equal(t, "$KV.runs_3.{{partition(64,2)}}.{{wildcard(1)}}.{{wildcard(2)}}.plan", subjects.ShardIntakeTarget(3, 4))
	from, to := subjects.IntakeMapping(4)
	require.Equal(t, "plan.submit.*.*", from)
	require.Equal(t, "plan.in.{{partition(4,2)}}.{{wildcard(1)}}.{{wildcard(2)}}", to)
}

func TestStreamOf(t *testing.T) {
	t.Parallel()
	for subject, stream := range map[string]string{
		"$KV.runs_0.62.acme.x.plan": "KV_runs_0", "$KV.history.acme.x": "KV_history", "$KV.tools": "", "$KV.": "",
		"step.3.tool.>": "STEPS_3", "sched.0.tool.x": "STEPS_0", "sentinel.7": "STEPS_7", "plan.submit.a.b": "", "": "", "step": "",
	} {
		require.Equal(t, stream, subjects.StreamOf(subject), subject)
	}
}
