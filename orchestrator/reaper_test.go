package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// reaping is a reaper whose purges are noted and not made.
type reaping struct {
	*reaper
	storage // nothing else is asked
	asked   []string
	answer  error
	// meanwhile happens before the answer comes.
	meanwhile func()
}

func newReaping() *reaping {
	r := &reaping{}
	e := &env{
		cfg: Config{Grace: time.Minute}, log: slog.New(slog.DiscardHandler), store: r, jobs: atOnce{},
		mail: newMailbox(), ctx: context.Background(),
	}
	r.reaper = newReaper(e, &cursors{}, newRunTable())
	r.forget = func(x *run) {
		x.phase = forgotten
		r.runs.remove(x)
	}
	r.reads("first")
	return r
}

// reads has a new cursor read all partitions, in a life of the ledger.
func (r *reaping) reads(life string) {
	c := &cursor{caughtUp: true, last: 100, reading: readLife(life)}
	for p := range r.cursors.owned {
		r.cursors.owned[p] = c
	}
}

// has adds a run that began at a sequence, and was over at some time unless that is zero.
func (r *reaping) has(generation uint64, doneAt time.Time) {
	x := &run{identity: identity{id: subjects.NewRun("t", fmt.Sprint("r", generation)), generation: generation}, lastSeq: generation, phase: running}
	r.runs.add(x)
	if !doneAt.IsZero() {
		x.phase, x.doneAt = finished, doneAt
		r.finished(x)
	}
}

// at has the reaper's turn come, and returns what it asked for.
func (r *reaping) at(now time.Time) []string {
	r.asked = nil
	r.purge(now)
	for items := r.mail.take(nil); len(items) > 0; items = r.mail.take(nil) {
		for _, i := range items {
			i.do()
		}
	}
	return r.asked
}

func (r *reaping) Shards() int { return 1 }

func (r *reaping) PurgeUpTo(_ context.Context, _ int, sequence uint64, life string) error {
	r.asked = append(r.asked, fmt.Sprintf("below %d in %q", sequence, life))
	return r.answer
}

func (r *reaping) PurgeRuns(_ context.Context, _ int, runs []kv.Generation, life string) error {
	for _, g := range runs {
		r.asked = append(r.asked, fmt.Sprintf("%s/%d in %q", g.Run.Plain(), g.Number, life))
	}
	if r.meanwhile != nil {
		r.meanwhile()
	}
	return r.answer
}

type atOnce struct{ runner }

func (atOnce) add(do func(context.Context)) { do(context.Background()) }

type readLife string

func (readLife) Stop()            {}
func (readLife) Keep([]int)       {}
func (readLife) Position() uint64 { return 100 }
func (readLife) Check()           {}
func (l readLife) Life() string   { return string(l) }

// Runs go together as soon as none that began before them goes on, and by their own names where one does so for long.
func TestARunThatGoesOnHoldsOthersUpForAWhile(t *testing.T) {
	t.Parallel()
	r := newReaping()
	r.has(1, noon)
	r.has(2, noon)
	r.has(3, time.Time{})
	r.has(4, noon)
	r.has(5, noon.Add(time.Second))
	require.Empty(t, r.at(noon.Add(time.Minute-1)))
	require.Equal(t, []string{`below 3 in "first"`}, r.at(noon.Add(time.Minute)))
	require.Empty(t, r.at(noon.Add(time.Minute+purgeAtLast-1)))
	require.Equal(t, []string{`r4/4 in "first"`}, r.at(noon.Add(time.Minute+purgeAtLast)))
	require.Equal(t, []string{`r5/5 in "first"`}, r.at(noon.Add(time.Minute+purgeAtLast+time.Second)))
	require.Empty(t, r.at(noon.Add(time.Hour)))
	require.Len(t, r.runs.byID, 1, "the one that goes on")
}

// What could not be removed is tried again, by who reads the same life of the ledger still.
func TestWhatIsKnownOfALifeOfTheLedgerEndsWithIt(t *testing.T) {
	t.Parallel()
	r := newReaping()
	long := subjects.NewRun("t", "gone")
	r.orphan(long, 7)
	r.answer = fault.New(fault.Timeout, "no answer")
	require.Equal(t, []string{`gone/7 in "first"`}, r.at(noon))
	require.Equal(t, []string{`gone/7 in "first"`}, r.at(noon))
	r.reads("second")
	require.Empty(t, r.at(noon))
	r.orphan(long, 8)
	r.meanwhile = func() {
		r.reads("third")
		r.orphan(long, 8)
	}
	require.Equal(t, []string{`gone/8 in "second"`}, r.at(noon))
	r.meanwhile, r.answer = nil, nil
	require.Equal(t, []string{`gone/8 in "third"`}, r.at(noon), "what was read again is known of that life")
	require.Empty(t, r.at(noon))
}

// What came behind the purge of a run that left the ledger before its grace goes by its own name.
func TestWhatComesBehindADismissedRunGoes(t *testing.T) {
	t.Parallel()
	r := newReaping()
	for g := range uint64(2) {
		r.has(g+1, time.Time{})
		x := r.runs.byID[subjects.NewRun("t", fmt.Sprint("r", g+1))]
		x.lastSeq += g
		r.forget(x)
		r.dismissed(x, g+1)
	}
	require.Equal(t, []string{`r2/2 in "first"`}, r.at(noon))
}

// Where a life is never the one that the server tells, runs go whatever it is.
func TestRunsGoThoughEveryLifeIsRefused(t *testing.T) {
	t.Parallel()
	r := newReaping()
	r.orphan(subjects.NewRun("t", "gone"), 7)
	r.answer = fault.New(fault.NotReady, "another life")
	for range purgeRefused {
		require.Equal(t, []string{`gone/7 in "first"`}, r.at(noon))
	}
	r.answer = nil
	require.Equal(t, []string{`gone/7 in ""`}, r.at(noon))
}
