package machine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// BenchmarkAmendment adds a step to plans of several sizes.
func BenchmarkAmendment(b *testing.B) {
	for _, size := range []int{10, 100, 1000, 9000} {
		b.Run(fmt.Sprint("steps=", size), func(b *testing.B) {
			steps := make([]string, size)
			for i := range steps {
				steps[i] = fmt.Sprintf(`{"id":"s%d","tool":"t"}`, i)
			}
			p, report := plan.Parse([]byte(`{"open":true,"steps":[`+strings.Join(steps, ",")+`]}`), nil)
			require.NotNil(b, p, "%v", report.Problems)
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			var m *machine.Run
			var out machine.Effects
			revision := 0
			b.ReportAllocs()
			for b.Loop() {
				if revision%500 == 0 {
					b.StopTimer()
					m, revision = machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}}}), 0
					out.Reset()
					m.Begin(&out)
					b.StartTimer()
				}
				revision++
				out.Reset()
				m.Apply(machine.Record{Seq: uint64(revision), Time: at, Amendment: &machine.Amendment{
					Scope: "=", Revision: revision, Add: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"id":"a%d","tool":"t","arguments":{"x":"$ref:s0"}}`, revision))},
				}}, at, &out)
			}
			require.Nil(b, m.Amendments()[revision-1].Stale())
		})
	}
}

// BenchmarkAmendmentStorm amends one run a thousand times, as its owner does: each amendment is considered, and then
// counts. What it costs should not follow from what the run has already.
func BenchmarkAmendmentStorm(b *testing.B) {
	for _, size := range []int{10, 1000, 8000} {
		b.Run(fmt.Sprint("steps=", size), func(b *testing.B) {
			steps := make([]string, size)
			for i := range steps {
				steps[i] = fmt.Sprintf(`{"id":"s%d","tool":"t"}`, i)
			}
			p, report := plan.Parse([]byte(`{"open":true,"steps":[`+strings.Join(steps, ",")+`]}`), nil)
			require.NotNil(b, p, "%v", report.Problems)
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}}})
				var out machine.Effects
				m.Begin(&out)
				for n := 1; n <= machine.MaxAmendments; n++ {
					add := []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"id":"a%d","tool":"t","arguments":{"x":"$ref:s0"}}`, n))}
					_, report, err := machine.Consider(m, &machine.Amendment{Scope: "=", Revision: n, Add: add}, nil)
					if err != nil || len(report.Problems) > 0 {
						b.Fatal(err, report.Problems)
					}
					out.Reset()
					m.Apply(machine.Record{Seq: uint64(n), Time: at, Amendment: &machine.Amendment{Scope: "=", Revision: n, Add: add}}, at, &out)
				}
				require.Nil(b, m.Amendments()[machine.MaxAmendments-1].Stale())
			}
		})
	}
}
