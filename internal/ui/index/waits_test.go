package index_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/ui/index"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestWhatWaitsTooLongNeedsAttention, as long as it does and goes on; of what is not known it stands.
func TestWhatWaitsTooLongNeedsAttention(t *testing.T) {
	t.Parallel()
	ix := fresh()
	for i, id := range []string{"a", "b", "c"} {
		ix.Plan(subjects.NewRun("acme", id), uint64(i+1), epoch.Add(time.Duration(i)*time.Minute), "")
	}
	known := func(subjects.Run) bool { return false }
	wait := index.Wait{Step: "s", Tool: "t", Since: epoch}
	ix.Waiting(map[string]index.Wait{"acme.a": wait, "acme.b": wait, "acme.gone": wait}, known)
	p := listed(t, ix, index.Query{})
	require.Equal(t, []string{"b", "a", "c"}, keys(p))
	require.Equal(t, 2, p.Attention)
	require.Equal(t, wait, *p.Lines[0].Waits)

	version := ix.Version()
	wait.Since = epoch.Add(100 * time.Millisecond) // by a clock that was read at another moment
	ix.Waiting(map[string]index.Wait{"acme.a": wait, "acme.b": wait}, known)
	require.Equal(t, version, ix.Version(), "nothing has changed")

	finish(ix, doc("acme", "b", outcome.Succeeded, 2, epoch))
	ix.Waiting(map[string]index.Wait{"acme.b": wait}, func(r subjects.Run) bool { return r.Plain() == "a" })
	p = listed(t, ix, index.Query{})
	require.Equal(t, []string{"a", "c", "b"}, keys(p), "b is over, and it is not known of a")
	require.Equal(t, 1, p.Attention)

	next := again(ix.Index)
	for i, id := range []string{"a", "c"} {
		next.Plan(subjects.NewRun("acme", id), uint64(2*i+1), epoch.Add(time.Duration(2*i)*time.Minute), "")
	}
	next.Complete()
	require.Equal(t, 1, listed(t, next, index.Query{}).Attention, "it is read anew")
	next.Waiting(nil, known)
	require.Zero(t, listed(t, next, index.Query{}).Attention)
}
