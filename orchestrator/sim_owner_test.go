package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// orch is an orchestrator of the simulated world: the real loops, with everything around them played.
type orch struct {
	*process
	loops   *loops
	turning []*turning
	svc     *api
	reg     *registry
	members []string // whom it takes for alive
	jobs    *simJobs
	lives   int // how often it was started anew
	leaving bool
	knows   wire.Knowledge
}

// turning is one of its loops, and when that is to do something.
type turning struct {
	*loop
	items  []item
	awake  bool          // a turn of the loop is planned
	armed  time.Duration // by the monotonic clock; -1: nothing. What the timer is set to
	arming int
}

const simGrace = 2 * time.Second

func (w *world) newOrch(name string, life int) *orch {
	o := &orch{process: &process{w: w, name: name + "." + strconv.Itoa(life)}, lives: life}
	o.offset = w.jump()
	log := slog.New(slog.DiscardHandler)
	if w.tracing {
		log = slog.New(&traceHandler{w: w, name: o.name})
	}
	o.knows = w.knowledge(name, life)
	cfg := Config{Name: o.name, Grace: simGrace, Loops: w.knobs.loops, SweepEvery: w.knobs.sweep, Logger: log, Store: kv.Config{Knows: w.assumed(o.knows)}}.withDefaults()
	store := &simStore{p: o.process, w: w}
	ctx, cancel := context.WithCancelCause(context.Background())
	reg := newRegistry(store, log)
	for _, name := range slices.Concat(simTools, w.templates.names, w.agentTools) {
		if t, there := w.tool(name); there && (w.healed || !w.chance(w.knobs.ignorant)) {
			reg.changed(t)
		}
	}
	or := &self{cfg: cfg, member: o.name, ready: make(chan struct{})}
	o.reg, o.loops = reg, newLoops(ctx, or, store, reg)
	o.jobs = &simJobs{p: o.process, ctx: ctx, most: w.knobs.jobs}
	clock := &simClock{process: o.process, wrong: o.offset}
	for i, l := range o.loops.all {
		l.reconciler.reads, l.dispatcher.bounds = w.knobs.reads, w.knobs.bounds
		l.driver.letGoFrom = w.knobs.letGoFrom
		l.partitions.worth, l.reaper.worth = w.knobs.worth, w.knobs.worth
		l.dispatcher.agentry.inline, l.dispatcher.agentry.many = w.knobs.inline, w.knobs.many
		l.bus, l.clock, l.jobs = simBus{o.process}, clock, o.jobs
		l.announcer.answers = strconv.Itoa(i) + "."
		o.turning = append(o.turning, &turning{loop: l})
	}
	o.svc = &api{env: o.loops.all[0].env, of: or, loops: o.loops, reg: reg, ear: simHearing{}}
	o.loops.join(simMember{o})
	o.settled = o.settle
	o.died = func() { cancel(errStopped); w.buried(o) }
	o.tick(w.knobs.sweep, func() {
		for _, l := range o.loops.all {
			l.reconciler.sweep(l.clock.Now())
			l.questions.sweep()
		}
	})
	o.tick(purgeEvery, func() {
		o.ordered()
		for _, l := range o.loops.all {
			l.reaper.purge(l.clock.Now())
		}
	})
	w.log("%s STARTS, its clock off by %v", o.name, o.offset)
	return o
}

// ordered sees that what is known of the first run of each partition is so, for all before it may be purged.
func (o *orch) ordered() {
	var first [subjects.Partitions]uint64
	for _, l := range o.loops.all {
		for id, r := range l.runs.byID {
			if p := id.Partition(); !r.over && (first[p] == 0 || r.generation < first[p]) {
				first[p] = r.generation
			}
		}
	}
	for p := range first {
		if seq, _ := o.loops.of(p).runs.oldest[p].first(mayGo); seq != first[p] {
			o.w.violate("order", "%s takes plan %d for the first of partition %d that goes on; it is %d", o.name, seq, p, first[p])
		}
	}
}

// owns is how many partitions it has.
func (o *orch) owns() (n int) {
	for _, l := range o.loops.all {
		n += l.cursors.count()
	}
	return n
}

// has reports whether one of its loops has a run of an id.
func (o *orch) has(id subjects.Run) bool { return o.loops.of(id.Partition()).runs.byID[id] != nil }

func (o *orch) tick(every time.Duration, do func()) {
	o.after(every, func() {
		if o.leaving {
			return
		}
		do()
		o.tick(every, do)
	})
}

// settle plans the next turn and the timer of each loop after anything that happened to the process.
func (o *orch) settle() {
	if o.leaving {
		return
	}
	for _, l := range o.turning {
		o.plan(l)
	}
}

