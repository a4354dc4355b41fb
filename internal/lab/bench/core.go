package bench

import (
	"bufio"
	"context"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// Core holds Go benchmarks of the pure packages, which reach no network and no clock: a file of bench/.
type Core struct {
	Stamp
	Benchmarks []CoreFigures `json:"benchmarks"`
}

// CoreFigures are those of one benchmark, for each step of the plan it works on.
type CoreFigures struct {
	Name   string  `json:"name"`
	Steps  float64 `json:"steps"`
	NS     float64 `json:"ns_per_step"`
	Allocs float64 `json:"allocs_per_step"`
	Bytes  float64 `json:"bytes_per_step"`
}

// TotalMS is the time for the whole plan.
func (f CoreFigures) TotalMS() float64 { return f.NS * f.Steps / 1e6 }

// readCore reads what "go test -bench Core -benchmem" writes.
func readCore(_ context.Context, env Env, _ Config, s Stamp) (any, error) {
	c := &Core{Stamp: s}
	if env.Stdin == nil {
		return nil, fault.New(fault.InvalidConfig, "the output of go test -bench is expected on standard input")
	}
	lines := bufio.NewScanner(env.Stdin)
	for lines.Scan() {
		name, rest, ok := strings.Cut(lines.Text(), " ")
		name, isCore := strings.CutPrefix(strings.TrimSpace(name), "BenchmarkCore")
		if !ok || !isCore {
			continue
		}
		if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of processors
			name = name[:i]
		}
		if f := coreFigures(strings.Fields(rest)); f.Steps > 0 {
			f.Name = name
			c.Benchmarks = append(c.Benchmarks, f)
			env.Progress(name + " " + strconv.FormatFloat(f.NS, 'f', 0, 64) + " ns a step")
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(c.Benchmarks) == 0 {
		return nil, fault.New(fault.InvalidConfig, "no benchmark called Core is among what was read").
			WithHint("make bench-core")
	}
	return c, nil
}

// coreFigures reads pairs of a number and its unit; the first field counts iterations.
func coreFigures(fields []string) (f CoreFigures) {
	by := map[string]float64{}
	for i := 1; i+1 < len(fields); i += 2 {
		by[fields[i+1]], _ = strconv.ParseFloat(fields[i], 64) // a number that can't be read leaves its figure out
	}
	f.Steps = by["steps/op"]
	if f.Steps > 0 {
		f.NS, f.Allocs, f.Bytes = by["ns/op"]/f.Steps, by["allocs/op"]/f.Steps, by["B/op"]/f.Steps
	}
	return f
}
