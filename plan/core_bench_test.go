package plan_test

import (
	"fmt"
	"testing"

	"github.com/stepjet/stepjet/plan"
)

// The benchmarks named Core are those of docs/performance.md (make bench-core). They tell how many steps an operation
// holds, so that time and allocations can be given for each step.

var coreSizes = []int{7, 100, 10_000}

func ofSteps(n int) []byte {
	if n == 7 {
		return []byte(diamond)
	}
	return large(n)
}

func BenchmarkCoreParse(b *testing.B) {
	for _, n := range coreSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkCoreParse(b, n, nil) })
	}
}

// BenchmarkCoreParseValidate also checks arguments against the tools' schemas.
func BenchmarkCoreParseValidate(b *testing.B) {
	for _, n := range coreSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkCoreParse(b, n, corpusTools(b)) })
	}
}

func benchmarkCoreParse(b *testing.B, steps int, tools plan.Catalog) {
	body := ofSteps(steps)
	b.ReportAllocs()
	for b.Loop() {
		if p, r := plan.Parse(body, tools); p == nil {
			b.Fatal(r.Problems)
		}
	}
	b.ReportMetric(float64(steps), "steps/op")
}

// BenchmarkCoreResolve resolves the arguments of every step of a plan.
func BenchmarkCoreResolve(b *testing.B) {
	p := parsed(b, diamond)
	value := []byte(`{"city":"Tokyo","wind":{"speed":3.5,"from":"NNE"},"temp":21.5,"humidity":60,"x":1,"sum":2}`)
	result := func(int) ([]byte, bool) { return value, true }
	b.ReportAllocs()
	for b.Loop() {
		for step := range p.Steps {
			if _, err := p.Arguments(step, result); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(len(p.Steps)), "steps/op")
}
