package ui

import (
	"cmp"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui/index/tally"
	"github.com/stepjet/stepjet/outcome"
)

// What a tool took, and came to, is told by the heads of the runs that are over: nobody has to have counted, and no document
// is read.
const (
	figuresOf   = 24  // hours, where nobody says
	figuresMost = 168 // runs are kept for a week
)

// figure is what is known of the calls of one tool.
type figure struct {
	Tool   string `json:"tool"`
	Calls  int    `json:"calls"`
	Failed int    `json:"failed"`
	// Asked is how often a call stopped to ask a person: an attempt that did so is no call, and neither its time is among
	// the times nor that until the answer.
	Asked int `json:"asked,omitempty"`
	// PerMinute is how often it was called since the first of the runs ended.
	PerMinute float64 `json:"per_minute"`
	// The times are those of executions and of waits for a worker, in milliseconds; -1 where there were none.
	P50     float64            `json:"p50_ms"`
	P99     float64            `json:"p99_ms"`
	WaitP50 float64            `json:"wait_p50_ms"`
	WaitP99 float64            `json:"wait_p99_ms"`
	Codes   map[fault.Code]int `json:"codes,omitempty"`
}

// figures are those of a tenant's tools.
type figures struct {
	Tools []figure `json:"tools"`
	// Others is what the calls of tools came to that are not told apart, since there are too many.
	Others *figure `json:"others,omitempty"`
	// Runs is how many runs they are made of, LeftOut how many of that time say nothing of their calls.
	Runs    int       `json:"runs"`
	LeftOut int       `json:"left_out,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when the first of the runs ended
	Now     time.Time `json:"now"`
}

// figuresFrom makes them of sums over a tenant's runs.
func figuresFrom(sums tally.Figures, now time.Time) *figures {
	out := &figures{Tools: []figure{}, Runs: sums.Runs, LeftOut: sums.LeftOut, Since: sums.Since.UTC(), Now: now}
	minutes := max(1, now.Sub(sums.Since).Minutes())
	of := func(name string, c *outcome.Calls) figure {
		return figure{
			Tool: name, Calls: c.Calls, Failed: c.Failed, Asked: c.Asked, PerMinute: tenths(float64(c.Calls) / minutes), Codes: c.Codes,
			P50: tenths(c.Ran.Quantile(0.5)), P99: tenths(c.Ran.Quantile(0.99)),
			WaitP50: tenths(c.Waited.Quantile(0.5)), WaitP99: tenths(c.Waited.Quantile(0.99)),
		}
	}
	for name, c := range sums.Tools {
		out.Tools = append(out.Tools, of(name, c))
	}
	if sums.Others != nil {
		others := of("", sums.Others)
		out.Others = &others
	}
	slices.SortFunc(out.Tools, func(a, b figure) int { return cmp.Or(b.Calls-a.Calls, cmp.Compare(a.Tool, b.Tool)) })
	return out
}
