package orchestrator

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/few"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// dispatcher sends attempts to their tools, as far as there is room: calls in the windows of their tools, bytes in the
// burdens of their runs and tenants. What there is no room for is held back.
type dispatcher struct {
	*env
	reg        *registry
	values     *values
	memory     *memory
	decider    *decider
	suspects   *suspects
	runs       *runTable
	tools      *pools      // of calls
	tenants    *pools      // of bytes
	neighbours *neighbours // of the process
	outgoing   *outgoing
	agentry    *agentry

	windows map[string]*window // by tool
	burdens map[string]*burden // by tenant
	bounds  bounds
}

// lane returns what a run has of a step's tool.
func (di *dispatcher) lane(r *run, step int) *lane {
	name, frozen := r.step(step).Tool, r.machine.Contract(step)
	if x := r.lanes.At(name); x != nil {
		return x
	}
	w := di.windows[name]
	if w == nil {
		w = newWindow(di.reg.limit(name, frozen.Limit), batchOf(frozen), di.cfg.Weights, di.neighbours)
		di.windows[name] = w
		di.tools.join(name, &w.stake, di.post, func() { di.dispatchHeld(w) })
	}
	x := &lane{run: r, window: w, single: frozen.Mode == tool.SequentialOnly}
	di.loaded(x)
	r.lanes.Put(name, x)
	return x
}

// batchOf returns how many steps one call of a tool takes, at most.
func batchOf(c *tool.Contract) int {
	if c.Batch == nil {
		return 1
	}
	return c.Batch.MaxItems
}

// offer dispatches an attempt now, or as soon as its tool's window has room for it. One that is to wait for its time
// takes no room: it lies in the stream as a scheduled message. repair is not 0 for what the sweep found lost.
func (di *dispatcher) offer(r *run, d machine.Dispatch, repair int) {
	if r.step(d.Step).Own {
		di.agentry.ready(r, d, func() {})
		return
	}
	if !d.At.IsZero() {
		di.dispatch(r, d, repair, nil)
		return
	}
	if f := r.flights.At(d.Call); f != nil && f.attempt == d.Attempt {
		if repair > 0 {
			f.sent = di.clock.Now()
			f.seq.Store(0)
			di.dispatch(r, d, repair, f)
		}
		return
	}
	x := di.lane(r, d.Step)
	if w := x.window; w.held > 0 || w.full() || x.full() || x.overfull() != nil {
		w.hold(x, holding(d, repair))
		di.dispatchHeld(w)
		return
	}
	di.launch(x, d, repair)
}

// launch dispatches an attempt that has room.
func (di *dispatcher) launch(x *lane, d machine.Dispatch, repair int) {
	f := &flight{attempt: d.Attempt, lane: x, sent: di.clock.Now()}
	x.run.track(d.Call, f)
	di.dispatch(x.run, d, repair, f)
}

// dispatchHeld dispatches what is held back, as far as there is room.
func (di *dispatcher) dispatchHeld(w *window) {
	w.sendHeld(func(x *lane, h held) bool {
		r, d := x.run, h.dispatch()
		if r.phase != running || !r.machine.Wanted(d.Call, d.Attempt) {
			return false // over, given up, or not ours any more
		}
		if f := r.flights.At(d.Call); f != nil && f.attempt == d.Attempt {
			return false
		}
		di.launch(x, d, int(h.repair))
		return true
	})
}

// decided takes an attempt out of its window, since it was decided.
func (di *dispatcher) decided(r *run, res *machine.Result) {
	f := r.flights.At(res.Call)
	if f == nil || f.attempt != res.Attempt {
		return
	}
	r.flights.Drop(res.Call)
	f.release()
	x, w := f.lane, f.lane.window
	di.neighbours.decided(r)
	di.eased(x)
	executed, execution := !res.ByOwner && !res.Started.IsZero(), max(res.Ended.Sub(res.Started), 0)
	if executed {
		w.took(execution)
	}
	if w.held == 0 {
		w.stake.leave()
		return
	}
	if x.calls.len() > 0 && !f.sent.IsZero() && executed {
		w.share().measured(di.clock.Now().Sub(f.sent), execution)
	}
	w.turn(x)
	di.dispatchHeld(w)
}

// limited lets the limit of a tool count that the registry has now, for runs that began under another one too: a limit
// is the tool's, and the consumer that all of them share has it already.
func (di *dispatcher) limited(name string) {
	w := di.windows[name]
	if w == nil || !w.limitTo(di.reg.limit(name, w.limit)) {
		return
	}
	for _, r := range di.runs.oldestFirst(func(r *run) bool { return r.lanes.At(name) != nil }) {
		w.turn(r.lanes.At(name))
	}
	di.dispatchHeld(w)
}

// adopt notes an attempt that an earlier owner dispatched and that lies in its stream still.
func (di *dispatcher) adopt(r *run, d machine.Dispatch) {
	if r.phase == running && r.flights.At(d.Call) == nil && r.machine.Open(d.Call, d.Attempt) {
		r.track(d.Call, &flight{attempt: d.Attempt, lane: di.lane(r, d.Step)})
	}
}

