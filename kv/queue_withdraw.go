package kv

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// What is decided without its worker is taken out of its queue, so that nobody executes it. That is done only to what
// no worker has been given: a message that is leased stays, for with it the server would give its slot to the next
// step while the handler is still at work. Its worker hears of the cancel and acknowledges it when the handler has
// returned. Where the worker is dead the lease runs out, and whoever gets the message next finds its attempt decided.

// PurgeSteps removes what one generation of a run has waiting for one tool, dispatched or scheduled, and leaves what
// is leased. Errors as those of PurgeRun.
func (s *Queue) PurgeSteps(ctx context.Context, r subjects.Run, generation uint64, tool string, shard int) error {
	// In this order: a schedule may fire in between. Nothing that is scheduled can be leased.
	p := purgeRequest{Subject: subjects.RunToolFilter("sched", r, generation, tool, shard)}
	if err := s.purge(ctx, subjects.StepsStream(shard), p); err != nil {
		return err
	}
	return s.takeOut(ctx, shard, tool, subjects.RunToolFilter("step", r, generation, tool, shard))
}

// PurgeAttempt removes one attempt, dispatched or scheduled, unless it is leased. Errors as those of PurgeRun.
func (s *Queue) PurgeAttempt(ctx context.Context, a subjects.Attempt, shard int) error {
	if err := s.purge(ctx, subjects.StepsStream(shard), purgeRequest{Subject: subjects.Scheduled(a, shard)}); err != nil {
		return err
	}
	return s.takeOut(ctx, shard, a.Tool, subjects.Step(a, shard))
}

const (
	// removers are how many messages are removed at a time.
	removers = 16
	// pauseFor is how long a tool's consumer hands nothing out while messages are taken from under it, where nobody
	// lets it go on before: a process that dies holds the tool up for so long.
	pauseFor = time.Second
	// pauseUse is how much of that is used, from before it was asked for.
	pauseUse = 700 * time.Millisecond
	// looks are how often in a row a pause has to be seen as it was asked for. One who looked before it stood pauses
	// meanwhile.
	looks = 2
)

// takeOut removes the messages of a tool that a filter matches and that no worker has been given, one by one.
func (s *Queue) takeOut(ctx context.Context, shard int, tool, filter string) error {
	info, err := s.streamInfo(ctx, subjects.StepsStream(shard), filter)
	if err != nil || len(info.State.Subjects) == 0 {
		return err
	}
	all := slices.Collect(maps.Keys(info.State.Subjects))
	for len(all) > 0 {
		if all, err = s.takeSome(ctx, shard, tool, all); err != nil {
			return err
		}
	}
	s.nudge(tool, shard)
	return nil
}

// takeSome removes as many as may be while the tool's consumer is paused, and returns the others. The consumer hands
// its messages out in the order of the stream: so what lies above the last that it has delivered was never given to
// anybody.
func (s *Queue) takeSome(ctx context.Context, shard int, tool string, all []string) (left []string, err error) {
	if lag, err := s.Lag(ctx, tool, shard); err == nil { // most often everything is leased, and nobody has to wait
		if all, err = s.above(ctx, all, lag.Given); err != nil || len(all) == 0 {
			return nil, err
		}
	}
	until := time.Now().Add(pauseUse)
	given, resume, err := s.pauseTool(ctx, tool, shard)
	if fault.CodeOf(err) == fault.NotFound {
		given, resume, err = 0, func() {}, nil // there is nobody to give them to
	}
	if err != nil {
		return nil, err
	}
	defer resume()
	var group errgroup.Group
	group.SetLimit(removers)
	var mu sync.Mutex
	for _, subject := range all {
		group.Go(func() error {
			if time.Now().After(until) {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, subject)
				return nil
			}
			return s.removeAbove(ctx, subjects.StepsStream(shard), subject, given)
		})
	}
	return left, group.Wait()
}

