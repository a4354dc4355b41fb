package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/outcome"
)

// scaleLayout is what everything large is measured with.
func scaleLayout(part string) Layout {
	return Layout{Part: part, Title: "three processes over TCP", Separate: true}
}

// Large is one run of 10,000 steps at a time: a file of bench/.
type Large struct {
	Stamp
	Rounds int     `json:"rounds"`
	Steps  int     `json:"steps_a_run"`
	Wide   Figures `json:"fan_out"`
	Long   Figures `json:"chain"`
	// PeakMB is the most resident memory, in MiB, by process.
	PeakMB map[string]float64 `json:"peak_memory_mib"`
}

// largest is the most steps of a plan.
const largest = 10_000

func measureLarge(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	w, err := newWorld(ctx, env, scaleLayout("large"), true)
	if err != nil {
		return nil, err
	}
	defer w.close()
	w.Rest(2 * time.Second)
	l := &Large{Stamp: s, Rounds: min(cfg.Rounds, 3)}
	l.Steps = max(int(largest*min(cfg.Scale, 1)), 10)
	for _, x := range []struct {
		shape Shape
		into  *Figures
	}{{fanOutShape(l.Steps-1, l.Rounds), &l.Wide}, {chainShape(l.Steps, l.Rounds), &l.Long}} {
		if *x.into, err = w.Round(ctx, x.shape.Shape, 0); err != nil {
			return nil, err
		}
		w.Progress(fmt.Sprintf("%s: %s", x.shape.Name, x.into))
	}
	l.PeakMB = w.Memory()
	return l, nil
}

// Retained compares speed with many finished runs in the history and with none, in turns on two servers.
type Retained struct {
	Stamp
	Runs   int     `json:"finished_runs"`
	Rounds int     `json:"rounds"`
	Chain  Against `json:"chain"`
	Many   Against `json:"diamonds"`
}

// Against holds medians of either side, and of the ratio of rounds.
type Against struct {
	Empty Figures `json:"empty"`
	Full  Figures `json:"full"`
	Ratio Figures `json:"ratio"`
}

const retainedRuns = 100_000

func measureRetained(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	var worlds [2]*world // empty, full
	for i := range worlds {
		w, err := newWorld(ctx, env, scaleLayout("retained"), true)
		if err != nil {
			return nil, err
		}
		defer w.close()
		worlds[i] = w
		w.Rest(2 * time.Second)
		env.Profiles = Profiles{} // this process and the names of profiles are the first one's
	}
	r := &Retained{Stamp: s, Rounds: cfg.Rounds, Runs: max(int(retainedRuns*cfg.Scale), 100)}
	if _, err := worlds[1].Round(ctx, bench.Diamonds(256, r.Runs), 0); err != nil {
		return nil, err
	}
	if _, err := worlds[0].Round(ctx, bench.Diamonds(64, 500), 0); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		shape Shape
		into  *Against
	}{{chainShape(20, max(int(100*cfg.Scale), 10)), &r.Chain}, {diamondShape(64, max(int(3000*cfg.Scale), 64)), &r.Many}} {
		var rounds [][2]Figures
		for range cfg.Rounds {
			var both [2]Figures
			var err error
			for i, w := range worlds {
				if both[i], err = w.Round(ctx, x.shape.Shape, 0); err != nil {
					return nil, err
				}
			}
			if err := worlds[0].forgetHistory(); err != nil {
				return nil, err
			}
			rounds = append(rounds, both)
		}
		p := pairOf(x.shape, rounds)
		*x.into = Against{p.Floor, p.Stepjet, p.Ratio}
		w := worlds[0]
		w.Progress(fmt.Sprintf("%s\n    empty %s\n    full  %s\n    ratio %.2f %.2f", x.shape.Name, p.Floor, p.Stepjet,
			p.Ratio.StepMS, p.Ratio.Rate))
	}
	return r, nil
}

// Orchestrators tells what more of them cost.
type Orchestrators struct {
	Stamp
	Rounds int            `json:"rounds"`
	By     []Orchestrated `json:"by_number"`
}

// Orchestrated are the figures with so many orchestrators.
type Orchestrated struct {
	Number  int     `json:"orchestrators"`
	Figures Figures `json:"figures"`
}

// settle is how long memberships take to be known to all.
const settle = 5 * time.Second

// measureOrchestrators goes from one to three and back again, so that what changes with time alone shows.
func measureOrchestrators(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	w, err := newWorld(ctx, env, scaleLayout("orchestrators"), true)
	if err != nil {
		return nil, err
	}
	defer w.close()
	o := &Orchestrators{Stamp: s, Rounds: cfg.Rounds}
	shape, lasting := diamondShape(64, 0), time.Duration(float64(30*time.Second)*cfg.Scale)
	rounds := map[int][]Figures{}
	name := func(n int) string { return fmt.Sprintf("%s %d", bench.RoleOrchestrator, n) }
	if _, err := w.Round(ctx, bench.Diamonds(64, 300), 0); err != nil {
		return nil, err
	}
	for range max(cfg.Rounds/2, 1) {
		for step, number := range []int{1, 2, 3, 2} {
			switch step {
			case 1, 2:
				err = w.StartOrchestrator(name(number))
			case 3:
				w.Stop(name(3))
			}
			if err != nil {
				return nil, err
			}
			time.Sleep(settle)
			w.Rest(2 * time.Second)
			f, err := w.Round(ctx, shape.Shape, lasting)
			if err != nil {
				return nil, err
			}
			w.Progress(fmt.Sprintf("%d orchestrators: %s", number, f))
			rounds[number] = append(rounds[number], f)
		}
		w.Stop(name(2))
		time.Sleep(settle)
	}
	for number := 1; number <= 3; number++ {
		o.By = append(o.By, Orchestrated{number, bench.Medians(rounds[number])})
	}
	return o, nil
}

// submitted submits a plan many times.
func (w *world) submitted(ctx context.Context, plan []byte, runs int) ([]*client.Run, error) {
	all := make([]*client.Run, runs)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1024)
	for i := range all {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() (err error) {
			all[i], err = w.Client.Submit(ctx, plan, client.SubmitOptions{})
			return err
		})
	}
	return all, g.Wait()
}

// succeeded waits until all runs have.
func succeeded(ctx context.Context, runs []*client.Run) error {
	for _, r := range slices.Backward(runs) { // the last ones end last, so that hardly any other is waited for
		o, err := r.Wait(ctx)
		if err != nil {
			return err
		}
		if o.Status != outcome.Succeeded {
			return fault.New(fault.Internal, "a benchmark run came to %s", o.Status)
		}
	}
	return nil
}
