package ui

import (
	"context"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// letterName names a dead letter: the key of its run, and the step.
type letterName struct {
	Key  string `json:"key"`
	Step string `json:"step"`
}

// calledAgain says what came of the letters of one request.
type calledAgain struct {
	// Called is how many calls were made, or were under way.
	Called  int             `json:"called"`
	Refused []refusedLetter `json:"refused,omitempty"`
}

type refusedLetter struct {
	letterName
	Error *fault.Error `json:"error"`
}

// againAt is how many calls of one request are made at the same time.
const againAt = 8

// again makes the call of a dead letter again, or of several. A letter goes once its call has succeeded; where this process
// ends before, the next who makes the call finds what became of it.
func (a acting) again(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		letterName
		Letters []letterName `json:"letters"`
	}
	if err := readJSON(w, r, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Letters == nil:
		return a.call(r.Context(), r, in.letterName)
	case in.letterName != letterName{}:
		return nil, fault.New(fault.InvalidConfig, "one letter is named, and a list of others").WithHint(`"key" and "step", or "letters"`)
	case len(in.Letters) > mostLetters:
		return nil, fault.New(fault.LimitExceeded, "%s, and a request may have %d", text.Count(len(in.Letters), "letter"), mostLetters)
	}
	out, group := calledAgain{}, errgroup.Group{}
	group.SetLimit(againAt)
	var mu sync.Mutex
	for _, l := range in.Letters {
		group.Go(func() error {
			_, err := a.call(a.life, r, l) // it is done to its end, whoever stays to see that
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.Refused = append(out.Refused, refusedLetter{l, kv.Fault(err)})
				return nil
			}
			out.Called++
			return nil
		})
	}
	return out, group.Wait()
}

// call makes the call of one letter again.
func (a acting) call(ctx context.Context, r *http.Request, l letterName) (*begun, error) {
	run, err := named(r, l.Key)
	if err != nil {
		return nil, err
	}
	c, err := a.docs.actor(ctx, run.Tenant)
	if err != nil {
		return nil, err
	}
	letter, err := c.DeadLetter(ctx, run.Plain(), l.Step)
	if err != nil {
		return nil, err
	}
	called, err := c.RetryDead(ctx, letter, client.RetryDeadOptions{})
	if err != nil {
		return nil, err
	}
	a.done.Go(func() { _, _ = c.SettleDead(a.life, letter, called) }) // what it came to, its run says
	return &begun{subjects.NewRun(run.Tenant, called.ID()).Key(), called.ID()}, nil
}
