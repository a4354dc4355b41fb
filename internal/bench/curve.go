package bench

import (
	"context"
	"fmt"
	"time"
)

// Point is one of the curve of costs.
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
	Points []Point            `json:"points"`
	PeakMB map[string]float64 `json:"peak_memory_mib"`
}

// curveMost is the most runs in flight of the curve.
const curveMost = 100_000

// measureCurve lets more and more runs be under way at a time, all of them at work.
func measureCurve(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	w, err := newWorld(ctx, env, scaleLayout("curve"), false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	nc, err := w.connect("floor")
	if err != nil {
		return nil, err
	}
	r := &rival{world: w, cfg: cfg}
	if r.floor, err = newFloor(w.ctx, nc, w.layout); err != nil {
		return nil, err
	}
	if _, err := r.round(ctx, diamondShape(64, 500), 0); err != nil {
		return nil, err
	}
	w.rest(2 * time.Second)
	c := &Curve{Stamp: s}
	for _, n := range []int{1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000} {
		if float64(n) > curveMost*cfg.Scale && n > 1 {
			break
		}
		// Enough of them for a second or two, and for the number under way to be reached.
		shape := diamondShape(n, max(n+n/4, min(500*n, 5000)))
		start := time.Now()
		both, busy, err := r.point(ctx, shape)
		if err != nil {
			return nil, err
		}
		p := Point{InFlight: n, Mean: busy, Runs: shape.Runs, Floor: both[0], Figures: both[1]}
		w.Progress(fmt.Sprintf("%6d in flight (mean %.0f): %s; floor %.3f CPU; %.0f s", n, p.Mean, p.Figures, p.Floor.CPU, time.Since(start).Seconds()))
		c.Points = append(c.Points, p)
	}
	c.PeakMB = w.memory()
	return c, nil
}

// point measures either side, and how many runs were under way on average.
func (r *rival) point(ctx context.Context, s Shape) (both [2]Figures, mean float64, err error) {
	both, err = r.round(ctx, s, 0)
	// Little's law: as many as come a second, times how long each stays. The median stands for the mean.
	return both, both[1].Rate / float64(s.Steps) * both[1].RunMS / 1000, err
}
