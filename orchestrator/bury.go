package orchestrator

import (
	"context"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
)

// grave is a call that used up its attempts, and what its dead letter is made of.
type grave struct {
	id     subjects.Run
	bucket string
	letter kv.DeadLetter
	inputs inputs
	note   *buried
	call   machine.Call
}

// buried are the calls of a run whose dead letters stand, as far as this process knows. Writing one again does no harm.
type buried struct {
	mu    sync.Mutex
	calls map[machine.Call]bool
}

func (b *buried) add(c machine.Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[c] = true
}

func (b *buried) has(c machine.Call) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[c]
}

// bury keeps a dead letter of a call that was executed and failed for good. It is written at once, for who watches, and
// made sure of before the run is over.
func (l *loop) bury(r *run, c machine.Call) {
	if g := l.grave(r, c); g != nil {
		l.job(func(ctx context.Context) { _ = l.buryAll(ctx, []*grave{g}) }) // finish makes sure
	}
}

// graves gives those of a run that is over that are not known to be written yet.
func (l *loop) graves(r *run) []*grave {
	if r.machine == nil { // rejected
		return nil
	}
	var all []*grave
	for i := range r.plan.Steps {
		n, _ := r.machine.Items(i)
		for item := 0; item <= n; item++ {
			if g := l.grave(r, machine.Call{Step: i, Item: item}); g != nil {
				all = append(all, g)
			}
		}
	}
	return all
}

// grave gives what is to be buried of a call; nil where nothing is.
func (l *loop) grave(r *run, c machine.Call) *grave {
	if _, isList := r.machine.Items(c.Step); isList && c.Item == 0 {
		return nil // its items are buried
	}
	err, attempts := r.machine.Failure(c)
	if err == nil || r.buried.has(c) {
		return nil
	}
	switch err.Code {
	case fault.Timeout, fault.WorkerLost, fault.OutcomeUnknown:
	default:
		if attempts == 0 {
			return nil // no worker ever had it
		}
	}
	if r.buried == nil {
		r.buried = &buried{calls: map[machine.Call]bool{}}
	}
	res, a := r.machine.Decided(c), r.attempt(c, 1)
	return &grave{
		id: r.id, bucket: r.bucket(), call: c, inputs: r.inputs(c), note: r.buried,
		letter: kv.DeadLetter{
			Run: r.id.Plain(), Tenant: r.id.Tenant, Generation: r.generation, Step: a.Step, Tool: a.Tool, Attempts: attempts,
			Context: r.contextOf(c.Step).Keys(), Error: err, Worker: res.Worker, Failed: r.machine.Step(c, r.submitted).Decided, Key: a.Key(),
		},
	}
}

func (l *loop) buryAll(ctx context.Context, graves []*grave) error {
	for _, g := range graves {
		g.inputs.resolver = nil // that of the run is the loop's
		if args, err := l.values.arguments(ctx, &g.inputs); err == nil {
			g.letter.Arguments = args
		} else if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := l.store.CreateDead(ctx, g.id, g.bucket, &g.letter); err != nil {
			if ctx.Err() == nil {
				l.log.Warn("a dead letter could not be written; it is tried again when the run is over", "run", g.letter.Run, "step", g.letter.Step, "error", err)
			}
			return err
		}
		g.note.add(g.call)
	}
	return nil
}
