package agentbench

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/internal/bench"
)

// Rounds is what rounds of one agent cost: a file of bench/.
type Rounds struct {
	bench.Stamp
	Load float64 `json:"load_before"`
	// Layouts are by how acknowledgements are flushed.
	Layouts []RoundCost `json:"layouts"`
	// Loops grow.
	Loops []LoopCost `json:"loops"`
	// Late is the median of rounds 990 to 999 beside that of rounds 8 to 17 of loops of 1,000, whose planner reads what
	// is new alone. With whole requests it reads all of what was before, as every model does.
	Late      float64 `json:"round_1000_to_round_10"`
	LateWhole float64 `json:"round_1000_to_round_10_whole"`
	// Chat is a loop of 100 rounds with one result of 5 kB each, Long one of 200 rounds.
	Chat LoopCost `json:"chat"`
	Long LoopCost `json:"long"`
	// PerSecond are rounds a second with 64 agents at once, by calls a round, over the whole machine.
	PerSecond []Throughput `json:"rounds_per_second"`
}

// RoundCost is what a round with three calls takes, in milliseconds.
type RoundCost struct {
	Layout string  `json:"layout"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	// Whole is the median where the planner puts its requests together.
	Whole float64 `json:"whole_p50_ms"`
}

// LoopCost is what a loop of so many rounds comes to.
type LoopCost struct {
	Rounds int     `json:"rounds"`
	P50    float64 `json:"round_p50_ms"`
	// Written is for the whole run, Results are the bytes of its results, PerRecord is what was written beyond twice these
	// while the loop went on, for each record.
	Written   Written `json:"written"`
	Results   int64   `json:"result_bytes"`
	PerRecord float64 `json:"bytes_beyond_results_per_record"`
	// Input are the bytes that planners read, and Prefix the part of them that the request before began with.
	Input  int64   `json:"input_bytes"`
	Prefix float64 `json:"prefix"`
}

// Throughput is how fast rounds go with many agents at once.
type Throughput struct {
	Calls int     `json:"calls_a_round"`
	Rate  float64 `json:"rounds_per_second"`
	CPU   float64 `json:"cpu_seconds_per_1000_rounds"`
}

func measureRounds(ctx context.Context, env Env, scale float64, s bench.Stamp) (any, error) {
	f := &Rounds{Stamp: s, Load: Load()}
	for _, always := range []bool{false, true} {
		l := bench.Separate
		if l.Always = always; always {
			l.Part, l.Title = "always", "flushed before each acknowledgement"
		}
		w, err := newWorld(ctx, env, l)
		if err != nil {
			return nil, err
		}
		err = f.of(ctx, w, scale)
		w.Close()
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Rounds) of(ctx context.Context, w *world, scale float64) error {
	if err := f.cost(ctx, w, scale); err != nil || w.Layout.Always {
		return err
	}
	if err := f.grow(ctx, w, scale); err != nil {
		return err
	}
	return f.many(ctx, w, scale)
}

// cost measures single agents, one at a time.
func (f *Rounds) cost(ctx context.Context, w *world, scale float64) error {
	c := RoundCost{Layout: w.Layout.Part}
	for range 3 { // warm up
		if _, err := w.play(ctx, loop{Rounds: 20, Calls: 3, Bytes: 16}); err != nil {
			return err
		}
	}
	var bare, whole []float64
	for range atLeast(20*scale, 3) {
		for _, asWhole := range []bool{false, true} {
			s, err := w.play(ctx, loop{Rounds: 50, Calls: 3, Bytes: 16, Whole: asWhole})
			if err != nil {
				return err
			}
			if asWhole {
				whole = append(whole, millis(s.Micros)...)
			} else {
				bare = append(bare, millis(s.Micros)...)
			}
		}
	}
	c.P50, c.P99, c.Whole = bench.Quantile(bare, 0.5), bench.Quantile(bare, 0.99), bench.Quantile(whole, 0.5)
	w.progress(fmt.Sprintf("%s: a round of three calls p50 %.2f ms, p99 %.2f; with whole requests %.2f", c.Layout, c.P50, c.P99, c.Whole))
	f.Layouts = append(f.Layouts, c)
	return nil
}

// grow measures loops of several lengths: how long late rounds take beside early ones, and what is written for them.
func (f *Rounds) grow(ctx context.Context, w *world, scale float64) error {
	for _, whole := range []bool{false, true} {
		var all [][]int64
		for range atLeast(5*scale, 2) {
			s, err := w.play(ctx, loop{Rounds: 1000, Calls: 3, Bytes: 16, Whole: whole})
			if err != nil {
				return err
			}
			all = append(all, s.Micros)
		}
		if whole {
			f.LateWhole = late(all)
		} else {
			f.Late = late(all)
		}
	}
	w.progress(fmt.Sprintf("round 1,000 beside round 10: %.2f; with whole requests %.2f", f.Late, f.LateWhole))
	m, err := newMeter(ctx, w.JS, w.Conn())
	if err != nil {
		return err
	}
	defer m.close()
	for _, rounds := range []int{10, 100, 1000} {
		c, err := w.loop(ctx, m, loop{Rounds: rounds, Calls: 3, Bytes: 500, Whole: true})
		if err != nil {
			return err
		}
		f.Loops = append(f.Loops, c)
	}
	if f.Chat, err = w.loop(ctx, m, loop{Rounds: 100, Calls: 1, Bytes: 5000, Whole: true}); err != nil {
		return err
	}
	f.Long, err = w.loop(ctx, m, loop{Rounds: 200, Calls: 3, Bytes: 500, Whole: true})
	return err
}

// late is the median of the last ten rounds of 1,000 beside that of ten early ones.
func late(all [][]int64) float64 {
	var early, late []float64
	for _, micros := range all {
		early, late = append(early, millis(micros[8:18])...), append(late, millis(micros[989:])...)
	}
	return bench.Quantile(late, 0.5) / bench.Quantile(early, 0.5)
}

// loop runs one agent and returns what it cost. Whoever meters takes the machine's time, too.
func (w *world) loop(ctx context.Context, m *meter, l loop) (c LoopCost, err error) {
	before, err := m.now()
	if err != nil {
		return c, err
	}
	s, err := w.play(ctx, l)
	if err != nil {
		return c, err
	}
	if err := w.Purged(time.Minute); err != nil { // its document is written then
		return c, err
	}
	after, err := m.now()
	if err != nil {
		return c, err
	}
	c = LoopCost{
		Rounds: l.Rounds, P50: bench.Quantile(millis(s.Micros), 0.5), Written: after.less(before),
		Results: int64(l.Rounds * l.Calls * l.Bytes), Input: s.Input, Prefix: float64(s.Prefix) / float64(s.Input),
	}
	c.PerRecord = float64(c.Written.rounds()-2*c.Results) / float64(c.Written.Records)
	w.progress(fmt.Sprintf("%d rounds of %d calls with %d bytes: p50 %.2f ms; written %s; %.0f bytes a record beyond twice the results; %.1f %% of %.1f MB read were a prefix",
		l.Rounds, l.Calls, l.Bytes, c.P50, c.Written, c.PerRecord, 100*c.Prefix, float64(c.Input)/1e6))
	return c, nil
}

func (w Written) String() string {
	const mb = 1e6
	return fmt.Sprintf("%.3f MB in %d records (ledger %.3f, parts %.3f, calls %.3f, history %.3f)", float64(w.all())/mb, w.Records,
		float64(w.Ledger)/mb, float64(w.Parts)/mb, float64(w.Calls)/mb, float64(w.History)/mb)
}

// many measures rounds a second with many agents at once.
func (f *Rounds) many(ctx context.Context, w *world, scale float64) error {
	for _, calls := range []int{1, 3} {
		l := loop{Rounds: 50, Calls: calls, Bytes: 16}
		agents := atLeast(400*scale, 64)
		if err := w.herd(ctx, l, 64); err != nil { // warm up
			return err
		}
		cpu, start := w.Usage(), time.Now()
		if err := w.herd(ctx, l, agents); err != nil {
			return err
		}
		n := float64(agents * l.Rounds)
		t := Throughput{Calls: calls, Rate: n / time.Since(start).Seconds(), CPU: (w.Usage() - cpu).Seconds() / n * 1000}
		w.progress(fmt.Sprintf("64 agents at once, %d calls a round: %.0f rounds/s, %.2f CPU s for 1,000", calls, t.Rate, t.CPU))
		f.PerSecond = append(f.PerSecond, t)
	}
	return nil
}

func millis(micros []int64) []float64 {
	all := make([]float64, len(micros))
	for i, us := range micros {
		all[i] = float64(us) / 1000
	}
	return all
}
