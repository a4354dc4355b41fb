package kv

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Queue is the steps on their way to workers: a work queue for each shard of tools (subjects.StepsStream), with a
// durable consumer for each tool, whose MaxAckPending is the tool's fan-out limit and whose AckWait is a step's
// lease. A step lies there from its dispatch to its acknowledgement, in between as long as its retry has to wait.
// Nothing decides here: what is lost is sent again by the sweep of the run's owner, and what is delivered twice is
// recorded once.
//
// It also holds who gathers a tool's batches (subjects.GatherBucket), by leases on which nothing rests, and
// how much of language models' rates is left (subjects.RatesBucket), on which nothing rests either.
type Queue struct {
	*account
	sentinels sentinels
	pullers   atomic.Int64 // that are at work
	places    places
}

// Pending returns the message ids (Attempt.MessageID) of all attempts of a partition that a step stream holds:
// dispatched, leased or scheduled. Errors as those of PurgeRun.
func (s *Queue) Pending(ctx context.Context, toolShard, partition int) (map[string]bool, error) {
	filter := subjects.PartitionPendingFilter(partition, toolShard)
	info, err := s.streamInfo(ctx, subjects.StepsStream(toolShard), filter)
	if err != nil {
		return nil, err
	}
	pending := make(map[string]bool, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		if a, _, ok := subjects.ParseStep(subject); ok {
			pending[a.MessageID()] = true
		}
	}
	return pending, nil
}

// Dispatch is one attempt to be sent to the workers.
type Dispatch struct {
	Attempt subjects.Attempt
	// Shard is the tool's step stream, from the registry or the run's start record.
	Shard int
	// Header and Body are those of package wire. The store owns both from now on and adds headers.
	Header nats.Header
	Body   []byte
	// At is when the attempt may start: it waits in the stream until then and holds no slot of its tool. Zero: now. The
	// server's timer is not finer than 250 ms.
	At time.Time
	// Repair is 0 for the regular dispatch of an attempt, and counts from 1 those of the sweep, which are refused while
	// the attempt is pending, leased or scheduled.
	Repair int
	// Seq, if not nil, is set to the message's sequence in the step stream before done is called; not where a message
	// of the same attempt was there already.
	Seq *atomic.Uint64
}

const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// DispatchAsync stores an attempt in its step stream. It is tried again, at once and then with growing pauses, until it
// is stored or ctx ends. A dispatch that is there already counts as stored: one of the same kind within two minutes by
// its message id, for a repair also any that is still pending. done is called exactly once, from another goroutine, and
// must not block (see CreateAsync). Errors: MessageTooLarge, Permission; NoConnection, NotReady, StoreFull, Timeout or
// Cancelled after ctx.
func (s *Queue) DispatchAsync(ctx context.Context, d Dispatch, done func(error)) {
	h := d.Header
	if h == nil {
		h = make(nats.Header, 4)
	}
	id := d.Attempt.MessageID()
	if d.Repair > 0 {
		id = d.Attempt.RepairID(d.Repair)
		h[headerExpect] = expectNone
		h[headerExpectSubject] = []string{subjects.PendingFilter(d.Attempt, d.Shard)}
	}
	h[headerMsgID] = []string{id}
	subject := subjects.Step(d.Attempt, d.Shard)
	if !d.At.IsZero() {
		h[headerSchedule] = []string{"@at " + d.At.UTC().Format(time.RFC3339Nano)}
		h[headerScheduleTarget] = []string{subject}
		subject = subjects.Scheduled(d.Attempt, d.Shard)
	}
	x := &dispatch{s: s, ctx: ctx, shard: d.Shard, repair: d.Repair > 0, seq: d.Seq, done: done}
	x.msg = nats.Msg{Subject: subject, Header: h, Data: d.Body}
	s.pub.send(&x.msg, x)
	s.passed(d.Shard, len(d.Body))
}

// dispatch is one dispatch under way.
type dispatch struct {
	s      *Queue
	ctx    context.Context
	msg    nats.Msg
	shard  int
	repair bool
	seq    *atomic.Uint64
	done   func(error)
}

// acked takes the first answer. Anything but a plain one goes on in a goroutine of the store.
func (d *dispatch) acked(a ack) {
	if d.stored(a) {
		d.done(nil)
		return
	}
	if !d.s.spawn(func() { d.done(d.settle(a)) }) {
		go d.done(errClosed())
	}
}

