package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// A planner may hand over steps before its answer is whole. They are admitted as that answer is, on the facts of the
// beginning of the round, and what can't begin yet waits for the answer: nothing is refused, since what is wrong with a step
// is told once all of the answer is there.

// HandedOver is what becomes of steps that a planner hands over.
type HandedOver struct {
	// Add are those that begin, as they are recorded, behind them those that stand for earlier rounds; Round is what was decided
	// of them.
	Add   []json.RawMessage
	Round *wire.AmendedRound
	// Reply has all of them.
	Reply wire.HandedOver
}

// HandOver decides which steps begin that the planner of the last round hands over. stands are the ids of all that stands in
// their scope already, contracts those that the run froze. The error is what is wrong with the agent's input.
func HandOver(l *Loop, stands []string, add []json.RawMessage, contracts map[string]*tool.Contract) (*HandedOver, *fault.Error) {
	round := len(l.Rounds) - 1
	f, err := l.begin(round)
	if err != nil {
		return nil, err
	}
	h := &HandedOver{Round: &wire.AmendedRound{}}
	all := slices.Clone(l.Rounds[round].Handed)
	was := len(all)
	add = inOrder(add)
	for more := true; more; { // where order was not to be had
		before := len(all)
		add, all = admitOver(l, h, stands, all, add, contracts, f)
		more = len(all) > before && len(add) > 0
	}
	if len(all) == was {
		return h, nil
	}
	recordBegun(l, h, readBegun(l, all, round, f), round, was, stands)
	return h, nil
}

// inOrder puts each of the steps behind those that it refers to, which have to begin before it, so that going through them once is
// enough: each look at one reads all that have begun.
func inOrder(steps []json.RawMessage) []json.RawMessage {
	named := map[string]int{}
	for i := len(steps) - 1; i >= 0; i-- {
		named[agent.StepID(steps[i])] = i
	}
	ordered, seen := make([]json.RawMessage, 0, len(steps)), make([]bool, len(steps))
	var put func(i int)
	put = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		var step struct {
			After []string `json:"depends_on"`
		}
		_ = json.Unmarshal(steps[i], &step) // of what is none, order says nothing
		for _, m := range references.FindAllSubmatch(steps[i], -1) {
			step.After = append(step.After, string(m[1]))
		}
		for _, id := range step.After {
			if k, is := named[id]; is {
				put(k)
			}
		}
		ordered = append(ordered, steps[i])
	}
	for i := range steps {
		put(i)
	}
	return ordered
}

// references are those to steps, as they stand in arguments and conditions.
var references = regexp.MustCompile(`\$[a-z]+:([A-Za-z0-9_-]+)`)

// admitOver goes through steps once, and returns those that can't begin yet, and all that have begun.
func admitOver(l *Loop, h *HandedOver, stands []string, all, add []json.RawMessage, contracts map[string]*tool.Contract, f *agent.Facts) (left, begun []json.RawMessage) {
	round := len(l.Rounds) - 1
	h.Reply.Held = nil
	for _, step := range add {
		id := agent.StepID(step)
		if k := slices.IndexFunc(all, func(s json.RawMessage) bool { return agent.StepID(s) == id }); k >= 0 && agent.SameStep(all[k], asRecorded(l, step, all[:k], round, f)) {
			if !slices.Contains(h.Reply.Begun, id) {
				h.Reply.Begun = append(h.Reply.Begun, id)
			}
			continue
		}
		if slices.Contains(stands, id) || slices.ContainsFunc(all, func(s json.RawMessage) bool { return agent.StepID(s) == id }) {
			h.Reply.Held, left = append(h.Reply.Held, wire.Held{ID: id, Why: "another step was handed over under this id"}), append(left, step)
			continue
		}
		with := append(slices.Clip(all), step)
		if why := waitsForTheEnd(l, readBegun(l, with, round, f), round, id, contracts); why != "" {
			h.Reply.Held, left = append(h.Reply.Held, wire.Held{ID: id, Why: why}), append(left, step)
			continue
		}
		all = with
		h.Reply.Begun = append(h.Reply.Begun, id)
	}
	return left, all
}

// recordBegun notes which steps begin, and what was decided of them: all that was not there before.
func recordBegun(l *Loop, h *HandedOver, x *reading, round, was int, stands []string) {
	d := &wire.Round{Waits: map[string][]string{}, Tools: map[string]string{}}
	own := 0
	for i, c := range x.answer.Calls {
		if c.Within >= 0 {
			continue
		}
		if own++; own <= was {
			continue
		}
		l.named(d, round, x, i)
		for _, other := range x.admits.Waits[i] {
			d.Waits[c.ID] = append(d.Waits[c.ID], x.paths[other])
		}
		if e := l.entry(round, x, i); e.Direct {
			d.Direct = append(d.Direct, c.ID)
		}
	}
	h.Round.Tools, h.Round.Waits, h.Round.Direct = d.Tools, d.Waits, d.Direct
	earlier := l.earlier(round)
	for k, step := range x.answer.Steps() {
		id := agent.StepID(step)
		switch {
		case !agent.IsRound(id) && k >= was, agent.IsRound(id) && !slices.Contains(stands, id):
			h.Add = append(h.Add, step)
		}
		if agent.IsRound(id) && !slices.Contains(stands, id) { // all of it: what is handed over later may refer to more
			if h.Round.Earlier == nil {
				h.Round.Earlier = map[string][]string{}
			}
			h.Round.Earlier[id] = earlier[roundOf(id)]
		}
	}
}

// asRecorded returns a step as it is recorded behind others: without the answer's own words. One that can't be read stays as
// it is.
func asRecorded(l *Loop, step json.RawMessage, behind []json.RawMessage, round int, f *agent.Facts) json.RawMessage {
	a, _ := agent.Begun(append(slices.Clip(behind), step), f, l.earlier(round))
	if a == nil {
		return step
	}
	return a.Steps()[len(behind)]
}

// waitsForTheEnd says why a step can't begin before the answer is whole; empty for one that can.
func waitsForTheEnd(l *Loop, x *reading, round int, id string, contracts map[string]*tool.Contract) string {
	if len(x.report.Problems) > 0 {
		return x.report.Problems[0].Message
	}
	if l.Final {
		return "this is the last answer, and nothing runs any more"
	}
	if calls, left, over := x.overBudget(l.Usage(round), l.Definition.Advance); over {
		return fmt.Sprintf("with it the round would make %d calls, and the budget leaves %d", calls, left)
	}
	i, known := x.places[id]
	n, there := x.answer.Plan.Index(id)
	if !known || !there {
		return "it is no step"
	}
	c, s, e := x.answer.Calls[i], &x.answer.Plan.Steps[n], l.entry(round, x, i)
	_, settled := x.admits.Settled[i]
	switch {
	case c.Entry == "" || c.Repeated || s.Plan != nil:
		return "it is not one call of a tool"
	case e == nil || e.Kind != agent.KindTool || e.Selects() != "" || l.Templates[e.Tool] != nil:
		return "no worker is handed it"
	case e.Destructive:
		return "its tool is hinted destructive"
	case s.Approval != nil || s.Ask || contracts[e.Tool] == nil || contracts[e.Tool].Approval != "" || contracts[e.Tool].Asks:
		return "a person may be asked about it"
	case settled:
		return "it has come to something already"
	case x.answer.Again[id]:
		return "it is to be made once more"
	}
	return ""
}