// above returns those of some subjects whose last message lies above a sequence.
func (s *Queue) above(ctx context.Context, all []string, given uint64) ([]string, error) {
	is := make([]atomic.Bool, len(all))
	var group errgroup.Group
	group.SetLimit(removers)
	for i, subject := range all {
		group.Go(func() error {
			e, err := s.read(ctx, subject)
			if fault.CodeOf(err) == fault.NotFound {
				return nil // acknowledged meanwhile
			}
			is[i].Store(err == nil && e.Seq > given)
			return err
		})
	}
	err := group.Wait()
	var waiting []string
	for i := range is {
		if is[i].Load() {
			waiting = append(waiting, all[i])
		}
	}
	return waiting, err
}

// pauseTool lets a tool's consumer hand nothing out for a moment, and returns the sequence up to which it has. The time
// is the server's, which this machine's clock need not agree with.
//
// Several may pause a tool at once, and none may end another's pause. So a pause is only ever extended, and whoever
// extended one, or sees that another came, leaves the last one to end by itself. The server does as it is told
// without looking at what stands there. So of two who looked while there was no pause, the one whose pause was
// replaced replaces it once more, which tells the other not to end it. What remains: one whose request to pause is on
// its way for longer than the other looks (two requests) replaces a pause unseen, and may end it while the other
// still relies on it; and one whose word to go on is on its way when another pauses for the first time. Then a step
// may be taken back that was handed out in that moment, and its tool have one more at work than its limit. Errors:
// NotFound where the tool has no consumer, and those of Read.
func (s *Queue) pauseTool(ctx context.Context, tool string, shard int) (given uint64, resume func(), err error) {
	info, err := s.consumer(ctx, tool, shard)
	if err != nil {
		return 0, nil, err
	}
	p := pause{s: s, stream: subjects.StepsStream(shard), durable: subjects.Durable(tool), shared: info.Paused}
	// In a cluster it is paused a moment after that was promised, and what is on its way then comes a moment later.
	for steady := 0; steady < looks; steady++ {
		if p.wanting(info) {
			if err := p.set(ctx, info); err != nil {
				// A server that can't, or permissions of before: what is handed out in this moment may be taken back
				// from its worker.
				return info.Delivered.Stream, func() {}, ctx.Err()
			}
		}
		given = info.Delivered.Stream
		if info, err = s.consumer(ctx, tool, shard); err != nil {
			return 0, nil, err
		}
		if !info.Paused && info.TimeStamp.After(p.until) {
			return 0, nil, fault.New(fault.NotReady, "the consumer of %s was paused too late", tool)
		}
		if !info.Paused || info.Delivered.Stream != given || p.wanting(info) || pausedUntil(info).Before(p.until) {
			steady = -1
		}
	}
	return given, func() {
		if p.shared {
			return
		}
		if now, err := s.consumer(ctx, tool, shard); err == nil && pausedUntil(now).Equal(p.until) {
			_, _ = s.js.ResumeConsumer(ctx, p.stream, p.durable) // lost, the pause ends by itself
		}
	}, nil
}

// pause is one that this process has asked for.
type pause struct {
	s               *Queue
	stream, durable string
	before          time.Time // to when another one lasted that stood there
	until           time.Time
	shared          bool // others rely on it
	told            bool // they were told that this one is there
}

// wanting reports whether a consumer is to be paused, or paused anew. What stood there before may be seen for a
// moment still.
func (p *pause) wanting(info *jetstream.ConsumerInfo) bool {
	standing := pausedUntil(info)
	switch {
	case p.until.IsZero():
		return true
	case standing.Equal(p.until) || standing.Equal(p.before):
		return false
	}
	return !p.told || standing.Before(p.until)
}

// set pauses the consumer for longer than it is.
func (p *pause) set(ctx context.Context, info *jetstream.ConsumerInfo) error {
	if !p.until.IsZero() { // another one's stands there
		p.shared, p.told = true, true
	}
	p.before = pausedUntil(info)
	p.until = info.TimeStamp.Add(pauseFor)
	if !p.until.After(p.before) {
		p.until = p.before.Add(time.Microsecond)
	}
	_, err := p.s.js.PauseConsumer(ctx, p.stream, p.durable, p.until)
	return err
}

