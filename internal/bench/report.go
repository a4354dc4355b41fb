package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Report is one run of the benchmarks: bench/results.json.
type Report struct {
	Time    time.Time `json:"time"`
	Version string    `json:"version"`
	Machine string    `json:"machine"`
	Modes   []Mode    `json:"modes"`
}

// target is what the project wants of a shape: the figure to look at and its bound.
type target struct {
	shape    string // prefix
	what     string
	value    func(Result) float64
	embedded float64
	separate float64
	atLeast  bool
}

var targets = []target{
	{"chain of 20", "step p50, ms", func(r Result) float64 { return r.StepP50 }, 0.10, 0.30, false},
	{"fan-out of 100", "run, ms", func(r Result) float64 { return r.MS }, 5, 5, false},
	{"fan-out of 2000", "run, ms", func(r Result) float64 { return r.MS }, 60, 60, false},
	{"3000 diamonds, 64", "steps/s", func(r Result) float64 { return r.PerSecond }, 25_000, 20_000, true},
}

// Write stores the report as JSON and, with its figures against the targets, as Markdown. An empty path leaves one out.
func (r *Report) Write(jsonPath, markdownPath string) error {
	if jsonPath != "" {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := write(jsonPath, append(b, '\n')); err != nil {
			return err
		}
	}
	if markdownPath == "" {
		return nil
	}
	return write(markdownPath, []byte(r.Markdown()))
}

func write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// Markdown gives the report for people.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Performance\n\nWritten by `make bench`; the same figures are in [bench/results.json](../bench/results.json).\n\n")
	fmt.Fprintf(&b, "%s, version %s, %s. No-op tools, file storage, no fsync before the acknowledgement, grace of finished runs %s (a minute by default), so that purging goes on meanwhile. ",
		r.Time.UTC().Format("2006-01-02 15:04 MST"), r.Version, r.Machine, Grace)
	b.WriteString("Timings on shared machines vary by tens of per cent from one run to the next.\n\n")
	b.WriteString("Step times are from ready to decided by the ledger's clock; for chains and the sustained load the run's time divided by its depth. ")
	b.WriteString("CPU is over all processes, server, worker and client included.\n")
	r.ratios(&b)
	r.targets(&b)
	r.why(&b)
	for _, m := range r.Modes {
		m.markdown(&b)
	}
	return b.String()
}

// ratios compares Stepjet with JetStream alone, measured in the same run and process.
func (r *Report) ratios(b *strings.Builder) {
	if len(r.Modes) == 0 {
		return
	}
	find := func(prefix string) (res Result, ok bool) {
		for _, res := range r.Modes[0].Results {
			if strings.HasPrefix(res.Shape, prefix) {
				return res, true
			}
		}
		return res, false
	}
	alone, ok1 := find("floor: JetStream alone, one")
	many, ok2 := find("floor: JetStream alone, 64")
	chain, ok3 := find("chain of 20")
	diamonds, ok4 := find("3000 diamonds, 64")
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return
	}
	b.WriteString("\n## Against JetStream alone\n\nThe floor is a step's bare way through JetStream in the same process and run: publish, pull, create the record, notice it. ")
	b.WriteString("Stepjet adds references, the run's plan, start and history, events, and the purge.\n\n| | JetStream alone | Stepjet | ratio |\n|---|---:|---:|---:|\n")
	fmt.Fprintf(b, "| one after the other, ms a step | %.3f | %.3f | %.2f |\n", alone.StepP50, chain.StepP50, chain.StepP50/alone.StepP50)
	fmt.Fprintf(b, "| 64 in flight (steps; diamonds of seven), steps/s | %.0f | %.0f | %.2f |\n", many.PerSecond, diamonds.PerSecond, diamonds.PerSecond/many.PerSecond)
	fmt.Fprintf(b, "| CPU s per 1,000 steps, 64 in flight | %.3f | %.3f | %.2f |\n", many.CPU, diamonds.CPU, diamonds.CPU/many.CPU)
}

func (r *Report) targets(b *strings.Builder) {
	b.WriteString("\n## Against the targets\n\n| mode | shape | figure | measured | target | |\n|---|---|---|---:|---:|---|\n")
	for i, m := range r.Modes {
		for _, t := range targets {
			for _, res := range m.Results {
				if !strings.HasPrefix(res.Shape, t.shape) {
					continue
				}
				bound := t.separate
				if i == 0 {
					bound = t.embedded
				}
				v, sign, verdict := t.value(res), "≤", "met"
				missed := v > bound
				if t.atLeast {
					sign, missed = "≥", v < bound
				}
				if missed {
					verdict = "**missed**"
				}
				fmt.Fprintf(b, "| %s | %s | %s | %s | %s %s | %s |\n", m.Name, res.Shape, t.what, number(v), sign, number(bound), verdict)
			}
		}
	}
}

// why explains the targets that are missed, as far as this run shows it.
func (r *Report) why(b *strings.Builder) {
	b.WriteString("\nThe targets come from a bare prototype that reached 14 to 44 thousand steps a second with plans of seven steps on two cores. ")
	b.WriteString("Where the floor above, with nothing orchestrated, is itself near or below a target, no engine on top of it can meet that target in this run. ")
	b.WriteString("What Stepjet adds to the floor is mostly the run's own writes and reads (plan, start, history, a look into history, the purge), events, and garbage; ")
	b.WriteString("see the CPU figures, and `stepjet bench --cpu-profile`.\n")
}

func (m Mode) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n| shape | time, ms | step p50, ms | step p99, ms | steps/s | CPU s per 1,000 steps |\n|---|---:|---:|---:|---:|---:|\n", strings.ToUpper(m.Name[:1])+m.Name[1:])
	for _, r := range m.Results {
		fmt.Fprintf(b, "| %s | %s | %.3f | %.3f | %.0f | %.3f |\n", r.Shape, number(r.MS), r.StepP50, r.StepP99, r.PerSecond, r.CPU)
	}
	names := make([]string, 0, len(m.PeakMB))
	for name := range m.PeakMB {
		names = append(names, name)
	}
	sort.Strings(names)
	b.WriteString("\nPeak memory:")
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, " %s %.0f MiB", name, m.PeakMB[name])
	}
	b.WriteString(".\n")
}

func number(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
