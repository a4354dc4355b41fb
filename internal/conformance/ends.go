package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// soon is how quickly a worker acts on what it is told.
const soon = 2 * time.Second

func cancel(ctx context.Context, s *stage, v *verdict) {
	long := 3*s.lease() + soon
	p := s.step(ctx, "cancel", sleeping(long))
	if !p.taken(ctx) {
		v.must("send +WPI while the tool runs: a cancel is told to the one who holds the lease",
			"within two leases there was no sign of a long step%s", s.ended())
		return
	}
	p.decide(ctx, wire.Result{Error: fault.New(fault.Cancelled, "the run was cancelled")})
	_ = s.nc.Publish(subjects.Cancel(p.attempt), nil) // a closed connection shows soon enough
	told := time.Now()
	const advice = "subscribe to the cancel subject that the answer to the registration names; end the tool, and acknowledge the step"
	if !p.settled(ctx, long+s.o.Patience) {
		v.must(advice, "a cancelled step was never acknowledged%s", s.ended())
		return
	}
	if took := p.acknowledgement().at.Sub(told); took > soon {
		v.should(advice, "the cancelled step went on for %v and held its slot", took.Round(100*time.Millisecond))
	}
	s.alive(ctx, v, "a cancel")
}

func timeout(ctx context.Context, s *stage, v *verdict) {
	const limit = 500 * time.Millisecond
	p := s.step(ctx, "timeout", sleeping(limit+3*soon), func(w *wire.Step) { w.Timeout = limit })
	const advice = "end the execution after " + subjects.HeaderTimeout +
		" and answer with the error timeout, whether the tool listens or not"
	switch r, ok := p.await(ctx, limit+soon); {
	case !ok:
		v.must(advice, "an execution of %v may take %v, and was not ended", limit+3*soon, limit)
		p.settled(ctx, 3*soon+s.o.Patience)
	case r.Error == nil:
		v.must(advice, "it recorded %s before the execution can have ended", text.Clip(string(r.Body), 80))
	case r.Error.Code != fault.Timeout:
		v.should(advice, "the error is %s", said(r.Error))
	}
	if !p.settled(ctx, s.o.Patience) {
		v.must("acknowledge the step once its record stands", "the step that ran out of time was not acknowledged")
	}
}

// holds gives up tools that go on to their end, whatever they are told: their steps keep their slots for as long,
// within a bound.
func holds(ctx context.Context, s *stage, v *verdict) {
	const limit = 300 * time.Millisecond
	lease, forever := s.lease(), limit+s.lease()+2*soon
	timedOut, endless, cancelled := s.told(), s.told(), s.told()
	bounded := func(w *wire.Step) { w.Timeout = limit }
	sent := time.Now()
	one := s.step(ctx, "holds", timedOut.tell(deaf(limit+lease/2)), bounded)
	two := s.step(ctx, "holds", endless.tell(deaf(forever)), bounded)
	three := s.step(ctx, "holds", cancelled.tell(deaf(3*lease/2)))
	three.taken(ctx)
	three.decide(ctx, wire.Result{Error: fault.New(fault.Cancelled, "the run was cancelled")})
	_ = s.nc.Publish(subjects.Cancel(three.attempt), nil) // a closed connection shows soon enough
	if _, ok := two.await(ctx, time.Until(sent.Add(limit+soon))); !ok {
		v.must("answer with the error timeout after "+subjects.HeaderTimeout+", whether the tool listens or not",
			"a tool that doesn't listen was waited for: the step that ran out of time was not ended")
	}
	const advice = "acknowledge a step that you gave up once its tool has stopped: what you hold is its place in the fan-out limit"
	if early := one.ackedAtWork(ctx, timedOut); early != nil && early.at.Before(sent.Add(limit+lease)) {
		v.must(advice, "a step that had run out of time was acknowledged while its tool was at work")
	}
	if three.ackedAtWork(ctx, cancelled) != nil {
		v.must(advice, "a cancelled step was acknowledged while its tool was at work")
	}
	until(ctx, time.Until(sent.Add(forever+s.o.Patience)), func() bool { return two.acked() && endless.count() > 0 })
	switch a, ended := two.acknowledgement(), endless.heard(); {
	case a == nil, len(ended) > 0 && ended[0].place < a.place:
		v.must("one lease after its time acknowledge a step whose tool doesn't stop, and log it: it must not hold a limit of 1 for ever", "a tool that ran on for %v after its time held its slot for as long", (forever - limit).Round(100*time.Millisecond))
	case a.at.Before(sent.Add(limit + lease)):
		v.must(advice, "a step that had run out of time was acknowledged less than a lease after, while its tool was at work")
	}
	s.quiet(ctx, lease)
}

