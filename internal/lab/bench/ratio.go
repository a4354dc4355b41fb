package bench

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/bench"
)

// Config says how much to measure.
type Config struct {
	// Rounds of each shape on either side, one after the other; medians count. Default 5.
	Rounds int
	// Scale makes the rounds shorter or longer; default 1.
	Scale float64
	// Sustain is how long the sustained measurement lasts; 0 leaves it out.
	Sustain time.Duration
	// Only measures the shapes whose names begin so; empty: all.
	Only string
	// NoFloor leaves the floor out: for profiles of Stepjet alone.
	NoFloor bool
}

// Pair is a shape measured on either side, in turns.
type Pair struct {
	Shape string `json:"shape"`
	// Rounds on either side, and the runs of a round of which InFlight are under way at a time.
	Rounds   int     `json:"rounds"`
	Runs     int     `json:"runs_a_round"`
	InFlight int     `json:"in_flight"`
	Steps    int     `json:"steps_a_run"`
	Floor    Figures `json:"floor"`
	Stepjet  Figures `json:"stepjet"`
	// Ratio is the median of Stepjet's figure over the floor's of the same round; Low and High are the rounds'
	// extremes.
	Ratio Figures `json:"ratio"`
	Low   Figures `json:"ratio_low"`
	High  Figures `json:"ratio_high"`
}

// LayoutFigures are those of one layout: a file of bench/.
type LayoutFigures struct {
	Stamp
	Layout Layout `json:"layout"`
	Pairs  []Pair `json:"pairs"`
	// Sustained is a load that goes on for SustainedFor.
	Sustained    *Pair   `json:"sustained,omitempty"`
	SustainedFor float64 `json:"sustained_seconds,omitempty"`
	// PeakMB is the most resident memory, in MiB, by process.
	PeakMB map[string]float64 `json:"peak_memory_mib"`
	// Idle is the CPU seconds that all processes use a second with nothing to do.
	Idle float64 `json:"idle_cpu"`
	// Disk is what a write with a flush costs where the store lies.
	Disk Disk `json:"disk"`
}

// sustained is what the load that goes on is called.
const sustained = "sustained"

// Ratios measures the floor and Stepjet in turns, on one server.
func Ratios(ctx context.Context, env Env, l Layout, cfg Config) (*LayoutFigures, error) {
	w, err := newWorld(ctx, env, l, cfg.NoFloor)
	if err != nil {
		return nil, err
	}
	defer w.close()
	r := &rival{world: w, cfg: cfg}
	if !cfg.NoFloor {
		nc, err := w.Connect("floor")
		if err != nil {
			return nil, err
		}
		if r.floor, err = newFloor(w.Context(), nc, l); err != nil {
			return nil, err
		}
	}
	all := &LayoutFigures{Layout: l}
	if all.Disk, err = measureDisk(w.Store); err != nil {
		return nil, err
	}
	if _, err := r.round(ctx, diamondShape(16, 200)); err != nil { // warm up
		return nil, err
	}
	w.Rest(3 * time.Second)
	all.Idle = w.Idle
	for _, s := range Shapes(cfg.Scale) {
		if !strings.HasPrefix(s.Name, cfg.Only) {
			continue
		}
		p, err := r.compare(ctx, s)
		if err != nil {
			return nil, err
		}
		all.Pairs = append(all.Pairs, p)
	}
	if cfg.Sustain > 0 && strings.HasPrefix(sustained, cfg.Only) {
		p, err := r.sustained(ctx, diamondShape(64, 0), cfg.Sustain)
		if err != nil {
			return nil, err
		}
		all.Sustained, all.SustainedFor = &p, cfg.Sustain.Seconds()
	}
	all.PeakMB = w.Memory()
	return all, nil
}

// rival measures either side of a world.
type rival struct {
	*world
	floor *floor
	cfg   Config
}

// round measures the floor, then Stepjet.
func (r *rival) round(ctx context.Context, s Shape) (both [2]Figures, err error) {
	if r.floor != nil {
		if both[0], err = r.floorRound(ctx, r.floor, s, 0); err != nil {
			return both, err
		}
	}
	both[1], err = r.Round(ctx, s.Shape, 0)
	return both, err
}

func (r *rival) compare(ctx context.Context, s Shape) (Pair, error) {
	var rounds [][2]Figures
	for range r.cfg.Rounds {
		both, err := r.round(ctx, s)
		if err != nil {
			return Pair{}, err
		}
		rounds = append(rounds, both)
	}
	p := pairOf(s, rounds)
	r.Progress(p.String())
	return p, nil
}

// sustained lets the floor go on for a sixth of the time before Stepjet and after it.
func (r *rival) sustained(ctx context.Context, s Shape, lasting time.Duration) (Pair, error) {
	before, err := r.floorFor(ctx, s, lasting/6)
	if err != nil {
		return Pair{}, err
	}
	stepjet, err := r.Round(ctx, s.Shape, lasting)
	if err != nil {
		return Pair{}, err
	}
	after, err := r.floorFor(ctx, s, lasting/6)
	if err != nil {
		return Pair{}, err
	}
	p := pairOf(s, [][2]Figures{{mean(before, after), stepjet}})
	p.Shape = sustained + ": " + p.Shape
	r.Progress(p.String())
	return p, nil
}

func (r *rival) floorFor(ctx context.Context, s Shape, lasting time.Duration) (Figures, error) {
	if r.floor == nil {
		return Figures{}, nil
	}
	return r.floorRound(ctx, r.floor, s, lasting)
}

func mean(a, b Figures) Figures {
	return pairwise(a, b, func(x, y float64) float64 { return (x + y) / 2 })
}

// pairwise makes figures of two, each of the two that it stands for.
func pairwise(a, b Figures, of func(x, y float64) float64) Figures {
	return Figures{RunMS: of(a.RunMS, b.RunMS), StepMS: of(a.StepMS, b.StepMS), Rate: of(a.Rate, b.Rate),
		CPU: of(a.CPU, b.CPU)}
}

func pairOf(s Shape, rounds [][2]Figures) Pair {
	p := Pair{Shape: s.Name, Rounds: len(rounds), Runs: s.Runs, InFlight: s.InFlight, Steps: s.Steps}
	var floor, stepjet, ratio []Figures
	for _, both := range rounds {
		f, s := both[0], both[1]
		floor, stepjet = append(floor, f), append(stepjet, s)
		ratio = append(ratio, pairwise(s, f, over))
	}
	p.Floor, p.Stepjet, p.Ratio = bench.Medians(floor), bench.Medians(stepjet), bench.Medians(ratio)
	p.Low, p.High = ratio[0], ratio[0]
	for _, x := range ratio {
		p.Low, p.High = pairwise(p.Low, x, math.Min), pairwise(p.High, x, math.Max)
	}
	return p
}

func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (p Pair) String() string {
	return fmt.Sprintf("%s\n    floor   %s\n    stepjet %s\n    ratio   %9.2f %20.2f %21.2f %16.2f",
		p.Shape, p.Floor, p.Stepjet, p.Ratio.RunMS, p.Ratio.StepMS, p.Ratio.Rate, p.Ratio.CPU)
}
