package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/internal/bench"
)

// Point is one of the curve of costs, medians of its rounds.
type Point struct {
	// InFlight is how many runs were under way at a time at most; Mean is their mean number.
	InFlight int     `json:"in_flight"`
	Mean     float64 `json:"mean_in_flight"`
	Runs     int     `json:"runs"`
	Floor    Figures `json:"floor"`
	Figures  Figures `json:"stepjet"`
}

// Curve is the cost of a step against the runs in flight, of JetStream alone and of Stepjet: a file of bench/.
type Curve struct {
	Stamp
	Rounds int                `json:"rounds"`
	Points []Point            `json:"points"`
	PeakMB map[string]float64 `json:"peak_memory_mib"`
}

// curveMost is the most runs in flight of the curve; curveRounds is how often each point is measured at most, since a
// round takes minutes.
const (
	curveMost   = 100_000
	curveRounds = 3
)

// measureCurve lets more and more runs be under way at a time, all of them at work.
func measureCurve(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	w, err := newWorld(ctx, env, scaleLayout("curve"), false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	nc, err := w.Connect("floor")
	if err != nil {
		return nil, err
	}
	r := &rival{world: w, cfg: cfg}
	if r.floor, err = newFloor(w.Context(), nc, w.Layout); err != nil {
		return nil, err
	}
	if _, err := r.round(ctx, diamondShape(64, 500)); err != nil {
		return nil, err
	}
	w.Rest(2 * time.Second)
	c := &Curve{Stamp: s, Rounds: min(cfg.Rounds, curveRounds)}
	points := curvePoints(cfg.Scale)
	floors, figures := make([][]Figures, len(points)), make([][]Figures, len(points))
	for range c.Rounds { // from few to many in each: the machine's moods are no part of the curve
		for i, n := range points {
			start := time.Now()
			both, err := r.round(ctx, curveShape(n))
			if err != nil {
				return nil, err
			}
			floors[i], figures[i] = append(floors[i], both[0]), append(figures[i], both[1])
			w.Progress(fmt.Sprintf("%6d in flight: %s; floor %.3f CPU; %.0f s", n, both[1], both[0].CPU,
				time.Since(start).Seconds()))
		}
	}
	for i, n := range points {
		s, f := curveShape(n), bench.Medians(figures[i])
		// Little's law: as many as come a second, times how long each stays. The median stands for the mean.
		busy := f.Rate / float64(s.Steps) * f.RunMS / 1000
		c.Points = append(c.Points, Point{InFlight: n, Mean: busy, Runs: s.Runs, Floor: bench.Medians(floors[i]), Figures: f})
	}
	c.PeakMB = w.Memory()
	return c, nil
}

// curvePoints returns how many runs are under way at each point.
func curvePoints(scale float64) (points []int) {
	for _, n := range []int{1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, curveMost} {
		if n == 1 || float64(n) <= curveMost*scale {
			points = append(points, n)
		}
	}
	return points
}

// curveShape is enough runs for a second or two, and for the number under way to be reached.
func curveShape(n int) Shape { return diamondShape(n, max(n+n/4, min(500*n, 5000))) }
