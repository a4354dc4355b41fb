package client

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/streamed"
	"github.com/stepjet/stepjet/wire"
)

// StreamOptions say how a plan is run while it is being written. The zero value gives the run an id of its own.
type StreamOptions struct {
	SubmitOptions
	// OpenFor is how long the run waits for more of the plan: where no text came for so long, it goes on with what it has,
	// and what is written after its end is AlreadyFinished. So it has to be longer than the longest pause of who writes, such
	// as a model that thinks. As long as text comes the run is kept open, whatever can be sent of it. 0: DefaultOpenFor.
	OpenFor time.Duration
	// Begun is told of the run once it is submitted, with the first steps or as a whole, from the goroutine that called
	// Stream. nil: nobody is told.
	Begun func(*Run)
}

// DefaultOpenFor is how long a run whose plan is being written waits for more of it: that of an open plan is ten times
// as long, which is for people.
const DefaultOpenFor = time.Minute

const (
	// together is how long steps are gathered that go in one amendment.
	together = 5 * time.Millisecond
	// A run has 1,000 amendments. Beyond manySent they are gathered for longer, and beyond mostSent for the end, which
	// needs a few.
	manySent, mostSent = 500, 900
	togetherLater      = time.Second
	// mostTogether bounds what is gathered for one amendment, in bytes, with room for what else the request has: of that
	// all together may be wire.MaxAmendment. A larger step goes alone.
	mostTogether = 192 << 10
)

// Stream runs a plan while its text is being written: each step begins as soon as it is written and all that it refers
// to is. It reads text until its end, and returns the run once all of it is handed over; Wait for its outcome, which is
// that of the same plan submitted at once. Around the plan may be other text, such as a fence of Markdown.
//
// The run is submitted as an open plan with the first steps, the others follow as amendments, and it is closed when the
// text is over. Steps whose tools are hinted destructive, and steps that refer to them, wait for the end of the text. A
// step that calls an agent is among the first, or the plan is submitted when it is complete: so it is written before all
// others, since one that is written when the run has begun is a problem (InvalidTool). A
// plan that can't grow is submitted when it is complete: one in the state dialect, a call of a template, one that is
// approved as a whole, scheduled by waves or stopped by a failure, and one with problems in its options. So is one whose
// text is over before any of its steps could begin.
//
// Behind the steps only "output" and "output_steps" may say something; another option there, a text that stops in the
// middle or is no plan, a plan with problems, the end of ctx and an error of text cancel the run. What had begun by then,
// or may have, stands in the error, whose details are wire.StreamDetails. Problems come all at once, as of a plan that is
// submitted: for that the text is read to its end, though nothing more of it begins.
//
// A run that is there already under the id is joined, as by Submit: nothing is sent until the text is over, then what
// its plan lacks is added. One whose plan has something else is a Conflict. It is left alone whatever becomes of the text,
// and the error says so. Who is killed while it streams leaves a run that goes on with what it has after OpenFor, unless the
// same text is streamed again before. While no server answers Stream waits, for as long as the run is open.
//
// Where ctx ends, Stream returns although text may still be read from; that ends with the Read. A step that is not among
// the first has to fit into an amendment. Errors: as above; those of Submit and Amend; AlreadyFinished where the run ended
// before it had all of its plan.
func (c *Client) Stream(ctx context.Context, text io.Reader, o StreamOptions) (*Run, error) {
	if o.Run == "" {
		fresh, err := uuid.NewV7()
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "making a run id")
		}
		o.Run = fresh.String()
	}
	if _, err := c.name(o.Run); err != nil {
		return nil, err
	}
	if o.OpenFor == 0 {
		o.OpenFor = DefaultOpenFor
	}
	s := &streaming{c: c, o: o, reader: streamed.New(0), heard: time.Now()}
	s.hints = hints{of: c.store.Registry, known: map[string]hint{}}
	s.hold = streamed.NewHold(func(x *streamed.Step) bool {
		known := s.hints.step(ctx, x)
		s.agent = known.agent
		return known.destructive
	})
	return s.follow(ctx, text)
}

// streaming is one plan that is being written. It is used from one goroutine.
type streaming struct {
	c      *Client
	o      StreamOptions
	reader *streamed.Reader
	hold   *streamed.Hold
	hints  hints
	agent  bool // the step that was written last may call an agent

	fields  []streamed.Part // before the steps
	options *streamed.Options
	batch   []*streamed.Step // that go next

	run      *Run // nil: nothing was submitted
	revision int
	ours     bool               // it was submitted here, so that it is cancelled where the text breaks off
	joins    bool               // the run is compared once all is written: it was there, or others had it end
	told     bool               // of the run
	sent     []string           // the steps that were sent, also where no answer came
	first    string             // the digest of the plan that was submitted with the first of them
	heard    time.Time          // when the run was last known to wait for more
	waited   bool               // something was sent again, since no answer came
	comes    bool               // text has come since the run was last asked to stay open
	wrong    *fault.Error       // the run was cancelled for problems, and the text is read on, so that all of them can be told
	came     wire.StreamDetails // what the run came to that was cancelled
}

