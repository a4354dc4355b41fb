package index

import (
	"maps"
	"strings"
	"time"

	"github.com/stepjet/stepjet/outcome"
)

// What calls of tools took and came to is summed up by the hour in which their runs ended, so that it can be told of any
// stretch of time, and what expires goes with the index.

// slot is one hour of one tenant.
type slot struct {
	tools   map[string]*outcome.Calls
	first   time.Time // when the first of its runs ended
	runs    int
	leftOut int // runs that called something, and say nothing of it
}

// Figures is what the calls of a tenant's tools took and came to.
type Figures struct {
	Tools map[string]*outcome.Calls
	// Since is when the first of the runs ended that it is made of; Runs is how many these are, LeftOut how many more say
	// nothing of their calls.
	Since         time.Time
	Runs, LeftOut int
}

// sum adds what a run that is over says of its calls. The caller holds the lock.
func (ix *Index) sum(l *Line) {
	hours := ix.calls[l.Tenant()]
	if hours == nil {
		hours = map[int64]*slot{}
		ix.calls[strings.Clone(l.Tenant())] = hours
	}
	hour := l.Finished.Unix() / int64(time.Hour/time.Second)
	s := hours[hour]
	if s == nil {
		s = &slot{tools: map[string]*outcome.Calls{}, first: l.Finished}
		hours[hour] = s
	}
	if l.Finished.Before(s.first) {
		s.first = l.Finished
	}
	if len(l.calls) == 0 {
		if len(l.Tools) > 0 {
			s.leftOut++
		}
		return
	}
	s.runs++
	for name, calls := range l.calls {
		c := s.tools[name]
		if c == nil {
			c = &outcome.Calls{}
			s.tools[name] = c
		}
		c.Merge(calls)
	}
}

// Figures sums up the runs of a tenant that ended in the hours since a moment, that of the moment included.
func (ix *Index) Figures(tenant string, since time.Time) Figures {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	out := Figures{Tools: map[string]*outcome.Calls{}}
	for hour, s := range ix.calls[tenant] {
		if hour < since.Unix()/int64(time.Hour/time.Second) {
			continue
		}
		out.Runs, out.LeftOut = out.Runs+s.runs, out.LeftOut+s.leftOut
		if s.runs > 0 && (out.Since.IsZero() || s.first.Before(out.Since)) {
			out.Since = s.first
		}
		for name, calls := range maps.All(s.tools) {
			c := out.Tools[name]
			if c == nil {
				c = &outcome.Calls{}
				out.Tools[name] = c
			}
			c.Merge(calls)
		}
	}
	return out
}
