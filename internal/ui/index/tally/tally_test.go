package tally

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

var monday = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

// told is what one run says.
type told struct {
	tenant string
	ended  time.Time
	calls  map[string]*outcome.Calls
}

// simply adds up the long way round what ended since a moment.
func simply(all []told, tenant string, since time.Time) (out Figures) {
	out.Tools = map[string]*outcome.Calls{}
	for _, r := range all {
		if r.tenant != tenant || r.ended.Before(since) {
			continue
		}
		if len(r.calls) == 0 {
			out.LeftOut++
			continue
		}
		out.Runs++
		if out.Since.IsZero() || r.ended.Before(out.Since) {
			out.Since = r.ended
		}
		for name, c := range r.calls {
			if out.Tools[name] == nil {
				out.Tools[name] = &outcome.Calls{}
			}
			out.Tools[name].Merge(c)
		}
	}
	return out
}

// some is what calls of a tool came to in one run.
func some(r *rand.Rand, spread float64) *outcome.Calls {
	c := &outcome.Calls{Calls: 1 + r.IntN(3), Asked: r.IntN(2)}
	for range c.Calls {
		c.Ran.Add(time.Duration(float64(50*time.Millisecond) * (1 + spread*r.ExpFloat64())))
		c.Waited.Add(time.Duration(float64(3*time.Millisecond) * (1 + spread*r.ExpFloat64())))
	}
	if r.IntN(10) == 0 {
		c.Failed, c.Codes = 1, map[fault.Code]int{[]fault.Code{fault.ToolFailed, fault.Timeout, "newer"}[r.IntN(3)]: 1}
	}
	return c
}

// What is told is what simply adding up comes to: of a moment within the last day since its hour, of one before since at
// most eight hours earlier, whatever order it was told in.
func TestATallyIsWhatSimplyAddingUpComesTo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		tally, all := New(), []told{}
		span := time.Duration(1+r.IntN(200)) * time.Hour
		for i := range 1 + r.IntN(300) {
			x := told{tenant: []string{"acme", "beta"}[r.IntN(2)], ended: monday.Add(time.Duration(r.Int64N(int64(span)))), calls: map[string]*outcome.Calls{}}
			if seed%2 == 0 {
				x.ended = monday.Add(span / 300 * time.Duration(i)) // as they are read
			}
			for range r.IntN(4) {
				x.calls[fmt.Sprint("tool-", r.IntN(5))] = some(r, 3)
			}
			all = append(all, x)
			tally.Add(x.tenant, x.ended, x.calls)
			if r.IntN(30) > 0 {
				continue
			}
			newest := x.ended
			for _, y := range all {
				if y.ended.After(newest) {
					newest = y.ended
				}
			}
			since := newest.Add(-time.Duration(r.Int64N(int64(200 * time.Hour))))
			from := since.Truncate(time.Hour)
			if newest.Truncate(time.Hour).Sub(from) > 24*time.Hour {
				from = time.Unix(since.Unix()/(8*3600)*(8*3600), 0)
			}
			for _, of := range []string{"acme", "beta", "nobody"} {
				require.Equal(t, simply(all, of, from), tally.Figures(of, since), "seed %d, since %v of %v", seed, since, newest)
			}
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// week is a week of calls of so many tools of so many tenants, as runs of 16 tools tell them.
func week(runs, tools, tenants int) *Tally {
	r, tally := rand.New(rand.NewPCG(1, 2)), New()
	var what [512]*outcome.Calls
	for i := range what {
		what[i] = some(r, 3)
	}
	for i := range runs {
		calls := map[string]*outcome.Calls{}
		tenant := r.IntN(tenants)
		for range 16 {
			calls[fmt.Sprintf("group.tool-%d", r.IntN(tools))] = what[r.IntN(len(what))]
		}
		tally.Add(fmt.Sprint("tenant-", tenant), monday.Add(7*24*time.Hour/time.Duration(runs)*time.Duration(i)), calls)
	}
	return tally
}

// The budget: what fifty thousand runs say of a thousand tools in a week takes 16 MiB at most, each tool told apart by
// the hour for a day and by eight hours before; and so do those of 20,000, by longer stretches.
func TestAWeekOfAThousandToolsTakes16MiB(t *testing.T) {
	before := heap()
	tally := week(50_000, 1000, 1)
	used := heap() - before
	t.Logf("1,000 tools: %.1f MiB, counted as %.1f", float64(used)/(1<<20), float64(tally.bytes)/(1<<20))
	require.Less(t, used, uint64(Most))
	require.Equal(t, [2]int64{1, 8}, tally.width)
	f := tally.Figures("tenant-0", monday)
	require.Len(t, f.Tools, 1000)
	require.Nil(t, f.Others)
	require.Equal(t, 50_000, f.Runs)

	before = heap()
	many := week(50_000, 100, 200)
	used = heap() - before
	t.Logf("200 tenants with 100 tools each: %.1f MiB, counted as %.1f; stretches of %v hours", float64(used)/(1<<20), float64(many.bytes)/(1<<20), many.width)
	require.Less(t, used, uint64(Most))
	require.LessOrEqual(t, many.bytes, Most)
	require.Nil(t, many.Figures("tenant-7", monday).Others)
	runtime.KeepAlive(tally)
}

// Where there is no room, stretches become longer, then further tools are counted together: nothing is lost, and what each
// tool's calls came to stays what they came to.
func TestWhereThereIsNoRoomStretchesBecomeLonger(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	tally, all := newTally(60_000), []told{}
	calls := 0
	for i := range 3000 {
		x := told{tenant: "acme", ended: monday.Add(time.Duration(i) * 200 * time.Second), calls: map[string]*outcome.Calls{}}
		name := fmt.Sprint("tool-", i/10) // ever more of them
		x.calls[name] = some(r, 3)
		calls += x.calls[name].Calls
		all = append(all, x)
		tally.Add(x.tenant, x.ended, x.calls)
	}
	require.Equal(t, [2]int64{longest, longest}, tally.width)
	f, want := tally.Figures("acme", monday), simply(all, "acme", monday)
	require.NotNil(t, f.Others)
	require.Equal(t, want.Runs, f.Runs)
	told := f.Others.Calls
	for name, c := range f.Tools {
		require.Equal(t, want.Tools[name], c)
		told += c.Calls
	}
	require.Equal(t, calls, told)
	require.Less(t, len(f.Tools), 300)
	require.Greater(t, len(f.Tools), 100)
	require.Less(t, tally.bytes, 70_000)
}

// A head is anybody's to write: what is no count, or no length, is left out, and codes without end are one.
func TestWhatIsNoCountIsLeftOut(t *testing.T) {
	t.Parallel()
	tally := New()
	odd := &outcome.Calls{Calls: -1, Failed: 1 << 60, Ran: outcome.Spans{-1: 1, 1 << 40: 1, 128: 1, 127: 2, 3: -5}, Codes: map[fault.Code]int{}}
	for i := range 400 {
		odd.Codes[fault.Code(fmt.Sprint("code-", i))] = 1
	}
	tally.Add("acme", time.Time{}, map[string]*outcome.Calls{"a": odd})
	c := tally.Figures("acme", time.Time{}).Tools["a"]
	require.Zero(t, c.Calls)
	require.Equal(t, 1<<40, c.Failed)
	require.Equal(t, outcome.Spans{127: 2}, c.Ran)
	require.Len(t, c.Codes, mostCodes)
	require.Equal(t, 400-mostCodes+1, c.Codes["other"])
	longest := outcome.Spans(nil)
	longest.Add(1 << 62)
	require.Contains(t, longest, lengths-1)
	require.Len(t, longest, 1)
}
