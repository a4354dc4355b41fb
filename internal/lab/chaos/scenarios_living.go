package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/internal/lab/living"
)

// livingRuns has runs amended, answered and looped by several clients, while everything is killed again and again, and three
// versions work side by side: today's, one of before that knows language 2 too and owns such runs as today's does, and one
// that knows language 1 alone, and leaves them to the others.
var livingRuns = livingScenario(versionBefore, versionFirst)

// livingToday is the same with today's version alone: it needs no history.
var livingToday = livingScenario()

func livingScenario(others ...string) Scenario {
	return Scenario{
		Name: "living",
		Fault: "kill -9 of orchestrators, workers, the server, clients, and of everything at once, while three versions work side by side: today's, " +
			beforeCommit.commit + " and " + firstCommit.commit + ", which knows language 1 alone",
		Correct:   "I11–I15",
		Shape:     Shape{Orchestrators: 4, Workers: 3, Agents: 1, Parallel: 2, Living: 3, Kinds: []string{kindChain, kindSingle}, Heal: 4 * time.Minute},
		Versions:  others,
		Seconds:   90,
		Shipped:   180,
		Inject:    func(ctx context.Context, h *Harm) error { return h.killAll(ctx, others) },
		Sometimes: []string{living.I11, living.I12, living.I13, living.I14, living.I15, living.Stale, living.Refused, living.Repeat, living.Approved, sometimesRetried, sometimesRedelivered},
		Figures: func(e *Evidence, r *Report) []string {
			return []string{
				lookedAt(e, r),
				fmt.Sprintf("%d amendments that did nothing where they stood, %d rejected, %d told of more than once", r.Counts[living.Stale],
					r.Counts[living.Refused], r.Counts[living.Repeat]),
				kinds(e), duplicates(e, r),
			}
		},
	}
}

// lookedAt says how often each invariant of living runs was held against something.
func lookedAt(e *Evidence, r *Report) string {
	runs := 0
	for _, d := range e.History {
		if w := WorkOf(d.Run); w != nil && w.living != nil {
			runs++
		}
	}
	return fmt.Sprintf("%d living runs; looked at: I11 %d, I12 %d, I13 %d, I14 %d, I15 %d times", runs, r.Counts[living.I11],
		r.Counts[living.I12], r.Counts[living.I13], r.Counts[living.I14], r.Counts[living.I15])
}

// loadedRuns is living runs with as many workers as a machine of eight cores would have, while eight processes of the
// harness want all of its processor time: nothing is killed, and what is late is not lost.
var loadedRuns = Scenario{
	Name:    "loaded",
	Fault:   "eight busy loops beside eight workers, two orchestrators and three clients of living runs",
	Correct: "I11–I15, and nothing lost",
	Shape:   Shape{Workers: 8, Agents: 1, Parallel: 2, Living: 3, Kinds: []string{kindChain, kindSingle}, Heal: 4 * time.Minute},
	Seconds: 60, Shipped: 180,
	Unbroken: true,
	Inject: func(ctx context.Context, h *Harm) error {
		const busy = 8
		for i := range busy {
			h.hit("busy loop begun")
			if err := h.start(ctx, node("s", i), Role{Kind: roleBusy}); err != nil {
				return err
			}
		}
		err := sleep(ctx, time.Hour)
		for i := range busy {
			h.part(node("s", i)).kill()
		}
		return err
	},
	Sometimes: []string{living.I11, living.I12, living.I13, living.I14, living.I15, living.Approved},
	Figures:   figures(lookedAt, lost),
}

// kinds says how often what was killed.
func kinds(e *Evidence) (text string) {
	n := map[string]int{}
	for _, f := range e.Faults {
		n[f.Kind]++
	}
	for _, kind := range []string{orchestratorKilled, workerKilled, natsKilled, clientKilled, everythingKilled} {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %d times", kind, n[kind])
	}
	return text
}

const (
	orchestratorKilled = "orchestrator killed"
	workerKilled       = "worker killed"
	clientKilled       = "client killed"
	everythingKilled   = "everything killed"
)

// killAll kills one after the other, and everything, until ctx ends. Others are versions that orchestrators and workers
// come back in.
//
// Two orchestrators and one worker always are of a version that knows language 2, and they come first. An orchestrator that
// doesn't know it, and sees nobody who does, takes everything, and rejects a plan of language 2 that comes then (ADR 16).
func (h *Harm) killAll(ctx context.Context, others []string) error {
	if slices.Contains(others, versionFirst) {
		if err := h.firstLiving(ctx); err != nil {
			return err
		}
	}
	knowing := []string{""}
	if slices.Contains(others, versionBefore) {
		knowing = append(knowing, versionBefore)
	}
	all := append([]string{""}, others...)
	pick := func(of []string) string { return of[h.Intn(len(of))] }
	for i := 0; ; i++ {
		pause := h.between(0, 700*time.Millisecond)
		var err error
		switch what := h.Intn(10); {
		case i%12 == 11:
			err = h.everything(ctx, pause)
		case what < 4:
			n := h.Intn(h.opts.Orchestrators)
			if h.setVersion(node("o", n), pick(all)); n < 2 {
				h.setVersion(node("o", n), pick(knowing))
			}
			err = h.killed(ctx, orchestratorKilled, node("o", n), pause)
		case what < 6:
			n := h.Intn(h.opts.Workers)
			if n > 0 {
				h.setVersion(node("w", n), pick(all))
			}
			err = h.killed(ctx, workerKilled, node("w", n), pause, node("w", n))
		case what < 7:
			err = h.killed(ctx, natsKilled, "n1", pause, "*")
		default:
			err = h.killed(ctx, clientKilled, node("l", h.Intn(living.Clients)), pause)
		}
		if err == nil {
			err = sleep(ctx, h.between(0, 800*time.Millisecond))
		}
		if err != nil {
			return err
		}
	}
}

// firstLiving waits until a living run is over: then it is recorded what such runs need, and who does not know it leaves
// their plans to others.
func (h *Harm) firstLiving(ctx context.Context) error {
	for {
		events, err := journal.Read(filepath.Join(h.dir, node("l", 0)+".jsonl"))
		if err != nil || slices.ContainsFunc(events, func(e journal.Event) bool { return e.Kind == journal.Outcome }) {
			return err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// everything kills all processes of Stepjet, all clients of living runs and the server, and starts them again: the server,
// then who knows language 2, then the others.
func (h *Harm) everything(ctx context.Context, pause time.Duration) error {
	h.hit(everythingKilled, "*")
	order := [][]string{{"n1"}, {"o1", "o2"}, {"o3", "o4", "w1", "w2", "w3"}, h.livers()}
	var all sync.WaitGroup
	for _, nodes := range order {
		for _, n := range nodes {
			all.Go(h.part(n).kill)
		}
	}
	all.Wait()
	if err := sleep(ctx, pause); err != nil {
		return err
	}
	for _, nodes := range order {
		for _, n := range nodes {
			if err := h.again(ctx, n); err != nil {
				return err
			}
		}
	}
	h.fault(everythingKilled+isBack, "*")
	return nil
}
