package orchestrator

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// views tells all orchestrators who is alive.
func (w *world) views() {
	var alive []string
	for _, o := range w.owners {
		if !o.dead && !o.leaving {
			alive = append(alive, o.name)
		}
	}
	slices.Sort(alive)
	for _, o := range w.owners {
		if !o.dead {
			o.tell(alive)
		}
	}
}

// buried starts an orchestrator anew, and lets the others find out.
func (w *world) buried(o *orch) {
	w.lastKill = w.now
	for _, s := range w.shards {
		s.cursors = slices.DeleteFunc(s.cursors, func(c *simCursor) bool { return c.p == o.process })
	}
	i := slices.Index(w.owners, o)
	w.at(w.upTo(2*time.Second), func() {
		w.owners[i] = w.newOrch("owner"+strconv.Itoa(i), o.lives+1)
		w.at(100*time.Millisecond, w.views)
	})
	w.at(w.upTo(3500*time.Millisecond), w.views)
}

func (w *world) lostHand(h *hand) {
	i := slices.Index(w.hands, h)
	w.at(w.upTo(time.Second), func() {
		w.hands[i] = w.newHand("worker"+strconv.Itoa(i), h.lives+1)
		for _, name := range slices.Concat(simTools, w.agentTools) {
			w.steps.kick(name)
		}
	})
}

// plague lets faults happen, until they cease.
func (w *world) plague() {
	if w.knobs.faults == 0 {
		return
	}
	w.at(w.upTo(w.knobs.between), func() {
		if w.now > w.knobs.faults {
			return
		}
		f := simFaults[w.Intn(len(simFaults))]
		if f.do(w) {
			w.log("FAULT %s", f.name)
			w.stats["fault: "+f.name]++
		}
		w.plague()
	})
}

func (w *world) anyOwner() *orch { return w.owners[w.Intn(len(w.owners))] }
func (w *world) anyHand() *hand  { return w.hands[w.Intn(len(w.hands))] }
func (w *world) anyRun() *truth {
	if len(w.truths.order) == 0 {
		return nil
	}
	return w.truths.order[w.Intn(len(w.truths.order))]
}

