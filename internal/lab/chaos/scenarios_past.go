package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

var zombie = Scenario{
	Name:    "zombie",
	Fault:   "zombie worker or late cancel after its run was purged and the id submitted again",
	Correct: "other generation: ignored and removed",
	Own:     true,
	Shape: Shape{
		Kinds: []string{kindRandom, kindCancel, kindOnce, kindRandom}, Reuse: 16,
		Tuning:    Tuning{AckWait: time.Second, Grace: 500 * time.Millisecond},
		Retention: 20 * time.Second, Settle: 18 * time.Second, Workers: 4,
	},
	Seconds: 90,
	Inject: loop(100*time.Millisecond, 500*time.Millisecond, func(ctx context.Context, h *Harm, i int) error {
		n := node("w", i%4)
		h.hit("worker stopped", n)
		h.part(n).halt()
		err := sleep(ctx, 40*time.Second) // its runs are over, purged and forgotten meanwhile, and begun anew
		h.woken(n)
		return err
	}),
	Sometimes: []string{sometimesZombie},
	Figures: func(_ *Evidence, r *Report) []string {
		return []string{fmt.Sprintf("%d zombies, %d cross-run effects", r.Counts[sometimesZombie], len(r.Violations))}
	},
}

var rollback = Scenario{
	Name:    "rollback",
	Fault:   "power loss rolls the ledger back below a cursor",
	Correct: "noticed, memory dropped, read again",
	Shape:   Shape{Insist: true, Whole: true},
	Inject: loop(2*time.Second, 3*time.Second, func(ctx context.Context, h *Harm, _ int) error {
		store := filepath.Join(h.dir, "n1")
		backup := filepath.Join(h.dir, "n1.backup")
		h.fault("snapshot", "*")
		h.part("n1").kill()
		if err := os.RemoveAll(backup); err != nil {
			return err
		}
		if err := os.CopyFS(backup, os.DirFS(store)); err != nil {
			return err
		}
		if err := h.again(ctx, "n1"); err != nil {
			return err
		}
		if err := sleep(ctx, h.between(time.Second, 3*time.Second)); err != nil {
			return err
		}
		h.part("n1").kill()
		h.hit("rolled back", "*")
		if err := os.RemoveAll(store); err != nil {
			return err
		}
		if err := os.Rename(backup, store); err != nil {
			return err
		}
		return h.again(ctx, "n1")
	}),
	// What happened between the snapshot and its return is forgotten, so runs that were under way then are left out.
	// Those before and after have to be whole, and every agent has to get its outcomes in the end.
	Relax: func(e *Evidence) { forget(e) },
	Figures: func(e *Evidence, r *Report) []string {
		return []string{silence("rolled back", "silence after going back")(e, r)}
	},
}

// forget leaves out all runs that anything happened to between a snapshot and the return to it.
func forget(e *Evidence) {
	var from []time.Time
	touched := map[runKey]bool{}
	for _, f := range e.Faults {
		switch f.Kind {
		case "snapshot":
			from = append(from, f.At)
		case "rolled back":
			begin, end := from[len(from)-1].UnixNano(), f.At.UnixNano()
			for _, x := range e.Events {
				if x.At >= begin && x.At <= end+int64(settling) {
					touched[runKey{x.Tenant, x.Run}] = true
				}
			}
		}
	}
	active(e, touched)
	e.forget(touched)
}

// active adds the runs that were under way when a snapshot was taken, though nothing was heard of them for a while.
func active(e *Evidence, touched map[runKey]bool) {
	first, last := map[runKey]int64{}, map[runKey]int64{}
	for _, x := range e.Events {
		k := runKey{x.Tenant, x.Run}
		if first[k] == 0 || x.At < first[k] {
			first[k] = x.At
		}
		last[k] = max(last[k], x.At)
	}
	for _, f := range e.Faults {
		for k := range first {
			if at := f.At.UnixNano(); first[k] <= at && at <= last[k] {
				touched[k] = true
			}
		}
	}
}
