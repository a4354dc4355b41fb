package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// telling is where tools tell that they ran to their end: what a record can't show, since there is one however often
// the tool ran, and none of a tool that was given up.
const telling = "_CONFORMANCE."

// ear is one subject of telling.
type ear struct {
	s       *stage
	subject string
}

// told makes a subject for steps to tell on.
func (s *stage) told() *ear { return &ear{s, telling + nuid.Next()} }

// heard returns what was told so far.
func (e *ear) heard() []tell { return e.s.witness.told(e.subject) }

// count returns how often it was told so far.
func (e *ear) count() int { return len(e.heard()) }

// tell adds the subject to arguments.
func (e *ear) tell(args string) string {
	return fmt.Sprintf(`%s,"tell":%q}`, strings.TrimSuffix(args, "}"), e.subject)
}

// executions returns how often the tool surely ran for a step: by what it told, and where that is nothing by records
// that differ, or were offered at more than one delivery. To publish the same record again is what a worker does that
// got no answer.
func (s *stage) executions(p *probe, told int) int {
	offers := s.witness.offered(p.record())
	different := map[string]bool{}
	for _, o := range offers {
		different[header(o.Header, subjects.HeaderStarted)+"\x00"+header(o.Header, subjects.HeaderEnded)+"\x00"+string(o.Data)] = true
	}
	again := 0
	for _, x := range s.witness.about(p.seq) {
		again = max(again, x.Delivered)
	}
	if told == 0 && again > 1 && len(offers) > 1 {
		return 2
	}
	return max(told, len(different))
}

func secondAttempt(ctx context.Context, s *stage, v *verdict) {
	p := s.step(ctx, "attempt", `{"fail":"not yet"}`)
	if _, ok := p.await(ctx, s.o.Patience); !ok {
		v.must("record the tool's error", "a failed first attempt leaves no record%s", s.ended())
		return
	}
	second := *p
	second.attempt.Number = 2
	second.send(ctx, second.header(), []byte(`{"echo":"second"}`))
	const advice = "an attempt is a message of its own, with the key of the first and another " + subjects.HeaderResult +
		": take it as any other, whatever you know of the step"
	switch r, ok := second.await(ctx, s.o.Patience); {
	case !ok:
		v.must(advice, "the second attempt of a step that had failed has no record%s", s.ended())
		if n := len(s.witness.offered(p.record())); n > 1 {
			v.must("publish to the subject in "+subjects.HeaderResult,
				"it published the second attempt's result as that of the first")
		}
	case r.Error != nil:
		v.must(advice, "the second attempt failed: %s", said(r.Error))
	}
	if !second.settled(ctx, s.o.Patience) {
		v.must(advice, "the second attempt was not acknowledged")
	}
}

func secrets(ctx context.Context, s *stage, v *verdict) {
	const secret = "hush-50c1e7b2"
	bag, _ := wire.NewContext(map[string]string{"token": secret, "user": "ann"}, "token") // within every limit
	p := s.step(ctx, "secrets", `{"fail":"401 for the token `+secret+`, which ann gave"}`, func(w *wire.Step) {
		w.Context = bag
	})
	r, ok := p.await(ctx, s.o.Patience)
	if !ok || r.Error == nil {
		v.must("record what the tool throws with "+subjects.HeaderStatus+": error",
			"a failed step with "+subjects.HeaderContextSecrets+" has no error in its record%s", s.ended())
		return
	}
	for _, o := range s.witness.offered(p.record()) {
		if strings.Contains(string(o.Data), secret) {
			v.must("before you answer with an error, replace each value of a key in "+subjects.HeaderContextSecrets+
				" that has four bytes or more by "+wire.Redacted+
				", in message, hint and details, and before you shorten them",
				"the error holds a secret of the step's context: it goes on into the outcome, the history and what a model reads")
			return
		}
	}
	if !strings.Contains(r.Error.Message, "401") {
		v.should("keep the rest of the message", "with the secret all of the message is gone: %q",
			text.Clip(r.Error.Message, 120))
	}
}

// ownerPatience is how long after a step's deadline its worker waits for the owner's word.
const ownerPatience = 2 * time.Second

