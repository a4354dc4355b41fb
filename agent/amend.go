package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
)

// Amend returns an answer with steps more, which somebody adds while it runs: as though the planner had written them
// behind its own. The same is asked of them as of those: only entries may be called, also in plans within them, and ids such
// as r0 are refused. One that has the id of a step which is discarded takes its place, behind all others. from is where
// among the calls the added ones begin. The places of problems are those of the added steps, "/add/0/tool".
//
// add are as a plan has them, or as an answer does: what Added returns is what comes to the same without the answer's words.
func (a *Answer) Amend(add []json.RawMessage, discarded func(id string) bool, f *Facts, earlier [][]string) (b *Answer, from int, report plan.Report) {
	now := *a
	now.Again = maps.Clone(a.Again)
	r := &reading{said: &said{}, f: f, earlier: earlier, a: &now}
	list := value{raw: arrayOf(add), at: "/add"}
	within, ids := map[int]bool{}, map[string]bool{}
	var added []json.RawMessage
	for i, v := range list.items() {
		step := r.step(i, v, within)
		added = append(added, step)
		ids[idOf(step)] = true
	}
	r.asks(list)
	names, members := value{raw: plan.Compiled(a.Fragment)}.members() // which may be of the state dialect
	var steps, rounds []json.RawMessage
	there := map[string]bool{}
	for _, v := range members["steps"].items() {
		switch id := idOf(v.raw); {
		case roundID.MatchString(id):
			rounds, there[id] = append(rounds, v.raw), true
		case !ids[id] || !discarded(id):
			steps = append(steps, v.raw)
		}
	}
	own := len(steps)
	for _, round := range r.rounds(map[string]value{"steps": {raw: arrayOf(added)}}) {
		if !there[idOf(round)] {
			rounds = append(rounds, round)
		}
	}
	var doc objectWriter
	for _, name := range names {
		if name == "steps" {
			doc.add(name, arrayOf(slices.Concat(steps, added, rounds)))
		} else {
			doc.add(name, members[name].raw)
		}
	}
	now.Plan, now.Calls = nil, nil
	r.parse(doc.json(), own+len(added), func(path string) string { return addedPlace(path, own, within) })
	if report = r.closed(); len(report.Problems) > 0 || now.Plan == nil {
		return nil, 0, report
	}
	for own > 0 && from < len(now.Calls) {
		if from++; from == len(now.Calls) || now.Calls[from].Within < 0 {
			own--
		}
	}
	now.Commands = realigned(a, &now, ids)
	return &now, from, report
}

// Added returns the steps that an amended answer has more than another, as its fragment has them: those of ids that were
// added, and those that stand for earlier rounds.
func (a *Answer) Added(before *Answer, ids map[string]bool) (steps []json.RawMessage) {
	_, members := value{raw: a.Fragment}.members()
	for _, v := range members["steps"].items() {
		id := idOf(v.raw)
		_, was := before.Plan.Index(id)
		if ids[id] || roundID.MatchString(id) && !was {
			steps = append(steps, v.raw)
		}
	}
	return steps
}

// IsRound reports whether an id is one by which steps refer to an earlier round.
func IsRound(id string) bool { return roundID.MatchString(id) }

// idOf returns the id of a step as it stands in a plan; empty for what has none.
func idOf(step json.RawMessage) string {
	_, members := value{raw: step}.members()
	v := members["id"]
	return readable(v.raw, v.kind() == jsontape.String)
}

// addedPlace returns the place among what is added of a place in a fragment that has so many steps before.
func addedPlace(path string, own int, within map[int]bool) string {
	rest, in := strings.CutPrefix(path, "/steps/")
	number, behind, _ := strings.Cut(rest, "/")
	i := 0
	for _, c := range []byte(number) {
		i = i*10 + int(c-'0')
	}
	if !in || i < own { // a step that was there lacks what was written again
		return "/add"
	}
	at := string(jsontape.AppendIndex([]byte("/add"), i-own))
	if behind == "" {
		return at
	}
	if within[i-own] {
		return at + renamed("/"+behind, "/plan", "/arguments")
	}
	return at + "/" + behind
}

// realigned returns the commands of an amended answer: one for each of its own calls, where the answer before had such.
func realigned(before, now *Answer, again map[string]bool) (all []Command) {
	if len(before.Commands) == 0 {
		return nil
	}
	of, own := map[string]Command{}, 0
	for _, c := range before.Calls {
		if c.Within < 0 && own < len(before.Commands) {
			of[c.ID] = before.Commands[own]
			own++
		}
	}
	for _, c := range now.Calls {
		if c.Within >= 0 {
			continue
		}
		command, was := of[c.ID]
		if !was || again[c.ID] {
			command = Command{Purpose: "Use " + c.Entry, Tool: c.Entry, Arguments: c.Arguments}
		}
		all = append(all, command)
	}
	return all
}
