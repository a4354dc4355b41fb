package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// hand is a worker of the simulated world. It does what docs/protocol.md says, and dies wherever it can.
type hand struct {
	*process
	store   *simStore
	slots   int
	busy    int
	lives   int
	nonces  int
	working map[subjects.Attempt]*bool // cancelled
	claims  map[subjects.Attempt]string
}

func (w *world) newHand(name string, life int) *hand {
	h := &hand{process: &process{w: w, name: name + "." + strconv.Itoa(life)}, slots: 1 + w.Intn(6), lives: life, working: map[subjects.Attempt]*bool{}, claims: map[subjects.Attempt]string{}}
	h.offset = w.skew()
	h.store = &simStore{p: h.process, w: w}
	h.died = func() { w.lostHand(h) }
	return h
}

// freeHand returns a worker that asks for more.
func (w *world) freeHand() *hand {
	at := w.Intn(len(w.hands))
	for i := range w.hands {
		if h := w.hands[(at+i)%len(w.hands)]; !h.dead && h.busy < h.slots {
			return h
		}
	}
	return nil
}

// take hands a step to the worker.
func (h *hand) take(m *message, delivered int) {
	h.busy++
	h.after(h.w.latency(), func() {
		h.spawn(func() {
			over, cancelled := false, false
			h.working[m.attempt] = &cancelled
			h.beat(m, delivered, &over)
			h.work(m, delivered, &cancelled)
			over = true
			delete(h.working, m.attempt)
			h.busy--
			h.w.steps.kick(m.attempt.Tool)
			for _, tool := range slices.Concat(simTools, h.w.agentTools) {
				h.w.steps.kick(tool)
			}
		})
	})
}

// beat keeps the lease.
func (h *hand) beat(m *message, delivered int, over *bool) {
	c := h.w.steps.consumers[m.attempt.Tool]
	h.after(c.ackWait/3, func() {
		if *over {
			return
		}
		h.ask("heartbeat", func() func() { h.w.steps.renew(m, delivered); return func() {} }, func() {})
		h.beat(m, delivered, over)
	})
}

// hear is a cancel on its way to the worker.
func (h *hand) hear(a subjects.Attempt) {
	if h.w.chance(h.w.knobs.loss) {
		return
	}
	h.after(h.w.latency(), func() {
		if cancelled := h.working[a]; cancelled != nil {
			*cancelled = true
		}
	})
}

// dies ends the worker here, now and then.
func (h *hand) dies(where string) {
	if !h.w.healed && h.w.chance(h.w.knobs.die) {
		h.w.stats["worker died "+where]++
		h.kill(where)
		panic(killed{})
	}
}

func (h *hand) work(m *message, delivered int, cancelled *bool) {
	step, err := wire.ParseStep(m.header)
	if err != nil {
		h.w.violate("I8", "a step that can't be read: %v", err)
		return
	}
	if delivered > 1 && (h.found(step.Result) != nil || !h.stands(m)) {
		h.ack(m)
		return
	}
	if !step.StartBy.IsZero() && delivered <= 1 && h.clock().After(step.StartBy) {
		h.sleep(max(step.StartBy.Add(2*time.Second).Sub(h.clock()), 0))
		f := fault.New(fault.Timeout, "the step waited longer than its wait_timeout for a slot")
		f.Retryable = false
		h.answer(m, &step, wire.Result{Error: f}, true)
		return
	}
	if step.Claim != "" && h.w.bug != noClaim && !h.claim(m, &step) {
		return
	}
	if step.Stream != "" && delivered > 1 && !h.claim(m, &step) {
		return
	}
	if delivered > 5 {
		h.w.stats["a step that nobody survived"]++
		h.answer(m, &step, wire.Result{Error: fault.New(fault.WorkerLost, "nobody survived it")}, true)
		return
	}
	args := m.body
	h.dies("before the effect")
	reply, disturbed := h.execute(m, &step, args)
	h.dies("after the effect")
	if *cancelled && h.w.chance(2) {
		h.w.stats["a worker heard of a cancel"]++
		h.ack(m)
		return
	}
	h.answer(m, &step, reply, disturbed)
}

