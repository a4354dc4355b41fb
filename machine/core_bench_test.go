package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
)

// BenchmarkCoreApply takes whole runs through the machine, one record for each step; see make bench-core.
func BenchmarkCoreApply(b *testing.B) {
	const diamond = `{"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t","depends_on":["a"]},{"id":"c","tool":"t","depends_on":["a"]},` +
		`{"id":"d","tool":"t","depends_on":["b","c"]},{"id":"e","tool":"t","depends_on":["d"]},{"id":"f","tool":"t","depends_on":["d"]},` +
		`{"id":"g","tool":"t","depends_on":["e","f"]}],"output_steps":["g"]}`
	for name, body := range map[string]string{"7": diamond, "10000-wide": wide(10_000), "10000-long": long(10_000)} {
		b.Run(name, func(b *testing.B) { benchmarkCoreApply(b, body) })
	}
}

func benchmarkCoreApply(b *testing.B, body string) {
	p, report := plan.Parse([]byte(body), nil)
	if p == nil {
		b.Fatal(report.Problems)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	result := []byte(`{"x":1}`)
	var queue []machine.Dispatch
	b.ReportAllocs()
	for b.Loop() {
		run := machine.New(p, machine.Start{Key: "default/r/1", Submitted: now, Started: now})
		var effects machine.Effects
		run.Begin(&effects)
		queue = append(queue[:0], effects.Dispatch...)
		for i := 0; i < len(queue); i++ {
			effects.Reset()
			run.Apply(machine.Record{Seq: uint64(i + 1), Time: now, Result: &machine.Result{Call: queue[i].Call, Attempt: 1, Body: result}}, now, &effects)
			queue = append(queue, effects.Dispatch...)
		}
		if len(queue) != len(p.Steps) || !effects.Finished {
			b.Fatal("the run did not come to its end")
		}
	}
	b.ReportMetric(float64(len(p.Steps)), "steps/op")
}

// BenchmarkCoreValues takes runs of values through the machine: a chain in which each is calculated from the one before,
// and as many that refer to one.
func BenchmarkCoreValues(b *testing.B) {
	for name, step := range map[string]string{
		"chain": `,{"id":"v%d","value":{"$calc":"$ref:v%d + 1.1"}}`,
		"one":   `,{"id":"v%d","value":{"n":{"$calc":"$ref:v0 * %d"}}}`,
	} {
		var text strings.Builder
		text.WriteString(`{"steps":[{"id":"v0","value":1}`)
		for i := 1; i < 1000; i++ {
			fmt.Fprintf(&text, step, i, i-1)
		}
		b.Run(name, func(b *testing.B) {
			p, report := plan.Parse([]byte(text.String()+`],"output_steps":["v999"]}`), nil)
			if p == nil {
				b.Fatal(report.Problems)
			}
			b.ReportAllocs()
			for b.Loop() {
				run := machine.New(p, machine.Start{Key: "default/r/1"})
				var effects machine.Effects
				if run.Begin(&effects); !effects.Finished || run.Stats().Succeeded != 1000 {
					b.Fatal("the run did not come to its end")
				}
			}
			b.ReportMetric(float64(len(p.Steps)), "steps/op")
		})
	}
}

// wide is a fan-out with a join, of n steps in all.
func wide(n int) string {
	var b, join strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, `{"id":"s%d","tool":"t"},`, i)
		fmt.Fprintf(&join, `,"s%d"`, i)
	}
	return `{"steps":[` + b.String() + `{"id":"join","tool":"t","depends_on":[` + join.String()[1:] + `]}],"output_steps":["join"]}`
}

// long is a chain of n steps.
func long(n int) string {
	var b strings.Builder
	b.WriteString(`{"steps":[{"id":"s0","tool":"t"}`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `,{"id":"s%d","tool":"t","depends_on":["s%d"]}`, i, i-1)
	}
	return b.String() + fmt.Sprintf(`],"output_steps":["s%d"]}`, n-1)
}
