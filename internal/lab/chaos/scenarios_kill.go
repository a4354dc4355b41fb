package chaos

import (
	"context"
	"time"
)

// The faults after which a server may have forgotten something, and what is added to the kind of a fault once who was
// killed is back.
const (
	natsKilled    = "nats killed"
	leaderKilled  = "leader killed"
	natsRestarted = "nats restarted"
	isBack        = ": back"
)

// killed kills a node as kill -9 does, lets some time pass, and starts it again.
func (h *Harm) killed(ctx context.Context, kind, node string, down time.Duration, workers ...string) error {
	h.hit(kind, workers...)
	h.part(node).kill()
	if err := sleep(ctx, down); err != nil {
		return err
	}
	if err := h.again(ctx, node); err != nil {
		return err
	}
	// What a worker was handed before its server was killed, and which waited for the server to be back, begins now;
	// the server may have forgotten these leases.
	h.fault(kind+isBack, workers...)
	return nil
}

// dies runs a node with a Point at which it kills itself, until it has; a while without is the end too.
func (h *Harm) dies(ctx context.Context, node string, p Point) error {
	old := h.part(node)
	h.hit("kill")
	old.kill()
	r := h.role(node)
	p.Nth = 1 + h.Intn(30)
	r.Die = &p
	now, err := h.launch(node, r)
	if err != nil {
		return err
	}
	select {
	case <-now.gone:
		h.hit(p.Name)
	case <-time.After(4 * time.Second):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

var orchestratorKill = Scenario{
	Name:    "orchestrator-kill",
	Fault:   "orchestrator kill -9, at every effect and at random",
	Correct: "I1–I6; another owner within seconds",
	Shape:   Shape{Orchestrators: 3},
	Inject: func(ctx context.Context, h *Harm) error {
		for i := 0; ; i++ {
			n := node("o", h.Intn(3))
			var err error
			if i%2 == 0 {
				err = h.killed(ctx, "orchestrator killed", n, h.between(0, time.Second))
			} else if err = h.dies(ctx, n, orchestratorPoints[i/2%len(orchestratorPoints)]); err == nil {
				h.part(n).kill()
				err = h.again(ctx, n)
			}
			if err == nil {
				err = sleep(ctx, h.between(0, 800*time.Millisecond))
			}
			if err != nil {
				return err
			}
		}
	},
	Sometimes: []string{sometimesRetried, sometimesCancelled, sometimesSkipped, sometimesItems, sometimesReplayed,
		sometimesConflict, sometimesAsked},
	Figures: figures(duplicates, attempts),
}

var workerKill = Scenario{
	Name:    "worker-kill",
	Fault:   "worker kill -9 before effect / after effect / after record / before ack",
	Correct: "I2, I7; at_most_once → outcome_unknown",
	Inject: func(ctx context.Context, h *Harm) error {
		for i := 0; ; i++ {
			n := node("w", i%3)
			h.fault("worker killed", n)
			if err := h.dies(ctx, n, workerPoints[i%len(workerPoints)]); err != nil {
				return err
			}
			h.part(n).kill()
			if err := h.again(ctx, n); err != nil {
				return err
			}
		}
	},
	Shipped:   60,
	Sometimes: []string{sometimesRedelivered, sometimesRepeated, sometimesUnknown, sometimesRetried},
	Figures:   figures(attempts, duplicates),
}

// woken lets a stopped worker go on. What was sent to it while it slept begins now, though the leases may be over.
func (h *Harm) woken(node string) {
	h.fault("woken", node)
	h.part(node).cont()
}

var workerStop = Scenario{
	Name:    "worker-stop",
	Fault:   "worker SIGSTOP for 3× AckWait, then CONT",
	Correct: "late record refused, I2",
	Shape:   Shape{Tuning: Tuning{AckWait: time.Second}},
	Inject: func(ctx context.Context, h *Harm) error {
		for i := 0; ; i++ {
			n := node("w", i%3)
			h.hit("worker stopped", n)
			h.part(n).halt()
			err := sleep(ctx, 3*h.opts.AckWait)
			h.woken(n)
			if err == nil {
				err = sleep(ctx, h.between(100*time.Millisecond, time.Second))
			}
			if err != nil {
				return err
			}
		}
	},
	Shipped:   190, // two of them
	Sometimes: []string{sometimesRedelivered, sometimesLate},
	Figures:   figures(late, attempts),
}

var natsKill = Scenario{
	Name:     "nats-kill",
	Fault:    "NATS kill -9, R1",
	Correct:  "0 acked lost, I1",
	Unbroken: true,
	Inject: func(ctx context.Context, h *Harm) error {
		for {
			if err := h.killed(ctx, natsKilled, "n1", h.between(0, 2*time.Second), "*"); err != nil {
				return err
			}
			if err := sleep(ctx, h.between(500*time.Millisecond, 2*time.Second)); err != nil {
				return err
			}
		}
	},
	Sometimes: []string{sometimesReplayed, sometimesAsked},
	Figures:   figures(lost, silence(natsKilled+isBack, "silence after the server is back"), attempts),
}