// deaf are arguments that keep the tool busy, whatever becomes of its step.
func deaf(d time.Duration) string {
	return fmt.Sprintf(`{"sleep_ms":%d,"deaf":true,"echo":"slept"}`, d.Milliseconds())
}

// ackedAtWork returns the acknowledgement that came before the tool told that it was done; nil where it came after, or
// where the tool was stopped all the same and so tells nothing.
func (p *probe) ackedAtWork(ctx context.Context, heard *ear) *sign {
	until(ctx, 2*p.s.lease()+p.s.o.Patience, func() bool { return p.acked() })
	a := p.acknowledgement()
	if a == nil || !until(ctx, 2*p.s.lease(), func() bool { return heard.count() > 0 }) ||
		heard.heard()[0].place < a.place {
		return nil
	}
	return a
}

func startBy(ctx context.Context, s *stage, v *verdict) {
	p := s.step(ctx, "startby", `{"echo":"too late"}`, func(w *wire.Step) { w.StartBy = time.Now().Add(-time.Minute) })
	const advice = "don't begin a step after its " + subjects.HeaderStartBy +
		": answer with the error timeout and \"retryable\": false"
	if !p.settled(ctx, s.o.Patience) {
		v.must(advice, "a step that came too late was not acknowledged")
		return
	}
	if r, ok := p.result(ctx); ok && r.Error == nil {
		v.must(advice, "it executed a step a minute too late")
	}
}

// longPull is how long a request for steps may live without heartbeats: while one that was lost is waited for, nothing
// is taken.
const longPull = 5 * time.Second

func pulls(_ context.Context, s *stage, v *verdict) {
	const advice = `ask with "idle_heartbeat", and ask anew after two silent intervals: a request is lost with a server, a leader or a connection that hangs`
	for _, p := range s.witness.kind(kv.Pulled) {
		switch {
		case p.Heartbeat > 0:
		case p.Expires == 0:
			v.must(advice, "it asks for steps with a request that has no end and no heartbeat: once it is lost, the worker takes no step any more")
			return
		case p.Expires > longPull:
			v.should(advice, "it asks for steps with a request that lives for %v without a heartbeat, and would notice only then that it was lost", p.Expires)
			return
		}
	}
}

func leavesConsumers(_ context.Context, s *stage, v *verdict) {
	told := map[string]bool{}
	for _, m := range s.witness.kind(kv.Managed) {
		if !told[m.Call] {
			v.must("bind to the consumer that the answer to the registration names; streams and consumers are the orchestrator's", "it asked JetStream for %s", m.Call)
			told[m.Call] = true
		}
	}
	if n := len(s.witness.kind(kv.Naked)); n > 0 {
		v.must("never NAK: finish the step, or leave its lease to run out; answer with an error where another attempt may help", "it sent -NAK %d times", n)
	}
}

func drain(ctx context.Context, s *stage, v *verdict) {
	if s.guest == nil {
		v.skip("the worker was not started here")
		s.stopped = true
		return
	}
	p := s.step(ctx, "drain", sleeping(3*s.lease()/2))
	if !p.taken(ctx) {
		v.must("send +WPI while the tool runs", "within two leases there was no sign of a long step%s", s.ended())
	}
	naks := len(s.witness.kind(kv.Naked))
	s.guest.Stop()
	s.stopped = true
	const advice = "on SIGTERM end the pulling, let what runs finish, publish and acknowledge it, then end"
	if !until(ctx, 3*s.lease()/2+s.o.Patience, func() bool { return isClosed(s.guest.Done()) }) {
		v.must(advice, "it runs on %v after its last step", s.o.Patience)
		s.guest.Kill()
	}
	if why := s.guest.Why(); why != "" {
		v.should("end with exit code 0 when asked to end", "it ended with %s", why)
	}
	if r, ok := p.result(ctx); !ok || r.Error != nil || !p.settled(ctx, time.Second) {
		v.must(advice, "the step that it was at when SIGTERM came was not finished")
	}
	if n := len(s.witness.kind(kv.Naked)) - naks; n > 0 {
		v.must("give nothing back with -NAK: it counts as a delivery", "it sent -NAK %d times when it ended", n)
	}
	if c := s.consumer(ctx); c != nil && c.NumAckPending > 0 {
		v.should(advice, "%d steps were handed to it that it did not do; they wait for their leases to run out",
			c.NumAckPending)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