// stored reports whether the attempt is known to lie in the stream, or to have lain there a moment ago.
func (d *dispatch) stored(a ack) bool {
	if a.err != nil {
		return false
	}
	if a.code == 0 && d.seq != nil && !a.duplicate {
		d.seq.Store(a.seq)
	}
	return a.code == 0 || a.code == codeWrongLastSequence && d.repair
}

func (d *dispatch) settle(a ack) error {
	pause := backoff.Between(unknownPause, maxUnknownPause)
	for !d.stored(a) {
		switch verdictOf(a, false, true) {
		case isRefused:
			return d.s.refusal(&d.msg, a)
		case isFull:
			d.s.warnFull(subjects.StepsStream(d.shard), a)
		default: // written, or to be tried again
		}
		if errors.Is(a.err, nats.ErrNoResponders) { // no stream: somebody removed it
			_ = d.s.ensureSteps(d.ctx, d.shard) // if that fails, so does the next attempt
		}
		if !d.s.pause(d.ctx, pause.Next()) {
			return d.s.gaveUp(d.ctx, &d.msg, a)
		}
		next, answered := d.s.again(d.ctx, &d.msg)
		if !answered {
			return d.s.gaveUp(d.ctx, &d.msg, a)
		}
		a = next
	}
	return nil
}

// Lag is where a tool's workers stand, as the server sees it.
type Lag struct {
	// Limit is the tool's fan-out limit, Leased how many of its steps are leased.
	Limit, Leased int
	// Asking is how many requests of workers for more wait unanswered: 0 where every worker is busy, or none is there.
	Asking int
	// Behind is how many steps no worker has been given yet.
	Behind uint64
	// Given is the sequence in the step stream up to which steps have been given to workers.
	Given uint64
	// Floor is the sequence up to which the server takes all steps for acknowledged: it hands out none of them.
	Floor uint64
}

// Lag asks for the state of a tool's durable consumer. It is for people who look and for a step that waits too long,
// not for loops: the server takes a lock for it. Errors: NotFound where the consumer or its stream is gone, and those
// of Read.
func (s *Queue) Lag(ctx context.Context, tool string, shard int) (Lag, error) {
	info, err := s.consumer(ctx, tool, shard)
	if err != nil {
		return Lag{}, err
	}
	return Lag{
		Limit: info.Config.MaxAckPending, Leased: info.NumAckPending, Asking: info.NumWaiting, Behind: info.NumPending,
		Given: info.Delivered.Stream, Floor: info.AckFloor.Stream,
	}, nil
}

// noConsumer explains an error of looking for a tool's consumer.
func (s *Queue) noConsumer(ctx context.Context, tool string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return fault.New(fault.NotFound, "the tool %s has no consumer", tool).
			WithHint("register it again: start a worker of it, or apply its definition")
	}
	return s.explain(ctx, err)
}

// consumer returns the state of a tool's durable consumer. Errors: NotFound where it or its stream is gone, and those
// of Read.
func (s *Queue) consumer(ctx context.Context, tool string, shard int) (*jetstream.ConsumerInfo, error) {
	info, err := patiently(ctx, func(ctx context.Context) (*jetstream.ConsumerInfo, error) {
		c, err := s.js.Consumer(ctx, subjects.StepsStream(shard), subjects.Durable(tool))
		if err != nil {
			return nil, err
		}
		return c.CachedInfo(), nil
	})
	return info, s.noConsumer(ctx, tool, err)
}

// ConsumerTime asks the server that hands out a tool's steps for its time. Errors as those of Create; one of code
// forbidden or not_found where the connection doesn't reach what tells it.
func (s *Queue) ConsumerTime(ctx context.Context, t tool.Registered) (time.Time, error) {
	var info struct {
		Time time.Time `json:"ts"`
	}
	subject := subjects.ConsumerRequest("INFO", subjects.StepsStream(t.Shard), subjects.Durable(t.Name))
	answer, err := look(ctx, 0, func(ctx context.Context) ([]byte, error) { return s.request(ctx, requestTimeout, subject, nil) })
	if err == nil {
		err = apiAnswer(answer, &info)
	}
	if err != nil {
		return time.Time{}, Fault(err)
	}
	return info.Time, nil
}

