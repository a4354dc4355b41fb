package bench

import (
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/internal/bench"
)

// target is what the project wants of a shape.
type target struct {
	shape   string
	key     key
	bound   float64
	atLeast bool
	ratio   bool // of Stepjet to the floor
}

var targets = []struct {
	parts []string
	wants []target
}{
	{[]string{"embedded", "separate"}, []target{
		{"chain of 20", stepKey, 1.3, false, true},
		{"diamonds of 7, 64 in flight", rateKey, 0.7, true, true},
		{"sustained", rateKey, 0.7, true, true},
		{"fan-out of 100 with join", runKey, 5, false, false},
		{"fan-out of 2000 with join", runKey, 60, false, false},
		{"diamonds of 7, 64 in flight", cpuKey, 0.06, false, false},
		{"sustained", cpuKey, 0.06, false, false},
	}},
	{[]string{"embedded"}, []target{
		{"chain of 20", stepKey, 0.10, false, false},
		{"diamonds of 7, 64 in flight", rateKey, 25_000, true, false},
		{"sustained", rateKey, 25_000, true, false},
	}},
	{[]string{"separate"}, []target{
		{"chain of 20", stepKey, 0.30, false, false},
		{"diamonds of 7, 64 in flight", rateKey, 20_000, true, false},
		{"sustained", rateKey, 20_000, true, false},
	}},
	{[]string{"always", "always-8"}, []target{
		{"chain of 20", stepKey, 0.45, false, false},
		{"fan-out of 100 with join", runKey, 11, false, false},
		{"fan-out of 2000 with join", runKey, 120, false, false},
		{"diamonds of 7, 64 in flight", rateKey, 8000, true, false},
		{"sustained", rateKey, 8000, true, false},
		{"sustained", cpuKey, 0.2, false, false},
	}},
}

// targets lists every target: measured, or not yet.
func (f *figures) targets(b *strings.Builder) {
	b.WriteString("\n## Against the targets\n\nWhat is **bold** misses its target, [why](#why-targets-are-missed). ")
	b.WriteString("Of a throughput the sustained figure is the one that counts: it goes on for a minute while finished runs are purged.\n")
	table(b, 4, "shape", "figure", "wanted", "measured")
	for _, group := range targets {
		for _, t := range group.wants {
			unit, shape := t.key.unit, t.shape
			if t.ratio {
				unit += ", over JetStream alone"
			}
			if shape == "sustained" {
				shape = "diamonds of 7, 64 in flight, sustained"
			}
			var cells []string
			for _, part := range group.parts {
				cells = append(cells, part+" "+t.measured(f.layout(part)))
			}
			row(b, shape, unit, bound(t.bound, t.atLeast), strings.Join(cells, ", "))
		}
	}
	f.scaleTargets(b)
}

// measured is what a layout came to.
func (t target) measured(got *LayoutFigures) string {
	p := got.pair(t.shape)
	if p == nil {
		return "not measured"
	}
	of := p.Stepjet
	if t.ratio {
		of = p.Ratio
	}
	v := t.key.of(of)
	return judged(number(v), v, t.bound, t.atLeast)
}

// judged is a figure, bold where it misses its target.
func judged(text string, v, bound float64, atLeast bool) string {
	if v > bound && !atLeast || v < bound && atLeast {
		return "**" + text + "**"
	}
	return text
}

func bound(v float64, atLeast bool) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if v >= 1000 {
		text = whole(int(v))
	}
	if atLeast {
		return "≥ " + text
	}
	return "≤ " + text
}

