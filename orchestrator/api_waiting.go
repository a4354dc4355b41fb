package orchestrator

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
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
		f := r.flights.At(c)
		if f == nil && st.Status == outcome.StepReady && r.heldOf(c.Step) > 0 {
			lane := r.lanes.At(tool)
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
	_, of := r.machine.Scope(0)
	r.eachCall(of, doc.Steps, one)
	return ask
}

// eachCall calls one with the calls of a scope, and of those within it, and what a document has of them.
func (r *run) eachCall(of machine.Numbers, steps []outcome.Step, one func(machine.Call, *outcome.Step)) {
	each := func(c machine.Call, st *outcome.Step) {
		one(c, st)
		at := 0
		for p, inner := range r.machine.Inside(c) {
			n := len(p.Steps)
			r.eachCall(inner, st.Steps[at:at+n], one)
			at += n
		}
	}
	for i := range steps {
		if len(steps[i].Items) == 0 {
			each(machine.Call{Step: of.Of(i)}, &steps[i])
		}
		for item := range steps[i].Items {
			each(machine.Call{Step: of.Of(i), Item: item + 1}, &steps[i].Items[item])
		}
	}
}

// explainRest asks the server, once for each tool.
func (s *api) explainRest(ctx context.Context, ask []waiter) {
	type state struct {
		kv.Lag
		err  error
		held string
	}
	states := map[string]state{}
	for _, x := range ask {
		now, known := states[x.tool]
		if !known {
			now.Lag, now.err = s.env.store.Lag(ctx, x.tool, x.shard)
			if now.err == nil && now.Leased == 0 && now.Asking == 0 {
				now.held = s.heldBy(ctx, x.tool)
			}
			states[x.tool] = now
		}
		switch {
		case fault.CodeOf(now.err) == fault.NotFound:
			x.step.Waiting = "the consumer of " + x.tool + " is gone; a worker that registers it makes it again"
		case now.err != nil:
			x.step.Waiting = "a worker of " + x.tool
		case x.seq > 0 && x.seq <= now.Given:
			x.step.Status = outcome.StepRunning
		case now.held != "":
			x.step.Waiting = now.held
		default:
			x.step.Waiting = waitsForWorker(x.tool, now.Lag)
		}
	}
}

// heldBy says that a worker lives which holds a tool, and why, in its own words; empty where there is none, or it isn't
// known.
func (s *api) heldBy(ctx context.Context, name string) string {
	w, t, err := s.ear.Holder(ctx, name)
	if fault.CodeOf(err) == fault.Permission {
		s.log.Warn("this orchestrator may not hear which workers live, so stepjet get can't say why a tool is held", "error", err,
			"hint", "print its permissions anew with stepjet acl orchestrator")
	} else if err != nil {
		s.log.Debug("workers can't be asked whether they hold a tool", "tool", name, "error", err)
	}
	if w == nil {
		return ""
	}
	said := fmt.Sprintf("no worker of %s takes its steps: %s holds them", name, w.Name)
	if t.Why != "" {
		said += ", since " + t.Why
	}
	return said
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

// queueMemory is for how long what lies in a tool's stream is told without asking the server again, however many ask.
const queueMemory = 250 * time.Millisecond

// queues says what lies in the streams of some tools. Who looks may not ask the server for them.
func (s *api) queues(m *nats.Msg) {
	asked, err := wire.ParseQueuesRequest(m.Data)
	if err != nil {
		s.refuse(m, err)
		return
	}
	found, err := s.streams.of(s.ctx, s.store, asked.Tools)
	if err != nil {
		s.refuse(m, err)
		return
	}
	s.reply(m, wire.QueuesAnswer{Tools: found}.Body())
}

// streams remembers for a moment what lies in the streams of tools. It is for the one goroutine of its subscription: so
// the server is asked for one tool at a time, however many requests there are.
type streams struct{ asked map[string]lookedAt }

type lookedAt struct {
	wire.Queue
	there bool
	at    time.Time
}

// of returns what lies in the streams of tools, each in a shard; one without a consumer is left out.
func (s *streams) of(ctx context.Context, store storage, tools map[string]int) (map[string]wire.Queue, error) {
	now := time.Now()
	maps.DeleteFunc(s.asked, func(_ string, x lookedAt) bool { return now.Sub(x.at) > queueMemory })
	if s.asked == nil {
		s.asked = map[string]lookedAt{}
	}
	found := map[string]wire.Queue{}
	for name, shard := range tools {
		x, known := s.asked[name]
		if !known && subjects.ValidTool(name) {
			lag, err := store.Lag(ctx, name, shard)
			if err != nil && fault.CodeOf(err) != fault.NotFound {
				return nil, err
			}
			x = lookedAt{wire.Queue{Limit: lag.Limit, Leased: lag.Leased, Behind: lag.Behind, Given: lag.Given}, err == nil, now}
			s.asked[name] = x
		}
		if x.there {
			found[name] = x.Queue
		}
	}
	return found, nil
}

// heldNow is what the loops of a process hold.
type heldNow struct {
	owned  partitionSet
	uses   map[string]bool // tools of which they have, or had, steps
	behind time.Duration
}

func (ls *loops) now(ctx context.Context) (heldNow, error) {
	all := heldNow{uses: map[string]bool{}}
	for _, l := range ls.all {
		posted := time.Now()
		one, err := look(ctx, l, func() heldNow {
			x := heldNow{owned: l.cursors.set(), uses: map[string]bool{}, behind: time.Since(posted)}
			for name := range l.dispatcher.windows {
				x.uses[name] = true
			}
			return x
		})
		if err != nil {
			return all, err
		}
		all.behind = max(all.behind, one.behind)
		maps.Copy(all.uses, one.uses)
		all.owned.add(one.owned)
	}
	return all, nil
}

// waitingNow is what waits for workers, of each tool, and how many runs go on.
type waitingNow struct {
	tools map[string]wire.DemandNow
	runs  int
}

func (ls *loops) waiting(ctx context.Context, queues map[string]wire.Queue) (waitingNow, error) {
	since := map[string]wire.DemandSince{}
	for name, q := range queues {
		since[name] = wire.DemandSince{Given: q.Given, Behind: q.Behind}
	}
	all := waitingNow{tools: map[string]wire.DemandNow{}}
	for _, l := range ls.all {
		runs, err := look(ctx, l, l.runs.active)
		if err != nil {
			return all, err
		}
		all.runs += runs
		one, err := await(ctx, l, func(told func(wire.DemandAnswer)) { (&count{loop: l, asked: since, told: told}).from(0) })
		if err != nil {
			return all, err
		}
		for name, d := range one.Tools {
			all.tools[name] = all.tools[name].Plus(d)
		}
	}
	return all, nil
}
