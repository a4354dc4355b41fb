package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

const (
	// stuckPause lies between two looks: what is stuck is so in both.
	stuckPause = 500 * time.Millisecond
	// stuckMost bounds the stuck messages of a tool that are counted.
	stuckMost = 1000
)

// stuckSteps looks for messages in the step streams that are neither waiting for a worker nor leased: their consumer
// believes that they are done, and will never deliver them.
func (d *doctor) stuckSteps(ctx context.Context) error {
	suspects := map[string][]string{} // by tool
	for _, t := range d.tools {
		found, err := d.passedOver(ctx, t)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			suspects[t.Name] = found
		}
	}
	if len(suspects) == 0 {
		d.fine("none")
		return nil
	}
	select {
	case <-time.After(stuckPause):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, t := range d.tools {
		if len(suspects[t.Name]) == 0 {
			continue
		}
		now, err := d.passedOver(ctx, t)
		if err != nil {
			return err
		}
		stuck := slices.DeleteFunc(now, func(s string) bool { return !slices.Contains(suspects[t.Name], s) })
		if len(stuck) > 0 {
			d.add(Finding{
				About: t.Name, Health: Broken, Expected: "every step waiting for a worker, or leased",
				Found: fmt.Sprintf("%s that the consumer believes to be done, the first of them %s", text.Count(len(stuck), "step"),
					stuck[0]),
				Means: "no worker will ever get them, and their runs wait",
				Fix:   "takes them out of the stream; the sweep of the run's owner sends them again",
			}, func() error { return d.takeOut(ctx, stuck) })
		}
	}
	d.fine("none")
	return nil
}

// passedOver returns the subjects of a tool's messages that its consumer has passed over.
func (d *doctor) passedOver(ctx context.Context, t tool.Registered) (all []string, err error) {
	lag, err := d.s.Queue.Lag(ctx, t.Name, t.Shard)
	if err != nil {
		return nil, nil // said already
	}
	passed := lag.Floor
	if lag.Leased == 0 {
		passed = lag.Given
	}
	for e, err := range d.in.StepsUpTo(ctx, t, passed) {
		if err != nil || len(all) == stuckMost {
			return all, err
		}
		all = append(all, e.Subject)
	}
	return all, nil
}

// takeOut removes messages that nobody has.
func (d *doctor) takeOut(ctx context.Context, all []string) error {
	for _, subject := range all {
		if a, shard, ok := subjects.ParseStep(subject); ok {
			if err := d.in.DropAttempt(ctx, a, shard); err != nil {
				return err
			}
		}
	}
	return nil
}
