package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
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
	lies      []kv.Entry // what a partition holds that is read once more
	told      []kv.Mark
	time      time.Time
	timers    []func()
}

// clockAt is a clock that is set.
type clockAt struct {
	clock
	*reaping
}

func (c clockAt) Now() time.Time { return c.time }

func (c clockAt) AfterFunc(_ time.Duration, do func()) { c.timers = append(c.timers, do) }

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
	e.clock = clockAt{reaping: r}
	r.mark = func(told []kv.Mark) { r.told = told }
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
	r.asked, r.time = nil, now
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

func (r *reaping) Follow(_ context.Context, _ int, partitions []int, _ kv.Since, each func(kv.Entry), caughtUp func(uint64), _ func(error)) (kv.Following, error) {
	for _, e := range r.lies {
		if rec, _ := subjects.ParseRecord(e.Subject); rec.Run.Partition() == partitions[0] {
			each(e)
		}
	}
	caughtUp(100)
	return readLife(""), nil
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

// What an owner has skipped was over when it came, nobody here knows for how long: for a grace it tells the others of none of
// it that it may go, and removes none of it; what is left then goes by its name.
func TestWhatWasSkippedStaysForAGrace(t *testing.T) {
	t.Parallel()
	r := newReaping()
	r.others, r.worth = 1, 10
	skipped, other := subjects.NewRun("t", "skipped"), subjects.NewRun("t", "other")
	p := skipped.Partition()
	require.NotEqual(t, p, other.Partition())
	r.cursors.skipped[p].below, r.cursors.skipped[p].until = 50, noon.Add(time.Minute)
	record := func(id subjects.Run, generation, seq uint64) {
		e := kv.Entry{Subject: subjects.StopRecord(id, generation, 1), Seq: seq}
		rec, ok := subjects.ParseRecord(e.Subject)
		require.True(t, ok)
		r.withoutPlan(rec, nil, e)
	}
	r.time = noon
	record(skipped, 7, 60)  // late, of what was skipped
	record(skipped, 55, 61) // of no plan: what goes with its generation takes that of what was skipped along
	record(other, 8, 62)
	require.Equal(t, []string{`other/8 in "first"`}, r.at(noon))
	require.Equal(t, []kv.Mark{
		{Life: "first", Partitions: ^uint64(0) &^ (1 << p), Below: 101, Over: 101}, {Life: "first", Partitions: 1 << p, Over: 101},
	}, byPartitions(r.told))
	require.Empty(t, r.at(noon.Add(time.Minute-1)))
	require.Equal(t, []string{`below 101 in "first"`}, append(r.at(noon.Add(time.Minute)), r.at(noon.Add(time.Minute+time.Second))...), "once, in one of two turns")
	require.Equal(t, []kv.Mark{{Life: "first", Partitions: ^uint64(0), Below: 101, Over: 101}}, r.told)
	require.Len(t, r.timers, 1)
	r.timers[0]()
	require.Equal(t, []string{`skipped/55 in "first"`}, append(r.at(noon.Add(time.Minute+time.Second)), r.at(noon.Add(time.Minute+time.Second))...))
	for seq, subject := range map[uint64]string{
		5: subjects.PlanRecord(skipped, 1), 6: subjects.StopRecord(skipped, 5, 1), 60: subjects.StopRecord(skipped, 7, 1), 70: subjects.StopRecord(skipped, 55, 1),
	} {
		r.lies = append(r.lies, kv.Entry{Subject: subject, Seq: seq})
	}
	require.Equal(t, []string{`skipped/5 in "first"`, `skipped/7 in "first"`}, append(r.at(noon.Add(time.Minute+purgeAtLast)), r.at(noon.Add(2*time.Minute))...))
	require.Empty(t, r.at(noon.Add(time.Hour)))
	require.Zero(t, r.cursors.skipped[p])
}

func byPartitions(marks []kv.Mark) []kv.Mark {
	slices.SortFunc(marks, func(a, b kv.Mark) int { return cmp.Compare(b.Below, a.Below) })
	return marks
}

// A mark tells what is over within its grace, too; not what goes on, waits for its notice, or has an id that counts as new
// for longer than others wait.
func TestWhatCountsAsOver(t *testing.T) {
	t.Parallel()
	r := newReaping()
	r.others = 1
	over := func() uint64 {
		r.at(noon.Add(time.Second))
		require.Len(t, r.told, 1)
		return r.told[0].Over
	}
	require.EqualValues(t, 101, over())
	r.has(20, noon)
	r.has(30, time.Time{})
	long := r.runs.byID[subjects.NewRun("t", "r30")]
	require.EqualValues(t, 30, over())
	require.EqualValues(t, 20, r.told[0].Below, "what is within its grace stays")
	long.phase = finishing
	require.EqualValues(t, 30, over(), "its document may not stand")
	long.phase = foreign
	require.EqualValues(t, 30, over())
	long.phase, long.doneAt = finished, noon
	require.EqualValues(t, 101, over())
	ahead := &run{identity: identity{id: subjects.NewRun("t", "019ac000-0000-7000-8000-000000000000"), generation: 40}, phase: finished, doneAt: noon}
	made, dated := subjects.MadeAt(ahead.id.ID)
	require.True(t, dated)
	ahead.submitted = made.Add(-time.Hour) // an id from the future
	r.runs.add(ahead)
	require.EqualValues(t, 40, over())
	ahead.submitted = made
	require.EqualValues(t, 101, over())
	r.answer = fault.New(fault.Timeout, "no answer")
	r.undismissed(subjects.NewRun("t", "rejected"), 60)
	require.EqualValues(t, 60, over(), "its id is not free")
	r.answer = nil
	over()
	require.EqualValues(t, 101, over())
	for _, c := range r.cursors.all() {
		c.last = 15 // so far it has read
		c.reading = reads{readLife("first"), 15}
	}
	require.EqualValues(t, 16, over(), "not what was not read")
}

type reads struct {
	readLife
	at uint64
}

func (r reads) Position() uint64 { return r.at }

// Partitions are read from where most of them need be read, and those that lie far behind by themselves.
func TestPartitionsAreDividedByWhatIsOver(t *testing.T) {
	t.Parallel()
	over := map[int]uint64{1: 10_000, 2: 9_900, 3: 0, 4: 9_950, 5: 2_000, 6: 10}
	of := func(most int, worth uint64, list ...int) []startsAt {
		return divided(list, func(p int) uint64 { return over[p] }, most, worth)
	}
	require.Equal(t, []startsAt{{[]int{3, 6, 5, 2, 4, 1}, 0}}, of(1, 100, 1, 2, 3, 4, 5, 6))
	require.Equal(t, []startsAt{{[]int{3, 6, 5}, 0}, {[]int{2, 4, 1}, 9_900}}, of(2, 100, 1, 2, 3, 4, 5, 6))
	require.Equal(t, []startsAt{{[]int{2, 4, 1}, 9_900}}, of(3, 100, 1, 2, 4), "too little to make a cursor for")
	require.Equal(t, []startsAt{{[]int{2}, 9_900}, {[]int{4, 1}, 9_950}}, of(3, 0, 1, 2, 4))
	require.Empty(t, of(3, 0))
}

// What a forged record names is known of the life of the ledger that its cursor reads, and of no other; and of many forged records
// only some are kept.
func TestWhatIsPostponedGoesWithItsCursor(t *testing.T) {
	t.Parallel()
	r := newReaping()
	id := subjects.NewRun("t", "skipped")
	p := id.Partition()
	r.cursors.skipped[p].below, r.cursors.skipped[p].until, r.time = 50, noon.Add(time.Minute), noon
	forged := func(generation, seq uint64) {
		e := kv.Entry{Subject: subjects.StopRecord(id, generation, 1), Seq: seq}
		rec, ok := subjects.ParseRecord(e.Subject)
		require.True(t, ok)
		r.withoutPlan(rec, nil, e)
	}
	graceOver := func(timer int) {
		r.time = noon.Add(time.Minute)
		r.timers[timer]()
		for _, x := range r.mail.take(nil) {
			x.do()
		}
	}
	forged(55, 61)
	require.Len(t, r.timers, 1)
	again := *r.cursors.owned[p]
	r.cursors.owned[p] = &again
	graceOver(0)
	require.Empty(t, r.orphans)

	r.time = noon
	r.postponed = maxOrphans - 1
	forged(56, 62)
	forged(57, 63)
	require.Len(t, r.timers, 2)
	graceOver(1)
	require.Len(t, r.orphans, 1, "with its own cursor it is taken")
	require.Equal(t, maxOrphans-1, r.postponed)
}
