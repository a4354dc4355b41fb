package wire_test

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func traceOf(parents, states []string) wire.Trace {
	return wire.TraceOf(nats.Header{subjects.HeaderTraceparent: parents, subjects.HeaderTracestate: states})
}

// What a plan's submitter puts there is copied to every step: only what the specification allows, and so little, goes
// on.
func TestTraceIsValidOrDropped(t *testing.T) {
	t.Parallel()
	for _, good := range []string{parent, "01" + parent[2:], "cc" + parent[2:] + "-what-later-versions-add"} {
		require.Equal(t, wire.Trace{Parent: good, State: "a=b"}, traceOf([]string{good}, []string{"a=b"}), good)
	}
	for _, bad := range []string{
		"", "00-x", "ff" + parent[2:], strings.ToUpper(parent), parent + "-more", parent + " ", " " + parent, parent[:54], strings.ReplaceAll(parent, "-", "_"),
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "0é-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
		"01" + parent[2:] + "more", "01" + parent[2:] + "-a b", "01" + parent[2:] + "-" + strings.Repeat("x", 60_000), strings.Repeat("x", 60_000),
	} {
		require.Zero(t, traceOf([]string{bad}, []string{"a=b"}), "%.80s", bad)
	}
	require.Zero(t, traceOf([]string{parent, parent}, nil), "which of the two?")
	require.Zero(t, traceOf(nil, []string{"a=b"}), "a state of nothing")
}

func TestTracestateIsValidOrDropped(t *testing.T) {
	t.Parallel()
	members := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = string([]byte{'a' + byte(i%26), 'a' + byte(i/26)}) + "=1"
		}
		return strings.Join(all, ",")
	}
	for _, good := range []string{
		"vendor=1", "a=b,c=d", "a=b, c=d", "a=b,,c=d", "1a@v=x", "a_-*/9=~!x y", members(32), "k=" + strings.Repeat("v", 256),
	} {
		require.Equal(t, wire.Trace{Parent: parent, State: good}, traceOf([]string{parent}, []string{good}), good)
	}
	for _, bad := range []string{
		"a", "=b", "a=", "A=b", "1a=b", "a@=b", "@v=b", "a@1v=b", "a=b,a=c", "a=b=c", "a=b\x01", "a=é", members(33), "k=" + strings.Repeat("v", 257),
		"a@" + strings.Repeat("v", 15) + "=1", strings.Repeat("a=b,", 200), strings.Repeat(",", 513), strings.Repeat("x", 60_000),
	} {
		require.Equal(t, wire.Trace{Parent: parent}, traceOf([]string{parent}, []string{bad}), "%.80s", bad)
	}
	require.Equal(t, "a=b,c=d", traceOf([]string{parent}, []string{"a=b", "c=d"}).State, "several headers are one list")
	require.Equal(t, wire.Trace{Parent: parent}, traceOf([]string{parent}, make([]string, 5000)))
}

// Neither a step nor a result is ever written with a trace that is not valid, wherever it came from.
func TestWhatIsWrittenHasNoInvalidTrace(t *testing.T) {
	t.Parallel()
	huge := wire.Trace{Parent: strings.Repeat("x", 60_000), State: strings.Repeat("y", 60_000)}
	h := wire.Step{Result: "r", Key: "k", Attempt: 1, Trace: huge}.Header()
	require.NotContains(t, h, subjects.HeaderTraceparent)
	require.NotContains(t, h, subjects.HeaderTracestate)
	h, _ = wire.Result{Trace: huge}.Message()
	require.NotContains(t, h, subjects.HeaderTraceparent)
	huge.Parent = parent
	h, _ = wire.Result{Trace: huge}.Message()
	require.Equal(t, []string{parent}, h[subjects.HeaderTraceparent])
	require.NotContains(t, h, subjects.HeaderTracestate)
}

// Each attempt has a span of its own in the plan's trace, which everybody can compute.
func TestAnAttemptHasItsOwnSpan(t *testing.T) {
	a := subjects.Attempt{Run: subjects.NewRun("acme", "order 42"), Generation: 17, Tool: "t", Step: "s=3", Number: 2}
	require.Equal(t, "acme/order=2042/17/s=3/2", a.MessageID())
	h := fnv.New64a()
	h.Write([]byte(a.Key() + "/2"))
	span := fmt.Sprintf("%016x", h.Sum64())
	plan := wire.Trace{Parent: parent, State: "a=b"}
	require.Equal(t, wire.Trace{Parent: parent[:36] + span + parent[52:], State: "a=b"}, plan.Of(a))
	require.Equal(t, plan.Of(a), plan.Of(a).Of(a), "that of an attempt is its own")
	require.Equal(t, plan.Of(a), plan.Of(a).Valid())
	require.Zero(t, wire.Trace{}.Of(a))

	later := wire.Trace{Parent: "cc" + parent[2:53] + "fe-more"}
	require.Equal(t, "00"+parent[2:36]+span+"-00", later.Of(a).Parent, "of a later version what is known of version 00")

	b := a
	b.Number = 3
	require.NotEqual(t, plan.Of(a), plan.Of(b))
	require.Zero(t, testing.AllocsPerRun(100, func() { a.Span() }))
}

// TestOnlyASampledTraceIsNamed: a trace that nobody keeps is found by nobody, so no log names it.
func TestOnlyASampledTraceIsNamed(t *testing.T) {
	t.Parallel()
	for flags, sampled := range map[string]bool{"01": true, "03": true, "0f": true, "00": false, "02": false, "fe": false} {
		want := ""
		if sampled {
			want = parent[3:35]
		}
		require.Equal(t, want, wire.Trace{Parent: parent[:53] + flags}.SampledID(), flags)
		require.Equal(t, want, wire.Trace{Parent: "cc" + parent[2:53] + flags + "-more"}.SampledID(), flags)
	}
	require.Empty(t, wire.Trace{}.SampledID())
}

// A run without a trace has one of its own, in the share of runs that is traced: the same for every owner.
func TestARunHasATraceOfItsOwn(t *testing.T) {
	t.Parallel()
	r := subjects.NewRun("acme", "r 1")
	all := wire.TraceOfRun(r, 7, 1)
	require.Equal(t, all, all.Valid())
	h128, h64 := fnv.New128a(), fnv.New64a()
	for _, h := range []io.Writer{h128, h64} {
		_, err := io.WriteString(h, "acme/"+r.ID+"/7")
		require.NoError(t, err)
	}
	require.Equal(t, fmt.Sprintf("00-%032x-%016x-01", h128.Sum(nil), h64.Sum64()), all.Parent)
	require.NotEqual(t, all, wire.TraceOfRun(r, 8, 1))
	for share, want := range map[float64]int{0: 0, -1: 0, 0.25: 2500, 1: 10_000} {
		n := 0
		for i := range 10_000 {
			if wire.TraceOfRun(subjects.NewRun("acme", fmt.Sprint("run-", i)), 1, share) != (wire.Trace{}) {
				n++
			}
		}
		require.InDelta(t, want, n, 200, share)
	}
}