// notice counts what only several loops of a process come to.
func (o *orch) notice(l *loop) {
	for _, other := range o.loops.all {
		if other != l && len(l.runs.byID) > 0 && len(other.runs.byID) > 0 {
			o.w.stats["two loops of a process have runs"]++
		}
	}
	for _, w := range l.dispatcher.windows {
		if w.stake.told.Load() {
			o.w.stats["a loop was told of room"]++
		}
	}
	for _, b := range l.dispatcher.burdens {
		if b.stake.told.Load() {
			o.w.stats["a loop was told of room in bytes"]++
		}
	}
}

func (o *orch) plan(l *turning) {
	if !l.awake && len(l.mail.items) > 0 {
		l.awake = true
		busy := 100 * time.Microsecond
		if o.w.chance(20) {
			busy = 20 * time.Millisecond
		}
		o.after(o.w.upTo(busy), func() {
			l.awake = false
			if o.leaving {
				return
			}
			o.notice(l.loop)
			l.items = l.turn(l.items)
			o.checkDemand(l)
			o.amendedAlike(l.loop)
			o.watchLetGo(l.loop)
			o.agentsAmendedAlike(l.loop)
			o.sabotage(l.loop)
		})
	}
	next, there := l.driver.timers.next()
	if !there {
		next = -1
	}
	if next == l.armed {
		return
	}
	l.armed = next
	l.arming++
	if arming := l.arming; there {
		o.after(max(next-l.clock.Mono(), 0)+time.Microsecond, func() {
			if l.arming == arming {
				l.armed = -1
				l.driver.tick()
			}
		})
	}
}

// stop ends the orchestrator in order: the loop at once, its jobs a little later.
func (o *orch) stop() {
	o.after(0, func() {
		o.leaving = true
		for _, l := range o.loops.all {
			for _, c := range l.cursors.all() {
				c.stop()
			}
		}
		o.after(stopPatience, func() { o.kill("in order") })
	})
}

// tell lets the orchestrator know who is alive, as far as anybody knows.
func (o *orch) tell(members []string) {
	if slices.Equal(members, o.members) {
		return
	}
	o.members = members
	o.told()
}

// told lets what is known of the members arrive.
func (o *orch) told() {
	o.after(o.w.latency(), func() {
		now := o.w.serving(o.members) // whatever was on the way before
		o.w.log("%s is told of the members %v", o.name, now)
		o.loops.each(func(l *loop) { l.partitions.own(now) })
	})
}

// serves passes on what an orchestrator has at hand, in worlds in which the others hear of it.
func (o *orch) serves() {
	for _, x := range o.w.owners {
		if x != o && slices.Contains(x.members, o.name) {
			x.told()
		}
	}
}

// simHearing is that of who hears no worker.
type simHearing struct{}

func (simHearing) Holder(context.Context, string) (*tool.Worker, *tool.WorkerTool, error) {
	return nil, nil, nil
}

func (simHearing) Stop() {}

// simMember is how an orchestrator speaks to the others.
type simMember struct{ *orch }

func (m simMember) Serve(uint64) {
	if m.w.patient() {
		m.serves()
	}
}
func (m simMember) Mark(marks []kv.Mark) { m.w.hearMarks(marks) }
func (m simMember) Marks() []kv.Mark     { return slices.Clone(m.w.marks) }
func (m simMember) Stored() (time.Time, time.Duration) {
	return m.w.time().Add(-time.Second), m.w.upTo(time.Second)
}

// hearMarks lets everybody know of marks some time later, and for ever: they are true for ever, also those of the dead.
func (w *world) hearMarks(marks []kv.Mark) {
	w.at(w.latency()+w.upTo(time.Second), func() {
		w.marks = append(w.marks, marks...)
		if n := len(w.marks); n > 100 {
			w.marks = slices.Clone(w.marks[n-100:])
		}
	})
}

// shared is whether several orchestrators have partitions.
func (w *world) shared() bool {
	n := 0
	for _, o := range w.owners {
		if o.owns() > 0 {
			n++
		}
	}
	return n > 1
}

// patient is whether a partition is kept until its next owner has its runs at hand: in every other world. In the rest
// all serve whatever is theirs, so that ownership passes at once.
func (w *world) patient() bool { return w.seed%2 == 1 }

// serving makes members of names.
func (w *world) serving(names []string) (all []kv.Member) {
	for _, name := range names {
		m := kv.Member{ID: name, Serves: ^uint64(0)}
		i := slices.IndexFunc(w.owners, func(o *orch) bool { return o.name == name })
		if i >= 0 && w.patient() {
			m.Serves = w.owners[i].loops.together()
		}
		if i >= 0 {
			m.Lacks = wire.Lacking(w.needs, w.owners[i].knows.Names())
		}
		all = append(all, m)
	}
	return all
}

