package bench

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/internal/bench"
)

// scale tells of what is large.
func (f *figures) scale(b *strings.Builder) {
	b.WriteString("\n## Scale\n\nServer, orchestrator and worker as processes of their own over TCP, nothing flushed before the acknowledgement.\n")
	for _, part := range []interface{ markdown(*strings.Builder) }{f.large, f.curve, f.inflight, f.backlog, f.retained,
		f.orchestrators} {
		part.markdown(b)
	}
}

func (l *Large) markdown(b *strings.Builder) {
	if l == nil {
		return
	}
	fmt.Fprintf(b, "\n### Runs of %s steps\n\n%s; medians of %d runs, one at a time.\n", whole(l.Steps), stamp(l.Stamp),
		l.Rounds)
	table(b, 1, "shape", "ms a run", "ms a step", "steps/s", "CPU s per 1,000 steps")
	row(b, "fan-out with join", number(l.Wide.RunMS), "", number(l.Wide.Rate), number(l.Wide.CPU))
	row(b, "chain", number(l.Long.RunMS), number(l.Long.StepMS), number(l.Long.Rate), number(l.Long.CPU))
	fmt.Fprintf(b, "\nPeak memory: %s.\n", bench.MiB(l.PeakMB))
}

func (c *Curve) markdown(b *strings.Builder) {
	if c == nil {
		return
	}
	fmt.Fprintf(b, "\n### Cost of a step against the runs in flight\n\n%s. Diamonds of seven steps, all of them at work, client included; medians of %d rounds.\n\n![CPU seconds per 1,000 steps against the runs in flight](%s)\n", stamp(c.Stamp), c.Rounds, plotFile)
	table(b, 0, "runs in flight", "CPU s per 1,000 steps", "JetStream alone", "ratio", "steps/s", "ms a run, median")
	for _, p := range c.Points {
		row(b, whole(p.InFlight), number(p.Figures.CPU), number(p.Floor.CPU),
			fmt.Sprintf("%.2f", over(p.Figures.CPU, p.Floor.CPU)), number(p.Figures.Rate), number(p.Figures.RunMS))
	}
	fmt.Fprintf(b, "\nPeak memory: %s.\n", bench.MiB(c.PeakMB))
}

func (f *InFlight) markdown(b *strings.Builder) {
	if f == nil {
		return
	}
	fmt.Fprintf(b, "\n### %s runs that wait\n\n%s. Each has done one step and waits for a tool that holds its 64 leases.\n\n", whole(f.Runs), stamp(f.Stamp))
	failed(b, f.Failed, f.PeakMB)
	if f.Failed != "" {
		return
	}
	fmt.Fprintf(b, "- Their plans were accepted at %s a second.\n- Resident memory before them: %s; with them: %s; peak in the end: %s.\n", number(f.SubmitPerSecond), bench.MiB(f.Before), bench.MiB(f.With), bench.MiB(f.PeakMB))
	fmt.Fprintf(b, "- Diamonds, 64 in flight, before them: %s steps/s, %s CPU s per 1,000 steps; beside them: %s steps/s, %s (without purging on either side).\n",
		number(f.Idle.Rate), number(f.Idle.CPU), number(f.Beside.Rate), number(f.Beside.CPU))
	fmt.Fprintf(b, "- Once the tool let them go, their %s steps took %s a second, %s CPU s per 1,000.\n", whole(2*f.Runs),
		number(f.Drained), number(f.DrainedCPU))
}

func (x *Backlog) markdown(b *strings.Builder) {
	if x == nil {
		return
	}
	fmt.Fprintf(b, "\n### A backlog of %s steps\n\n%s. %s runs of %d steps that are all ready, submitted while no worker is there.\n\n", whole(x.Steps), stamp(x.Stamp), whole(x.Runs), backlogWidth)
	failed(b, x.Failed, x.PeakMB)
	fmt.Fprintf(b, "- Their plans were accepted at %s a second; %s s after the last one all runs were started.\n",
		number(x.SubmitPerSecond), number(x.StartedIn))
	if x.Failed != "" {
		return
	}
	fmt.Fprintf(b, "- The orchestrator was killed (-9), another started: first dispatch after %s s, every partition answered for after %s s. A dead orchestrator's share moves on after 3 s, so those are in it.\n",
		number(x.FirstDispatch), number(x.AllAnswered))
	fmt.Fprintf(b, "- From that start to the last outcome: %s steps/s, %s CPU s per 1,000 steps.\n- Peak memory: %s.\n",
		number(x.Drained), number(x.CPU), bench.MiB(x.PeakMB))
}

func failed(b *strings.Builder, why string, peak map[string]float64) {
	if why != "" {
		fmt.Fprintf(b, "**It did not come to its end**: %s. Peak memory: %s.\n\n", why, bench.MiB(peak))
	}
}

func (r *Retained) markdown(b *strings.Builder) {
	if r == nil {
		return
	}
	fmt.Fprintf(b, "\n### Beside %s finished runs\n\n%s. Two servers, one with as many finished runs in its history and one without, in turns; %d rounds.\n", whole(r.Runs), stamp(r.Stamp), r.Rounds)
	table(b, 2, "shape", "figure", "none retained", "retained", "ratio")
	row(b, "chain of 20", "ms a step", number(r.Chain.Empty.StepMS), number(r.Chain.Full.StepMS),
		fmt.Sprintf("%.2f", r.Chain.Ratio.StepMS))
	row(b, "diamonds, 64 in flight", "steps/s", number(r.Many.Empty.Rate), number(r.Many.Full.Rate),
		fmt.Sprintf("%.2f", r.Many.Ratio.Rate))
	row(b, "diamonds, 64 in flight", "CPU s per 1,000 steps", number(r.Many.Empty.CPU), number(r.Many.Full.CPU),
		fmt.Sprintf("%.2f", r.Many.Ratio.CPU))
}

func (o *Orchestrators) markdown(b *strings.Builder) {
	if o == nil {
		return
	}
	fmt.Fprintf(b, "\n### More orchestrators\n\n%s. Diamonds, 64 in flight, with one, two, three and again fewer; CPU holds the purge of the finished runs.\n", stamp(o.Stamp))
	table(b, 0, "orchestrators", "CPU s per 1,000 steps", "over one's", "steps/s")
	for _, x := range o.By {
		row(b, whole(x.Number), number(x.Figures.CPU), fmt.Sprintf("%.2f", over(x.Figures.CPU, o.By[0].Figures.CPU)),
			number(x.Figures.Rate))
	}
}

// pure tells of the packages that reach nothing.
func (f *figures) pure(b *strings.Builder) {
	c := f.core
	if c == nil {
		return
	}
	fmt.Fprintf(b, "\n## The pure core\n\n%s. Go benchmarks of one goroutine, for each step of the plan.\n",
		stamp(c.Stamp))
	table(b, 1, "benchmark/steps", "ns a step", "allocations a step", "bytes a step", "ms a plan")
	for _, x := range c.Benchmarks {
		row(b, x.Name, number(x.NS), fmt.Sprintf("%.2f", x.Allocs), number(x.Bytes), number(x.TotalMS()))
	}
}

// whole writes a count with its thousands apart.
func whole(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
