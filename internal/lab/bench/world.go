package bench

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/stepjet/stepjet/internal/bench"
)

type (
	// Figures are the product's.
	Figures = bench.Figures
	// Layout is the product's.
	Layout = bench.Layout
	// Stamp is the product's.
	Stamp = bench.Stamp
)

// Env is what measuring needs of its surroundings. Extra is not the caller's to set.
type Env struct {
	bench.Env
	Profiles Profiles
	// Stdin is where "go test -bench" writes to.
	Stdin io.Reader
	// Progress takes one line for each measurement.
	Progress func(line string)
}

// world is a whole Stepjet in one layout, and the floor's worker beside it.
type world struct {
	*bench.World
	Progress func(line string)
	profiled func() error // ends the profiling of this process
}

// extra is what the worker's process holds for the lab.
func extra() bench.Extra {
	return bench.Extra{Host: host, Tools: hosted, Slots: gatedLimit, Beside: workFloor}
}

// newWorld starts server, orchestrator, worker and a client.
func newWorld(ctx context.Context, env Env, l bench.Layout, noFloor bool) (w *world, err error) {
	env.Extra = extra()
	if noFloor {
		env.Extra.Beside = nil
	}
	env.Command = slices.Concat(env.Command, env.Profiles.flags())
	w = &world{Progress: env.Progress}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.World, err = bench.NewWorld(ctx, env.Env, l); err != nil {
		return w, err
	}
	name := "client"
	if !l.Separate {
		name = "all"
	}
	if w.profiled, err = env.Profiles.begin(l.Part + "-" + name); err != nil {
		return w, err
	}
	if !noFloor {
		if err := errors.Join(setUpFloor(w.Context(), w.Conn(), l), w.gather(true)); err != nil {
			return w, err
		}
	}
	if err := w.Start(); err != nil {
		return w, err
	}
	return w, w.gather(false)
}

func (w *world) close() {
	if w.profiled != nil {
		if err := w.profiled(); err != nil {
			w.Log.Error("no profile", "error", err)
		}
	}
	w.Close()
}

// Role runs one part in a process of its own, until ctx ends or the parent is gone.
func Role(ctx context.Context, description string, profiles Profiles, log *slog.Logger) error {
	r, err := bench.ParseRole(description)
	if err != nil {
		return err
	}
	end, err := profiles.begin(r.Layout.Part + "-" + r.Name)
	if err != nil {
		return err
	}
	defer func() {
		if err := end(); err != nil {
			log.Error("no profile", "error", err)
		}
	}()
	return r.Run(ctx, log, extra())
}