// simFaults are the faults that happen at random times. Each says whether it did.
var simFaults = []struct {
	name string
	do   func(w *world) bool
}{
	{"an orchestrator is killed", func(w *world) bool {
		o := w.anyOwner()
		was := o.dead
		o.kill("by a fault")
		return !was
	}},
	{"an orchestrator is stopped in order", func(w *world) bool {
		o := w.anyOwner()
		if o.dead {
			return false
		}
		o.stop()
		for _, x := range w.owners {
			if x != o && !x.dead {
				x.tell(slices.DeleteFunc(slices.Clone(x.members), func(m string) bool { return m == o.name }))
			}
		}
		return true
	}},
	{"an orchestrator sleeps", func(w *world) bool {
		o := w.anyOwner()
		w.sleep(o, pickOne(w, w.upTo(300*time.Millisecond), w.upTo(12*time.Second)))
		return !o.dead
	}},
	{"two orchestrators own the same", func(w *world) bool {
		if len(w.owners) < 2 {
			return false
		}
		for _, o := range w.owners {
			if w.chance(2) && !o.dead {
				o.tell([]string{o.name})
			}
		}
		w.at(w.upTo(4*time.Second), w.views)
		return true
	}},
	{"nobody owns anything", func(w *world) bool {
		for _, o := range w.owners {
			if !o.dead {
				o.tell([]string{"somebody else"})
			}
		}
		w.at(w.upTo(time.Second), w.views)
		return true
	}},
	{"a cursor is lost", func(w *world) bool { w.anyOwner().loseCursor(); return true }},
	{"a reconnect", func(w *world) bool {
		o := w.anyOwner()
		o.after(0, func() { o.loops.each(func(l *loop) { l.partitions.reread() }) })
		return !o.dead
	}},
	{"an orchestrator's clock steps", func(w *world) bool { w.anyOwner().offset = w.jump(); return true }},
	{"a worker's clock steps", func(w *world) bool { w.anyHand().offset = w.skew(); return true }},
	{"a worker is killed", func(w *world) bool {
		h := w.anyHand()
		was := h.dead
		h.kill("by a fault")
		return !was
	}},
	{"a worker sleeps beyond its leases", func(w *world) bool {
		h := w.anyHand()
		h.asleep = w.now + w.upTo(8*time.Second)
		return !h.dead
	}},
	{"the ledger is full", func(w *world) bool {
		s := w.shards[w.Intn(len(w.shards))]
		s.full = w.now + w.upTo(2*time.Second)
		return true
	}},
	{"history is full", func(w *world) bool {
		w.buckets[subjects.BucketStream(subjects.HistoryBucket)].full = w.now + w.upTo(2*time.Second)
		return true
	}},
	{"the step stream is full", func(w *world) bool { w.steps.full = w.now + w.upTo(2*time.Second); return true }},
	{"an operator purges the step stream", func(w *world) bool {
		if len(w.steps.all) == 0 {
			return false
		}
		w.steps.purge(">")
		for _, o := range w.owners {
			if !w.chance(4) {
				o.stepsLost(w.upTo(lookEvery))
			}
		}
		return true
	}},
	{"an orchestrator takes the step stream for purged", func(w *world) bool {
		o := w.anyOwner()
		o.stepsLost(0)
		return !o.dead
	}},
	{"the server forgets message ids", func(w *world) bool { clear(w.steps.ids); return true }},
	{"a run is cancelled", func(w *world) bool {
		x := w.anyRun()
		if x == nil {
			return false
		}
		for _, o := range w.owners {
			o.cancel(x.id)
		}
		return true
	}},
	{"somebody looks at a run", func(w *world) bool {
		x := w.anyRun()
		if x == nil {
			return false
		}
		for _, o := range w.owners {
			o.get(x.id)
		}
		return true
	}},
	{"the registry changes", func(w *world) bool {
		name := simTools[w.Intn(len(simTools))]
		w.register(name, uint64(w.number))
		for _, o := range w.owners {
			o.after(w.latency(), func() {
				if t, there := w.tool(name); there {
					o.reg.changed(t)
				}
			})
		}
		return true
	}},
	{"another run", func(w *world) bool {
		if len(w.truths.order) > 4 {
			return false
		}
		w.submitNew("x" + strconv.Itoa(w.Intn(1000)))
		return true
	}},
	{"another run, which is read late, while no other goes on", func(w *world) bool {
		if len(w.truths.order) > 12 || slices.ContainsFunc(w.truths.order, func(x *truth) bool { return w.truths.history[x.id] == nil }) {
			return false
		}
		for _, s := range w.shards {
			for _, c := range s.cursors {
				c.late = true
			}
		}
		w.submitNew("late" + strconv.Itoa(w.Intn(1000)))
		return true
	}},
	{"the same plan again", func(w *world) bool {
		x := w.anyRun()
		if x == nil || len(w.truths.order) > 6 {
			return false
		}
		w.submit(x.id, x.body, nil)
		return true
	}},
	{"a plan again, long after", func(w *world) bool {
		x := w.anyRun()
		if x == nil || w.knobs.faults < 8*time.Second {
			return false
		}
		w.at(2*time.Second+w.upTo(8*time.Second), func() {
			if len(w.truths.order) <= 8 {
				w.submit(x.id, x.body, nil)
			}
		})
		return true
	}},
	{"another plan under the same id", func(w *world) bool {
		x := w.anyRun()
		if x == nil || len(w.truths.order) > 6 {
			return false
		}
		w.submit(x.id, w.newPlan(), nil)
		return true
	}},
	{"another plan under an id whose history expired", func(w *world) bool {
		x := w.anyRun()
		if x == nil || len(w.truths.order) > 6 || !w.expire(x.id) {
			return false
		}
		w.submit(x.id, w.newPlan(), nil)
		return true
	}},
	{"the id of a rejected run is used again, by several", func(w *world) bool {
		x := w.anyRun()
		if x == nil || len(w.truths.order) > 6 || w.truths.history[x.id] == nil || !w.truths.history[x.id].rejected() {
			return false
		}
		for range 1 + w.Intn(3) {
			body := x.body
			if w.chance(2) {
				body = w.newPlan()
			}
			w.at(pickOne(w, w.upTo(20*time.Millisecond), w.upTo(time.Second), 10*time.Second+w.upTo(3*time.Second)), func() {
				w.submit(x.id, body, nil)
			})
		}
		return true
	}},
	{"an agent is stopped, and tried again", func(w *world) bool {
		x := w.anyRun()
		if x == nil || !x.agent || x.amendments != nil || w.truths.history[x.id] != nil || len(w.truths.order) > 6 {
			return false
		}
		w.stopAndRetry(x.id, x.body)
		return true
	}},
	{"a finished run is tried again", func(w *world) bool {
		x := w.anyRun()
		if x == nil || w.truths.history[x.id] == nil || len(w.truths.order) > 6 || x.amendments != nil {
			return false
		}
		w.submit(subjects.NewRun("t", fmt.Sprintf("again%d", w.number)), x.body, nats.Header{subjects.HeaderRetryOf: {x.id.Plain()}})
		return true
	}},
}

// stopAndRetry cancels a run, and tries it again as soon as it is over.
func (w *world) stopAndRetry(id subjects.Run, body []byte) {
	for _, o := range w.owners {
		if !o.dead {
			o.cancel(id)
		}
	}
	again := subjects.NewRun("t", fmt.Sprintf("stopped%d", w.number))
	for n := range 4 { // the same again, as whoever has no answer does
		w.at(time.Duration(n)*time.Second+w.upTo(time.Second), func() {
			if w.truths.history[id] != nil {
				w.submit(again, body, nats.Header{subjects.HeaderRetryOf: {id.Plain()}})
			}
		})
	}
}