// follow reads the text to its end.
func (s *streaming) follow(ctx context.Context, text io.Reader) (*Run, error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	chunks := chunksOf(reading, text)
	var gathering *time.Timer
	var due <-chan time.Time
	renew := time.NewTicker(max(s.o.OpenFor/renewals, time.Millisecond))
	defer renew.Stop()
	for {
		select {
		case <-renew.C:
			s.keepOpen(ctx)
		case c := <-chunks:
			s.comes = s.comes || len(c.text) > 0
			if err := s.take(c.text); err != nil {
				return nil, s.giveUp(ctx, err)
			}
			switch {
			case errors.Is(c.err, io.EOF):
				return s.end(ctx)
			case c.err != nil:
				return nil, s.giveUp(ctx, brokeOff(c.err))
			}
			if s.sends() && due == nil {
				gathering = time.NewTimer(s.gather())
				defer gathering.Stop()
				due = gathering.C
			}
		case <-due:
			due = nil
			if !s.sends() {
				continue // what was written meanwhile has it submitted when it is complete
			}
			if err := s.flush(ctx); err != nil {
				if err = s.failed(ctx, err); err != nil {
					return nil, err
				}
			}
		case <-ctx.Done():
			return nil, s.giveUp(ctx, stopped(ctx))
		}
	}
}

// chunk is what one Read returned.
type chunk struct {
	text []byte
	err  error
}

// chunksOf reads on its own goroutine until an error, or until ctx ends and the Read in hand returns. A chunk is good until
// the next is taken.
func chunksOf(ctx context.Context, text io.Reader) <-chan chunk {
	chunks := make(chan chunk)
	go func() {
		var buffers [2][4 << 10]byte // one is read into while the other is looked at
		for i := 0; ; i = 1 - i {
			n, err := text.Read(buffers[i][:])
			select {
			case chunks <- chunk{buffers[i][:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return chunks
}

// brokeOff is the error of a text that ended before its plan did.
func brokeOff(why error) *fault.Error {
	return fault.Wrap(fault.Cancelled, why, "the text of the plan broke off")
}

// stopped is the error of a stream whose context ended before all of its plan was handed over.
func stopped(ctx context.Context) *fault.Error {
	why := context.Cause(ctx)
	f := fault.New(fault.Cancelled, "%v before the plan was complete", why)
	f.Cause = why
	return f
}

// sends reports whether steps are waiting to be sent.
func (s *streaming) sends() bool {
	return len(s.batch) > 0 && !s.joins && s.wrong == nil && !s.options.Whole && s.revision < mostSent
}

// gather is how long steps are waited for that go with the next.
func (s *streaming) gather() time.Duration {
	if s.revision < manySent {
		return together
	}
	return togetherLater
}

// take reads what was written next.
func (s *streaming) take(text []byte) error {
	parts, err := s.reader.Write(text)
	for _, p := range parts {
		if err := s.part(p); err != nil {
			return err
		}
	}
	return err
}

// part takes one part of the plan.
func (s *streaming) part(p streamed.Part) error {
	switch {
	case p.Kind == streamed.StepsOpen:
		s.options = streamed.NewOptions(s.fields)
	case p.Kind == streamed.OneStep:
		number := s.hold.Written()
		begin := s.hold.Add(p.Value)
		s.batch = append(s.batch, begin...)
		if s.run == nil && s.agent && !slices.ContainsFunc(begin, func(x *streamed.Step) bool { return x.Number == number }) {
			s.options.Whole = true // no amendment adds it, and it can't be among the first
		}
	case p.Kind != streamed.Field:
	case s.options == nil:
		s.fields = append(s.fields, p)
	case s.options.Returns(p) || streamed.Late(p) || s.joins || s.wrong != nil:
	case s.run == nil: // nothing has begun, so that nothing need be taken back
		s.options.Whole = true
	default:
		return fault.New(fault.InvalidValue, "%q stands behind the steps of a plan that runs while it is written, and would change what they mean", p.Key).
			WithHint(`write it before "steps"; behind them stand "output" and "output_steps" alone, one of them and once`)
	}
	return nil
}
