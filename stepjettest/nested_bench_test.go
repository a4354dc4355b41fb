package stepjettest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
)

// BenchmarkNested is what steps with plans of their own cost in a whole Stepjet: runs of 1,000 such of five steps, one
// run of a list of 1,000 items with such a plan, and runs of 5,000 steps beside each other, in turns. Each of the five
// waits for the one before; the tool does nothing. Promised is that nested/flat and items/flat are at most 1.15.
func BenchmarkNested(b *testing.B) {
	s := stepjettest.New(b)
	stepjettest.Register(s, "t", func(context.Context, struct {
		X any `json:"x,omitempty"`
	}) (int, error) {
		return 1, nil
	})
	shapes := chainsOfFive(1_000)
	took := map[string][]turn{}
	for _, x := range shapes {
		timed(b, s, x.plan) // the first is of a cold process
	}
	for b.Loop() {
		for _, x := range shapes {
			took[x.name] = append(took[x.name], timed(b, s, x.plan))
		}
	}
	for _, x := range shapes {
		b.ReportMetric(median(took[x.name], func(_ int, t turn) float64 { return t.wall.Seconds() * 1000 }), x.name+"-ms")
		if x.name == "flat" {
			continue
		}
		flat := took["flat"]
		b.ReportMetric(median(took[x.name], func(i int, t turn) float64 { return float64(t.wall) / float64(flat[i].wall) }), x.name+"/flat")
		b.ReportMetric(median(took[x.name], func(i int, t turn) float64 { return float64(t.cpu) / float64(flat[i].cpu) }), x.name+"/flat-cpu")
	}
}

// turn is what one run took, of all that is in the process.
type turn struct{ wall, cpu time.Duration }

func timed(b *testing.B, s *stepjettest.Stack, plan string) turn {
	began, used := time.Now(), cpuTime(b)
	o := s.Run(plan)
	t := turn{time.Since(began), cpuTime(b) - used}
	require.Equal(b, outcome.Succeeded, o.Status)
	return t
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// median returns that of a figure of the rounds.
func median(of []turn, figure func(round int, t turn) float64) float64 {
	all := make([]float64, len(of))
	for i := range of {
		all[i] = figure(i, of[i])
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// shape is a plan of so many chains of five steps.
type shape struct{ name, plan string }

// chainsOfFive returns the chains beside each other, each as the plan of a step, and as the plan of a step that runs for
// each item of a list.
func chainsOfFive(chains int) []shape {
	five := func(prefix string) string {
		steps := []string{fmt.Sprintf(`{"id":"%s0","tool":"t"}`, prefix)}
		for i := 1; i < 5; i++ {
			steps = append(steps, fmt.Sprintf(`{"id":"%s%d","tool":"t","arguments":{"x":"$ref:%s%d"}}`, prefix, i, prefix, i-1))
		}
		return strings.Join(steps, ",")
	}
	inner := `{"output_steps":["s4"],"steps":[` + five("s") + `]}`
	var flat, nested []string
	for n := range chains {
		flat = append(flat, five(fmt.Sprintf("p%d_", n)))
		nested = append(nested, fmt.Sprintf(`{"id":"p%d","plan":%s}`, n, inner))
	}
	items := strings.TrimSuffix(strings.Repeat("1,", chains), ",")
	return []shape{
		{"flat", `{"output_steps":["p0_4"],"steps":[` + strings.Join(flat, ",") + `]}`},
		{"nested", `{"output_steps":["p0"],"steps":[` + strings.Join(nested, ",") + `]}`},
		{"items", `{"output_steps":["p"],"steps":[{"id":"p","for_each":{"in":[` + items + `]},"plan":` + inner + `}]}`},
	}
}
