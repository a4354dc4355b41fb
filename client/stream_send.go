package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/streamed"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/wire"
)

// flush sends the steps that were gathered: as the plan to begin with, or as amendments.
func (s *streaming) flush(ctx context.Context) error {
	batch := s.batch
	s.batch = nil
	if s.run == nil {
		return s.begin(ctx, batch)
	}
	for _, part := range inParts(batch, 0) {
		s.sending(part)
		if err := s.amend(ctx, Amendment{Add: textsOf(part)}); err != nil {
			return err
		}
	}
	return nil
}

// begin submits an open plan with the first steps.
func (s *streaming) begin(ctx context.Context, batch []*streamed.Step) error {
	first := s.options.Begun(s.o.OpenFor, textsOf(batch))
	s.sending(batch)
	s.first, s.heard = plan.Digest(first), time.Now()
	err := s.patiently(ctx, func() error { return s.submit(ctx, first) })
	switch {
	case fault.CodeOf(err) == fault.Conflict:
		s.joins = true // what is there may be this plan, as far as it was written
		return nil
	case err == nil && s.joins && s.waited:
		_ = s.finds(ctx) // it may be what was sent before, without an answer
	}
	return err
}

// meant is the generation of the run that is streamed; 0 where that isn't known.
func (s *streaming) meant() uint64 {
	if s.run == nil {
		return 0
	}
	return s.run.Generation()
}

// sending notes steps that are about to be sent: from then on they may begin.
func (s *streaming) sending(steps []*streamed.Step) {
	for _, x := range steps {
		if x.ID != "" {
			s.sent = append(s.sent, x.ID)
		}
	}
}

// submit submits a plan, and tells of the run.
func (s *streaming) submit(ctx context.Context, plan []byte) error {
	run, err := s.c.Submit(ctx, plan, s.o.SubmitOptions)
	if err != nil {
		return err
	}
	s.run, s.joins, s.ours = run, run.attached, !run.attached
	s.tell(run)
	return nil
}

// tell tells of the run, once.
func (s *streaming) tell(run *Run) {
	if s.o.Begun != nil && !s.told {
		s.o.Begun(run)
	}
	s.told = true
}

// amend amends the run. That somebody else did meanwhile is no reason not to: what is added is added all the same, but for
// what was.
func (s *streaming) amend(ctx context.Context, a Amendment) error {
	for {
		a.Revision, a.Generation = s.revision, s.meant()
		err := s.patiently(ctx, func() error {
			done, err := s.c.Amend(ctx, s.o.Run, a)
			if err == nil {
				s.revision = done.Revision
			}
			return err
		})
		if err == nil {
			return nil
		}
		var now wire.AmendConflict
		code := fault.CodeOf(err)
		if code != fault.Conflict && code != fault.Overtaken || json.Unmarshal(fault.As(err).Details, &now) != nil || now.Revision <= s.revision {
			return err
		}
		s.revision = now.Revision
		if a.Add = s.without(ctx, a.Add); len(a.Add) == 0 && a.Output == nil && a.OutputSteps == nil && !a.Close {
			return nil
		}
	}
}

// end hands over what is left once the text is over, and closes the plan.
func (s *streaming) end(ctx context.Context) (*Run, error) {
	if err := s.reader.End(); err != nil {
		return nil, s.giveUp(ctx, err)
	}
	switch {
	case s.wrong != nil:
		return nil, s.allProblems(ctx)
	case s.joins:
		r, err := s.join(ctx)
		if err != nil && (s.ours || ctx.Err() != nil || away(err)) {
			err = s.giveUp(ctx, err)
		}
		return r, err
	case s.run == nil:
		err := s.submit(ctx, s.reader.Plan())
		if fault.CodeOf(err) == fault.Conflict {
			return s.join(ctx)
		}
		return s.run, err
	}
	if err := s.finish(ctx); err != nil {
		if err = s.failed(ctx, err); err != nil {
			return nil, err
		}
		return s.end(ctx) // it has problems; or was rejected, so that all is submitted; or is over, so that it is compared
	}
	return s.run, nil
}

// finish sends the steps that are left, and with the last of them what the plan returns. Once that stands, it is closed.
func (s *streaming) finish(ctx context.Context) error {
	s.batch = append(s.batch, s.hold.End()...)
	names, _ := json.Marshal(s.options.OutputSteps) // texts
	parts := inParts(s.batch, len(s.options.Output)+len(names))
	for i, part := range parts {
		s.sending(part)
		a := Amendment{Add: textsOf(part)}
		if i == len(parts)-1 {
			a.Output, a.OutputSteps, a.Close = s.options.Output, s.options.OutputSteps, !s.options.Open
		}
		if len(a.Add) == 0 && a.Output == nil && a.OutputSteps == nil && !a.Close {
			return nil
		}
		err := s.amend(ctx, a)
		switch {
		case over(err) && len(a.Add) == 0 && a.Output == nil && a.OutputSteps == nil && !s.rejected(ctx):
			return nil // it ended with all of its steps
		case err != nil:
			return err
		}
	}
	return nil
}

// over reports whether a run can't be amended any more since it has ended.
func over(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.AlreadyFinished || code == fault.NotFound
}

// inParts splits steps into amendments. There is one at least, and the last has room for so many bytes beside its steps.
func inParts(steps []*streamed.Step, room int) [][]*streamed.Step {
	parts, size := [][]*streamed.Step{nil}, 0
	for _, x := range steps {
		last := len(parts) - 1
		if size += len(x.Text); size > mostTogether && len(parts[last]) > 0 {
			parts, last, size = append(parts, nil), last+1, len(x.Text)
		}
		parts[last] = append(parts[last], x)
	}
	if last := len(parts) - 1; room > 0 && size+room > mostTogether && len(parts[last]) > 0 {
		parts = append(parts, nil)
	}
	return parts
}

func textsOf(steps []*streamed.Step) []json.RawMessage {
	all := make([]json.RawMessage, len(steps))
	for i, x := range steps {
		all[i] = x.Text
	}
	return all
}
