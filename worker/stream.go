package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/internal/streamed"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/wire"
)

// Stream hands over steps of the answer that the planner of an agent is writing, so that they run while it still writes: where
// the agent's definition says "stream_plan". What the planner returns in the end is its answer, with all steps: those that had
// begun are the same there. A step that can't begin yet, as its tool is hinted destructive or a person has to say something,
// waits for that; so hand over all of them, and look at none.
//
// Its methods never block, and do nothing where nothing may be handed over. They are for one goroutine at a time.
type Stream struct {
	x *execution

	reader *streamed.Reader // of the text; nil before the first
	hold   *streamed.Hold
	fields []streamed.Part // of the plan, before its steps
	whole  bool            // the text is one of which nothing can begin before all of it is there

	mu    sync.Mutex
	queue []json.RawMessage
	timer *time.Timer // hands the queue over; nil while there is nothing in it
	began bool        // something was handed over, or is about to be
	over  bool
}

// handWithin is for how long steps are kept for those that come right behind them.
const handWithin = 5 * time.Millisecond

// handPatience is how long the owner of the run may take to answer before it is asked again.
const handPatience = 2 * time.Second

// NewStream returns what hands over steps of the answer that the handler of ctx writes; the same one each time. Outside of a
// handler, in a batch, and where no agent asks for it, it hands over nothing.
func NewStream(ctx context.Context) *Stream {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil || x.step.Stream == "" {
		return &Stream{}
	}
	if s := x.handing.Load(); s != nil {
		return s
	}
	hold := streamed.NewHold(func(*streamed.Step) bool { return false })
	hold.Rounds = true
	x.handing.CompareAndSwap(nil, &Stream{x: x, hold: hold})
	return x.handing.Load()
}

// Wanted reports whether steps may be handed over.
func (s *Stream) Wanted() bool { return s.x != nil }

// Began reports whether a step was handed over. Then this answer goes on or fails: nobody else is asked for another one, who
// would not know what has begun.
func (s *Stream) Began() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// Step hands over a step, as it stands in a plan, once all that it refers to was handed over. What comes within five
// milliseconds goes together.
func (s *Stream) Step(step json.RawMessage) {
	if s.x == nil {
		return
	}
	for _, one := range s.hold.Add(step) {
		s.add(one.Text)
	}
}

// Text takes what was written next of an answer {"steps": […]}, in any cut, and hands each step over when its closing brace has
// come. Options have to stand before the steps; an answer that has others than output and output_steps is one of which nothing begins before it is
// whole.
func (s *Stream) Text(text string) {
	if s.x == nil || s.whole {
		return
	}
	if s.reader == nil {
		s.reader = streamed.New(0)
	}
	parts, err := s.reader.Write([]byte(text))
	for _, p := range parts {
		switch p.Kind {
		case streamed.Field:
			if s.fields = append(s.fields, p); !streamed.Late(p) && p.Key != "output" && p.Key != "output_steps" && !aside[p.Key] {
				s.whole = true
				return
			}
		case streamed.OneStep:
			s.Step(p.Value)
		case streamed.StepsOpen, streamed.StepsEnd, streamed.PlanEnd:
		}
	}
	s.whole = s.whole || err != nil // the rest of it is for who reads the answer
}

// aside are members of an answer that say nothing about its steps.
var aside = map[string]bool{"usage": true, "state": true}

func (s *Stream) add(step json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.began = true
	if s.queue = append(s.queue, step); s.timer == nil {
		s.timer = time.AfterFunc(handWithin, s.flush)
	}
}

// next returns what is to be handed over now; nil for nothing.
func (s *Stream) next() []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.queue) == 0 {
		s.timer = nil
		return nil
	}
	n := 0
	for size := 0; n < min(len(s.queue), wire.MaxHandedOver); n++ {
		if size += len(s.queue[n]) + 1; n > 0 && size > wire.MaxAmendment/2 {
			break
		}
	}
	now := s.queue[:n:n]
	s.queue = s.queue[n:]
	return now
}

// flush hands over what has come, and goes on with what comes meanwhile.
func (s *Stream) flush() {
	for now := s.next(); now != nil; now = s.next() {
		if err := s.hand(now); err != nil {
			if s.x.base.Err() == nil {
				level := slog.LevelDebug
				if fault.CodeOf(err) == fault.Permission { // somebody has to allow it
					level = slog.LevelWarn
				}
				s.x.log().Log(s.x.base, level, "steps were not handed over; they begin once the answer is whole", "error", err)
			}
			s.stop()
		}
	}
}

// hand hands steps over, and returns once it is known what became of them. The error says that none are taken any more.
func (s *Stream) hand(steps []json.RawMessage) error {
	x := s.x
	if x.nonce == "" && !s.claim() {
		return fault.New(fault.AlreadyFinished, "another worker has this attempt")
	}
	h := wire.HandOver{Nonce: x.nonce, Add: steps}
	for waits := retries(); ; {
		ctx, cancel := context.WithTimeout(x.base, handPatience)
		_, err := x.e.store.Beats().HandOver(ctx, x.attempt, h)
		cancel()
		switch {
		case err == nil:
			return nil
		case x.base.Err() != nil:
			return x.base.Err()
		}
		switch fault.CodeOf(err) {
		case fault.AlreadyFinished, fault.Permission, fault.NotAmendable, fault.LimitExceeded, fault.InvalidValue, fault.TooLarge, fault.NewerVersion:
			return err
		}
		if !backoff.Pause(x.base, waits.Next()) {
			return x.base.Err()
		}
	}
}

// claim claims the attempt, before the first step is handed over.
func (s *Stream) claim() bool {
	its := claimant{s.x, forbidden}
	mine, decision, err := its.create("claiming the attempt")
	stands := decision == kv.Written
	if err == nil && decision == kv.Decided { // perhaps by this execution, whose acknowledgement was lost
		var there wire.Claim
		there, _, err = its.read()
		stands = there == mine
	}
	if err != nil || !stands {
		return false
	}
	s.x.nonce = mine.Nonce
	return true
}

// stop hands over nothing any more: the answer is whole, or nobody takes steps.
func (s *Stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over, s.queue = true, nil
	if s.timer != nil {
		s.timer.Stop()
	}
}