// cancel is the request of somebody who wants a run to end.
func (o *orch) cancel(id subjects.Run) {
	o.after(o.w.latency(), func() {
		o.svc.request(&nats.Msg{Subject: subjects.API(id, subjects.VerbCancel), Reply: cancelledInbox + id.Tenant + "." + id.ID, Data: []byte(`{"by":"ann"}`)})
	})
}

// stepsLost lets the orchestrator notice, after a while, that the step stream lost what lay in it.
func (o *orch) stepsLost(after time.Duration) {
	o.after(after, func() { o.loops.each(func(l *loop) { l.reconciler.stepsLost() }) })
}

// get is the request of somebody who looks.
func (o *orch) get(id subjects.Run) {
	o.after(o.w.latency(), func() {
		o.svc.request(&nats.Msg{Subject: subjects.API(id, subjects.VerbGet), Reply: "looked." + id.ID})
	})
}

// simJobs runs jobs as coroutines.
type simJobs struct {
	p       *process
	ctx     context.Context
	most    int
	working int
	queue   []func(context.Context)
}

func (j *simJobs) add(do func(context.Context)) {
	if j.working == j.most {
		j.queue = append(j.queue, do)
		return
	}
	j.working++
	j.p.after(j.p.w.upTo(100*time.Microsecond), func() {
		j.p.spawn(func() {
			for {
				do(j.ctx)
				if len(j.queue) == 0 {
					j.working--
					return
				}
				do, j.queue = j.queue[0], j.queue[1:]
			}
		})
	})
}

func (j *simJobs) together(n int) (done, wait func()) {
	var wake func()
	done = func() {
		if n--; n == 0 && wake != nil {
			wake()
		}
	}
	return done, func() {
		if n > 0 {
			j.p.await(func(w func()) { wake = w })
		}
	}
}

func (j *simJobs) close(time.Duration) {}

type simClock struct {
	*process
	names int
	wrong time.Duration // how far Now is off, for good: it is for durations
}

func (c *simClock) Now() time.Time { return c.w.time().Add(c.wrong) }

func (c *simClock) Mono() time.Duration {
	if c.w.bug == ownClock {
		return c.w.now + c.offset
	}
	return c.w.now
}

func (c *simClock) AfterFunc(d time.Duration, do func())     { c.after(d, do) }
func (c *simClock) Pause(_ context.Context, d time.Duration) { c.sleep(d) }
func (c *simClock) Unique() string {
	c.names++
	return c.name + "-" + strconv.Itoa(c.names)
}

// simBus carries events, cancels and answers.
type simBus struct{ p *process }

func (b simBus) Publish(subject string, body []byte) error {
	w := b.p.w
	if b.p.dead {
		return nil
	}
	w.truths.published(subject, body)
	if a, ok := subjects.ParseCancel(subject); ok {
		for _, h := range w.hands {
			h.hear(a)
		}
	}
	return nil
}

func (b simBus) PublishRequest(subject, reply string, body []byte) error {
	for _, o := range b.p.w.owners {
		if o.process == b.p && b.p.w.chance(2) {
			which, rest, _ := strings.Cut(reply, ".")
			i, _ := strconv.Atoi(which)
			token, _ := strconv.ParseUint(rest, 36, 64)
			l := o.loops.all[i]
			o.after(b.p.w.latency(), func() { l.post(func() { l.announcer.nobody(token) }) })
		}
	}
	return b.Publish(subject, body)
}

func (b simBus) PublishMsg(m *nats.Msg) error {
	if !b.p.dead {
		b.p.w.truths.answered(m)
	}
	return nil
}

// traceHandler puts what an orchestrator logs into the trace.
type traceHandler struct {
	slog.Handler
	w     *world
	name  string
	attrs []slog.Attr // of the attempt that a log is about
}

func (h *traceHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *traceHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	for _, a := range h.attrs {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
	}
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.w.log("%s says: %s%s", h.name, r.Message, b.String())
	return nil
}

func (h *traceHandler) WithAttrs(more []slog.Attr) slog.Handler {
	with := *h
	with.attrs = slices.Concat(h.attrs, more)
	return &with
}

var errCursorLost = errors.New("the cursor was lost")

// loseCursor makes an orchestrator read the ledger again.
func (o *orch) loseCursor() {
	for _, s := range o.w.shards {
		for _, c := range slices.Clone(s.cursors) {
			if c.p == o.process {
				c.breaks(errCursorLost)
			}
		}
	}
}

func (w *world) tool(name string) (tool.Registered, bool) {
	t, there := w.knobs.tools[name]
	return t, there
}
