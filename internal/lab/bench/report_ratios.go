package bench

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/internal/bench"
)

// key is the figure that counts of a shape: for a throughput more is better, for a time less.
type key struct {
	unit string
	of   func(Figures) float64
	rate bool
}

var (
	stepKey = key{"ms a step", func(f Figures) float64 { return f.StepMS }, false}
	runKey  = key{"ms a run", func(f Figures) float64 { return f.RunMS }, false}
	rateKey = key{"steps/s", func(f Figures) float64 { return f.Rate }, true}
	cpuKey  = key{"CPU s per 1,000 steps", func(f Figures) float64 { return f.CPU }, false}
)

func (p Pair) key() key {
	switch {
	case strings.HasPrefix(p.Shape, "chain"):
		return stepKey
	case p.InFlight > 1:
		return rateKey
	}
	return runKey
}

// ratios are what Stepjet adds to JetStream, and its own figures beside them.
func (f *figures) ratios(b *strings.Builder) {
	b.WriteString("\n## Against JetStream alone\n\nStepjet's figure divided by that of JetStream alone, both measured in turns in one run, on one server, with the same shapes. ")
	b.WriteString("Medians of the rounds' ratios, with the lowest and highest. Of times and CPU less is better, of steps/s more; 1 is JetStream itself. ")
	b.WriteString("A run's time is what its client sees, from submit to outcome; the time of a step goes from the plan's record to the last record, divided by how many steps wait for each other. ")
	b.WriteString("CPU is seconds per 1,000 steps, of all processes, client and server included, and holds the purge of the finished runs.\n")
	for _, l := range f.layouts {
		l.ratios(b)
	}
}

func (l *LayoutFigures) ratios(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s\n\n%s; %d rounds.", l.Layout.Title, stamp(l.Stamp), l.rounds())
	if l.Layout.Always {
		fmt.Fprintf(b, " One bare write of 512 bytes with its flush takes %s ms on this disk (p99 %s).", number(l.Disk.P50),
			number(l.Disk.P99))
	}
	b.WriteString("\n")
	table(b, 2, "shape", "figure", "JetStream alone", "Stepjet", "ratio", "CPU alone", "CPU Stepjet", "ratio")
	pairs := l.Pairs
	if l.Sustained != nil {
		pairs = append(pairs[:len(pairs):len(pairs)], *l.Sustained)
	}
	for _, p := range pairs {
		k := p.key()
		row(b, p.name(l), k.unit, number(k.of(p.Floor)), number(k.of(p.Stepjet)), p.spread(k),
			number(p.Floor.CPU), number(p.Stepjet.CPU), p.spread(cpuKey))
	}
	fmt.Fprintf(b, "\nPeak memory, the floor's load included: %s. With nothing to do all processes together use %.1f %% of one core.\n", bench.MiB(l.PeakMB), 100*l.Idle)
}

func (p Pair) name(l *LayoutFigures) string {
	if rest, ok := strings.CutPrefix(p.Shape, "sustained: "); ok {
		return fmt.Sprintf("%s, for %.0f s", rest, l.SustainedFor)
	}
	return p.Shape
}

// spread is the median ratio and the rounds' extremes.
func (p Pair) spread(k key) string {
	if p.Rounds == 1 {
		return fmt.Sprintf("**%.2f**", k.of(p.Ratio))
	}
	return fmt.Sprintf("**%.2f** (%.2f–%.2f)", k.of(p.Ratio), k.of(p.Low), k.of(p.High))
}

func (l *LayoutFigures) rounds() int {
	if len(l.Pairs) == 0 {
		return 1
	}
	return l.Pairs[0].Rounds
}
