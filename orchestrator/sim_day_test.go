//go:build !race

package orchestrator

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// A day of a world in peace, in virtual time: some runs wait for an answer that nobody gives within a day, and for a tool
// that nobody serves. At its beginning, after each third of it, and at its end others come at an even rate, for a while each
// time; in between nobody comes. What a burst is like is compared with the first. A day full of others would be 86 million
// runs at a thousand a second, and what happens in it between bursts is what happens within one, again and again.
//
// Real processes can't be tried so: a server's schedules and ages go by its own clock, and make bench PART=waiting takes the
// time that it takes. What the server itself and the network cost is no part of this world, nor is what a loaded process
// lets wait: its events take no time.
var (
	dayWaits = flag.Int("day-waits", 50, "how many runs wait for a day of virtual time")
	dayRate  = flag.Int("day-rate", 50, "how many other runs come in each second of a burst")
	daySpan  = flag.Duration("day-span", 5*time.Second, "for how long a burst is measured, once it has gone on for as long as what is over lies there")
	dayHeap  = flag.Bool("day-heap", false, "measure the heap of the world, too: nothing else may run in the process")
)

const (
	// dayOver is when the approvals that nobody gave are taken as given.
	dayOver = 24 * time.Hour
	// dayLies is as long as what is over may lie in the ledger beside a run that goes on.
	dayLies = simGrace + purgeAtLast + 3*time.Second
	// dayRuns are the names of runs.
	dayRuns = "day-"
)

// aDay is such a world, once those that wait are there.
type aDay struct {
	*world
	t       *testing.T
	waiting []subjects.Run
	number  int
}

func newDay(t *testing.T) *aDay {
	w := quietWorld(0)
	w.tracing, w.healed, w.idle, w.held = false, true, true, simTools[3]
	for _, o := range w.owners { // they know tools that are others here
		o.died = nil
		o.kill("before the day begins")
	}
	w.owners = nil
	w.knobs.jobs, w.knobs.sweep, w.knobs.letGoFrom = maxJobs, time.Minute, letGoFrom
	for _, name := range simTools {
		c := w.knobs.tools[name]
		c.Contract.WaitTimeout, c.Contract.AtMostOnce, c.Contract.Approval, c.Contract.Asks, c.Contract.Limit = 0, false, "", false, 1000
		w.knobs.tools[name] = c
		w.steps.consumers[name].limit = 1000
	}
	w.steps.consumers[w.held].limit = 0
	for i := range 2 {
		w.owners = append(w.owners, w.newOrch(fmt.Sprint("owner", i), 0))
	}
	for i := range 2 + *dayRate/10 { // so that no step waits for a worker
		w.hands = append(w.hands, w.newHand(fmt.Sprint("another", i), 0))
	}
	w.views()
	d := &aDay{world: w, t: t}
	d.lasts(2 * time.Second) // what a world begins with
	for i := range *dayWaits {
		body := `{"steps":[{"id":"day","tool":"` + simTools[0] + `","approval":{"timeout":"24h","on_timeout":"approve"}}]}`
		if i%2 == 1 {
			body = `{"steps":[{"id":"day","tool":"` + w.held + `"}]}`
		}
		d.waiting = append(d.waiting, d.begin(body))
	}
	d.lasts(10 * time.Second)
	return d
}

// begin submits a plan of one step, or of two.
func (d *aDay) begin(body string) subjects.Run {
	d.number++
	id := subjects.NewRun("t", fmt.Sprint(dayRuns, d.number))
	ok := reference.Script{Reply: reference.Reply{Body: []byte(`1`)}}
	d.truths.cases[plan.Digest([]byte(body))] = reference.Case{Plan: []byte(body), Scripts: map[string]reference.Script{"day": ok, "a": ok, "b": ok}}
	d.submit(id, []byte(body), nil)
	return id
}

// lasts lets the world go on for some time.
func (d *aDay) lasts(span time.Duration) {
	for until := d.now + span; d.now < until; {
		d.turns = 0
		d.run(min(d.now+time.Minute, until))
		require.NoError(d.t, d.bad)
	}
}

// burst is what lay there while others came, and what they took: means of what lay there, what happened for each run, and
// how long half of the runs took at most, in virtual time. The CPU is that of the whole world, its server included.
type burst struct {
	at                            time.Duration // since the beginning of the day
	runs                          int
	records, bytes, held          float64
	events, took, seconds, heapMB float64
}

// String is a row of a table.
func (b burst) String() string {
	return fmt.Sprintf("| %v | %d | %.0f | %.1f | %.0f | %.1f | %.1f | %.1f | %.2f |",
		b.at.Round(time.Minute), b.runs, b.records, b.bytes/(1<<20), b.held, b.heapMB, b.events, b.took, b.seconds*1000/float64(b.runs))
}

const burstTitle = "| of the day | runs | records | MiB of them | runs held | MiB of heap | events a run | virtual ms a run | ms of CPU a run |"

