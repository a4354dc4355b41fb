package bench

import (
	"fmt"
	"strings"
)

// target is what the project wants of a shape in some layouts.
type target struct {
	shape   string
	key     key
	bound   float64
	atLeast bool
	ratio   bool // of Stepjet to the floor
	parts   []string
}

var (
	here      = []string{"embedded"}
	apart     = []string{"separate"}
	unflushed = []string{"embedded", "separate"}
	flushed   = []string{"always", "always-8"}
)

var targets = []target{
	{"chain", stepKey, 1.3, false, true, unflushed},
	{"diamonds of 7, 64", rateKey, 0.7, true, true, unflushed},
	{"sustained", rateKey, 0.7, true, true, unflushed},
	{"diamonds of 7, 64", cpuKey, 0.06, false, false, unflushed},
	{"sustained", cpuKey, 0.06, false, false, unflushed},
	{"chain", stepKey, 0.10, false, false, here},
	{"chain", stepKey, 0.30, false, false, apart},
	{"fan-out of 100 with", runKey, 5, false, false, unflushed},
	{"fan-out of 2000 with", runKey, 60, false, false, unflushed},
	{"diamonds of 7, 64", rateKey, 25_000, true, false, here},
	{"diamonds of 7, 64", rateKey, 20_000, true, false, apart},
	{"sustained", rateKey, 25_000, true, false, here},
	{"sustained", rateKey, 20_000, true, false, apart},
	{"chain", stepKey, 0.45, false, false, flushed},
	{"fan-out of 100 with", runKey, 11, false, false, flushed},
	{"fan-out of 2000 with", runKey, 120, false, false, flushed},
	{"diamonds of 7, 64", rateKey, 8000, true, false, flushed},
	{"sustained", rateKey, 8000, true, false, flushed},
	{"sustained", cpuKey, 0.2, false, false, flushed},
}

// targets lists every target: measured, or not yet.
func (f *figures) targets(b *strings.Builder) {
	b.WriteString("\n## Against the targets\n\nOf a throughput the sustained figure is the one that counts: it goes on for a minute while finished runs are purged.\n")
	table(b, 3, "layout", "shape", "figure", "measured", "target", "")
	for _, t := range targets {
		for _, part := range t.parts {
			l := f.layout(part)
			p, unit, side := l.pair(t.shape), t.key.unit, func(p *Pair) Figures { return p.Stepjet }
			if t.ratio {
				unit, side = "ratio of "+unit, func(p *Pair) Figures { return p.Ratio }
			}
			name, measured := t.shape, "–"
			verdict := "not measured"
			if p != nil {
				v := t.key.of(side(p))
				name, measured, verdict = p.name(l), number(v), judge(v, t.bound, t.atLeast)
			}
			row(b, part, name, unit, measured, bound(t.bound, t.atLeast), verdict)
		}
	}
	f.scaleTargets(b)
}

func judge(v, bound float64, atLeast bool) string {
	if v > bound && !atLeast || v < bound && atLeast {
		return "**missed**"
	}
	return "met"
}

func bound(v float64, atLeast bool) string {
	if atLeast {
		return "≥ " + number(v)
	}
	return "≤ " + number(v)
}

// scaleTargets are those of what is large, and of the pure core.
func (f *figures) scaleTargets(b *strings.Builder) {
	missing := func(what, figure, want string) { row(b, "scale", what, figure, "–", want, "not measured") }
	check := func(what, figure string, v, limit float64, atLeast bool) {
		row(b, "scale", what, figure, number(v), bound(limit, atLeast), judge(v, limit, atLeast))
	}
	if x := f.backlog; x != nil {
		what := fmt.Sprintf("backlog of %s steps", number(float64(x.Steps)))
		check(what, "orchestrator's peak, MiB", max(x.PeakMB[roleOrchestrator], x.PeakMB[successor]), 1024, false)
		check(what, "restarted, s until every partition is answered for", x.AllAnswered, 30, false)
	} else {
		missing("backlog of a million steps", "orchestrator's peak, MiB", "≤ 1024")
	}
	if x := f.retained; x != nil {
		what := fmt.Sprintf("%s finished runs retained", number(float64(x.Runs)))
		check(what, "ms a step of a chain, over empty", x.Chain.Ratio.StepMS, 1.1, false)
		check(what, "steps/s of diamonds, over empty", x.Many.Ratio.Rate, 0.9, true)
	} else {
		missing("100,000 finished runs retained", "speed over empty", "± 10 %")
	}
	if x := f.orchestrators; x != nil && len(x.By) == 3 {
		for _, y := range x.By[1:] {
			check(fmt.Sprintf("%d orchestrators", y.Number), "CPU per step, over one's", over(y.Figures.CPU, x.By[0].Figures.CPU), 1.1, false)
		}
	} else {
		missing("second and third orchestrator", "CPU per step, over one's", "unchanged")
	}
	if x := f.curve; x != nil && len(x.Points) > 1 {
		low, high := x.range_()
		check(fmt.Sprintf("1 to %s runs in flight", number(float64(x.Points[len(x.Points)-1].InFlight))), "CPU per step, highest over lowest", over(high, low), 1.1, false)
	} else {
		missing("1 to 100,000 runs in flight", "CPU per step", "constant")
	}
	if f.core != nil {
		for _, c := range f.core.Benchmarks {
			if c.Name == "ParseValidate/10000" {
				row(b, "core", "plan of 10,000 steps", "parse and validate, ms", number(c.TotalMS()), "< 50", judge(c.TotalMS(), 50, false))
			}
		}
	} else {
		row(b, "core", "plan of 10,000 steps", "parse and validate, ms", "–", "< 50", "not measured")
	}
}

// range_ is the lowest and highest cost of the curve.
func (c *Curve) range_() (low, high float64) {
	low = c.Points[0].Figures.CPU
	for _, p := range c.Points {
		low, high = min(low, p.Figures.CPU), max(high, p.Figures.CPU)
	}
	return low, high
}
