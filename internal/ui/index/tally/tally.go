// Package tally sums up what the calls of tools took and came to, so that it can be told of any stretch of the week that
// runs are kept for. It does no I/O, and knows no clock: the latest run that it was told of says how late it is.
//
// What it takes is bounded, whatever it is told: a cell is what one tool's calls came to in one stretch of time, as a few
// dozen bytes. A stretch of the last day is an hour, one of before eight. Where all cells together would take more than
// Most bytes, stretches become longer, those of before first; once they can't, tools that nobody has called yet are
// counted together, as others of their tenant. What is told within the last stretches is what was told to it, and what is
// told of before begins with a stretch: up to eight hours earlier than was asked for, and more where stretches are longer.
package tally

import (
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

const (
	// Most is what cells take together, in bytes, before stretches become longer.
	Most = 16 << 20

	day     = 24  // hours: so old is what the page asks for
	coarse  = 8   // hours of a stretch of before
	longest = 256 // hours of a stretch, more than a week

	// What a cell and a tool take beside their bytes and names: headers, what maps keep, and what allocations waste.
	cellCost   = 56
	seriesCost = 192
)

// Tally is the sums. It is not safe for several goroutines.
type Tally struct {
	most    int
	tenants map[string]*tenant
	codes   codes
	newest  int64    // the latest hour that a run ended in
	width   [2]int64 // of stretches, in hours: of the last day, and of before
	bytes   int
	scratch *sums
}

// tenant is what is known of one tenant's calls.
type tenant struct {
	tools   map[string]*series
	others  series
	periods []period
}

// period is what is known of the runs of a stretch.
type period struct {
	from    int64
	first   time.Time // when the first of them ended
	runs    int
	leftOut int // more that say nothing of their calls
}

// add adds what is known of other runs of the stretch.
func (p *period) add(o *period) {
	if o.runs > 0 && (p.runs == 0 || o.first.Before(p.first)) {
		p.first = o.first
	}
	p.runs, p.leftOut = p.runs+o.runs, p.leftOut+o.leftOut
}

// series is what the calls of a tool came to, by stretches.
type series struct{ cells []cell }

// cell is the sums of a stretch that begins in an hour.
type cell struct {
	from   int64
	packed []byte
}

// New returns a tally of nothing.
func New() *Tally { return newTally(Most) }

func newTally(most int) *Tally {
	return &Tally{most: most, tenants: map[string]*tenant{}, width: [2]int64{1, coarse}, scratch: newSums()}
}

// Add takes what a run says that ended at a time. No calls are those of a run that called something and does not say what
// came of it.
func (t *Tally) Add(of string, ended time.Time, calls map[string]*outcome.Calls) {
	x := t.tenants[of]
	if x == nil {
		x = &tenant{tools: map[string]*series{}}
		t.tenants[strings.Clone(of)] = x
	}
	hour := hourOf(ended)
	if hour > t.newest {
		t.newest = hour
		t.fold()
	}
	p := x.period(t.begin(hour))
	if len(calls) == 0 {
		p.leftOut++
		return
	}
	p.add(&period{first: ended, runs: 1})
	for name, c := range calls {
		t.add(t.series(x, name), hour, c)
	}
	for t.bytes > t.most && t.lengthen() {
		t.fold()
	}
}

// series returns what calls of a tool are counted in: the others, where there is no room for one more.
func (t *Tally) series(x *tenant, name string) *series {
	s := x.tools[name]
	if s == nil {
		if t.bytes > t.most && t.width[0] == longest {
			return &x.others
		}
		s = &series{}
		x.tools[strings.Clone(name)] = s
		t.bytes += seriesCost + len(name)
	}
	return s
}

func (t *Tally) add(s *series, hour int64, c *outcome.Calls) {
	from := t.begin(hour)
	i, there := slices.BinarySearchFunc(s.cells, from, func(c cell, from int64) int { return int(c.from - from) })
	if !there {
		s.cells = slices.Insert(s.cells, i, cell{from: from})
		t.bytes += cellCost
	}
	t.scratch.reset()
	t.scratch.unpack(s.cells[i].packed)
	t.scratch.add(c, &t.codes)
	t.pack(&s.cells[i])
}

// pack puts what was added up into a cell.
func (t *Tally) pack(c *cell) {
	t.bytes -= cap(c.packed)
	c.packed = t.scratch.pack(c.packed)
	t.bytes += cap(c.packed)
}

// begin returns the hour in which the stretch of an hour begins. The last day has one hour more than a day, since it is
// asked for in the middle of one. An hour that grows old becomes a part of a longer stretch, which begins no later.
func (t *Tally) begin(hour int64) int64 {
	from := hour - hour%t.width[0]
	if from < t.newest-day {
		from -= from % t.width[1]
	}
	return from
}

// lengthen makes stretches longer, and reports whether they could be.
func (t *Tally) lengthen() bool {
	for _, i := range []int{1, 0} {
		if t.width[i] < longest {
			t.width[i] *= 2
			return true
		}
	}
	return false
}

// fold puts together what belongs to one stretch by now.
func (t *Tally) fold() {
	for _, x := range t.tenants {
		x.periods = t.foldPeriods(x.periods)
		t.foldCells(&x.others)
		for _, s := range x.tools {
			t.foldCells(s)
		}
	}
}

func (t *Tally) foldCells(s *series) {
	kept := 0
	for i := range s.cells {
		c := s.cells[i]
		from := t.begin(c.from)
		if kept > 0 && s.cells[kept-1].from == from {
			into := &s.cells[kept-1]
			t.scratch.reset()
			t.scratch.unpack(into.packed)
			t.scratch.unpack(c.packed)
			t.pack(into)
			t.bytes -= cellCost + cap(c.packed)
			continue
		}
		c.from = from
		s.cells[kept] = c
		kept++
	}
	clear(s.cells[kept:])
	s.cells = s.cells[:kept]
}

func (t *Tally) foldPeriods(all []period) []period {
	kept := all[:0]
	for _, p := range all {
		p.from = t.begin(p.from)
		if n := len(kept); n > 0 && kept[n-1].from == p.from {
			kept[n-1].add(&p)
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// period returns that of a stretch.
func (x *tenant) period(from int64) *period {
	i, there := slices.BinarySearchFunc(x.periods, from, func(p period, from int64) int { return int(p.from - from) })
	if !there {
		x.periods = slices.Insert(x.periods, i, period{from: from})
	}
	return &x.periods[i]
}

// Figures is what the calls of a tenant's tools took and came to.
type Figures struct {
	Tools map[string]*outcome.Calls
	// Others is the same of tools that are not counted by themselves; nil for none.
	Others *outcome.Calls
	// Since is when the first of the runs ended that it is made of; Runs is how many these are, LeftOut how many more say
	// nothing of their calls.
	Since         time.Time
	Runs, LeftOut int
}

// Figures sums up the runs of a tenant that ended since a moment, and those of the stretch of the moment.
func (t *Tally) Figures(of string, since time.Time) Figures {
	out := Figures{Tools: map[string]*outcome.Calls{}}
	x := t.tenants[of]
	if x == nil {
		return out
	}
	from, all := t.begin(hourOf(since)), period{}
	for _, p := range x.periods {
		if p.from >= from {
			all.add(&p)
		}
	}
	out.Since, out.Runs, out.LeftOut = all.first, all.runs, all.leftOut
	for name, s := range x.tools {
		if c := t.sum(s, from); c != nil {
			out.Tools[name] = c
		}
	}
	out.Others = t.sum(&x.others, from)
	return out
}

// sum returns what the calls of a tool came to since a stretch; nil where there were none.
func (t *Tally) sum(s *series, from int64) *outcome.Calls {
	t.scratch.reset()
	for _, c := range s.cells {
		if c.from >= from {
			t.scratch.unpack(c.packed)
		}
	}
	return t.scratch.calls(&t.codes)
}

func hourOf(at time.Time) int64 { return max(at.Unix(), 0) / int64(time.Hour/time.Second) }

// codes numbers codes of errors: what a run's document says may be of another version, or anybody's.
type codes struct {
	numbers map[fault.Code]int
	names   []fault.Code
}

// number returns that of a code. The last is that of all which come once the others are taken.
func (c *codes) number(code fault.Code) int {
	n, ok := c.numbers[code]
	switch {
	case ok:
		return n
	case len(c.names) == mostCodes-1:
		return mostCodes - 1
	case c.numbers == nil:
		c.numbers = map[fault.Code]int{}
	}
	code = fault.Code(strings.Clone(string(code)))
	n = len(c.names)
	c.numbers[code], c.names = n, append(c.names, code)
	return n
}

func (c *codes) name(number int) fault.Code {
	if number < len(c.names) {
		return c.names[number]
	}
	return "other"
}
