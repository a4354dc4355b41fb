package orchestrator

import (
	"cmp"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// demand says what is held back of some tools and, where that is asked for, which runs wait for a worker of them. Every loop
// answers for its partitions: for those of which it knows all that is out and held back, and which others it has. So who asks
// sees from the answers together what is missing.
func (s *api) demand(m *nats.Msg) {
	asked, err := wire.ParseDemandRequest(m.Data)
	if err != nil {
		s.refuse(m, err)
		return
	}
	s.loops.each(func(l *loop) {
		c := &count{loop: l, asked: asked.Tools, named: m.Subject == subjects.WaitingSubject, over: time.Duration(asked.OverMS) * time.Millisecond, told: func(a wire.DemandAnswer) {
			if a.Serves|a.Unsure != 0 {
				s.reply(m, a.Body())
			}
		}}
		c.from(0)
	})
}

// countAtOnce is about how many runs and calls a turn of the loop goes through to count them: a millisecond's worth, as
// half a microsecond goes to each that is in no cache.
const countAtOnce = 1 << 11

// count is that of what waits of some tools in the runs of a loop. It goes through all that is out and held back,
// rather than have each step pay for a number that is seldom asked for; in so many turns of the loop that none is long.
type count struct {
	*loop
	asked  map[string]wire.DemandSince
	named  bool          // whether the runs are told that wait for a worker
	over   time.Duration // and for how long at least
	answer wire.DemandAnswer
	told   func(wire.DemandAnswer)
}

// from counts a partition and those after it. Each is counted in one turn, so that what is said of it is of one moment.
func (c *count) from(p int) {
	for left := countAtOnce; p < subjects.Partitions; p++ {
		if left <= 0 {
			c.post(func() { c.from(p) })
			return
		}
		left -= c.partition(p)
	}
	c.longest(wire.MaxWaitingRuns)
	c.told(c.answer)
}

// partition counts what waits in a partition, if all of it is known. It returns what that took.
func (c *count) partition(p int) (visited int) {
	if c.cursors.owned[p] == nil {
		return 0
	}
	runs := c.runs.oldest[p].runs
	if !c.sure(p, runs) {
		c.answer.Unsure |= 1 << p
		return len(runs)
	}
	c.answer.Serves |= 1 << p
	for _, r := range runs {
		if r.phase == running && r.lanes.Len() > 0 {
			visited += c.run(r)
		}
	}
	return visited + len(runs)
}

// sure reports whether all is known of what is out and held back in a partition: its runs are at hand, nobody else is at
// work on them, and what others sent of them was compared with what is out.
func (c *count) sure(p int, runs []*run) bool {
	if c.cursors.atHand()>>p&1 == 0 || c.cursors.shared[p] {
		return false
	}
	for _, r := range runs {
		if unsure(r) {
			return false
		}
	}
	return true
}

func (c *count) run(r *run) (visited int) {
	now := c.times.of(r)
	waits := func(tool string, call machine.Call, held int) {
		x := c.answer.Tools[tool]
		x.Held += held
		x.OldestMS = max(x.OldestMS, now.Sub(r.machine.Due(call)).Milliseconds())
		if c.answer.Tools == nil {
			c.answer.Tools = map[string]wire.DemandNow{}
		}
		c.answer.Tools[tool] = x
	}
	named := c.waiting(r, now)
	for tool, x := range r.lanes.All() {
		if _, ok := c.asked[tool]; !ok {
			continue
		}
		for _, h := range x.calls.items[x.calls.head:] {
			d := h.dispatch()
			if f := r.flights.At(d.Call); f != nil && f.attempt == d.Attempt {
				continue // another owner had sent it: it is dropped when its turn comes
			}
			if r.machine.Wanted(d.Call, d.Attempt) {
				waits(tool, d.Call, 1)
				named.take(tool, d.Call, d.Attempt)
			}
		}
		visited += x.calls.len()
	}
	for call, f := range r.flights.All() {
		tool := r.step(call.Step).Tool
		since, ok := c.asked[tool]
		if ok && since.Behind > 0 && !f.given(since.Given) && r.machine.Wanted(call, f.attempt) {
			waits(tool, call, 0)
			if f.seq.Load() > 0 || since.Leased == 0 { // else a worker may have it
				named.take(tool, call, f.attempt)
			}
		}
	}
	named.tell()
	return visited + r.flights.Len()
}

// given reports whether a worker was given an attempt that is out, by the sequence up to which the tool's steps were.
// Of one that another owner sent it is not known.
func (f *flight) given(upTo uint64) bool {
	seq := f.seq.Load()
	return seq > 0 && seq <= upTo
}

// unsure reports whether another owner may have sent, or held back, steps of a run of which this one doesn't know.
func unsure(r *run) bool {
	switch r.phase {
	case opening, awaiting:
		return r.recovered
	case running:
		return r.uncompared || r.recovered && r.awaitingInput()
	default:
		return false
	}
}

// waitingRun looks for the call of a run that has waited longest for a worker. It does nothing where runs aren't asked for.
type waitingRun struct {
	of      *count
	run     *run
	now     time.Time
	due     time.Time
	call    machine.Call
	attempt int // 0: none waits
	tool    string
}

func (c *count) waiting(r *run, now time.Time) *waitingRun {
	return &waitingRun{of: c, run: r, now: now}
}

// take looks at a call that no worker has.
func (w *waitingRun) take(tool string, call machine.Call, attempt int) {
	if !w.of.named {
		return
	}
	due := w.run.machine.Due(call)
	if w.now.Sub(due) < w.of.over {
		return
	}
	if w.attempt == 0 || cmp.Or(due.Compare(w.due), cmp.Compare(call.Step, w.call.Step), cmp.Compare(call.Item, w.call.Item)) < 0 {
		w.due, w.call, w.attempt, w.tool = due, call, attempt, tool
	}
}

// tell puts the run into the answer if it has waited long enough.
func (w *waitingRun) tell() {
	if w.attempt == 0 {
		return
	}
	w.of.answer.Runs = append(w.of.answer.Runs, wire.WaitingRun{
		Run: w.run.id.Key(), Step: w.run.attempt(w.call, w.attempt).Step, Tool: w.tool, MS: w.now.Sub(w.due).Milliseconds(),
	})
	if len(w.of.answer.Runs) >= 2*wire.MaxWaitingRuns {
		w.of.longest(wire.MaxWaitingRuns)
	}
}

// longest keeps so many runs of the answer, those that have waited longest, and counts the others.
func (c *count) longest(most int) {
	a := &c.answer
	slices.SortFunc(a.Runs, wire.LongestFirst)
	if over := len(a.Runs) - most; over > 0 {
		a.Runs, a.More = a.Runs[:most], a.More+over
	}
}