func deadline(ctx context.Context, s *stage, v *verdict) {
	at := time.Now().Add(time.Second)
	long := time.Until(at) + ownerPatience + 3*soon
	p := s.step(ctx, "deadline", sleeping(long), func(w *wire.Step) { w.Timeout, w.Deadline = 0, at })
	const advice = "after " + subjects.HeaderDeadline +
		" the orchestrator decides the step and cancels it; hear nothing for two seconds more, and answer with the error timeout yourself"
	r, ok := p.await(ctx, time.Until(at)+ownerPatience+soon)
	switch {
	case !ok:
		v.must(advice, "a step went on for %v after its deadline, and was not ended", ownerPatience+soon)
		p.settled(ctx, long+s.o.Patience)
		return
	case r.Error == nil:
		v.must(advice, "it recorded %s after the step's deadline", text.Clip(string(r.Body), 80))
	case r.Error.Code != fault.Timeout:
		v.should(advice, "the error is %s", said(r.Error))
	}
	if offers := s.witness.offered(p.record()); len(offers) > 0 && offers[0].at.Before(at) {
		v.must("until "+subjects.HeaderDeadline+" a result counts", "it gave the step up %v before its deadline",
			at.Sub(offers[0].at).Round(time.Millisecond))
	}
	if !p.settled(ctx, long+s.o.Patience) {
		v.must("acknowledge the step once its record stands", "the step that passed its deadline was not acknowledged")
	}
}

// stops sees whether a tool that was given up goes on: after a timeout and after a cancel.
func stops(ctx context.Context, s *stage, v *verdict) {
	const limit = 500 * time.Millisecond
	heard := s.told()
	p := s.step(ctx, "stops", heard.tell(`{"echo":"told"}`))
	if _, ok := p.await(ctx, s.o.Patience); !ok || heard.count() == 0 {
		v.should(`publish an empty message on the subject in "tell" when the tool is done, so that it can be seen whether it stops`, "the tool tells nothing: nobody can see whether it goes on after it was given up")
		return
	}
	long := limit + 2*soon
	const advice = "give the tool a signal (AbortSignal, context, CancelledError, a flag that it looks at) and end what it does: what it goes on to do takes effect, though its step has failed or is tried again"
	timedOut, cancelled := s.told(), s.told()
	began := time.Now()
	one := s.step(ctx, "stops", timedOut.tell(sleeping(long)), func(w *wire.Step) { w.Timeout = limit })
	two := s.step(ctx, "stops", cancelled.tell(sleeping(long)))
	two.taken(ctx)
	two.decide(ctx, wire.Result{Error: fault.New(fault.Cancelled, "the run was cancelled")})
	_ = s.nc.Publish(subjects.Cancel(two.attempt), nil) // a closed connection shows soon enough
	one.settled(ctx, long+s.o.Patience)
	two.settled(ctx, long+s.o.Patience)
	until(ctx, time.Until(began.Add(long+soon)), func() bool { return false })
	if timedOut.count() > 0 {
		v.must(advice, "the tool went on to its end, %v after its time was over", (long - limit).Round(100*time.Millisecond))
	}
	if cancelled.count() > 0 {
		v.must(advice, "the tool went on to its end after its step had been cancelled")
	}
}

// waiting sends more long steps than a worker may take at once: those that it has taken and not begun need a heartbeat
// as well.
func waiting(ctx context.Context, s *stage, v *verdict) {
	const n = 6
	each := 3 * s.lease() / 5
	r := s.newRun(ctx, "waiting")
	all := make([]*probe, n)
	for i := range all {
		all[i] = s.stepOf(ctx, r, subjects.ItemToken("loop", i), sleeping(each))
	}
	until(ctx, 5*s.lease()/4, func() bool { return false }) // what had no heartbeat since it was taken is free again
	again := s.takeOver(ctx, all)
	s.quiet(ctx, n*each+s.o.Patience)
	if again > 0 {
		v.must("send +WPI from the moment you have taken a step, also while it waits for a slot of yours; or take one only when you can begin it",
			"%d of %d steps of %v lost their lease of %v and were handed out again", again, n, each, s.lease())
	}
}

// takeOver takes what there is of some steps, as another worker would, and does it. It gives the number of those that
// had been taken before.
func (s *stage) takeOver(ctx context.Context, steps []*probe) (again int) {
	c, err := s.js.Consumer(ctx, subjects.StepsStream(s.tool.Shard), subjects.Durable(s.tool.Name))
	if err != nil {
		s.note(kv.Fault(err))
		return 0
	}
	batch, err := c.Fetch(len(steps), jetstream.FetchMaxWait(s.lease()/2))
	if err != nil {
		s.note(kv.Fault(err))
		return 0
	}
	for m := range batch.Messages() {
		if meta, err := m.Metadata(); err == nil && meta.NumDelivered > 1 {
			again++
		}
		for _, p := range steps {
			if subjects.Step(p.attempt, s.tool.Shard) == m.Subject() {
				p.decide(ctx, wire.Result{Body: []byte(`"done elsewhere"`)})
			}
		}
		s.note(m.Ack())
	}
	return again
}
