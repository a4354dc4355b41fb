package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// oneOf reads an option that is one of a few words, and gives its number; the first is the default.
func (p *parser) oneOf(n int32, parent place, words ...string) int {
	if n == 0 {
		return 0
	}
	if p.tape[n].Kind == jsontape.String {
		s := p.str(n)
		for i, w := range words {
			if s == w {
				return i
			}
		}
	}
	p.invalid(p.below(parent, n), p.wordHint(n, words), `must be "`+strings.Join(words, `" or "`)+`", but is `+p.shown(n))
	return 0
}

// duration reads a timeout.
func (p *parser) duration(n int32, parent place) (time.Duration, bool) {
	if n == 0 {
		return 0, false
	}
	at := p.below(parent, n)
	const hint = `write a duration as a string: "500ms", "30s", "5m" or "2h"`
	if p.tape[n].Kind != jsontape.String {
		seconds := hint
		if p.tape[n].Kind == jsontape.Number {
			seconds = fmt.Sprintf(`write "%ss" for %[1]s seconds, "%[1]sms" for milliseconds`, p.shown(n))
		}
		p.invalid(at, seconds, "must be a string, but is "+p.shown(n))
		return 0, false
	}
	d, err := time.ParseDuration(p.str(n))
	if err != nil {
		p.invalid(at, hint, p.shown(n)+" is not a duration")
		return 0, false
	}
	if d < MinTimeout || d > MaxTimeout {
		p.invalid(at, hint, "must be 1ms to 168h, but is "+p.shown(n))
		return 0, false
	}
	return d, true
}

// invalid reports a wrong value of a known field.
func (p *parser) invalid(at place, hint, message string) {
	if p.col.wants(fault.InvalidValue) {
		p.col.add(fault.InvalidValue, at.String(), message, hint)
	}
}

// shown returns a value as it stands in the plan, for a message: scalars themselves, others by their kind.
func (p *parser) shown(n int32) string {
	v := p.tape[n]
	if v.Kind == jsontape.Object || v.Kind == jsontape.Array {
		return v.Kind.String()
	}
	return clip(p.src[v.Start:v.End])
}

// DefaultOpenFor is how long an open plan that says nothing else waits for the next amendment.
const DefaultOpenFor = 10 * time.Minute

// readOpen reads whether the plan waits for amendments, and for how long.
func readOpen(p *parser, n, within int32, here place) {
	if n != 0 {
		p.second = true
		p.plan.Open = p.flag(n, here)
	}
	wait, ok := p.duration(within, here)
	switch {
	case within != 0 && !p.plan.Open:
		p.second = true
		p.invalid(p.below(here, within), `write "open": true beside it, or remove it`, `"open_for" is of an open plan`)
	case p.plan.Open && p.plan.Schedule == Waves:
		p.invalid(p.below(here, n), `leave "schedule" out`, "a plan that is scheduled by waves can't be amended, so it can't be open")
	case p.plan.Open && ok:
		p.plan.OpenFor = wait
	case p.plan.Open:
		p.plan.OpenFor = DefaultOpenFor
	}
}