// releaseAll returns back the room of all that a run has out: it is over, or another's.
func (di *dispatcher) releaseAll(r *run) {
	di.neighbours.over(r)
	for _, f := range r.flights.All() {
		f.release()
	}
	lanes := r.lanes
	r.flights, r.lanes, r.burden = few.Map[machine.Call, *flight]{}, few.Map[string, *lane]{}, nil
	var waiting []string // tools for which others have something held back
	for name, x := range lanes.All() {
		for ; x.calls.len() > 0; x.calls.pop() {
			x.window.held--
		}
		x.window.claim()
		x.window.stake.leave()
		di.unloaded(x)
		if x.window.held > 0 {
			waiting = append(waiting, name)
		}
	}
	slices.Sort(waiting)
	for _, name := range waiting {
		di.dispatchHeld(lanes.At(name).window)
	}
	if of := di.burdens[r.id.Tenant]; of != nil {
		of.wake(di.dispatchHeld)
		of.stake.leave()
	}
}

// dispatch resolves a call's arguments and sends the attempt to its tool. repair is 0 for the first time. f, where it
// is not nil, learns where the message lies.
func (di *dispatcher) dispatch(r *run, d machine.Dispatch, repair int, f *flight) {
	if !di.agentry.ready(r, d, func() { di.dispatch(r, d, repair, f) }) {
		return
	}
	s := sending{attempt: r.attempt(d.Call, d.Attempt), inputs: r.inputs(d.Call), flight: f}
	s.sends, s.over = di.outgoing.of(r.id.Partition()), di.outgoing.over
	s.dispatch = kv.Dispatch{Attempt: s.attempt, Shard: r.shard(d.Step), At: d.At, Repair: repair}
	if f != nil {
		s.dispatch.Seq = &f.seq
	}
	contract := r.machine.Contract(d.Step)
	s.step = wire.Step{
		Result: subjects.StepRecord(s.attempt, di.store.Shards()), Key: s.attempt.Key(), Attempt: d.Attempt, Timeout: contract.Timeout,
		Retried:    r.retriedKey(d.Call),
		Definition: r.start.Tools[s.attempt.Tool].Digest, StartBy: r.machine.StartBy(d.Call), Context: r.contextOf(d.Step).All,
		Trace:  r.trace.Of(s.attempt),
		Bucket: r.bucket(),
	}
	if s.step.MayAsk = machine.MayAsk(r.machine, d.Call); contract.Asks {
		s.step.Reply = replyTo(r, d)
	}
	if contract.AtMostOnce {
		s.step.Claim = subjects.ClaimRecord(s.attempt, di.store.Shards())
	}
	if _, _, streams := machine.Streams(r.machine, d.Call); streams {
		s.step.Stream = subjects.ClaimRecord(s.attempt, di.store.Shards())
	}
	if at, asked := r.machine.Deadline(d.Call); asked {
		s.step.Deadline = at
	}
	s.begun()
	if s.inputs.apart {
		di.weigh(f, di.sendBeside(s))
		return
	}
	di.weigh(f, di.send(di.ctx, s))
}

// replyTo returns what an attempt is told that its tool has asked; nil for nothing.
func replyTo(r *run, d machine.Dispatch) *wire.Reply {
	q, a := r.machine.Inquiry(d.Call)
	if q == nil || q.Attempt >= d.Attempt {
		return nil
	}
	asks, err := wire.ParseAsks(q.Asks.Body)
	if err != nil { // of no record that was decoded here
		return nil
	}
	return &wire.Reply{Attempt: q.Attempt, Answer: a.Value, State: asks.State}
}

// sendBeside resolves and publishes beside the loop what lies in blobs, or has to go into one. It returns the bytes
// that this takes at most.
func (di *dispatcher) sendBeside(s sending) int64 {
	s.inputs.resolver = nil // that of a run is for one goroutine
	most := s.inputs.most(false)
	di.memory.reserve(most, func(ctx context.Context) {
		bytes := di.send(ctx, s)
		di.post(func() { di.weigh(s.flight, bytes) })
	})
	return most
}

// send resolves and publishes, and returns the bytes that are out for it. On the loop, where the inputs have a
// resolver, nothing large is built.
func (di *dispatcher) send(ctx context.Context, s sending) int64 {
	args, err := di.values.arguments(ctx, &s.inputs)
	if err != nil && err.Code == fault.TooLarge && s.inputs.resolver != nil {
		return di.sendBeside(s)
	}
	if err != nil {
		s.ended()
		if ctx.Err() == nil {
			di.decider.fail(s.attempt, err, s.step.Trace)
		}
		return 0
	}
	if len(args) > wire.InlineLimit {
		di.sendLarge(ctx, s, args)
		return int64(len(args))
	}
	s.dispatch.Header, s.dispatch.Body = s.step.Header(), args
	di.store.DispatchAsync(di.ctx, s.dispatch, di.sent(&s))
	return int64(len(args))
}

