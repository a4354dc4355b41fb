package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// tenant owns the runs of the checks.
const tenant = "conformance"

// madeRun is a run that a check made.
type madeRun struct {
	subjects.Run
	generation uint64
}

// newRun writes the plan record of a run, whose steps are the check's to send.
func (s *stage) newRun(ctx context.Context, check string) madeRun {
	r := madeRun{Run: subjects.NewRun(tenant, check+"-"+nuid.Next())}
	h := nats.Header{subjects.HeaderVersion: {subjects.Version}, subjects.HeaderWorker: {myself}}
	_, seq, err := s.store.Ledger.Create(ctx, subjects.PlanRecord(r.Run, s.store.Ledger.Shards()), h, []byte(`{}`), nil)
	s.note(err)
	r.generation = seq
	s.runs = append(s.runs, r)
	return r
}

// probe is one step sent to the worker.
type probe struct {
	s       *stage
	attempt subjects.Attempt
	seq     uint64 // of its message
}

// edit changes what an orchestrator would send.
type edit func(*wire.Step)

// step sends attempt 1 of a step of a new run.
func (s *stage) step(ctx context.Context, check, args string, edits ...edit) *probe {
	return s.stepOf(ctx, s.newRun(ctx, check), "s1", args, edits...)
}

func (s *stage) stepOf(ctx context.Context, r madeRun, step, args string, edits ...edit) *probe {
	p := s.probe(r, step)
	p.send(ctx, p.header(edits...), []byte(args))
	return p
}

// probe names a step without sending it.
func (s *stage) probe(r madeRun, step string) *probe {
	return &probe{s: s, attempt: subjects.Attempt{Run: r.Run, Generation: r.generation, Tool: s.tool.Name, Step: step,
		Number: 1}}
}

// header is what an orchestrator would send with the step.
func (p *probe) header(edits ...edit) nats.Header {
	step := wire.Step{Result: p.record(), Key: p.attempt.Key(), Attempt: p.attempt.Number, Timeout: time.Minute}
	for _, f := range edits {
		f(&step)
	}
	return step.Header()
}

// send puts the step into the queue.
func (p *probe) send(ctx context.Context, h nats.Header, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, p.s.o.Patience)
	defer cancel()
	m := &nats.Msg{Subject: subjects.Step(p.attempt, p.s.tool.Shard), Header: h, Data: body}
	ack, err := p.s.js.PublishMsg(ctx, m)
	if err != nil {
		p.s.note(kv.Fault(err))
		return
	}
	p.seq = ack.Sequence
}

// record returns the subject of the step's result.
func (p *probe) record() string { return subjects.StepRecord(p.attempt, p.s.store.Ledger.Shards()) }

// claim returns the subject of the step's claim.
func (p *probe) claim() string { return subjects.ClaimRecord(p.attempt, p.s.store.Ledger.Shards()) }

// result reads the step's record; ok is false where there is none.
func (p *probe) result(ctx context.Context) (r wire.Result, ok bool) {
	e, err := p.s.store.Ledger.Read(ctx, p.record())
	if err != nil {
		return r, false
	}
	if worker := header(e.Header, subjects.HeaderWorker); worker != "" && worker != myself {
		p.s.worker = text.Clip(worker, 256)
	}
	return wire.ParseResult(e.Header, e.Data), true
}

// await waits for the step's record.
func (p *probe) await(ctx context.Context, d time.Duration) (r wire.Result, ok bool) {
	until(ctx, d, func() bool {
		r, ok = p.result(ctx)
		return ok
	})
	if ok { // the witness may hear of it a moment later than the ledger
		until(ctx, time.Second, func() bool { return len(p.s.witness.offered(p.record())) > 0 })
	}
	return r, ok
}

// acked reports whether the worker has acknowledged the step's message, or said that it is to be dropped.
func (p *probe) acked() bool { return p.acknowledgement() != nil }

func (p *probe) acknowledgement() *sign {
	for _, s := range p.s.witness.about(p.seq) {
		if s.Kind == kv.Acked || s.Kind == kv.Terminated {
			return &s
		}
	}
	return nil
}

// settled waits until the worker has acknowledged the step.
func (p *probe) settled(ctx context.Context, d time.Duration) bool { return until(ctx, d, p.acked) }

// taken waits for the first heartbeat: then the worker is surely at the step.
func (p *probe) taken(ctx context.Context) bool {
	return until(ctx, 2*p.s.lease(), func() bool { return len(p.s.witness.about(p.seq)) > 0 })
}

// decide writes the step's record in the worker's place.
func (p *probe) decide(ctx context.Context, r wire.Result) {
	r.Worker = myself
	h, body := r.Message()
	_, _, err := p.s.store.Ledger.Create(ctx, p.record(), h, body, nil)
	p.s.note(err)
}

// consumer returns the state of the tool's consumer; nil where it can't be had.
func (s *stage) consumer(ctx context.Context) *jetstream.ConsumerInfo {
	c, err := s.js.Consumer(ctx, subjects.StepsStream(s.tool.Shard), subjects.Durable(s.tool.Name))
	if err != nil {
		return nil
	}
	return c.CachedInfo()
}

// quiet waits until no step is leased or waiting.
func (s *stage) quiet(ctx context.Context, d time.Duration) bool {
	return until(ctx, d, func() bool {
		c := s.consumer(ctx)
		return c != nil && c.NumAckPending == 0 && c.NumPending == 0
	})
}

// alive checks that the worker still does ordinary steps.
func (s *stage) alive(ctx context.Context, v *verdict, after string) {
	p := s.step(ctx, "alive", `{"echo":"alive"}`)
	if r, ok := p.await(ctx, s.o.Patience); !ok || r.Error != nil {
		v.must("answer the step and go on; "+whatKills, "after %s it did an ordinary step no more%s", after, s.ended())
	}
}

const whatKills = "an exception outside of the tool's own code must not end the worker or its pulling"

// ended says that the worker's process has ended, where it has.
func (s *stage) ended() string {
	if s.guest == nil {
		return ""
	}
	if !isClosed(s.guest.Done()) {
		return ""
	}
	if why := s.guest.Why(); why != "" {
		return "; the worker has ended: " + why
	}
	return "; the worker has ended by itself"
}

// said describes an error's code and message in short.
func said(e *fault.Error) string { return fmt.Sprintf("%s: %s", e.Code, text.Clip(e.Message, 120)) }
