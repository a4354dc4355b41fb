package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/subjects"
)

// loop does the same again and again, with some time in between.
func loop(
	from, to time.Duration, do func(ctx context.Context, h *Harm, i int) error,
) func(context.Context, *Harm) error {
	return func(ctx context.Context, h *Harm) error {
		for i := 0; ; i++ {
			if err := do(ctx, h, i); err != nil {
				return err
			}
			if err := sleep(ctx, h.between(from, to)); err != nil {
				return err
			}
		}
	}
}

// stream returns a stream to do harm to.
func (h *Harm) stream(ctx context.Context, name string) (jetstream.Stream, jetstream.JetStream, error) {
	js, err := jetstream.New(h.nc)
	if err != nil {
		return nil, nil, err
	}
	s, err := js.Stream(ctx, name)
	return s, js, err
}

var purgeSteps = Scenario{
	Name:    "purge-steps",
	Fault:   "operator purges STEPS",
	Correct: "repaired by the sweep",
	Inject: loop(2*time.Second, 4*time.Second, func(ctx context.Context, h *Harm, _ int) error {
		s, _, err := h.stream(ctx, subjects.StepsStream(0))
		if err != nil {
			return err
		}
		h.hit("purged", "*")
		return s.Purge(ctx)
	}),
	Figures: repair("purged"),
}

var deleteConsumer = Scenario{
	Name:    "delete-consumer",
	Fault:   "operator deletes a tool's consumer",
	Correct: "repaired by worker or sweep",
	Inject: loop(time.Second, 3*time.Second, func(ctx context.Context, h *Harm, i int) error {
		defs := definitions()
		s, _, err := h.stream(ctx, subjects.StepsStream(0))
		if err != nil {
			return err
		}
		h.hit("deleted", "*")
		err = s.DeleteConsumer(ctx, subjects.Durable(defs[i%(len(defs)-1)].Name))
		if errors.Is(err, jetstream.ErrConsumerNotFound) { // nobody has needed it since the last time
			err = nil
		}
		return err
	}),
	Figures: repair("deleted"),
}

// repair returns the time after which the slowest run went on.
func repair(kind string) func(e *Evidence, r *Report) []string {
	return func(e *Evidence, r *Report) []string {
		return []string{"the slowest run went on after " + quantiles(stalls(e, kind)), duplicates(e, r)}
	}
}

var storeFull = Scenario{
	Name:     "store-full",
	Fault:    "ledger full in mid-run",
	Correct:  "backpressure, no result dropped, connection survives, goes on when there is room",
	Unbroken: true,
	Inject: loop(time.Second, 2*time.Second, func(ctx context.Context, h *Harm, _ int) error {
		s, js, err := h.stream(ctx, subjects.LedgerStream(0))
		if err != nil {
			return err
		}
		cfg := s.CachedInfo().Config
		cfg.MaxBytes = int64(s.CachedInfo().State.Bytes) + 2000
		h.hit("full")
		if _, err := js.UpdateStream(ctx, cfg); err != nil {
			return err
		}
		waited := sleep(ctx, h.between(2*time.Second, 4*time.Second))
		cfg.MaxBytes = -1
		making, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if _, err := js.UpdateStream(making, cfg); err != nil {
			return err
		}
		h.fault("room again")
		return waited
	}),
	Figures: func(e *Evidence, r *Report) []string {
		return []string{stuck(e), silence("room again", "silence after there is room")(e, r), attempts(e, r)}
	},
}

func stuck(e *Evidence) string {
	waiting := map[string]bool{}
	for _, x := range e.Events {
		switch x.Kind {
		case journal.Accept:
			waiting[x.Run] = true
		case journal.Outcome:
			delete(waiting, x.Run)
		}
	}
	return itoa(len(waiting)) + " stuck runs"
}

var largeResults = Scenario{
	Name:    "large-results",
	Fault:   "results too large for a message, beside kills of workers",
	Correct: "kept apart, none dropped, connection survives",
	Shape:   Shape{Kinds: []string{kindLarge, kindRandom}, Parallel: 4},
	Inject: loop(time.Second, 2*time.Second, func(ctx context.Context, h *Harm, i int) error {
		n := node("w", i%3)
		return h.killed(ctx, "worker killed", n, h.between(0, time.Second), n)
	}),
	Sometimes: []string{sometimesLarge},
	Figures:   figures(attempts),
}