// execute calls the tool, for as long as it may take.
func (h *hand) execute(m *message, step *wire.Step, args []byte) (r wire.Result, disturbed bool) {
	h.w.truths.effect(m, step, args, h)
	r.Started = h.clock()
	reply := h.w.truths.call(m.attempt, args)
	if step.Stream != "" {
		h.writing(m, step)
	}
	long := h.w.upTo(60 * time.Millisecond)
	if h.w.chance(h.w.knobs.long) {
		long = h.w.upTo(5 * time.Second)
	}
	late := fault.New(fault.Timeout, "it took too long")
	if step.Claim != "" {
		late = fault.New(fault.OutcomeUnknown, "it took too long")
	}
	switch {
	case step.Timeout > 0 && long > step.Timeout:
		h.sleep(step.Timeout)
		h.w.stats["execution timeout"]++
		return wire.Result{Error: late, Started: r.Started}, true
	case !step.Deadline.IsZero() && h.clock().Add(long).After(step.Deadline.Add(2*time.Second)):
		h.sleep(max(step.Deadline.Add(2*time.Second).Sub(h.clock()), 0))
		return wire.Result{Error: late, Started: r.Started}, true
	}
	h.sleep(long)
	if reply.Err != nil {
		r.Error = &fault.Error{Code: fault.Code(reply.Err.Code), Message: reply.Err.Message, Retryable: reply.Err.Retryable}
		return r, false
	}
	if reply.Asks {
		r.Asks = asksOf(m.attempt.MessageID())
		return r, false
	}
	r.Body, r.Text = reply.Body, reply.Text
	return r, false
}

// answer records what came of an attempt, and only then acknowledges the step.
func (h *hand) answer(m *message, step *wire.Step, r wire.Result, disturbed bool) {
	r.Worker, r.Ended = h.name, h.clock()
	if h.w.bug == ackFirst {
		h.ack(m)
	}
	if r.Error == nil && r.Asks == nil && h.w.chance(h.w.knobs.blobs) {
		name := m.attempt.BlobName(h.name + strconv.Itoa(int(h.w.number)))
		var handle *outcome.Handle
		for err := error(fault.New(fault.Timeout, "")); err != nil; {
			handle, err = h.store.PutBlob(context.Background(), step.Bucket, name, r.Body)
		}
		_, bad := plan.Output(r.Body, r.Text)
		handle.Checked = bad == nil && h.w.chance(2) // a worker in another language may leave that to the owner
		r.Handle, r.Body = handle, nil
		h.w.stats["result in a blob"]++
	}
	if disturbed {
		h.w.truths.disturb(m.attempt)
	}
	head, body := r.Message()
	d, _, _ := h.store.Create(context.Background(), step.Result, head, body, nil)
	if d == kv.Decided {
		h.w.stats["late write refused"]++
	}
	h.dies("after the record")
	if h.w.bug != ackFirst {
		h.ack(m)
	}
	h.dies("after the ack")
}

func (h *hand) ack(m *message) {
	h.ask("ack of "+m.attempt.MessageID(), func() func() { h.w.steps.ack(m); return func() {} }, func() {})
}

// found reads a record until there is an answer.
func (h *hand) found(subject string) *kv.Entry {
	for {
		e, err := h.store.Read(context.Background(), subject)
		if err == nil || fault.CodeOf(err) == fault.NotFound {
			return e
		}
	}
}

// stands looks whether the run of a step that was handed out before goes on: where it was cancelled and its worker
// died, the step may come long after the end.
func (h *hand) stands(m *message) bool {
	e := h.found(subjects.PlanRecord(m.attempt.Run, h.store.Shards()))
	if e == nil || e.Seq != m.attempt.Generation {
		h.w.stats["a redelivered step of a run that was over"]++
		return false
	}
	return true
}

// claim makes sure that this delivery alone executes a step of an at_most_once tool.
func (h *hand) claim(m *message, step *wire.Step) bool {
	h.nonces++
	at := cmp.Or(step.Claim, step.Stream)
	mine := wire.Claim{Nonce: h.name + "/" + strconv.Itoa(h.nonces), Seq: m.seq}
	header, body := mine.Message(h.name)
	plan := subjects.PlanRecord(m.attempt.Run, h.store.Shards())
	d, _, _ := h.store.Create(context.Background(), at, header, body, &kv.Fence{Subject: plan, Seq: m.attempt.Generation})
	switch d {
	case kv.Written:
		h.claims[m.attempt] = mine.Nonce
		return true
	case kv.Gone:
		h.w.stats["claim of a run that was over refused"]++
		h.ack(m)
		return false
	default: // decided: by itself or by another
	}
	var there wire.Claim
	e := h.found(at)
	if e != nil {
		there = wire.ParseClaim(e.Data)
	}
	switch {
	case e != nil && there == mine:
		h.claims[m.attempt] = mine.Nonce
		if e := h.found(plan); e != nil && e.Seq == m.attempt.Generation {
			return true
		}
		h.ack(m)
	case e != nil && there.Seq == m.seq && step.Claim == "":
		h.w.stats["an answer that another worker had begun to write"]++
		f := fault.New(fault.ToolFailed, "a worker was lost that had begun to write this answer")
		h.answer(m, step, wire.Result{Error: f}, true)
	case e != nil && there.Seq == m.seq:
		h.w.stats["an attempt claimed by a worker that was lost"]++
		h.answer(m, step, wire.Result{Error: fault.New(fault.OutcomeUnknown, "a worker was lost")}, true)
	default:
		h.w.stats["an attempt claimed for another message"]++
		h.ack(m)
	}
	return false
}
