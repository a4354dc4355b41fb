package conformance

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// maxDeliveries is how often an attempt is handed out before it is given up.
const maxDeliveries = 5

// prepared are steps that other workers had before, made while the one under test is stopped.
type prepared struct {
	poisoned, redelivered, over, lost, elsewhere *probe
}

// again stops the worker, prepares the steps and starts it again, once for all checks that need it. It says why not.
func (s *stage) again(ctx context.Context) (p *prepared, whyNot string) {
	if s.prepared != nil {
		return s.prepared, ""
	}
	if s.guest == nil {
		return nil, "the worker was not started here"
	}
	s.guest.Kill()
	s.note(s.store.Ledger.PurgeSubject(ctx, subjects.ToolFilter(s.tool.Name, s.tool.Shard))) // what earlier checks left
	if !s.quiet(ctx, 3*s.lease()) {
		return nil, "steps of earlier checks are not done"
	}
	s.prepared = s.prepare(ctx)
	if s.broken == nil {
		s.note(s.start(ctx))
	}
	return s.prepared, ""
}

func (s *stage) prepare(ctx context.Context) *prepared {
	p := &prepared{poisoned: s.step(ctx, "poisoned", `{"echo":"poison"}`)}
	for range maxDeliveries - 1 {
		s.lose(ctx, 1)
	}
	p.redelivered = s.step(ctx, "redelivered", `{"echo":"again"}`)
	p.redelivered.decide(ctx, wire.Result{Body: []byte(`"the first worker's"`)})
	p.over = s.probe(s.newRun(ctx, "over"), "s1")
	p.over.attempt.Generation++ // of no run that there is
	p.over.send(ctx, p.over.header(), []byte(`{"echo":"a zombie"}`))
	claims := func(p *probe) {
		p.send(ctx, p.header(func(w *wire.Step) { w.Claim = p.claim() }), []byte(`{"echo":"executed"}`))
	}
	p.lost, p.elsewhere = s.probe(s.newRun(ctx, "lost"), "s1"), s.probe(s.newRun(ctx, "elsewhere"), "s1")
	claims(p.lost)
	claims(p.elsewhere)
	p.lost.claimed(ctx, p.lost.seq)
	p.elsewhere.claimed(ctx, p.elsewhere.seq+1_000_000)
	s.lose(ctx, 5)
	return p
}

// claimed writes a claim as another worker would have.
func (p *probe) claimed(ctx context.Context, seq uint64) {
	body, _ := json.Marshal(claimBody{"another-worker", seq}) // a string and a number
	_, _, err := p.s.store.Ledger.Create(ctx, p.claim(), nats.Header{subjects.HeaderWorker: {myself}}, body, nil)
	p.s.note(err)
}

// lose takes n steps and has them handed out again, as if their worker had died.
func (s *stage) lose(ctx context.Context, n int) {
	c, err := s.js.Consumer(ctx, subjects.StepsStream(s.tool.Shard), subjects.Durable(s.tool.Name))
	if err != nil {
		s.note(kv.Fault(err))
		return
	}
	batch, err := c.Fetch(n, jetstream.FetchMaxWait(s.o.Patience))
	if err != nil {
		s.note(kv.Fault(err))
		return
	}
	taken := 0
	for m := range batch.Messages() {
		taken++
		s.note(m.Nak())
	}
	if taken < n && s.broken == nil {
		s.note(fault.New(fault.Internal, "the server handed out %d of %d steps", taken, n))
	}
}

func redelivered(ctx context.Context, s *stage, v *verdict) {
	all, whyNot := s.again(ctx)
	if whyNot != "" || s.broken != nil {
		v.skip(whyNot)
		return
	}
	p := all.redelivered
	const advice = "where the delivery count is over 1, read the last message at " + subjects.HeaderResult +
		" first; is it there, acknowledge and do nothing else"
	if !p.settled(ctx, s.o.Patience) {
		v.must(advice, "after a restart, a redelivered step that has its record was not acknowledged%s", s.ended())
	}
	if len(s.witness.offered(p.record())) > 0 {
		v.should(advice, "it executed a step that was done already")
	}
	if !all.over.settled(ctx, s.o.Patience) {
		v.must(advice, "a redelivered step whose run is over was not acknowledged%s", s.ended())
	} else if len(s.witness.offered(all.over.record())) > 0 {
		v.should("where the record is absent, create one at "+subjects.HeaderResult+
			" with .claim behind it, as a claim: error 10071 says that the run is over; acknowledge then, and run nothing",
			"it executed a redelivered step of a run that is over")
	}
}

func poisoned(ctx context.Context, s *stage, v *verdict) {
	all, whyNot := s.again(ctx)
	if whyNot != "" || s.broken != nil {
		v.skip(whyNot)
		return
	}
	const advice = "at delivery 6 and later answer with the error worker_lost instead of executing: the step may be what kills its workers"
	switch r, ok := all.poisoned.await(ctx, s.o.Patience); {
	case !ok:
		v.must(advice, "a step at its sixth delivery has no record%s", s.ended())
	case r.Error == nil:
		v.must(advice, "it executed a step that five workers have not survived")
	case r.Error.Code != fault.WorkerLost:
		v.must(advice, "the error is %s", said(r.Error))
	}
}

func claimed(ctx context.Context, s *stage, v *verdict) {
	if s.refuses {
		v.skip("it hosts no at_most_once tools")
		return
	}
	all, whyNot := s.again(ctx)
	if whyNot != "" || s.broken != nil {
		v.skip(whyNot)
		return
	}
	const advice = "where the claim is refused, read the one that is there; another nonce with this message's seq: answer outcome_unknown; another seq: acknowledge and drop"
	switch r, ok := all.lost.await(ctx, s.o.Patience); {
	case !ok:
		v.must(advice, "a step that a lost worker had claimed has no record%s", s.ended())
	case r.Error == nil:
		v.must(advice, "it executed a step of an at_most_once tool that another worker may have executed")
	case r.Error.Code != fault.OutcomeUnknown:
		v.should(advice, "a step that a lost worker had claimed got the error %s", said(r.Error))
	}
	if !all.elsewhere.settled(ctx, s.o.Patience) {
		v.must(advice, "a step that was claimed for another message was not acknowledged")
	}
	until(ctx, 200*time.Millisecond, func() bool { _, ok := all.elsewhere.result(ctx); return ok })
	if r, ok := all.elsewhere.result(ctx); ok && r.Error == nil {
		v.must(advice, "it executed a step that is claimed for another message")
	} else if ok {
		v.must(advice, "it recorded %s for a step that another worker is at", said(r.Error))
	}
}