// pausedUntil returns when a consumer's pause ends; zero where it has none.
func pausedUntil(info *jetstream.ConsumerInfo) time.Time {
	if info.Config.PauseUntil == nil {
		return time.Time{}
	}
	return *info.Config.PauseUntil
}

// dropAttempt removes an attempt that no worker will ever be given, wherever it lies.
func (s *Queue) dropAttempt(ctx context.Context, a subjects.Attempt, shard int) error {
	if err := s.removeAbove(ctx, subjects.StepsStream(shard), subjects.Step(a, shard), 0); err != nil {
		return err
	}
	return s.purge(ctx, subjects.StepsStream(shard), purgeRequest{Subject: subjects.Scheduled(a, shard)})
}

// nudge makes a tool's consumer look for something to deliver. The request has run out before it can be met, and nobody
// listens for its answer, so it takes nothing.
func (s *Queue) nudge(tool string, shard int) {
	next := apiPrefix + "CONSUMER.MSG.NEXT." + subjects.StepsStream(shard) + "." + subjects.Durable(tool)
	_ = s.nc.PublishRequest(next, nats.NewInbox(), []byte(`{"batch":1,"expires":1}`)) // lost, it costs some seconds
}

// nextStep returns a tool's first message from some sequence on; nil where there is none.
func (s *Queue) nextStep(ctx context.Context, t tool.Registered, from uint64) (e *Entry, err error) {
	stream := subjects.StepsStream(t.Shard)
	try := 0
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		body := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%s}`, from, strconv.Quote(subjects.ToolFilter(t.Name, t.Shard)))
		e, err = look(ctx, try, func(ctx context.Context) (*Entry, error) {
			answer, err := s.request(ctx, requestTimeout, apiPrefix+"STREAM.MSG.GET."+stream, body)
			if err != nil {
				return nil, err
			}
			return parseStored(answer)
		})
		try++
		return err
	})
	if apiCode(err) == codeMessageNotFound {
		return nil, nil
	}
	return e, err
}

// stepsUpTo returns a tool's messages up to a sequence, one request each.
func (s *Queue) stepsUpTo(ctx context.Context, t tool.Registered, last uint64) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for from := uint64(1); ; {
			e, err := s.nextStep(ctx, t, from)
			if err == nil && (e == nil || e.Seq > last) || !yield(e, err) || err != nil {
				return
			}
			from = e.Seq + 1
		}
	}
}

// removeStep removes a message of a tool's queue; false where it was acknowledged, and taken away, a moment before.
func (s *Queue) removeStep(ctx context.Context, t tool.Registered, seq uint64) (removed bool, err error) {
	err = s.tell(ctx, apiPrefix+"STREAM.MSG.DELETE."+subjects.StepsStream(t.Shard), deleteRequest{seq, true})
	if apiCode(err) == codeSequenceNotFound {
		return false, nil
	}
	return err == nil, err
}

// removeStranded removes a tool's messages up to its consumer's floor.
func (s *Queue) removeStranded(ctx context.Context, t tool.Registered) (n int, err error) {
	lag, err := s.Lag(ctx, t.Name, t.Shard)
	if fault.CodeOf(err) == fault.NotFound { // no consumer: the next check makes one
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for e, err := range s.stepsUpTo(ctx, t, lag.Floor) {
		if err != nil {
			return n, err
		}
		removed, err := s.removeStep(ctx, t, e.Seq)
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, nil
}

// removeAbove removes the messages on a subject that lie above a sequence, the last one first.
func (s *Queue) removeAbove(ctx context.Context, stream, subject string, given uint64) error {
	for {
		e, err := s.read(ctx, subject)
		if fault.CodeOf(err) == fault.NotFound || err == nil && e.Seq <= given {
			return nil
		}
		if err == nil {
			err = s.tell(ctx, apiPrefix+"STREAM.MSG.DELETE."+stream, deleteRequest{e.Seq, true})
		}
		if err != nil && apiCode(err) != codeSequenceNotFound { // else it was acknowledged meanwhile
			return err
		}
	}
}

// deleteRequest is JetStream's own: it removes one message.
type deleteRequest struct {
	Seq     uint64 `json:"seq"`
	NoErase bool   `json:"no_erase"`
}
