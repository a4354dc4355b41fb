package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
)

// upgradeByTheBook does what docs/operations.md says of an upgrade, under load, then what it says of taking one back, and
// the upgrade again.
var upgradeByTheBook = Scenario{
	Name: "upgrade",
	Fault: "an upgrade from " + beforeCommit.commit + " to today's version by the documented procedure, back, and again, under load: " +
		"each process is stopped by SIGTERM and started anew, one after the other",
	Correct: "nothing lost, no error, no pause",
	Shape: Shape{Orchestrators: 3, Version: versionBefore,
		Kinds: []string{kindRandom, kindBranch, kindStop, kindChain, kindNest, kindCancel, kindOnce, kindRandom}},
	Versions: []string{versionBefore},
	Seconds:  120, Shipped: 120,
	Inject: func(ctx context.Context, h *Harm) error {
		for _, to := range []string{"", versionBefore, ""} {
			if err := h.move(ctx, to); err != nil {
				return err
			}
			if err := sleep(ctx, 5*time.Second); err != nil {
				return err
			}
		}
		return nil
	},
	Sometimes: []string{sometimesRetried, sometimesCancelled, sometimesReplayed, sometimesConflict},
	Relax:     upgraded,
	Figures: func(e *Evidence, r *Report) []string {
		errors := 0
		for _, x := range e.Events {
			if isError(x) {
				errors++
			}
		}
		return []string{
			fmt.Sprintf("%d errors", errors), fmt.Sprintf("%d processes replaced", len(e.Faults)), duplicates(e, r),
		}
	},
}

// move brings all processes to a version, as the procedure says: what lies in the account first, then orchestrators, then
// workers; back, the other way round, and what lies in the account stays.
func (h *Harm) move(ctx context.Context, to string) error {
	order := []struct {
		kind string
		n    int
	}{{"o", h.opts.Orchestrators}, {"w", h.opts.Workers}}
	if to == "" {
		if err := h.provision(ctx); err != nil {
			return err
		}
	} else {
		order[0], order[1] = order[1], order[0]
	}
	for _, of := range order {
		for i := range of.n {
			if err := h.replace(ctx, node(of.kind, i), to, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// provision does what "stepjet provision" does.
func (h *Harm) provision(ctx context.Context) error {
	report, err := doctor.Examine(ctx, h.nc, doctor.Options{Want: h.opts.store(), Mend: true, SetUp: true})
	if err != nil {
		return err
	}
	if left := report.Problems(); len(left) > 0 {
		return fault.New(fault.Internal, "provisioning left %s %s: %s", left[0].Check, left[0].About, left[0].Found)
	}
	return nil
}
