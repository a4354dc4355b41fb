package orchestrator

import (
	"bytes"
	"fmt"
	"math/rand"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// knobs say how bad a world is: of so many chances one is taken, and 0 is never.
type knobs struct {
	loss      int  // of a request or its answer
	slow      int  // messages
	crash     int  // of the process that makes a request
	die       int  // of a worker, at each of the points that matter
	long      int  // executions
	blobs     int  // results that lie in blobs
	ignorant  int  // owners that don't know a tool yet
	dozy      bool // owners fall asleep before a start
	reads     int  // how much a sweep reads before it lists
	jobs      int  // how many jobs run beside each other
	loops     int  // of an orchestrator
	sweep     time.Duration
	lag       time.Duration // of a cursor
	bounds    bounds        // of bytes
	worth     uint64        // records that a cursor more, or a mark, has to spare
	letGoFrom int64         // bytes that a run holds before its machine lets go of any
	inline    int           // bytes of the record of a round before it lies in a blob
	many      int           // calls of a round whose gates share what they look at
	faults    time.Duration
	between   time.Duration // faults
	tools     map[string]tool.Registered
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
		long: pickOne(w, 0, 10, 3), blobs: pickOne(w, 0, 4), ignorant: pickOne(w, 0, 3), dozy: w.chance(8), reads: pickOne(w, readsAtMost, 0, 1), jobs: pickOne(w, 1, 3, 64), sweep: pickOne(w, time.Second, time.Second, 8*time.Second),
		faults: pickOne(w, 0, 400*time.Millisecond, 2*time.Second, 8*time.Second, 25*time.Second), tools: map[string]tool.Registered{}, bounds: []bounds{shipped, {run: 1, tenant: 5}, {run: 40, tenant: 60, light: 8}}[seed%3],
	}
	w.knobs.loops = []int{1, 1, 2, 3}[seed/2%4]
	w.knobs.inline = w.inlineRounds()
	w.knobs.many = []int{1, manyCalls, 3}[seed%3]
	w.knobs.letGoFrom = []int64{0, 0, 0, 64, letGoFrom}[seed%5]
	w.knobs.worth = []uint64{0, 0, 0, worthACursor}[seed/3%4]
	w.knobs.lag = 2 * time.Second
	w.knobs.between = max(2*w.knobs.faults/time.Duration(pickOne(w, 4, 10, 30)), 1)
	for i := range 1 + w.Intn(2) {
		w.shards = append(w.shards, newStream(w, subjects.LedgerStream(i)))
	}
	for _, bucket := range []string{subjects.HistoryBucket, subjects.DeadBucket} {
		w.buckets[subjects.BucketStream(bucket)] = newStream(w, bucket)
	}
	for i, name := range simTools {
		if i == 0 || !w.chance(12) { // a plan may name a tool that nobody has
			w.register(name, 1)
		}
	}
	w.registerAgents()
	for i := range 1 + w.Intn(3) {
		w.hands = append(w.hands, w.newHand("worker"+strconv.Itoa(i), 0))
	}
	for i := range 1 + w.Intn(3) {
		w.owners = append(w.owners, w.newOrch("owner"+strconv.Itoa(i), 0))
	}
	w.questions.entries = map[string]simQuestion{}
	w.views()
	for i := range 1 + w.Intn(3) {
		w.at(w.upTo(300*time.Millisecond), func() { w.submitNew("r" + strconv.Itoa(i)) })
	}
	w.submitAgents()
	if w.busy() {
		w.knobs.slow, w.knobs.lag = 5, 10*time.Second
		w.submissions(0)
	}
	w.plague()
	if w.chance(8) {
		w.haunt()
	}
	if w.chance(6) {
		w.quarrel()
	}
	if seed%4 == 3 {
		w.forgeries()
	}
	return w
}

// register puts a tool with some contract into the registry.
func (w *world) register(name string, revision uint64) {
	c := tool.Contract{
		Mode: tool.FanOutBounded, Limit: pickOne(w, 1, 2, 5, 40), MaxAttempts: 1 + w.Intn(3), Timeout: 3 * time.Second, ErrorPropagation: pickOne(w, tool.FailFast, tool.PartialSuccess),
		Backoff: tool.Backoff{Initial: 250 * time.Millisecond, Max: time.Second, Jitter: 0.5},
	}
	c.Approval, c.Asks = w.approval(name), w.inquiring()
	if w.chance(5) {
		c.AtMostOnce, c.MaxAttempts = true, 1
	}
	if w.chance(6) {
		c.WaitTimeout = pickOne(w, 20*time.Millisecond, 500*time.Millisecond)
	}
	if name == w.held {
		c.WaitTimeout = 0
	}
	w.knobs.tools[name] = tool.Registered{
		Name: name, Definition: &tool.Definition{Name: name}, Contract: c, Digest: "d" + name, AckWait: 2 * time.Second, Revision: revision,
	}
	if q := w.steps.consumers[name]; q != nil {
		if name != w.held {
			q.limit = c.Limit
		}
		return
	}
	w.steps.consumers[name] = &consumer{tool: name, limit: c.Limit, ackWait: 2 * time.Second, leases: map[uint64]time.Duration{}}
}