// cpu returns the seconds of CPU that the process has taken so far, tests beside this one included.
func (d *aDay) cpu() float64 {
	var u syscall.Rusage
	require.NoError(d.t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// look adds what lies there now.
func (b *burst) look(d *aDay, part float64) {
	for _, s := range d.shards {
		for _, e := range s.all {
			b.bytes += part * float64(len(e.Subject)+len(e.Data))
		}
		b.records += part * float64(len(s.all))
	}
	b.held += part * float64(d.runs())
}

// runs counts what owners hold.
func (d *aDay) runs() (n int) {
	for _, o := range d.owners {
		for _, l := range o.loops.all {
			n += len(l.runs.byID)
		}
	}
	return n
}

// come lets runs come at an even rate, and returns what happened meanwhile.
func (d *aDay) come(span time.Duration) (events int) {
	each := time.Second / time.Duration(*dayRate)
	for until := d.now + span; d.now < until; {
		d.begin(`{"steps":[{"id":"a","tool":"` + simTools[1] + `"},{"id":"b","tool":"` + simTools[2] + `","arguments":{"x":"$ref:a"}}]}`)
		d.turns = 0
		d.run(min(d.now+each, until))
		events += d.turns
		require.NoError(d.t, d.bad)
	}
	return events
}

// burst lets others come for as long as what is over lies there, and measures from then on.
func (d *aDay) burst() (b burst) {
	const looks = 10
	b.at = d.now
	d.come(dayLies)
	before, from, began := d.number, d.time(), d.cpu()
	for range looks {
		b.events += float64(d.come(*daySpan / looks))
		b.look(d, 1.0/looks)
	}
	b.runs, b.seconds = d.number-before, d.cpu()-began
	b.events /= float64(b.runs)
	if *dayHeap {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.heapMB = float64(m.HeapAlloc) / (1 << 20)
	}
	to := d.time()
	d.lasts(time.Minute)
	b.took = d.took(from, to, b.runs)
	d.forget()
	return b
}

// took returns how long the half of the runs took at most that were begun in a span of time, all of which are over.
func (d *aDay) took(from, to time.Time, n int) float64 {
	var all []float64
	for _, x := range d.truths.order {
		if x.submitted.After(from) && !x.submitted.After(to.Add(time.Second)) {
			h := d.truths.history[x.id]
			require.NotNil(d.t, h, x.id.ID)
			require.Equal(d.t, outcome.Succeeded, h.doc.Status, "%s: %s", x.id.ID, h.doc.Outcome.JSON())
			all = append(all, h.doc.Finished.Sub(x.submitted).Seconds()*1000)
		}
	}
	require.InDelta(d.t, n, len(all), 0.1*float64(n)+2)
	slices.Sort(all)
	return all[len(all)/2]
}

// forget lets the observer and the history forget the runs that are over and purged: else the world would grow by them.
func (d *aDay) forget() {
	gone := map[string]bool{}
	d.truths.order = slices.DeleteFunc(d.truths.order, func(x *truth) bool {
		if !x.gone {
			return false
		}
		require.True(d.t, d.truths.hasOutcome(x), x.id.ID)
		gone[historyKey(x.id)] = true
		delete(d.truths.runs, genKey{x.id, x.gen})
		delete(d.truths.history, x.id)
		return true
	})
	require.Equal(d.t, len(d.waiting), len(d.truths.order), "what is over lies in the ledger a minute later")
	h := d.buckets[subjects.BucketStream(subjects.HistoryBucket)]
	h.all = slices.DeleteFunc(h.all, func(e *kv.Entry) bool { return gone[e.Subject] })
	for subject := range gone {
		delete(h.bySubj, subject)
	}
	h.ofRun = map[string][]*kv.Entry{}
}

// TestADayOfWaiting: beside runs that wait for a day the ledger, what owners hold, what happens for a run and how long it
// takes are the same all day long; and when the day is over each of those that wait comes to its end.
func TestADayOfWaiting(t *testing.T) {
	if !*dayHeap {
		t.Parallel()
	}
	d := newDay(t)
	alone := d.runs()
	all := []burst{d.burst()}
	for _, at := range []time.Duration{dayOver / 3, 2 * dayOver / 3, dayOver - dayLies - *daySpan - 3*time.Minute} {
		d.lasts(at - d.now)
		require.LessOrEqual(t, d.runs(), alone+len(d.owners), "only those that wait are held")
		all = append(all, d.burst())
	}
	rows := burstTitle
	for _, b := range all {
		rows += "\n" + b.String()
	}
	t.Logf("%d runs wait beside %d a second:\n%s", len(d.waiting), *dayRate, rows)
	first := all[0]
	for _, b := range all[1:] {
		require.Less(t, b.records, 1.15*first.records, "the ledger grows")
		require.Less(t, b.bytes, 1.15*first.bytes, "the ledger grows")
		require.Less(t, b.held, 1.15*first.held, "what owners hold grows")
		require.Less(t, b.events, 1.15*first.events, "a run costs more than at first")
		require.Less(t, b.took, 1.15*first.took, "a run takes longer than at first")
		require.LessOrEqual(t, b.heapMB, 1.15*first.heapMB, "memory grows")
	}

	d.lasts(dayOver - time.Minute - d.now)
	for _, id := range d.waiting {
		require.Nil(t, d.truths.history[id], "%s did not wait for a day", id.ID)
	}
	d.steps.consumers[d.held].limit = 1000
	d.steps.kick(d.held)
	d.lasts(5 * time.Minute)
	for _, id := range d.waiting {
		h := d.truths.history[id]
		require.NotNil(t, h, "%s waits for longer than a day", id.ID)
		require.Equal(t, outcome.Succeeded, h.doc.Status)
	}
	require.NoError(t, d.rest())
}
