package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// extras is a plan with what came with it.
type extras struct {
	context   wire.RunContext
	unfit     error
	retryOf   wire.Retry
	body      []byte
	digest    string
	submitted time.Time
}

// extras adds the problems of what came with a plan, and what is taken over from the run that it tries again. The
// error is one that may pass.
func (j *judge) extras(ctx context.Context, id subjects.Run, generation uint64, p *plan.Plan, start *wire.Start, x extras, t *tried) error {
	start.Problems = append(start.Problems, contextProblems(p, x)...)
	if t != nil && t.problem != nil && !start.Rejected() {
		start.Problems = append(start.Problems, *t.problem)
	}
	if t == nil || start.Rejected() {
		return nil
	}
	var err error
	start.Reuse, err = j.takeOver(ctx, id, generation, p, start.Bucket, x, t)
	return err
}

// contextProblems finds context that can't be read, and context for steps that the plan doesn't have.
func contextProblems(p *plan.Plan, x extras) []fault.Problem {
	if x.unfit != nil {
		var f *fault.Error
		if !errors.As(x.unfit, &f) {
			f = fault.Wrap(fault.InvalidValue, x.unfit, "the context")
		}
		return []fault.Problem{{Code: f.Code, Message: f.Message, Hint: f.Hint}}
	}
	var problems []fault.Problem
	for _, step := range slices.Sorted(maps.Keys(x.context.Steps)) {
		if _, ok := p.Index(step); !ok {
			problems = append(problems, fault.Problem{
				Code: fault.InvalidValue, Message: fmt.Sprintf("there is context for the step %q, which the plan doesn't have", text.Clip(step, 80)),
				Hint: "context for a single step is given under the step's id",
			})
		}
	}
	return problems
}
