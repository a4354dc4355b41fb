package orchestrator

import (
	"context"
	"maps"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Now is what an orchestrator holds at one moment. What all orchestrators say of it at about the same moment adds up.
type Now struct {
	// Partitions is how many, of 64, this orchestrator owns.
	Partitions int
	// Runs is how many it owns that are not over.
	Runs int
	// Behind is how long what has come from the ledger waits until it is taken: the longest of this process's loops.
	Behind time.Duration
	// Tools says for every registered tool how much of it is wanted: what this orchestrator holds back, and, for the
	// tools whose names lie in its partitions, what lies in their streams and what workers have. The limit is everywhere
	// the tool's.
	Tools []tool.Demand
}

// Now looks at what this orchestrator holds. It goes through all that waits in its loops, and asks the server for each
// tool that it looks after or has steps of: for a scrape every few seconds, not for more. Errors: not_ready before
// Ready, and those of the connection.
func (o *Orchestrator) Now(ctx context.Context) (*Now, error) {
	w := o.working.Load()
	if w == nil {
		return nil, fault.New(fault.NotReady, "the orchestrator has not begun")
	}
	held, err := w.loops.now(ctx)
	if err != nil {
		return nil, err
	}
	n := &Now{Behind: held.behind}
	for _, mine := range held.owned {
		if mine {
			n.Partitions++
		}
	}
	tools := w.registry.registered()
	lags, err := lagsOf(ctx, w.store, tools, func(name string) bool { return held.uses[name] || held.owned.looksAfter(name) })
	if err != nil {
		return nil, err
	}
	waiting, err := w.loops.waiting(ctx, lags)
	if err != nil {
		return nil, err
	}
	n.Runs = waiting.runs
	for i := range tools {
		t, x := &tools[i], waiting.tools[tools[i].Name]
		d := tool.Demand{Tool: t.Name, Limit: t.Contract.Limit, Held: x.Held, OldestMS: x.OldestMS}
		if held.owned.looksAfter(t.Name) { // so that of all orchestrators one counts it
			lag, there := lags[t.Name]
			d.Queued, d.Leased, d.NoConsumer = int(lag.Behind), lag.Leased, !there
		}
		d.Steps = d.Held + d.Queued + d.Leased
		n.Tools = append(n.Tools, d)
	}
	return n, nil
}

// looksAfter reports whether the owner of the partitions is the one, of all orchestrators, that looks after a tool.
func (owned *partitionSet) looksAfter(tool string) bool {
	return owned[subjects.Partition(subjects.Encode(tool))]
}

// lagsOf asks what lies in the streams of some tools; one without a consumer is left out.
func lagsOf(ctx context.Context, store storage, tools []tool.Registered, asked func(name string) bool) (map[string]kv.Lag, error) {
	all := map[string]kv.Lag{}
	for i := range tools {
		if !asked(tools[i].Name) {
			continue
		}
		lag, err := store.Lag(ctx, tools[i].Name, tools[i].Shard)
		switch {
		case err == nil:
			all[tools[i].Name] = lag
		case fault.CodeOf(err) != fault.NotFound: // a consumer that is gone is being made again
			return nil, err
		}
	}
	return all, nil
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
		one, err := ask(ctx, l, func() heldNow {
			x := heldNow{uses: map[string]bool{}, behind: time.Since(posted)}
			for p, c := range l.cursors.owned {
				x.owned[p] = c != nil
			}
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
		for p, mine := range one.owned {
			all.owned[p] = all.owned[p] || mine
		}
	}
	return all, nil
}

// waitingNow is what waits for workers, of each tool, and how many runs go on.
type waitingNow struct {
	tools map[string]wire.DemandNow
	runs  int
}

func (ls *loops) waiting(ctx context.Context, lags map[string]kv.Lag) (waitingNow, error) {
	since := map[string]wire.DemandSince{}
	for name, lag := range lags {
		since[name] = wire.DemandSince{Given: lag.Given, Behind: lag.Behind}
	}
	all := waitingNow{tools: map[string]wire.DemandNow{}}
	for _, l := range ls.all {
		one, err := ask(ctx, l, func() waitingNow {
			return waitingNow{l.dispatcher.demand(since, l.cursors.atHand(), l.times.of), l.runs.active()}
		})
		if err != nil {
			return all, err
		}
		all.runs += one.runs
		for name, d := range one.tools {
			sum := all.tools[name]
			all.tools[name] = wire.DemandNow{Held: sum.Held + d.Held, OldestMS: max(sum.OldestMS, d.OldestMS)}
		}
	}
	return all, nil
}

// ask has a look done on a loop, and returns what it saw.
func ask[T any](ctx context.Context, l *loop, look func() T) (seen T, err error) {
	answer := make(chan T, 1)
	l.post(func() {
		if ctx.Err() == nil { // else nobody waits
			answer <- look()
		}
	})
	select {
	case seen = <-answer:
		return seen, nil
	case <-ctx.Done():
		return seen, kv.Fault(context.Cause(ctx))
	}
}