// skew is how far a clock is off.
func (w *world) skew() time.Duration {
	return pickOne(w, 0, 0, time.Duration(w.Intn(200)-100)*time.Millisecond, time.Duration(w.Intn(6000)-3000)*time.Millisecond)
}

// jump is how far the clock of an orchestrator may be off, which does not matter.
func (w *world) jump() time.Duration {
	return pickOne(w, w.skew(), time.Duration(w.Intn(1200)-600)*time.Second)
}

// submitNew submits a random plan.
func (w *world) submitNew(id string) {
	if w.chance(4) {
		id = w.dated()
	}
	w.submit(subjects.NewRun("t", id), w.newPlan(), nil)
}

// busy is whether this is a world in which plans keep coming, and cursors lag for longer than the turns of those who
// purge: what is over goes while others are on their way to their owners. Elsewhere most plans are there before anything
// is over.
func (w *world) busy() bool { return w.seed%13 == 6 }

// submissions submits one plan after the other: not more than the worst tools get done in time.
func (w *world) submissions(i int) {
	w.at(w.upTo(time.Second), func() {
		w.submitNew("busy" + strconv.Itoa(i))
		if i < 15 {
			w.submissions(i + 1)
		}
	})
}

// dated makes a run id that tells when it was made, by a clock that may be wrong.
func (w *world) dated() string {
	off := pickOne(w, 0, 0, time.Duration(w.Intn(8000)-4000)*time.Millisecond, time.Duration(w.Intn(40)-20)*time.Second)
	ms := w.time().Add(off).UnixMilli()
	return fmt.Sprintf("%08x-%04x-7%03x-8000-%012x", ms>>16, ms&0xffff, w.Intn(1<<12), w.Int63n(1<<48))
}

func (w *world) newPlan() []byte {
	if w.nests() {
		return w.newNested()
	}
	if w.speaksDialect() {
		return w.newSpoken()
	}
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
	generatedPlans = 2_000
)

var generatedCases struct {
	sync.Mutex
	worlds int64
	cases  map[int64]reference.Case
}

// generated returns one of the plans that some worlds share.
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
	for again := true; again; again = tooDeep(c) && rng.Intn(8) > 0 {
		steps := []int{3, 8, 14}[rng.Intn(3)]
		c = reference.Generate(rng, reference.Options{Steps: steps, Stop: rng.Intn(3) == 0, ForEach: rng.Intn(2) == 0, NoFailures: rng.Intn(5) == 0, Second: rng.Intn(3) == 0, Codes: true, Questions: rng.Intn(3) == 0, Patience: "700ms"})
	}
	g.Lock()
	if g.worlds == worlds {
		g.cases[number] = c
	}
	g.Unlock()
	return c
}

// tooDeep reports whether a tool answers with what is nested deeper than allowed, which takes the reference interpreter
// as long as all the rest of a world.
func tooDeep(c reference.Case) bool {
	for _, s := range c.Scripts {
		if b := s.Reply.Body; bytes.HasPrefix(b, []byte("[[[[[[[[[[[[")) || bytes.HasPrefix(b, []byte(`{"a":{"a":{"a":{"a":`)) {
			return true
		}
	}
	return false
}

// submit is what an agent does.
func (w *world) submit(id subjects.Run, body []byte, h nats.Header) {
	if h == nil {
		h = nats.Header{}
	}
	c, err := wire.NewContext(map[string]string{"token": simSecret}, "token")
	if err != nil {
		panic(err)
	}
	wire.Plan{Client: "client", Context: wire.RunContext{All: c}}.Set(h)
	subject := subjects.PlanRecord(id, len(w.shards))
	if a, _ := w.streamOf(subject).create(subject, h, body, nil); a != stored {
		w.stats["a plan submitted while its run goes on"]++
	}
}

// live lets a world live to its end: faults for a while, then peace, in which everything has to come to rest.
func (w *world) live() error {
	w.run(w.knobs.faults + 500*time.Millisecond)
	w.heal()
	return w.rest()
}

// restLook is how long a world in peace is left to itself before somebody looks whether it rests: no part of what owners
// do each half second, else it would always be looked at in the moment in which one has just begun something.
const restLook = 497 * time.Millisecond

// restWithin is how long peace may take until all rests: loops of lists of loops whose calls are asked about and tried again
// take minutes.
const restWithin = 10 * time.Minute

// rest lets a world in peace come to its end.
func (w *world) rest() error {
	peace := w.now
	for w.bad == nil {
		w.run(w.now + restLook)
		why := w.restless()
		if why == "" {
			break
		}
		if w.now-peace > restWithin {
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
