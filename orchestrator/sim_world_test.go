package orchestrator

import (
	"container/heap"
	"fmt"
	"iter"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/kv"
)

// world is the simulated world: everything that happens in it is an event at a virtual time, and every choice comes
// from one seeded source. So a seed says all that will happen, and says it again each time.
type world struct {
	*rand.Rand
	seed   int64
	now    time.Duration // since the beginning of the world
	events eventHeap
	number uint64 // of the last event planned
	turns  int    // events that have happened
	bug    bug    // seeded into the world, to see whether it is noticed

	knobs  knobs
	healed bool   // no more faults
	held   string // a tool whose steps are handed to no worker for now
	idle   bool   // nobody answers anything

	shards  []*stream // of the ledger
	buckets map[string]*stream
	blobs   map[string][]byte

	templates  simTemplates
	agentTools []string

	agentDefinition string // what stands under "agent"
	steps           *queue
	owners          []*orch
	hands           []*hand
	marks           []kv.Mark // what owners told of how far they are
	needs           []string  // what runs were said to need
	stats           stats
	truths          truths

	questions simQuestions

	tracing bool
	trace   []string
	bad     error // the first violation

	lastKill time.Duration
}

// stats counts what happened.
type stats map[string]int

func (s stats) add(other stats) {
	for k, n := range other {
		s[k] += n
	}
}

func (s stats) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%9d %s\n", s[k], k)
	}
	return b.String()
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// time returns the server's time.
func (w *world) time() time.Time { return epoch.Add(w.now) }

type event struct {
	at     time.Duration
	number uint64
	do     func()
}

// at plans an event.
func (w *world) at(d time.Duration, do func()) {
	w.number++
	heap.Push(&w.events, event{w.now + max(d, 0), w.number, do})
}

// run lets events happen until none is left, the time has come, or something was violated.
func (w *world) run(until time.Duration) {
	for len(w.events) > 0 && w.bad == nil && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		w.turns++
		if w.turns > 400_000 {
			w.violate("I9", "the world doesn't come to rest")
			return
		}
		e.do()
	}
	w.now = max(w.now, until)
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return x
}

// log keeps a line of what happened; args are formatted only where somebody will read it.
func (w *world) log(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%12v  ", w.now)+fmt.Sprintf(format, args...))
	}
}

// violate notes that an invariant doesn't hold.
func (w *world) violate(invariant, format string, args ...any) {
	if w.bad == nil {
		w.bad = fmt.Errorf("%s: %s", invariant, fmt.Sprintf(format, args...))
		w.log("VIOLATED %v", w.bad)
	}
}

// chance is true once in so many.
func (w *world) chance(oneIn int) bool { return oneIn > 0 && w.Intn(oneIn) == 0 }

// upTo returns a time below d.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.Int63n(int64(d))) }

// latency is how long a message is on its way.
func (w *world) latency() time.Duration {
	d := 50*time.Microsecond + w.upTo(time.Millisecond)
	switch {
	case w.healed:
	case w.chance(w.knobs.slow * 20):
		d += w.upTo(3 * time.Second)
	case w.chance(w.knobs.slow):
		d += w.upTo(200 * time.Millisecond)
	}
	return d
}

// process is one that may be killed, may sleep, and whose clock may be wrong: an orchestrator or a worker.
type process struct {
	w       *world
	name    string
	dead    bool
	inside  bool // its code runs right now
	asleep  time.Duration
	offset  time.Duration // of its clock
	running *routine
	live    []*routine
	settled func() // called after each of its events
	died    func()
}

// routine is code of a process that waits for answers: a coroutine, so that only one thing happens at a time.
type routine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

type killed struct{}

// clock returns what the process takes for the time.
func (p *process) clock() time.Time { return p.w.time().Add(p.offset) }

// after lets the process do something, unless it is dead by then. While it sleeps, that waits.
func (p *process) after(d time.Duration, do func()) { p.w.at(d, func() { p.enter(do) }) }

func (p *process) enter(do func()) {
	switch {
	case p.dead:
		return
	case p.w.now < p.asleep:
		p.after(p.asleep-p.w.now, do)
		return
	}
	p.inside = true
	do()
	p.inside = false
	if !p.dead && p.settled != nil {
		p.settled()
	}
	if p.dead {
		p.bury()
	}
}

// kill ends the process where it stands. In the middle of its code, the rest has no effects any more.
func (p *process) kill(why string) {
	if p.dead {
		return
	}
	p.w.log("%s KILLED %s", p.name, why)
	p.dead = true
	if !p.inside {
		p.bury()
	}
}

func (p *process) bury() {
	for _, r := range p.live {
		r.stop()
	}
	p.live = nil
	if p.died != nil {
		p.died()
		p.died = nil
	}
}

// spawn runs code that may wait.
func (p *process) spawn(do func()) {
	r := &routine{}
	r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		defer func() {
			if x := recover(); x != nil && x != (killed{}) {
				panic(x)
			}
		}()
		do()
	})
	p.live = append(p.live, r)
	p.resume(r)
}

func (p *process) resume(r *routine) {
	before := p.running
	p.running = r
	_, more := r.next()
	p.running = before
	if !more {
		p.live = slices.DeleteFunc(p.live, func(x *routine) bool { return x == r })
	}
}

// await lets the running routine wait until wake is called, in an event of the process.
func (p *process) await(start func(wake func())) {
	r := p.running
	if r == nil {
		panic("the loop waits for an answer")
	}
	if p.dead {
		panic(killed{})
	}
	start(func() { p.resume(r) })
	if !r.yield(struct{}{}) {
		panic(killed{})
	}
}

func (p *process) sleep(d time.Duration) {
	p.await(func(wake func()) { p.after(d, wake) })
}

// ask sends a request to the server: land is what the server does with it, and gives what the process does with the
// answer. Request and answer may be lost; then the process gives up waiting after a while.
func (p *process) ask(what string, land func() (answer func()), lost func()) {
	w := p.w
	if p.dead {
		return
	}
	if p.crashes() {
		p.kill("before " + what)
		w.stats["crash before a request"]++
		return
	}
	var requestLost, answerLost bool
	if w.chance(w.knobs.loss) && !w.healed {
		requestLost = w.chance(2)
		answerLost = !requestLost
	}
	w.at(w.latency(), func() {
		if p.dead && w.chance(2) {
			requestLost = true
		}
		if requestLost {
			w.stats["lost request"]++
			w.log("%s: %s LOST", p.name, what)
			return
		}
		answer := land()
		if answerLost {
			w.stats["lost answer"]++
			w.log("%s: answer to %s LOST", p.name, what)
			return
		}
		p.after(w.latency(), answer)
	})
	if requestLost || answerLost {
		p.after(500*time.Millisecond+w.upTo(2*time.Second), lost)
	}
	if p.crashes() {
		p.kill("after " + what)
		w.stats["crash after a request"]++
	}
}

func (p *process) crashes() bool { return !p.w.healed && p.w.chance(p.w.knobs.crash) }
