package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// stopWithin bounds how long it takes to cancel a run and to hear what became of it.
const stopWithin = 15 * time.Second

// failed deals with an error of what was sent. It returns nil where the text is read on all the same: for all of its
// problems, or since nothing stands of what was submitted.
func (s *streaming) failed(ctx context.Context, err error) error {
	var list wire.AmendProblems
	switch f := fault.As(err); {
	case over(err) && s.rejected(ctx):
		s.run, s.ours, s.sent, s.first, s.options.Whole = nil, false, nil, "", true
		return nil
	case over(err) && s.ours && s.had(ctx):
		s.joins = true // the same text may have been quicker elsewhere: at its end it is compared
		return nil
	case s.run != nil && json.Unmarshal(f.Details, &list) == nil && len(list.Problems) > 0:
		s.wrong = f
		s.cancel(ctx)
		s.came.Problems = list.Problems
		return nil
	case f.Code == fault.AlreadyFinished && s.ours && time.Since(s.heard) > s.o.OpenFor:
		err = fault.New(fault.AlreadyFinished, "no more of the plan reached its run for %v, so that went on with what it had and came to its end", s.o.OpenFor).
			WithHint("stream it under another run id, and let that wait for longer: stepjet run --stream --open-for, or StreamOptions.OpenFor")
	}
	return s.giveUp(ctx, err)
}

// rejected reports whether the plan that was submitted was.
func (s *streaming) rejected(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	out, err := s.run.Wait(ctx)
	return err == nil && out.Status == outcome.Rejected
}

// giveUp cancels the run, unless it is somebody else's, and returns the error with what had begun by then.
func (s *streaming) giveUp(ctx context.Context, why error) error {
	if ctx.Err() != nil && fault.CodeOf(why) != fault.Cancelled {
		why = stopped(ctx)
	}
	f := *fault.As(why)
	switch {
	case s.ours:
	case s.joins:
		return s.alone(ctx, &f)
	case s.first != "" && (ctx.Err() != nil || away(why)): // the submission was not answered
		if err := s.finds(ctx); fault.CodeOf(err) == fault.NotFound {
			return why
		}
	default:
		return why
	}
	s.cancel(ctx)
	if f.Code == fault.Cancelled {
		_ = f.WithHint("stream it again, under another run id")
	}
	return s.with(&f)
}

// alone adds to an error what there is of a run that somebody else began.
func (s *streaming) alone(ctx context.Context, f *fault.Error) error {
	s.came = wire.StreamDetails{Run: s.o.Run, Began: []string{}}
	s.look(ctx)
	f.Retryable = false
	f.Message += fmt.Sprintf("; the run %s was begun by somebody else and is left alone", s.o.Run)
	if s.came.Status != "" {
		f.Message += ": it is " + string(s.came.Status)
	}
	f.Details, _ = json.Marshal(s.came) // texts
	return f
}

// look notes the status of the run and what has begun of it; it reports false where its document can't be read.
func (s *streaming) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	doc, err := s.c.get(ctx, subjects.NewRun(s.c.tenant, s.o.Run), stopWithin)
	if err != nil {
		return false
	}
	s.came.Status = doc.Status
	s.came.Began = append(s.came.Began, begun(doc.Steps)...)
	return true
}

// allProblems returns the error of a plan with problems, once all of it is written.
func (s *streaming) allProblems(ctx context.Context) error {
	if all, err := s.c.DryRun(ctx, s.reader.Plan(), DryRunPermissions(s.o.Permissions)); err == nil && len(all.Problems) > 0 {
		s.came.Problems = all.Problems
	}
	p := s.came.Problems[0]
	return s.with(fault.New(p.Code, "%s", p.Message).WithHint("%s", p.Hint))
}

// with adds to an error what became of the run.
func (s *streaming) with(f *fault.Error) error {
	f.Retryable = false
	f.Details, _ = json.Marshal(s.came) // texts
	const most = 10
	began := s.came.Began[:min(len(s.came.Began), most)]
	switch n := len(s.came.Began); {
	case s.came.Status == "":
		f.Message += fmt.Sprintf("; it isn't known what became of the run %s, which goes on with what it has after %v", s.came.Run, s.o.OpenFor)
		if n > 0 {
			f.Message += fmt.Sprintf(", and %s may have begun: %s", text.Count(n, "step"), strings.Join(began, ", "))
		}
	case n == 0:
		f.Message += fmt.Sprintf("; the run %s is %s, and nothing had begun", s.came.Run, s.came.Status)
	default:
		f.Message += fmt.Sprintf("; the run %s is %s, and %s had begun: %s", s.came.Run, s.came.Status, text.Count(n, "step"), strings.Join(began, ", "))
	}
	if n := len(s.came.Began); n > most {
		f.Message += ", …"
	}
	return f
}

// cancel ends the run, also where ctx is over, and notes what became of it. It does so once.
func (s *streaming) cancel(ctx context.Context) {
	if s.came.Run != "" {
		return
	}
	s.came = wire.StreamDetails{Run: s.o.Run, Began: []string{}}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if s.run != nil {
		_, _ = s.run.Cancel(ctx, "client.Stream") // what became of it is looked at
		if out, err := s.run.Wait(ctx); err == nil {
			s.came.Status = out.Status
			if s.look(ctx) {
				return
			}
		}
	}
	s.came.Began = append(s.came.Began, s.sent...) // any of them may have
}

// begun returns the tokens of the steps that may have begun: a call that is out is cancelled without a word of whether
// a worker has taken it.
func begun(steps []outcome.Step) (tokens []string) {
	for i := range steps {
		x := &steps[i]
		inside := begun(x.Steps)
		if len(inside) == 0 && (!x.Ready.IsZero() || x.Attempts > 0 || len(begun(x.Items)) > 0) {
			inside = []string{x.ID}
		}
		tokens = append(tokens, inside...)
	}
	return tokens
}