// pendingOf counts the steps of a tool that its stream holds.
func (s *Queue) pendingOf(ctx context.Context, t tool.Registered) (int, error) {
	var page streamState
	request := infoRequest{Filter: subjects.ToolPendingFilter(t.Name, t.Shard)}
	if err := s.ask(ctx, apiPrefix+"STREAM.INFO."+subjects.StepsStream(t.Shard), request, &page); err != nil {
		if apiCode(err) == codeStreamNotFound {
			return 0, nil // with all steps
		}
		return 0, err
	}
	return max(page.Total, len(page.State.Subjects)), nil
}

// Pull takes steps of t, at most slots at a time, and calls each with them, one after the other. each must not block,
// and each step that it got has to be followed by one Release, from anywhere. Pulling goes on through lost connections
// and a deleted consumer until ctx ends or Drain. Errors: NoConnection where the connection is closed for good.
func (s *Queue) Pull(ctx context.Context, t tool.Registered, slots int, each func(*Delivery)) (*Puller, error) {
	return s.PullUpTo(ctx, t, slots, max(slots, 1), each)
}

// PullUpTo is Pull for who asks for no more than most steps at a time, until it says otherwise by Limit.
func (s *Queue) PullUpTo(ctx context.Context, t tool.Registered, slots, most int, each func(*Delivery)) (*Puller, error) {
	p := &Puller{
		s: s, slots: max(slots, 1), free: max(slots, 1), most: most, each: each, done: make(chan struct{}), sooner: make(chan struct{}, 1), settled: make(chan struct{}),
		came: time.Now(), lost: func() {},
		next: apiPrefix + "CONSUMER.MSG.NEXT." + subjects.StepsStream(t.Shard) + "." + subjects.Durable(t.Name),
	}
	if err := p.reopen(); err != nil {
		return nil, Fault(err)
	}
	ctx, p.end = s.bound(ctx)
	s.pullers.Add(1)
	if !s.spawn(func() { defer close(p.done); defer s.pullers.Add(-1); p.watch(ctx) }) {
		s.pullers.Add(-1)
		p.end(nil)
		_ = p.inbox.sub.Unsubscribe()
		return nil, errClosed()
	}
	return p, nil
}

// idleTimes returns how long a request lives where nothing came lately, how often the server says that it does, and
// after how much silence it counts as lost.
func (s *Queue) idleTimes() (expires, heartbeat, silence time.Duration) {
	times := time.Duration(min(max(s.pullers.Load()/idlePullers, 1), idleMost))
	return times * idleExpires, times * idleHeartbeat, times * idleSilence
}

// gatherTimeout bounds a request about the lease: whoever gets no answer gathers without it.
const gatherTimeout = time.Second

// Gather writes the lease of a tool where the last that was written of it has the sequence expected, 0 for none, and
// returns the new sequence. ok is false where another was faster. Errors: NotReady where there is no such bucket,
// Permission, Timeout.
func (s *Queue) Gather(ctx context.Context, tool string, g wire.Gathering, expected uint64) (seq uint64, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	subject := subjects.Gather(tool)
	h, body := g.Message()
	ack, err := s.put(ctx, &nats.Msg{Subject: subject, Header: h, Data: body},
		jetstream.WithExpectLastSequencePerSubject(expected), jetstream.WithRetryAttempts(0))
	if apiCode(err) == codeWrongLastSequence {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, Fault(err)
	}
	return ack.Sequence, true, nil
}

// Gathers returns the lease of a tool and its sequence; both are zero where nobody has it. Errors as those of Gather.
func (s *Queue) Gathers(ctx context.Context, tool string) (g wire.Gathering, seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	answer, err := s.exchange(ctx, &nats.Msg{Subject: subjects.DirectGet(subjects.BucketStream(subjects.GatherBucket), subjects.Gather(tool))})
	if err != nil {
		return g, 0, Fault(err)
	}
	e, err := parseDirect(answer)
	if apiCode(err) == codeMessageNotFound {
		return g, 0, nil
	}
	if err != nil {
		return g, 0, Fault(err)
	}
	g, _ = wire.ParseGathering(e.Header, e.Data) // one of another form is nobody's
	g.Free = g.Free || g.ID == ""
	return g, e.Seq, nil
}
