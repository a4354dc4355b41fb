package orchestrator

import (
	"context"
	"fmt"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
)

// waiter is a call that is ready and not decided: where it stands is for its tool's consumer to say.
type waiter struct {
	step  *outcome.Step // in the document, to be filled in
	tool  string
	shard int
	seq   uint64 // of its message; 0 where that is not known
}

// explain says, in a document of an unfinished run, what each call that is out or held back waits for. What this
// process knows it says at once; it returns those for whom the server has to be asked.
func (s *api) explain(r *run, doc *outcome.Run) (ask []waiter) {
	if r.machine == nil || r.machine.Finished() {
		return nil
	}
	one := func(c machine.Call, st *outcome.Step) {
		if st.Waiting != "" || st.Status != outcome.StepReady && st.Status != outcome.StepRetrying {
			return
		}
		tool := r.step(c.Step).Tool
		f := r.flights[c]
		if f == nil && st.Status == outcome.StepReady && r.heldOf(c.Step) > 0 {
			lane := r.lanes[tool]
			if b := lane.overfull(); b != nil && lane.awaitsBytes {
				st.Waiting = fmt.Sprintf("window full: %.1f MiB of arguments of this %s are out, %d steps of %s wait", float64(b.stake.together(b.bytes))/(1<<20), b.of, r.heldOf(c.Step), tool)
				return
			}
			st.Waiting = fmt.Sprintf("window full: %d steps of %s are out, %d of this run's wait", lane.window.stake.together(int64(lane.window.out)), tool, r.heldOf(c.Step))
			return
		}
		x := waiter{step: st, tool: tool, shard: r.shard(c.Step)}
		if f != nil {
			x.seq = f.seq.Load()
		}
		ask = append(ask, x)
	}
	for i := range doc.Steps {
		if len(doc.Steps[i].Items) == 0 {
			one(machine.Call{Step: i}, &doc.Steps[i])
		}
		for item := range doc.Steps[i].Items {
			one(machine.Call{Step: i, Item: item + 1}, &doc.Steps[i].Items[item])
		}
	}
	return ask
}

// explainRest asks the server, once for each tool.
func (s *api) explainRest(ctx context.Context, ask []waiter) {
	type state struct {
		kv.Lag
		err error
	}
	states := map[string]state{}
	for _, x := range ask {
		now, known := states[x.tool]
		if !known {
			now.Lag, now.err = s.env.store.Lag(ctx, x.tool, x.shard)
			states[x.tool] = now
		}
		switch {
		case fault.CodeOf(now.err) == fault.NotFound:
			x.step.Waiting = "the consumer of " + x.tool + " is gone; a worker that registers it makes it again"
		case now.err != nil:
			x.step.Waiting = "a worker of " + x.tool
		case x.seq > 0 && x.seq <= now.Given:
			x.step.Status = outcome.StepRunning
		default:
			x.step.Waiting = waitsForWorker(x.tool, now.Lag)
		}
	}
}

// waitsForWorker says why a step that lies in its tool's stream has not been given to a worker.
func waitsForWorker(tool string, s kv.Lag) string {
	switch {
	case s.Leased >= s.Limit:
		return fmt.Sprintf("fan-out limit %d of %d", s.Leased, s.Limit)
	case s.Asking > 0:
		return "a worker of " + tool + ", on its way"
	case s.Leased == 0:
		return "no worker of " + tool + " is alive"
	}
	return fmt.Sprintf("every worker of %s is busy: %d steps are leased, %d wait", tool, s.Leased, s.Behind)
}
