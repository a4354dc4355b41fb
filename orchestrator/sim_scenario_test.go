package orchestrator

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// knobs say how bad a world is: of so many chances one is taken, and 0 is never.
type knobs struct {
	loss     int // of a request or its answer
	slow     int // messages
	crash    int // of the process that makes a request
	die      int // of a worker, at each of the points that matter
	long     int // executions
	blobs    int // results that lie in blobs
	ignorant int // owners that don't know a tool yet
	jobs     int // how many jobs run beside each other
	faults   time.Duration
	between  time.Duration // faults
	tools    map[string]kv.Tool
}

var simTools = []string{"tool.0/x:y", "tool.1/x:y", "tool.2/x:y", "tool.3/x:y"}

const simSecret = "hunter2-secret"

func pickOne[T any](w *world, from ...T) T { return from[w.Intn(len(from))] }

// newWorld makes a world out of a seed.
func newWorld(seed int64, b bug, tracing bool) *world {
	w := &world{
		Rand: rand.New(rand.NewSource(seed)), seed: seed, bug: b, tracing: tracing, stats: stats{}, buckets: map[string]*stream{}, blobs: map[string][]byte{},
	}
	w.truths, w.steps = newTruths(w), newQueue(w)
	w.knobs = knobs{
		loss: pickOne(w, 0, 0, 100, 10), slow: pickOne(w, 0, 100, 20, 5), crash: pickOne(w, 0, 0, 200, 40), die: pickOne(w, 0, 0, 50, 8, 3),
		long: pickOne(w, 0, 10, 3), blobs: pickOne(w, 0, 4), ignorant: pickOne(w, 0, 3), jobs: pickOne(w, 1, 3, 64),
		faults: pickOne(w, 0, 400*time.Millisecond, 2*time.Second, 8*time.Second, 25*time.Second), tools: map[string]kv.Tool{},
	}
	w.knobs.between = max(2*w.knobs.faults/time.Duration(pickOne(w, 4, 10, 30)), 1)
	for i := range 1 + w.Intn(2) {
		w.shards = append(w.shards, newStream(w, subjects.LedgerStream(i)))
	}
	for _, bucket := range []string{subjects.HistoryBucket, subjects.DeadBucket} {
		w.buckets[subjects.BucketStream(bucket)] = newStream(w, bucket)
	}
	for i, name := range simTools {
		if i == 0 || !w.chance(20) { // a plan may name a tool that nobody has
			w.register(name, 1)
		}
	}
	for i := range 1 + w.Intn(3) {
		w.hands = append(w.hands, w.newHand("worker"+strconv.Itoa(i), 0))
	}
	for i := range 1 + w.Intn(3) {
		w.owners = append(w.owners, w.newOrch("owner"+strconv.Itoa(i), 0))
	}
	w.views()
	for i := range 1 + w.Intn(3) {
		w.at(w.upTo(300*time.Millisecond), func() { w.submitNew("r" + strconv.Itoa(i)) })
	}
	w.plague()
	if w.chance(8) {
		w.haunt()
	}
	return w
}

// register puts a tool with some contract into the registry.
func (w *world) register(name string, revision uint64) {
	c := tool.Contract{
		Mode: tool.FanOutBounded, Limit: pickOne(w, 1, 2, 5, 40), MaxAttempts: 1 + w.Intn(3), Timeout: 3 * time.Second, ErrorPropagation: pickOne(w, tool.FailFast, tool.PartialSuccess),
		Backoff: tool.Backoff{Initial: 250 * time.Millisecond, Max: time.Second, Jitter: 0.5},
	}
	if w.chance(5) {
		c.AtMostOnce, c.MaxAttempts = true, 1
	}
	if w.chance(6) {
		c.WaitTimeout = pickOne(w, 20*time.Millisecond, 500*time.Millisecond)
	}
	w.knobs.tools[name] = kv.Tool{
		Name: name, Definition: &tool.Definition{Name: name}, Contract: c, Digest: "d" + name, AckWait: 2 * time.Second, Revision: revision,
	}
	if q := w.steps.consumers[name]; q != nil {
		q.limit = c.Limit
		return
	}
	w.steps.consumers[name] = &consumer{tool: name, limit: c.Limit, ackWait: 2 * time.Second, leases: map[uint64]time.Duration{}}
}

// skew is how far a clock is off.
func (w *world) skew() time.Duration {
	return pickOne(w, 0, 0, time.Duration(w.Intn(200)-100)*time.Millisecond, time.Duration(w.Intn(6000)-3000)*time.Millisecond)
}

// submitNew submits a random plan.
func (w *world) submitNew(id string) { w.submit(subjects.NewRun("t", id), w.newPlan(), nil) }

func (w *world) newPlan() []byte {
	c := generated(w.seed/generatedFor, w.Int63n(generatedPlans))
	body := c.Plan
	if w.chance(5) {
		body = bytes.Replace(body, []byte("{"), []byte(`{"timeout":"`+pickOne(w, "300ms", "2s")+`",`), 1)
	}
	if w.chance(2) {
		body = bytes.ReplaceAll(body, []byte(`"timeout":null`), []byte(`"timeout":"`+pickOne(w, "100ms", "1s")+`"`))
	}
	w.truths.cases[plan.Digest(body)] = c
	return body
}

