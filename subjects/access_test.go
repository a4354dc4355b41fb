package subjects_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

func TestAWildcardIsBelowNoRun(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"$KV.runs_0.1.*.*.plan", "$KV.runs_0.1.acme.*.plan", "$KV.runs_0.*.acme.r.plan", "$KV.runs_0.1.acme.r.5.step.a.*.1", "$KV.runs_0.1.acme.r.5.>",
	} {
		_, ok := subjects.ParseRecord(s)
		require.False(t, ok, s)
	}
}

func TestOnlyInboxesAreAnsweredOn(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plan.submit.a.b", "$KV.runs_0.1.a.b.plan", "$JS.ACK.a", "api.ping", "event.a.b.end", "inbox.a"} {
		require.False(t, subjects.ReplyAllowed(s), s)
	}
	for _, s := range []string{"_INBOX.abc", "_R_.abc.def", subjects.InboxPrefix("agent-acme") + ".x"} {
		require.True(t, subjects.ReplyAllowed(s), s)
	}
}

// TestFiltersMatchWhatTheyAreFor compares the filters of permissions with the subjects that programs use.
func TestFiltersMatchWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	r := subjects.NewRun("acme", "order #42")
	a := subjects.Attempt{Run: r, Generation: 17, Tool: "crm/get", Step: "s=3", Number: 2}
	require.Equal(t, "plan.submit.acme.*", subjects.TenantSubmitFilter("acme"))
	require.Equal(t, "api.*.get.acme.*", subjects.TenantAPIFilter("acme", subjects.VerbGet))
	require.Equal(t, "event.acme.*.*", subjects.TenantEventFilter("acme"))
	require.Equal(t, "notify.acme.*.*", subjects.TenantNotifyFilter("acme"))
	require.Equal(t, "plan.in.*.acme.*", subjects.TenantIntakeFilter("acme"))
	require.Equal(t, "$KV.runs_0.10.acme.order=20=2342.17.step.crm=2Fget.s=3.2", subjects.StepRecord(a, 1))
	require.True(t, subjects.IsStepRecord(subjects.StepRecord(a, 1), a, 1))
	require.False(t, subjects.IsStepRecord(subjects.ClaimRecord(a, 1), a, 1))
	require.True(t, a.HasKey(a.Key()))
	require.False(t, a.HasKey(a.MessageID()))
	require.Equal(t, "$KV.runs_0.*.*.*.*.step.crm=2Fget.*.*", subjects.ToolRecordFilter("crm/get", 0))
	require.Equal(t, "$KV.runs_0.*.*.*.*.step.crm=2Fget.*.*.claim", subjects.ToolClaimFilter("crm/get", 0))
	require.Equal(t, "$KV.runs_0.*.*.*.*.step.crm=2Fget.*.*.note", subjects.ToolNoteFilter("crm/get", 0))
	require.Equal(t, []string{"$JS.ACK.*.crm=2Fget.*.*.*.*.*", "$JS.ACK.*.*.*.crm=2Fget.*.*.*.*.*"}, subjects.ToolAcks("crm/get"))
	local, ok := subjects.Abroad(subjects.StreamRequest("INFO", "KV_tools"))
	require.True(t, ok)
	require.Equal(t, "STEPJET.STREAM.INFO.KV_tools", local)
	_, ok = subjects.Abroad(subjects.DirectGet("KV_tools", "$KV.tools.x"))
	require.False(t, ok)
}
