package chaos

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/internal/lab/journal"
)

func itoa(n int) string { return strconv.Itoa(n) }

var registryChange = Scenario{
	Name:    "registry-change",
	Fault:   "registry changed in mid-run",
	Correct: "the frozen contract holds",
	Inject: loop(100*time.Millisecond, 400*time.Millisecond, func(ctx context.Context, h *Harm, i int) error {
		h.hit("changed", "*")
		name := fmt.Sprintf("try%d_all", 1+i%3)
		_, err := h.store.Requests.RequestOverride(ctx, name,
			fmt.Appendf(nil, `{"x-orchestration":{"retry":{"max_attempts":%d}}}`, 1+h.Intn(4)))
		return err
	}),
	Sometimes: []string{sometimesFrozen},
	Figures:   figures(frozen),
}

func frozen(_ *Evidence, r *Report) string {
	return fmt.Sprintf("%d runs held on to another contract than the workers'", r.Counts[sometimesFrozen])
}

var poisonStep = Scenario{
	Name:    "poison",
	Fault:   "poison step: it kills its worker's process every time",
	Correct: "terminal error after N deliveries, slot freed",
	Shape: Shape{Kinds: []string{kindRandom, kindPoison, kindRandom, kindRandom}, Parallel: 3, Workers: 4,
		Tuning: Tuning{AckWait: time.Second, MaxDeliveries: 3}, Heal: 12 * time.Minute},
	Inject: func(ctx context.Context, h *Harm) error {
		for {
			for i := range h.opts.Workers {
				if n := node("w", i); !h.part(n).alive() {
					h.hit("poisoned", n)
					if err := h.again(ctx, n); err != nil {
						return err
					}
				}
			}
			if err := sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	},
	// The workers go on dying until the last poison is given up, so somebody has to start them again.
	Attend:    true,
	Sometimes: []string{sometimesLost},
	Figures: func(e *Evidence, r *Report) []string {
		var spans []time.Duration
		for _, doc := range e.History {
			for _, s := range doc.Steps {
				if s.Tool == "poison" && !s.Decided.IsZero() {
					spans = append(spans, s.Decided.Sub(s.Ready))
				}
			}
		}
		return []string{"time to terminal " + quantiles(spans), attempts(e, r)}
	},
}

var cancelRace = Scenario{
	Name:    "cancel-race",
	Fault:   "cancel racing every event, beside kills of orchestrators",
	Correct: "one winner",
	Shape:   Shape{Kinds: []string{kindCancel, kindCancel, kindCancel, kindRandom}, Orchestrators: 3},
	Inject: loop(2*time.Second, 5*time.Second, func(ctx context.Context, h *Harm, i int) error {
		return h.killed(ctx, "orchestrator killed", node("o", i%3), h.between(0, time.Second))
	}),
	Sometimes: []string{sometimesCancelled},
	Figures: func(e *Evidence, r *Report) []string {
		asked := 0
		for _, x := range e.Events {
			if x.Kind == journal.Cancel {
				asked++
			}
		}
		return []string{fmt.Sprintf("%d cancels asked for, %d runs cancelled by them", asked, r.Counts[sometimesCancelled])}
	},
}

var deadlineRace = Scenario{
	Name:    "deadline-race",
	Fault:   "deadlines of runs and steps racing every event, beside kills of workers and orchestrators",
	Correct: "one winner",
	Shape:   Shape{Kinds: []string{kindLate, kindLate, kindLate, kindRandom}, Orchestrators: 3},
	Inject: loop(time.Second, 3*time.Second, func(ctx context.Context, h *Harm, i int) error {
		if i%2 == 0 {
			return h.killed(ctx, "orchestrator killed", node("o", i/2%3), h.between(0, time.Second))
		}
		n := node("w", i/2%3)
		return h.killed(ctx, "worker killed", n, h.between(0, time.Second), n)
	}),
	Sometimes: []string{sometimesExpired, sometimesOverdue, sometimesInTime},
	Figures: func(e *Evidence, r *Report) []string {
		return []string{fmt.Sprintf("%d runs expired, %d with deadlines came to their end before, %d steps were overdue",
			r.Counts[sometimesExpired], r.Counts[sometimesInTime], r.Counts[sometimesOverdue]), attempts(e, r)}
	},
}

// chains are runs that are under way at any moment, so that every silence is seen.
var chains = Shape{Kinds: []string{kindChain, kindChain, kindChain, kindRandom}, Orchestrators: 3, Parallel: 15}

var failover = Scenario{
	Name:    "failover",
	Fault:   "an orchestrator of three is killed with -9 under load",
	Correct: "its runs go on under another owner within 5 s",
	Shape:   chains,
	Seconds: 90,
	Inject: loop(3600*time.Millisecond, 4*time.Second, func(ctx context.Context, h *Harm, i int) error {
		return h.killed(ctx, "orchestrator killed", node("o", i%3), 100*time.Millisecond)
	}),
	Figures: func(e *Evidence, r *Report) []string {
		return []string{"the slowest chain resumed after " +
			quantiles(stallsOf(e, "orchestrator killed", journal.Begin, kindChain)), duplicates(e, r)}
	},
}

var handover = Scenario{
	Name:    "handover",
	Fault:   "an orchestrator of three is stopped with SIGTERM under load",
	Correct: "its runs go on under another owner in under 1 s",
	Shape:   chains,
	Seconds: 60,
	Inject: loop(1500*time.Millisecond, 2*time.Second, func(ctx context.Context, h *Harm, i int) error {
		n := node("o", i%3)
		h.hit("orchestrator stopped")
		if err := h.part(n).term(10 * time.Second); err != nil {
			return err
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
		return h.again(ctx, n)
	}),
	Figures: func(e *Evidence, r *Report) []string {
		return []string{"the slowest chain resumed after " +
			quantiles(stallsOf(e, "orchestrator stopped", journal.Begin, kindChain)), duplicates(e, r)}
	},
}