// Making up a plan takes as long as running it: so many worlds share so many plans.
const (
	generatedFor   = 20_000
	generatedPlans = 8_000
)

var generatedCases struct {
	sync.Mutex
	worlds int64
	cases  map[int64]reference.Case
}

// generated gives one of the plans that some worlds share.
func generated(worlds, number int64) reference.Case {
	g := &generatedCases
	g.Lock()
	if g.cases == nil || g.worlds != worlds {
		g.worlds, g.cases = worlds, map[int64]reference.Case{}
	}
	c, known := g.cases[number]
	g.Unlock()
	if known {
		return c
	}
	rng := rand.New(rand.NewSource(worlds*generatedPlans + number))
	steps := []int{3, 8, 14}[rng.Intn(3)]
	c = reference.Generate(rng, reference.Options{Steps: steps, Stop: rng.Intn(3) == 0, ForEach: rng.Intn(2) == 0, NoFailures: rng.Intn(5) == 0})
	g.Lock()
	if g.worlds == worlds {
		g.cases[number] = c
	}
	g.Unlock()
	return c
}

// submit is what an agent does.
func (w *world) submit(id subjects.Run, body []byte, h nats.Header) {
	if h == nil {
		h = nats.Header{}
	}
	h[subjects.HeaderClient] = []string{"client"}
	c, err := wire.NewContext(map[string]string{"token": simSecret}, "token")
	if err != nil {
		panic(err)
	}
	wire.RunContext{All: c}.Set(h)
	subject := subjects.PlanRecord(id, len(w.shards))
	if a, _ := w.streamOf(subject).create(subject, h, body, nil); a != stored {
		w.stats["a plan submitted while its run goes on"]++
	}
}

// views tells all orchestrators who is alive.
func (w *world) views() {
	var alive []string
	for _, o := range w.owners {
		if !o.dead {
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
		for _, name := range simTools {
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
	{"an orchestrator sleeps", func(w *world) bool {
		o := w.anyOwner()
		o.asleep = w.now + pickOne(w, w.upTo(300*time.Millisecond), w.upTo(12*time.Second))
		w.at(3500*time.Millisecond, func() { // the others take it for dead meanwhile
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
		o.after(0, func() { o.l.post(o.l.reread) })
		return !o.dead
	}},
	{"an orchestrator's clock steps", func(w *world) bool { w.anyOwner().offset = w.skew(); return true }},
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
		return true
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
					o.l.reg.changed(t, false)
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
	{"the same plan again", func(w *world) bool {
		x := w.anyRun()
		if x == nil || len(w.truths.order) > 6 {
			return false
		}
		w.submit(x.id, x.body, nil)
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
	{"a finished run is tried again", func(w *world) bool {
		x := w.anyRun()
		if x == nil || w.truths.history[x.id] == nil || len(w.truths.order) > 6 {
			return false
		}
		w.submit(subjects.NewRun("t", fmt.Sprintf("again%d", w.number)), x.body, nats.Header{subjects.HeaderRetryOf: {x.id.Plain()}})
		return true
	}},
}

// expire removes a run from history, which happens long after anybody is at it.
func (w *world) expire(id subjects.Run) bool {
	h := w.truths.history[id]
	if h == nil || w.lastKill > 0 && w.now-w.lastKill < 4*time.Second {
		return false
	}
	for _, x := range w.truths.order {
		if x.id == id && !x.gone {
			return false
		}
	}
	for _, o := range w.owners {
		if o.dead || w.now < o.asleep || o.jobs.working > 0 || o.l.runs[id] != nil {
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

// live lets a world live to its end: faults for a while, then peace, in which everything has to come to rest.
func (w *world) live() error {
	w.run(w.knobs.faults + 500*time.Millisecond)
	w.heal()
	peace := w.now
	for w.bad == nil {
		w.run(w.now + 500*time.Millisecond)
		why := w.restless()
		if why == "" {
			break
		}
		if w.now-peace > 2*time.Minute {
			w.violate("I9", "no rest: %s", why)
		}
	}
	w.stats["world"]++
	w.stats["event"] += w.turns
	for _, o := range w.owners {
		o.died = nil
		o.kill("at the end of the world")
	}
	for _, h := range w.hands {
		h.died = nil
		h.kill("at the end of the world")
	}
	return w.bad
}

// heal ends all faults.
func (w *world) heal() {
	w.log("PEACE")
	w.healed = true
	for _, s := range w.shards {
		s.full = 0
	}
	for _, s := range w.buckets {
		s.full = 0
	}
	w.steps.full = 0
	for _, o := range w.owners {
		o.asleep = 0
	}
	for _, h := range w.hands {
		h.asleep = 0
	}
	w.at(4*time.Second, w.views)
}
