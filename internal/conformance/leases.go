package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// sleeping are arguments that keep the tool busy.
func sleeping(d time.Duration) string {
	return fmt.Sprintf(`{"sleep_ms":%d,"echo":"slept"}`, d.Milliseconds())
}

func heartbeat(ctx context.Context, s *stage, v *verdict) {
	long := 5 * s.lease() / 2
	heard := s.told()
	p := s.step(ctx, "heartbeat", heard.tell(sleeping(long)))
	redelivered := false
	done := until(ctx, long+s.o.Patience, func() bool {
		if c := s.consumer(ctx); c != nil && c.NumRedelivered > 0 {
			redelivered = true
		}
		_, ok := p.result(ctx)
		return ok && p.acked()
	})
	every := (s.lease() / 3).Round(time.Millisecond)
	advice := fmt.Sprintf("while the tool runs, send +WPI to the step's reply subject every third of ack_wait_ms: here every %v", every)
	for _, x := range s.witness.about(p.seq) {
		redelivered = redelivered || x.Delivered > 1
	}
	switch {
	case redelivered:
		v.must(advice, "a step of %v lost its lease of %v and was handed out again", long, s.lease())
	case !done:
		v.must(advice, "a step of %v was not recorded and acknowledged%s", long, s.ended())
	}
	if n := s.executions(p, heard.count()); n > 1 {
		v.must(advice, "it was executed %d times", n)
	}
}

func fullLedger(ctx context.Context, s *stage, v *verdict) {
	p := s.probe(s.newRun(ctx, "full"), "s1")
	restore, err := s.fill(ctx)
	if err != nil {
		s.note(err)
		return
	}
	defer func() { s.note(restore()) }()
	p.send(ctx, p.header(), []byte(`{"echo":"kept"}`))
	if !until(ctx, s.o.Patience, func() bool { return len(s.witness.offered(p.record())) > 0 || p.acked() }) {
		v.must("take steps and publish their results whatever became of earlier ones",
			"no result was published for the step%s", s.ended())
		return
	}
	const advice = "acknowledge only after a PubAck without an error, or when the record is there; otherwise keep lease and result, and publish again with growing pauses"
	if until(ctx, 3*s.lease()/2, p.acked) {
		v.must(advice, "the ledger refused the record, and the worker acknowledged the step: its result is lost")
		return
	}
	if s.note(restore()); s.broken != nil {
		return
	}
	r, ok := p.await(ctx, s.o.Patience)
	switch {
	case !ok:
		v.must(advice, "the ledger takes records again, and the result was not published any more%s", s.ended())
		return
	case r.Error != nil:
		v.must(advice, "a ledger that was full for a moment became the step's error %s", said(r.Error))
	}
	if !p.settled(ctx, s.o.Patience) {
		v.must(advice, "the record was written in the end, but the step not acknowledged")
	} else if a := p.acknowledgement(); a.Delivered > 1 {
		v.should("send heartbeats until the record is written", "the lease was lost meanwhile, and the step executed again")
	}
}

// fill lets the ledger take no new record until restore is called, which may be done more than once.
func (s *stage) fill(ctx context.Context) (restore func() error, err error) {
	shard := subjects.LedgerStream(0)
	if s.store.Ledger.Shards() > 1 {
		return nil, fault.New(fault.InvalidConfig, "the server has %d ledger shards; the check needs one",
			s.store.Ledger.Shards())
	}
	stream, err := s.js.Stream(ctx, shard)
	if err != nil {
		return nil, kv.Fault(err)
	}
	info := stream.CachedInfo()
	full, before := info.Config, info.Config
	full.MaxMsgs = int64(info.State.Msgs)
	if err := s.update(full); err != nil {
		return nil, err
	}
	done := false
	return func() error {
		if done {
			return nil
		}
		err := s.update(before)
		done = err == nil
		return err
	}, nil
}

func (s *stage) update(cfg jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Patience) // the ledger must not stay full if ctx ends
	defer cancel()
	if _, err := s.js.UpdateStream(ctx, cfg); err != nil {
		return kv.Fault(err)
	}
	return nil
}

// already is what the worker has to do about an answer that says that the record is there.
const already = "a refused create (error 10071, or 10077 with the record in its place) means that the attempt is decided: acknowledge, and drop the result"

func duplicate(ctx context.Context, s *stage, v *verdict) {
	p := s.step(ctx, "duplicate", sleeping(300*time.Millisecond))
	again := *p
	again.send(ctx, again.header(), []byte(sleeping(300*time.Millisecond)))
	if _, ok := p.await(ctx, s.o.Patience); !ok {
		v.must(already, "a step that came twice has no record%s", s.ended())
		return
	}
	if !p.settled(ctx, s.o.Patience) || !again.settled(ctx, s.o.Patience) {
		v.must(already, "a step that came twice was not acknowledged twice%s", s.ended())
	} else if max(p.acknowledgement().Delivered, again.acknowledgement().Delivered) > 1 {
		v.should(already, "one of two messages of the same step was acknowledged only after it had been handed out again")
	}
	s.alive(ctx, v, "a step that came twice")
}

func decided(ctx context.Context, s *stage, v *verdict) {
	p := s.probe(s.newRun(ctx, "decided"), "s1")
	p.decide(ctx, wire.Result{Body: []byte(`"somebody else's"`)})
	p.send(ctx, p.header(), []byte(`{"echo":"late"}`))
	if !p.settled(ctx, s.o.Patience) {
		v.must(already, "the step was not acknowledged; the worker published %d times%s", len(s.witness.offered(p.record())),
			s.ended())
	} else if n := len(s.witness.offered(p.record())); n > 3 {
		v.should(already, "it published %d times before it gave in", n)
	}
}

func version(ctx context.Context, s *stage, v *verdict) {
	p := s.probe(s.newRun(ctx, "version"), "s1")
	h := p.header()
	h[subjects.HeaderVersion] = []string{subjects.Version + "0"}
	p.send(ctx, h, []byte(`{"echo":"not for you"}`))
	junk := s.probe(s.newRun(ctx, "version"), "s1")
	h = junk.header()
	h[subjects.HeaderVersion] = []string{"junk"}
	junk.send(ctx, h, []byte(`{"echo":"for nobody"}`))
	const advice = "where " + subjects.HeaderVersion + " is higher than " + subjects.Version +
		", return without executing, recording, acknowledging or refusing: when the lease runs out a newer worker gets it"
	until(ctx, 5*s.lease()/4, func() bool { _, ok := p.result(ctx); return ok || p.acked() })
	if _, ok := p.result(ctx); ok {
		v.must(advice, "it executed a step of a higher version and recorded a result")
	} else if p.acked() {
		v.must(advice, "it acknowledged a step of a higher version, which is lost now")
	}
	for _, x := range s.witness.about(p.seq) {
		if x.Kind == kv.InProgress {
			v.should(advice, "it keeps the lease of a step of a higher version")
			break
		}
	}
	s.alive(ctx, v, "a step of a higher version")
	if _, ok := junk.result(ctx); ok {
		v.must("take a "+subjects.HeaderVersion+" that is no number for a higher one",
			"it executed a step of the version junk")
	} else if junk.acked() {
		v.must("take a "+subjects.HeaderVersion+" that is no number for a higher one",
			"it acknowledged a step of the version junk, which is lost now")
	}
	for _, p := range []*probe{p, junk} {
		s.note(s.store.Ledger.PurgeSubject(ctx, subjects.Step(p.attempt, s.tool.Shard)))
	}
	s.quiet(ctx, 2*s.lease())
}
