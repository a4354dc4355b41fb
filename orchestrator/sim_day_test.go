//go:build !race

package orchestrator

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// A day of a world in peace, in virtual time: some runs wait for an answer that nobody gives within a day, and for a tool
// that nobody serves, while others come at an even rate. Real processes can't be tried so: a server's schedules and ages
// go by its own clock, and make bench PART=waiting takes the time that it takes.
var (
	dayWaits = flag.Int("day-waits", 50, "how many runs wait for a day of virtual time")
	dayRate  = flag.Int("day-rate", 50, "how many other runs come in each of its first seconds")
	daySpan  = flag.Duration("day-span", 15*time.Second, "for how long they come")
)

// dayOver is when the approvals that nobody gave are taken as given.
const dayOver = 24 * time.Hour

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
	w.owners = nil
	w.knobs.jobs, w.knobs.sweep = maxJobs, time.Minute
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
	id := subjects.NewRun("t", fmt.Sprint("day-", d.number))
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

// records counts what lies in the ledger, and runs what owners hold.
func (d *aDay) records() (n int) {
	for _, s := range d.shards {
		n += len(s.bySubj)
	}
	return n
}

func (d *aDay) runs() (n int) {
	for _, o := range d.owners {
		for _, l := range o.loops.all {
			n += len(l.runs.byID)
		}
	}
	return n
}

// third is what one third of the time came to: means of what lay there, what happened for each run, and how long half of
// the runs took at most.
type third struct{ records, held, events, took float64 }

// stream begins runs at an even rate, and returns what each third of the time came to.
func (d *aDay) stream(span time.Duration) (all [3]third) {
	const slices = 10
	for i := range all {
		began, events := d.number, 0
		for range slices {
			for until, begun := d.now+span/3/slices, d.now; d.now < until; {
				d.begin(`{"steps":[{"id":"a","tool":"` + simTools[1] + `"},{"id":"b","tool":"` + simTools[2] + `","arguments":{"x":"$ref:a"}}]}`)
				d.turns = 0
				d.run(min(begun+time.Duration(d.number-began)*time.Second/time.Duration(*dayRate), until))
				events += d.turns
				require.NoError(d.t, d.bad)
				began, begun = d.number, d.now
			}
			all[i].records += float64(d.records()) / slices
			all[i].held += float64(d.runs()) / slices
		}
		all[i].events = float64(events)
	}
	return all
}

// took returns how long runs took that were begun in a span of time: the half at most.
func (d *aDay) took(from, to time.Time) (median float64, n int) {
	var all []float64
	for _, x := range d.truths.order {
		if h := d.truths.history[x.id]; h != nil && h.gen == x.gen && x.submitted.After(from) && x.submitted.Before(to) {
			all = append(all, h.doc.Finished.Sub(x.submitted).Seconds()*1000)
		}
	}
	if len(all) == 0 {
		return math.NaN(), 0
	}
	slices.Sort(all)
	return all[len(all)/2], len(all)
}

// TestADayOfWaiting: beside runs that wait for a day the ledger, what owners hold and how long others take stay as they
// are; and when the day is over each of those that wait comes to its end.
func TestADayOfWaiting(t *testing.T) {
	t.Parallel()
	d := newDay(t)
	alone := d.runs()
	d.stream(simGrace + purgeAtLast + 3*time.Second) // as long as what is over may lie there
	begun := d.time()
	thirds := d.stream(*daySpan)
	ended := d.time()
	each := ended.Sub(begun) / 3
	n := 0
	for i := range thirds {
		var of int
		thirds[i].took, of = d.took(begun.Add(time.Duration(i)*each), begun.Add(time.Duration(i+1)*each))
		thirds[i].events /= float64(max(of, 1))
		n += of
	}
	t.Logf("%d runs wait; %d others in %v: %+v", len(d.waiting), n, ended.Sub(begun), thirds)
	require.Greater(t, n, int(0.8*float64(*dayRate)*daySpan.Seconds()))
	require.Less(t, thirds[2].records, 1.15*thirds[1].records, "the ledger grows")
	require.Less(t, thirds[2].held, 1.15*thirds[1].held, "what owners hold grows")
	require.Less(t, thirds[2].events, 1.15*thirds[0].events, "a run costs more than at first")
	require.Less(t, thirds[2].took, 1.15*thirds[0].took, "a run takes longer than at first")

	d.lasts(time.Minute)
	require.LessOrEqual(t, d.runs(), alone+len(d.owners), "only those that wait are held")
	d.lasts(dayOver - d.now - time.Minute)
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