// scaleTargets are those of what is large, and of the pure core. One that was measured on less than it asks for is not
// met by that.
func (f *figures) scaleTargets(b *strings.Builder) {
	missing := func(what, figure, want string) { row(b, what, figure, want, "not measured") }
	check := func(what, figure string, v, limit float64, atLeast, full bool) {
		text := judged(number(v), v, limit, atLeast)
		if !full {
			text += onLess
		}
		row(b, what, figure, bound(limit, atLeast), text)
	}
	if x := f.backlog; x != nil {
		what, full := "backlog of "+whole(x.Steps)+" steps", x.Steps >= backlogRuns*backlogWidth
		check(what, "orchestrator's peak, MiB", max(x.PeakMB[bench.RoleOrchestrator], x.PeakMB[successor]), 1024, false, full)
		if x.Failed == "" {
			check(what, "restarted, s until every partition is answered for", x.AllAnswered, 30, false, full)
		} else {
			row(b, what, "restarted, and drained", "≤ 30", "**no**")
		}
	} else {
		missing("backlog of 1,000,000 steps", "orchestrator's peak, MiB", "≤ 1024")
		missing("backlog of 1,000,000 steps", "restarted, s", "≤ 30")
	}
	if x := f.inflight; x != nil {
		if what := whole(x.Runs) + " runs in flight"; x.Failed == "" {
			row(b, what, "waiting, then all succeeded", "yes", yesIf(x.Runs >= waitingRuns))
		} else {
			row(b, what, "waiting, then all succeeded", "yes", "**no**")
		}
	} else {
		missing("100,000 runs in flight", "waiting, then all succeeded", "yes")
	}
	if x := f.large; x != nil {
		row(b, whole(x.Steps)+" steps wide, and long", "succeeded", "yes", yesIf(x.Steps >= largest))
	} else {
		missing("10,000 steps wide, and long", "succeeded", "yes")
	}
	if x := f.retained; x != nil {
		what, full := whole(x.Runs)+" finished runs retained", x.Runs >= retainedRuns
		check(what, "ms a step of a chain, over none retained", x.Chain.Ratio.StepMS, 1.1, false, full)
		check(what, "steps/s of diamonds, over none retained", x.Many.Ratio.Rate, 0.9, true, full)
	} else {
		missing("100,000 finished runs retained", "speed over none retained", "± 10 %")
	}
	if x := f.orchestrators; x != nil && len(x.By) == 3 {
		for _, y := range x.By[1:] {
			check(whole(y.Number)+" orchestrators", "CPU per step, over one's", over(y.Figures.CPU, x.By[0].Figures.CPU), 1.1,
				false, true)
		}
	} else {
		missing("2 and 3 orchestrators", "CPU per step, over one's", "unchanged")
	}
	if x := f.curve; x != nil && len(x.Points) > 1 {
		most := x.Points[len(x.Points)-1].InFlight
		check("1 to "+whole(most)+" runs in flight", "CPU per step, largest rise towards more of them", x.rise(), 1.1, false,
			most >= curveMost)
	} else {
		missing("1 to 100,000 runs in flight", "CPU per step", "constant")
	}
	f.coreTarget(b)
}

// onLess follows what was measured on less than its target asks for.
const onLess = ", measured on less"

func yesIf(full bool) string {
	if full {
		return "yes"
	}
	return "yes" + onLess
}

func (f *figures) coreTarget(b *strings.Builder) {
	if f.core != nil {
		for _, c := range f.core.Benchmarks {
			if c.Name == "ParseValidate/10000" {
				row(b, "plan of 10,000 steps", "parse and validate, ms", "< 50",
					judged(number(c.TotalMS()), c.TotalMS(), 50, false))
				return
			}
		}
	}
	row(b, "plan of 10,000 steps", "parse and validate, ms", "< 50", "not measured")
}

// rise is the most by which the cost of a step grows from some number of runs in flight to a larger one. That it falls
// at first is no fault: steps at the same time share their writes.
func (c *Curve) rise() float64 {
	low, most := c.Points[0].Figures.CPU, 1.0
	for _, p := range c.Points {
		low = min(low, p.Figures.CPU)
		most = max(most, over(p.Figures.CPU, low))
	}
	return most
}