func (di *dispatcher) sendLarge(ctx context.Context, s sending, args []byte) {
	handle, err := di.values.put(ctx, s.step.Bucket, s.attempt.BlobName, args)
	if err != nil {
		s.ended()
		return // only when stopping: the next owner sends it
	}
	s.step.Handle = handle
	s.dispatch.Header = s.step.Header()
	di.store.DispatchAsync(ctx, s.dispatch, di.sent(&s))
}

func (di *dispatcher) sent(s *sending) func(error) {
	a, f := s.attempt, s.flight
	if s.dispatch.Repair > 0 {
		f = nil
	}
	return di.tell.dispatch(s, func(err error) {
		s.ended()
		switch {
		case err != nil && di.ctx.Err() == nil:
			logOf(di.log, &a, s.step.Trace).Error("a step could not be dispatched; the sweep tries again", "error", err)
		case err == nil && f != nil && f.seq.Load() == 0:
			di.post(func() { di.sentBefore(f) })
		}
	})
}

// sentBefore compares the run of an attempt that its stream did not take, since it had one of it before: whether that
// is there still.
func (di *dispatcher) sentBefore(f *flight) {
	if r := f.lane.run; !f.released && r.phase == running && !r.awaitingInput() {
		di.suspects.add(r, longGone)
		di.suspects.compareSoon()
	}
}

// loaded lets a lane take part in the burdens of its run and its tenant.
func (di *dispatcher) loaded(x *lane) {
	r := x.run
	if r.burden == nil {
		r.burden = &burden{of: "run", most: di.bounds.run}
	}
	of := di.burdens[r.id.Tenant]
	if of == nil {
		of = &burden{of: "tenant", most: di.bounds.tenant}
		di.burdens[r.id.Tenant] = of
		di.tenants.join(r.id.Tenant, &of.stake, di.post, func() { of.wake(di.dispatchHeld) })
	}
	of.lanes++
	x.ofRun, x.ofTenant, x.light = r.burden, of, di.bounds.light
	x.weight = func(h held) int64 {
		if r.phase != running {
			return 0 // it is not sent: nobody wants it any more
		}
		return r.argumentBytes(h.dispatch().Call)
	}
}

// weigh notes how many bytes a flight has, as soon as that is known or known better.
func (di *dispatcher) weigh(f *flight, bytes int64) {
	if f == nil || f.released {
		return
	}
	shrunk := bytes < f.bytes
	f.add(bytes - f.bytes)
	if shrunk { // never while a window is pumped: what is sent there had no bytes before
		di.eased(f.lane)
	}
}

// eased lets those go on that waited for bytes, as far as there is room: the tenant's other runs before the run that
// made room. It must not be called while a window is pumped.
func (di *dispatcher) eased(x *lane) {
	x.ofTenant.wake(di.dispatchHeld)
	x.ofRun.wake(di.dispatchHeld)
	x.ofTenant.stake.leave()
}

// unloaded takes a lane of a run that is over, or another's, out of its tenant's burden.
func (di *dispatcher) unloaded(x *lane) {
	if x.ofTenant.lanes--; x.ofTenant.lanes == 0 {
		delete(di.burdens, x.run.id.Tenant)
		di.tenants.quit(x.run.id.Tenant, &x.ofTenant.stake)
	}
}

// suspects are the runs whose effects may have been lost: those taken over from another owner, those that have waited
// for long, and all of them after a step stream lost what lay in it.
type suspects struct {
	*env
	// runs has, for each, how long what lay in a step stream may be taken for gone. A worker may be at a step whose
	// message is gone, and goes on; the longer that is ago, the fewer are.
	runs    map[*run]time.Duration
	soon    bool   // a comparison is posted
	compare func() // compares them
}

// longGone is longer than any worker is at a step.
const longGone = time.Duration(math.MaxInt64)

func (s *suspects) add(r *run, gone time.Duration) {
	if s.runs == nil {
		s.runs = map[*run]time.Duration{}
	}
	s.runs[r] = max(s.runs[r], gone)
}

// compareSoon compares them once the loop has read what waits for it, so that many runs taken over together make one
// comparison.
func (s *suspects) compareSoon() {
	if !s.soon {
		s.soon = true
		s.post(s.compare)
	}
}

// take empties the set.
func (s *suspects) take() (all map[*run]time.Duration) {
	all, s.runs, s.soon = s.runs, nil, false
	return all
}

// heldBack returns which attempts this owner holds back, exactly; that takes longer than to tell of some that they may be.
func heldBack(r *run) (holds func(machine.Dispatch) bool) {
	all := map[machine.Dispatch]bool{}
	for _, x := range r.lanes.All() {
		for _, h := range x.calls.items[x.calls.head:] {
			all[h.dispatch()] = true
		}
	}
	return func(d machine.Dispatch) bool { return all[d] && r.flights.At(d.Call) == nil }
}