// sleep lets an orchestrator stand still. The others take it for dead after a while.
func (w *world) sleep(o *orch, d time.Duration) {
	o.asleep = w.now + d
	w.at(3500*time.Millisecond, func() {
		if w.now < o.asleep {
			w.stats["a sleeping orchestrator was taken for dead"]++
			for _, x := range w.owners {
				if x != o && !x.dead {
					x.tell(slices.DeleteFunc(slices.Clone(x.members), func(m string) bool { return m == o.name }))
				}
			}
			w.at(max(o.asleep-w.now, 0)+w.upTo(time.Second), w.views)
		}
	})
}

// doze lets an orchestrator fall asleep between a look and what follows from it, the start of a plan or the end of the
// rejection before it: long enough, at
// times, for another to run and to purge all of it.
func (w *world) doze(p *process) bool {
	if !w.knobs.dozy || w.now > w.knobs.faults || !w.chance(4) {
		return false
	}
	for _, o := range w.owners {
		if o.process == p {
			w.stats["an orchestrator slept before a start"]++
			w.sleep(o, 8*time.Second+w.upTo(20*time.Second))
		}
	}
	return true
}

// expire removes a run from history, which happens long after anybody is at it.
func (w *world) expire(id subjects.Run) bool {
	h := w.truths.history[id]
	if h == nil || h.removed || w.lastKill > 0 && w.now-w.lastKill < 4*time.Second {
		return false
	}
	for _, x := range w.truths.order {
		if x.id == id && !x.gone {
			return false
		}
	}
	for _, o := range w.owners {
		if o.dead || w.now < o.asleep || o.jobs.working > 0 || o.has(id) {
			return false
		}
	}
	h.expired = true
	w.buckets[subjects.BucketStream(subjects.HistoryBucket)].purge(0, func(subject string) bool { return subject == historyKey(id) })
	return true
}

// haunt lets a worker sleep in the middle of a step while its run is cancelled, purged and, long after, submitted again
// under the same id: whatever the worker still does is of another generation.
func (w *world) haunt() {
	w.knobs.faults = max(w.knobs.faults, 10*time.Second)
	w.at(5*time.Millisecond+w.upTo(350*time.Millisecond), func() {
		x := w.anyRun()
		if x == nil {
			return
		}
		for _, h := range w.hands {
			h.asleep = w.now + 4*time.Second + w.upTo(4*time.Second)
		}
		for _, o := range w.owners {
			o.cancel(x.id)
		}
		w.again(x)
	})
}

// quarrel lets several submitters have the same run id in mind, with plans that are good, plans that never will be, and
// one that is good as soon as its tool is there. Each sends its own again and again.
func (w *world) quarrel() {
	w.knobs.faults = max(w.knobs.faults, 2*time.Second)
	w.knobs.dozy = w.knobs.dozy || w.chance(2)
	w.templates.none = true // in which the tool would not be renamed
	bad := func(as string) []byte {
		body := w.newPlan()
		renamed := bytes.ReplaceAll(body, []byte("tool.0/x:y"), []byte(as))
		w.truths.cases[plan.Digest(renamed)] = w.truths.cases[plan.Digest(body)]
		if doc := w.truths.spoken[plan.Digest(body)]; doc != nil {
			w.truths.spoken[plan.Digest(renamed)] = &spoken{bytes.ReplaceAll(doc.compiled, []byte("tool.0/x:y"), []byte(as)), doc.numbers, doc.held}
		}
		if nested := w.truths.nested[plan.Digest(body)]; nested != nil {
			w.truths.nested[plan.Digest(renamed)] = nested.Renamed("tool.0/x:y", as)
			if parts := w.truths.parts[plan.Digest(body)]; parts != nil {
				w.truths.parts[plan.Digest(renamed)] = parts.Renamed("tool.0/x:y", as)
			}
		}
		return renamed
	}
	plans := [][]byte{bad("gone"), bad("gone"), bad(simTools[len(simTools)-1]), w.newPlan()}
	id := subjects.NewRun("t", pickOne(w, "shared", w.dated()))
	var again func()
	again = func() {
		if w.now > w.knobs.faults || len(w.truths.order) > 12 {
			return
		}
		w.submit(id, plans[pickOne(w, 0, 0, 0, 1, 1, 2, 2, 3)], nil)
		w.at(pickOne(w, w.upTo(5*time.Millisecond), w.upTo(200*time.Millisecond), w.upTo(3*time.Second), 10*time.Second), again)
	}
	w.at(w.upTo(100*time.Millisecond), again)
}

// again submits a run's plan anew as soon as nothing is left of it.
func (w *world) again(x *truth) {
	w.at(100*time.Millisecond, func() {
		switch {
		case w.healed:
		case w.expire(x.id):
			w.stats["a plan submitted again while its workers slept"]++
			w.submit(x.id, x.body, nil)
		default:
			w.again(x)
		}
	})
}
