package orchestrator

import (
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// When the timeout of a step begins and ends, as docs/plan-language.md says it, by the times at which servers stored what
// happened. The observer does not know when a step was ready, but that it was not before all that it waits for was decided,
// a person had approved of it and there was room, and that it was when its first attempt was sent. So no allowance may be
// over before the earliest of its ends, and nothing may be sent that could begin after the latest.

// simTimes is when things happened in a run, by step token.
type simTimes struct {
	started  time.Time
	over     map[string]time.Time // calls of tools: their last record
	sent     map[string]time.Time // calls, and all that they stand in: when the first attempt was sent, or is due
	answered map[string]time.Time
}

// allowance is a timeout that holds for a call: of its step, or of one that it stands in.
type allowance struct {
	token   string
	timeout time.Duration
	from    time.Time // it begins no earlier
}

func noteTime(at *map[string]time.Time, token string, now time.Time) {
	if *at == nil {
		*at = map[string]time.Time{}
	}
	if (*at)[token].IsZero() {
		(*at)[token] = now
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// timed reports whether the observer knows what holds for a run's timeouts: nobody forged its records, and its steps are those
// of its plan from the beginning.
func (x *truth) timed() bool {
	return x.plan != nil && !x.agent && !x.early && x.amendments == nil && !x.times.started.IsZero()
}

// allowances returns the timeouts that hold for a call, the innermost last.
func (x *truth) allowances(token string) (all []allowance) {
	p, from, above := x.plan, x.times.started, ""
	for part := range strings.SplitSeq(token, "/") {
		if above != "" {
			above += "/"
		}
		whole, _, isItem := subjects.SplitItem(above + part)
		n, known := p.Index(whole[len(above):])
		if !known { // an iteration: the timeout is that of its loop
			p, above = p.Steps[0].Plan, above+part
			if p == nil {
				return all
			}
			continue
		}
		s := &p.Steps[n]
		for _, d := range s.Deps {
			if dep := &p.Steps[d]; dep.Plan == nil && dep.ForEach == nil {
				from = later(from, x.times.over[above+dep.ID])
			}
		}
		each := s.Repeat == nil && (s.Approval == nil || !s.Approval.All)
		if each || s.Approval != nil && s.Approval.All {
			from = later(from, x.times.answered[whole])
		}
		if above += part; isItem && each {
			from = later(from, x.times.answered[above])
		}
		if s.Plan == nil && (isItem || s.ForEach == nil) {
			from = later(from, x.roomFor(above))
		}
		if s.Timeout > 0 && !s.Ask {
			all = append(all, allowance{above, s.Timeout, from})
		}
		if p = s.Plan; p == nil {
			break
		}
	}
	return all
}

// roomFor returns the last moment in which there was no room for a call: so many others had been sent and were not decided as
// may be ready at once in a plan that it stands in. Once it is decided itself it waits for none; what an owner sends of it that
// has not heard of that yet comes late.
func (x *truth) roomFor(token string) (from time.Time) {
	if len(x.inquiries.count) > 0 { // what waits for a person takes no room
		return from
	}
	own := x.times.over[token]
	full := func(p *plan.Plan, within string) {
		if p.Concurrency == 0 {
			return
		}
		for one, end := range x.times.over {
			others := 0
			for other, ended := range x.times.over {
				sent := x.times.sent[other]
				if other != token && strings.HasPrefix(other, within) && !sent.IsZero() && sent.Before(end) && !ended.Before(end) {
					others++
				}
			}
			if waited := own.IsZero() || end.Before(own); waited && one != token && others >= p.Concurrency {
				from = later(from, end)
			}
		}
	}
	full(x.plan, "")
	for i, c := range token {
		if c != '/' {
			continue
		}
		if s, isItem, ok := x.plan.Find(token[:i]); ok && s.Plan != nil && isItem == (s.ForEach != nil) && s.Repeat == nil {
			full(s.Plan, token[:i+1])
		}
	}
	return from
}

// tookTooLong checks that a step which took longer than its timeout did.
func (t *truths) tookTooLong(x *truth, token string, r *wire.Result, at time.Time) {
	if r.Error == nil || r.Error.Code != fault.Timeout || !strings.Contains(r.Error.Message, "its timeout of") || !x.timed() {
		return
	}
	all := x.allowances(token)
	if len(all) == 0 || all[len(all)-1].token != token {
		t.w.violate("I16", "%s failed since it took too long, and has no timeout", token)
		return
	}
	own := all[len(all)-1]
	t.w.stats["a step took longer than its timeout"]++
	if own.from.After(x.times.started) {
		t.w.stats["the same, of one that had waited for something"]++
	}
	if end := own.from.Add(own.timeout); at.Before(end) {
		t.w.violate("I16", "%s took longer than its timeout of %v, which was not over before %v more", token, own.timeout, end.Sub(at))
	}
}

// mayBegin checks until when an attempt that is sent may begin: not when a timeout is over that holds for it, and until the
// first of them is.
func (t *truths) mayBegin(x *truth, m *message, due time.Time) {
	if !x.timed() {
		return
	}
	token, step := m.attempt.Step, simStep(m)
	for i := 0; i <= len(token); i++ {
		if i == len(token) || token[i] == '/' {
			noteTime(&x.times.sent, token[:i], due)
		}
	}
	until, first := step.Deadline, x.submitted.Add(x.plan.Timeout)
	for _, a := range x.allowances(token) {
		t.w.stats["an attempt was sent that has a timeout"]++
		latest := x.times.sent[a.token].Add(a.timeout)
		if until.IsZero() || until.After(latest) {
			t.w.violate("I16", "%s may begin until %v, though of the timeout of %s the last is over at %v", token, until, a.token, latest)
		}
		if end := a.from.Add(a.timeout); end.Before(first) {
			first = end
		}
	}
	if !until.IsZero() && until.Before(first) {
		t.w.violate("I16", "%s may begin until %v, though its first timeout is over at %v", token, until, first)
	}
}

func simStep(m *message) wire.Step {
	step, err := wire.ParseStep(m.header)
	if err != nil {
		panic(err)
	}
	return step
}
