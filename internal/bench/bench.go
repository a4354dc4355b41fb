// Package bench measures Stepjet on the shapes that reliability.md sets targets for: chains, fan-outs with a join, and
// many small diamonds at once; in one process, and as separate processes over TCP.
//
// Figures are medians of several rounds in one run. Timings on shared machines are noisy, so ratios within one run say
// more than absolute figures between runs.
package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// Tool is the name of the no-op tool that all shapes call.
const Tool = "noop"

// Config says what to measure.
type Config struct {
	// Rounds of each shape; the median counts. Default 5.
	Rounds int
	// Diamonds a round at each width. Default 3000.
	Diamonds int
	// InFlight are the widths for diamonds. Default 16, 64, 256.
	InFlight []int
	// Sustain is how long the sustained measurement lasts; 0 leaves it out.
	Sustain time.Duration
	// Only measures the shapes whose names begin so; empty: all.
	Only string
	// Progress takes one line for each measurement; nil for none.
	Progress func(line string)
}

func (c Config) withDefaults() Config {
	if c.Rounds == 0 {
		c.Rounds = 5
	}
	if c.Diamonds == 0 {
		c.Diamonds = 3000
	}
	if c.InFlight == nil {
		c.InFlight = []int{16, 64, 256}
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	return c
}

// Result is one measurement.
type Result struct {
	Shape  string `json:"shape"`
	Rounds int    `json:"rounds"`
	// MS is the median time of a round; of a run for chains and fan-outs. Milliseconds.
	MS float64 `json:"ms"`
	// StepP50 and StepP99 are milliseconds: for chains the time from step to step, else from ready to decided.
	StepP50 float64 `json:"step_p50_ms"`
	StepP99 float64 `json:"step_p99_ms"`
	// PerSecond is steps a second.
	PerSecond float64 `json:"steps_per_second"`
	// CPU is the CPU seconds for each 1,000 steps over all processes, server and client included.
	CPU float64 `json:"cpu_seconds_per_1000_steps"`
}

// Mode is how the parts were run.
type Mode struct {
	Name    string   `json:"name"`
	Results []Result `json:"results"`
	// PeakMB is the most resident memory, in MiB, by process.
	PeakMB map[string]float64 `json:"peak_memory_mib"`
}

// Measure runs all shapes through one client. usage tells the CPU time that all processes have used so far.
func Measure(ctx context.Context, c *client.Client, cfg Config, usage func() time.Duration) ([]Result, error) {
	cfg = cfg.withDefaults()
	b := &bench{Config: cfg, client: c, usage: usage}
	if _, err := b.runs(ctx, diamond, 200, 16); err != nil { // warm up
		return nil, err
	}
	type shape struct {
		name    string
		measure func(context.Context) (Result, error)
	}
	shapes := []shape{
		{"chain", func(ctx context.Context) (Result, error) { return b.chain(ctx, 20) }},
		{"fan-out", func(ctx context.Context) (Result, error) { return b.fanOut(ctx, 100, 40) }},
		{"fan-out", func(ctx context.Context) (Result, error) { return b.fanOut(ctx, 2000, 2) }},
	}
	for _, width := range cfg.InFlight {
		shapes = append(shapes, shape{"diamonds", func(ctx context.Context) (Result, error) { return b.diamonds(ctx, width) }})
	}
	if cfg.Sustain > 0 {
		shapes = append(shapes, shape{"sustained", b.sustained})
	}
	var all []Result
	for _, s := range shapes {
		if !strings.HasPrefix(s.name, cfg.Only) {
			continue
		}
		r, err := s.measure(ctx)
		if err != nil {
			return all, err
		}
		cfg.Progress(r.String())
		all = append(all, r)
	}
	return all, nil
}

func (r Result) String() string {
	return fmt.Sprintf("%-34s %9.2f ms  step p50 %7.3f ms  p99 %7.3f ms  %8.0f steps/s  %.3f CPU s/1,000",
		r.Shape, r.MS, r.StepP50, r.StepP99, r.PerSecond, r.CPU)
}

type bench struct {
	Config
	client *client.Client
	usage  func() time.Duration
}

// chain measures one run at a time, in which every step waits for the one before.
func (b *bench) chain(ctx context.Context, length int) (Result, error) {
	const runs = 60
	plan := chainPlan(length)
	var perStep, total []float64
	cpu := b.usage()
	began := time.Now()
	for range runs * b.Rounds {
		start := time.Now()
		o, err := b.one(ctx, plan)
		if err != nil {
			return Result{}, err
		}
		total = append(total, ms(time.Since(start)))
		perStep = append(perStep, o.Stats.ElapsedMS/float64(length))
	}
	steps := runs * b.Rounds * length
	return Result{
		Shape: fmt.Sprintf("chain of %d", length), Rounds: b.Rounds, MS: quantile(total, 0.5), StepP50: quantile(perStep, 0.5), StepP99: quantile(perStep, 0.99),
		PerSecond: float64(steps) / time.Since(began).Seconds(), CPU: (b.usage() - cpu).Seconds() / float64(steps) * 1000,
	}, nil
}

// fanOut measures one run at a time: many steps that are ready at once, and one that joins them.
func (b *bench) fanOut(ctx context.Context, width, runs int) (Result, error) {
	plan := fanOutPlan(width)
	var total, perStep []float64
	cpu := b.usage()
	for range runs * b.Rounds {
		start := time.Now()
		o, err := b.one(ctx, plan)
		if err != nil {
			return Result{}, err
		}
		total = append(total, ms(time.Since(start)))
		doc, err := b.client.Get(ctx, o.Run)
		if err != nil {
			return Result{}, err
		}
		perStep = append(perStep, stepTimes(doc)...)
	}
	steps := runs * b.Rounds * (width + 1)
	return Result{
		Shape: fmt.Sprintf("fan-out of %d with join", width), Rounds: b.Rounds, MS: quantile(total, 0.5), StepP50: quantile(perStep, 0.5), StepP99: quantile(perStep, 0.99),
		PerSecond: float64(width+1) / quantile(total, 0.5) * 1000, CPU: (b.usage() - cpu).Seconds() / float64(steps) * 1000,
	}, nil
}

func (b *bench) diamonds(ctx context.Context, inFlight int) (Result, error) {
	var rates, rounds, perStep []float64
	cpu := b.usage()
	for range b.Rounds {
		start := time.Now()
		ids, err := b.runs(ctx, diamond, b.Diamonds, inFlight)
		if err != nil {
			return Result{}, err
		}
		took := time.Since(start)
		rounds = append(rounds, ms(took))
		rates = append(rates, float64(b.Diamonds*diamondSteps)/took.Seconds())
		times, err := b.sample(ctx, ids)
		if err != nil {
			return Result{}, err
		}
		perStep = append(perStep, times...)
	}
	steps := b.Rounds * b.Diamonds * diamondSteps
	return Result{
		Shape: fmt.Sprintf("%d diamonds, %d in flight", b.Diamonds, inFlight), Rounds: b.Rounds, MS: quantile(rounds, 0.5),
		StepP50: quantile(perStep, 0.5), StepP99: quantile(perStep, 0.99), PerSecond: quantile(rates, 0.5),
		CPU: (b.usage() - cpu).Seconds() / float64(steps) * 1000,
	}, nil
}

// sustained keeps 64 diamonds in flight for a long time, so that finished runs are purged meanwhile.
func (b *bench) sustained(ctx context.Context) (Result, error) {
	const inFlight = 64
	cpu, start := b.usage(), time.Now()
	deadline := start.Add(b.Sustain)
	var mu sync.Mutex
	var runs int
	var perStep []float64
	g, ctx := errgroup.WithContext(ctx)
	for range inFlight {
		g.Go(func() error {
			for n := 0; time.Now().Before(deadline); n++ {
				o, err := b.one(ctx, diamond)
				if err != nil {
					return err
				}
				mu.Lock()
				runs++
				perStep = append(perStep, o.Stats.ElapsedMS/diamondDepth)
				mu.Unlock()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Result{}, err
	}
	took := time.Since(start)
	steps := float64(runs * diamondSteps)
	return Result{
		Shape: fmt.Sprintf("diamonds for %s, %d in flight", b.Sustain, inFlight), Rounds: 1, MS: ms(took), StepP50: quantile(perStep, 0.5), StepP99: quantile(perStep, 0.99),
		PerSecond: steps / took.Seconds(), CPU: (b.usage() - cpu).Seconds() / steps * 1000,
	}, nil
}

func (b *bench) one(ctx context.Context, plan []byte) (*outcome.Outcome, error) {
	o, err := b.client.Run(ctx, plan, client.SubmitOptions{})
	if err == nil && o.Status != outcome.Succeeded {
		err = fault.New(fault.Internal, "a benchmark run came to %s: %s", o.Status, o.JSON())
	}
	return o, err
}

// runs runs many plans, so many in flight, and gives the ids of the last few.
func (b *bench) runs(ctx context.Context, plan []byte, count, inFlight int) ([]string, error) {
	var mu sync.Mutex
	var ids []string
	left := make(chan struct{}, count)
	for range count {
		left <- struct{}{}
	}
	close(left)
	g, ctx := errgroup.WithContext(ctx)
	for range inFlight {
		g.Go(func() error {
			for range left {
				o, err := b.one(ctx, plan)
				if err != nil {
					return err
				}
				mu.Lock()
				ids = append(ids, o.Run)
				mu.Unlock()
			}
			return nil
		})
	}
	return ids, g.Wait()
}

// sample reads the step times of some of the runs from their documents.
func (b *bench) sample(ctx context.Context, ids []string) ([]float64, error) {
	const most = 100
	var times []float64
	for i := 0; i < len(ids); i += max(len(ids)/most, 1) {
		doc, err := b.client.Get(ctx, ids[i])
		if err != nil {
			return nil, err
		}
		times = append(times, stepTimes(doc)...)
	}
	return times, nil
}

func stepTimes(doc *outcome.Run) []float64 {
	times := make([]float64, 0, len(doc.Steps))
	for _, s := range doc.Steps {
		times = append(times, ms(s.Decided.Sub(s.Ready)))
	}
	return times
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func chainPlan(length int) []byte {
	var b strings.Builder
	b.WriteString(`{"steps":[{"id":"s0","tool":"` + Tool + `","arguments":{"x":1}}`)
	for i := 1; i < length; i++ {
		fmt.Fprintf(&b, `,{"id":"s%d","tool":"%s","arguments":{"x":"$ref:s%d.x"}}`, i, Tool, i-1)
	}
	fmt.Fprintf(&b, `],"output_steps":["s%d"]}`, length-1)
	return []byte(b.String())
}

func fanOutPlan(width int) []byte {
	var b strings.Builder
	b.WriteString(`{"steps":[`)
	for i := range width {
		fmt.Fprintf(&b, `{"id":"s%d","tool":"%s","arguments":{"x":%d}},`, i, Tool, i)
	}
	b.WriteString(`{"id":"join","tool":"` + Tool + `","depends_on":[`)
	for i := range width {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"s%d"`, i)
	}
	b.WriteString(`]}],"output_steps":["join"]}`)
	return []byte(b.String())
}

// diamond has seven steps in five waves: one, two, one, two, one.
var diamond = []byte(`{"steps":[
{"id":"a","tool":"noop","arguments":{"x":1}},
{"id":"b","tool":"noop","arguments":{"x":"$ref:a.x"}},{"id":"c","tool":"noop","arguments":{"x":"$ref:a.x"}},
{"id":"d","tool":"noop","arguments":{"x":"$ref:b.x","y":"$ref:c.x"}},
{"id":"e","tool":"noop","arguments":{"x":"$ref:d.x"}},{"id":"f","tool":"noop","arguments":{"x":"$ref:d.x"}},
{"id":"g","tool":"noop","arguments":{"x":"$ref:e.x","y":"$ref:f.x"}}],"output_steps":["g"]}`)

const (
	diamondSteps = 7
	diamondDepth = 5
)
