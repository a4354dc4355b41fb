package client

import (
	"context"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/wire"
)

// join compares the plan of a run that is there with the text, once that is complete, and adds what it lacks. Nothing is
// cancelled: the run is somebody else's as well.
func (s *streaming) join(ctx context.Context) (*Run, error) {
	r, err := s.c.Attach(s.o.Run)
	for err == nil {
		var doc *outcome.Run
		if doc, err = s.c.Get(ctx, s.o.Run); err != nil {
			break
		}
		if doc.Status == outcome.Rejected { // its id is free
			err = s.submit(ctx, s.reader.Plan())
			return s.run, err
		}
		var a *Amendment
		if a, err = s.lacks(doc); err != nil {
			break
		}
		if a != nil {
			if _, err = s.c.Amend(ctx, s.o.Run, *a); fault.CodeOf(err) == fault.NotAmendable {
				err = s.stays(a)
			}
		}
		switch code := fault.CodeOf(err); {
		case err == nil:
			s.tell(r)
			if s.ours {
				r = s.run
			}
			return r, nil
		case over(err) || code == fault.Conflict || code == fault.Overtaken: // it is another now
			err = nil
		}
	}
	return nil, err
}

// lacks returns the amendment by which the plan of a document becomes that of the text; nil for none. Errors: Conflict
// where there is no such, AlreadyFinished where it comes too late.
func (s *streaming) lacks(doc *outcome.Run) (*Amendment, error) {
	if doc.Digest == plan.Digest(s.reader.Plan()) {
		return nil, nil
	}
	now, ok := wire.ReadShape(doc.Plan)
	text, steps := wire.ReadShape(s.reader.Plan())
	if !ok || !steps || s.options == nil {
		return nil, s.different()
	}
	should, _ := wire.ReadShape(s.options.Finished(s.o.OpenFor, text.Steps()))
	if !s.options.Open {
		now.Close()
		should.Close()
	}
	change, err := now.To(should)
	if _, back := should.To(now); err != nil || back != nil || !change.Discard.IsZero() {
		return nil, s.different()
	}
	running := doc.Status == outcome.Running
	switch {
	case !running && !change.IsZero():
		return nil, fault.New(fault.AlreadyFinished, "the run %q was over, %s, before all of its plan was written", s.o.Run, doc.Status).
			WithHint("stream the plan under another run id")
	case running && !s.options.Open:
		change.Close = true
	case change.IsZero():
		return nil, nil
	}
	return &Amendment{
		Revision: doc.Revision, Add: change.Add, Output: change.Output, OutputSteps: change.OutputSteps, Close: change.Close,
	}, nil
}

// different is the error of a run whose plan is not that of the text.
func (s *streaming) different() error {
	return fault.New(fault.Conflict, "the run id %q was used for a different plan", s.o.Run).
		WithHint("choose another run id; a plan that is streamed again is the same where its steps and options are")
}

// stays is what becomes of an amendment of a run whose plan stays as it was submitted: one that was closed by nature
// needs no closing.
func (s *streaming) stays(a *Amendment) error {
	if len(a.Add) > 0 || a.Output != nil || a.OutputSteps != nil {
		return s.different()
	}
	return nil
}
