// Package bench measures Stepjet on the machine it runs on, in less than a minute: three shapes of load, once with all
// its parts in this process and once with each in a process of its own. Tools do nothing, so what is measured is
// Stepjet and JetStream.
//
// What the project itself measures (against JetStream alone, at scale, on clusters) is built on the same World and is
// no part of a user's program; see internal/lab/bench.
package bench

import (
	"context"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// Stamp says where figures come from.
type Stamp struct {
	Time    time.Time `json:"time"`
	Version string    `json:"version"`
	Machine string    `json:"machine"`
}

// Report is what Measure finds of one layout.
type Report struct {
	// Layout is the layout's name on the command line.
	Layout string     `json:"layout"`
	Shapes []Measured `json:"shapes"`
	// PeakMB is the most resident memory, in MiB, by process.
	PeakMB map[string]float64 `json:"peak_memory_mib"`
}

// Measured are the figures of one shape.
type Measured struct {
	Shape string `json:"shape"`
	Figures
}

// Layouts returns the layouts of these names, all where there are none. Errors: invalid_config for an unknown name.
func Layouts(names []string) ([]Layout, error) {
	if len(names) == 0 {
		return []Layout{Embedded, Separate}, nil
	}
	var chosen []Layout
	for _, name := range names {
		switch name {
		case Embedded.Part:
			chosen = append(chosen, Embedded)
		case Separate.Part:
			chosen = append(chosen, Separate)
		default:
			return nil, fault.New(fault.InvalidConfig, "there is no layout called %q", name).
				WithHint("%s or %s", Embedded.Part, Separate.Part)
		}
	}
	return chosen, nil
}

// Measure runs each shape for some time in a layout. It calls begins with the name of each that it begins with.
func Measure(
	ctx context.Context, env Env, l Layout, lasting time.Duration, begins func(shape string),
) (*Report, error) {
	w, err := NewWorld(ctx, env, l)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := w.Start(); err != nil {
		return nil, err
	}
	if _, err := w.Round(ctx, Diamonds(16, 200), 0); err != nil { // warm up
		return nil, err
	}
	w.Rest(time.Second)
	r := &Report{Layout: l.Part}
	for _, s := range []Shape{Chain(20, 0), FanOut(100, 0), Diamonds(64, 0)} {
		begins(s.Name)
		f, err := w.Round(ctx, s, lasting)
		if err != nil {
			return nil, err
		}
		r.Shapes = append(r.Shapes, Measured{Shape: s.Name, Figures: f})
	}
	r.PeakMB = w.Memory()
	return r, nil
}
