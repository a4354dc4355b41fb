package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

// TestSinksStayBelowTheirTenant: whatever a definition may name comes out below the tenant, under the name that it has.
func TestSinksStayBelowTheirTenant(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"notes", "a.b.c", "a-b_C.9", strings.Repeat("x", subjects.MaxSink), "1.2.3.4.5.6.7.8"} {
		require.True(t, subjects.ValidSinkSubject(good), good)
		require.True(t, strings.HasPrefix(subjects.SinkSubject("acme", good), "sink.acme."), good)
		require.True(t, subjects.Literal(subjects.SinkSubject("acme", good)))
	}
	for _, bad := range []string{
		"", ".", "a.", ".a", "a..b", "*", "a.*", ">", "a.>", "a b", "$JS.API", "$KV.tools.x", "a\r\nPUB b", "a\tb", "ä", "a/b", "=a", "a\x00",
		strings.Repeat("x", subjects.MaxSink+1), strings.Repeat("a.", 8) + "a",
	} {
		require.False(t, subjects.ValidSinkSubject(bad), "%q", bad)
		require.False(t, subjects.ValidSinkBucket(bad), "%q", bad)
	}
	require.False(t, subjects.ValidSinkBucket("a.b"), "it would look like another tenant's key")
	r := subjects.NewRun("acme", "r.1")
	require.Equal(t, "acme.docs."+r.ID+".7.a/=0/find=2", subjects.SinkKey(r, 7, "docs", "a/=0/find=2"))
	require.Equal(t, "acme/"+r.ID+"/7/a/=0/find/=sink.1", subjects.SinkID(r, 7, "a/=0/find", 1))
	require.Equal(t, "sink.acme.>", subjects.TenantSinksFilter("acme"))
	require.Equal(t, "$KV.sinks.acme.>", subjects.TenantSinksKeys("acme"))
}
