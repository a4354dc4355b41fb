package bench

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/outcome"
)

// Fairness compares a small run on an idle system with the same run beside a huge one of another tenant.
type Fairness struct {
	Tool string `json:"tool"`
	// Beside is the tool that the huge run calls, which may be the same.
	Beside string `json:"beside"`
	// Limit is the tool's fan-out limit, TakesMS how long one execution takes.
	Limit   int     `json:"limit"`
	TakesMS float64 `json:"takes_ms"`
	// Runs is the number of small runs measured on either side.
	Runs int `json:"runs"`
	// Milliseconds from submit to outcome.
	IdleP50   float64 `json:"idle_p50_ms"`
	IdleP99   float64 `json:"idle_p99_ms"`
	BesideP50 float64 `json:"beside_p50_ms"`
	BesideP99 float64 `json:"beside_p99_ms"`
	// HugeSteps is how many steps of the huge runs were executed meanwhile, a second.
	HugeSteps float64 `json:"huge_steps_per_second"`
}

// Ratio is the small run's p99 beside the huge one over that on an idle system.
func (f Fairness) Ratio() float64 { return f.BesideP99 / f.IdleP99 }

// hugeWidth is the number of steps of a huge run, all ready at once.
const hugeWidth = 9_999

// fairness measures one tool beside another. small and huge submit for different tenants.
func fairness(ctx context.Context, small, huge *client.Client, tool, beside string, runs int) (Fairness, error) {
	f := Fairness{Tool: tool, Beside: beside, Runs: runs}
	plan := chainOf(tool, 3)
	measure := func() ([]float64, error) {
		var times []float64
		for range runs {
			start := time.Now()
			if err := succeed(ctx, small, plan); err != nil {
				return nil, err
			}
			times = append(times, bench.MS(time.Since(start)))
		}
		return times, nil
	}
	if _, err := measure(); err != nil { // warm up
		return f, err
	}
	idle, err := measure()
	if err != nil {
		return f, err
	}
	wide := wideOf(beside, hugeWidth)
	g, gctx := errgroup.WithContext(ctx)
	gctx, stop := context.WithCancel(gctx)
	var steps atomic.Int64
	id := fmt.Sprintf("huge-%s-%s-%d", tool, beside, time.Now().UnixNano())
	r, err := huge.Submit(ctx, wide, client.SubmitOptions{Run: id})
	if err != nil {
		stop()
		return f, err
	}
	g.Go(func() error { // one huge run after the other, for as long as small ones are measured
		for n := 1; ; n++ {
			o, err := r.Wait(gctx)
			if gctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			steps.Add(int64(o.Stats.Succeeded))
			if r, err = huge.Submit(gctx, wide, client.SubmitOptions{Run: fmt.Sprintf("%s-%d", id, n)}); err != nil {
				return err
			}
		}
	})
	began := time.Now()
	times, err := measure()
	took := time.Since(began)
	if doc, err := huge.Get(ctx, r.ID()); err == nil {
		steps.Add(int64(doc.Stats.Succeeded))
	}
	stop()
	_, _ = huge.Cancel(ctx, r.ID(), "the measurement is over")
	if err := g.Wait(); err != nil {
		return f, err
	}
	if err != nil {
		return f, err
	}
	f.IdleP50, f.IdleP99 = bench.Quantile(idle, 0.5), bench.Quantile(idle, 0.99)
	f.BesideP50, f.BesideP99 = bench.Quantile(times, 0.5), bench.Quantile(times, 0.99)
	f.HugeSteps = float64(steps.Load()) / took.Seconds()
	return f, nil
}

func succeed(ctx context.Context, c *client.Client, plan []byte) error {
	o, err := c.Run(ctx, plan, client.SubmitOptions{})
	if err == nil && o.Status != outcome.Succeeded {
		err = fault.New(fault.Internal, "a benchmark run came to %s: %s", o.Status, o.JSON())
	}
	return err
}

func chainOf(tool string, length int) []byte {
	return []byte(strings.ReplaceAll(string(bench.ChainPlan(length)), `"tool":"`+bench.Tool+`"`, `"tool":"`+tool+`"`))
}

// wideOf is a plan of steps without dependencies.
func wideOf(tool string, width int) []byte {
	var b strings.Builder
	b.WriteString(`{"steps":[`)
	for i := range width {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"s%d","tool":"%s"}`, i, tool)
	}
	b.WriteString(`],"output_steps":["s0"]}`)
	return []byte(b.String())
}
