package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// roundID is the id that an earlier round has in references.
var roundID = regexp.MustCompile(`^r[0-9]+$`)

// roundsIn finds the earlier rounds that a text refers to.
var roundsIn = regexp.MustCompile(`\$(?:\{?(?:ref|error|status):)r([0-9]{1,4})\b`)

// refers finds what may be a reference.
var refers = regexp.MustCompile(`\$\{?(?:ref|error|status):`)

// step takes one step as the plan language has it: without "again", and a call of execute_tool_plan as a plan of its own.
func (r *reading) step(i int, v value, within map[int]bool) json.RawMessage {
	if v.kind() != jsontape.Object {
		return v.raw // package plan says what is wrong
	}
	names, members := v.members()
	id := readable(members["id"].raw, members["id"].kind() == jsontape.String)
	if roundID.MatchString(id) {
		r.problem(fault.InvalidID, v.at+"/id", fmt.Sprintf("write %q", "step_"+id), "%q is how steps refer to an earlier round", id)
	}
	handsIn := r.handsIn(members)
	within[i] = handsIn
	var o objectWriter
	for _, name := range names {
		switch m := members[name]; {
		case name == "again":
			r.again(id, m)
		case handsIn && name == "tool":
		case handsIn && name == "arguments":
			o.add("plan", unquoted(m))
		default:
			o.add(name, m.raw)
		}
	}
	return o.json()
}

// again notes that a call is to be made although it was before.
func (r *reading) again(id string, v value) {
	if r.flag(v) && id != "" {
		if r.a.Again == nil {
			r.a.Again = map[string]bool{}
		}
		r.a.Again[id] = true
	}
}

// handsIn reports whether a step hands in a plan, and may.
func (r *reading) handsIn(members map[string]value) bool {
	name := readable(members["tool"].raw, members["tool"].kind() == jsontape.String)
	e := r.f.Entry(name)
	return e != nil && e.Kind == KindPlan && members["arguments"].there()
}

// unquoted returns an object that may be written as a string.
func unquoted(v value) json.RawMessage {
	if v.kind() == jsontape.String {
		if inner := json.RawMessage(jsontape.Unquoted(v.raw)); json.Valid(inner) {
			return inner
		}
	}
	return v.raw
}

// rounds are steps that stand for the earlier rounds that an answer refers to. Their results are there already.
func (r *reading) rounds(members map[string]value) (steps []json.RawMessage) {
	var named []int
	for _, key := range []string{"steps", "output"} {
		for _, m := range roundsIn.FindAllSubmatch(members[key].raw, -1) {
			if n, err := strconv.Atoi(string(m[1])); err == nil && n < len(r.earlier) && strconv.Itoa(n) == string(m[1]) {
				named = append(named, n)
			}
		}
	}
	slices.Sort(named)
	for _, n := range slices.Compact(named) {
		id := "r" + strconv.Itoa(n)
		steps = append(steps, marshal(map[string]string{"id": id, "tool": id}))
	}
	return steps
}

// planPlace returns the place in an answer of a place in its fragment.
func planPlace(path string, within map[int]bool) string {
	rest, in := strings.CutPrefix(path, "/steps/")
	number, behind, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(number)
	if !in || err != nil || !within[i] {
		return path
	}
	return "/steps/" + number + renamed("/"+behind, "/plan", "/arguments")
}

// renamed replaces the beginning of a place.
func renamed(path, from, to string) string {
	if rest, is := strings.CutPrefix(path, from); is && (rest == "" || rest[0] == '/') {
		return to + rest
	}
	return path
}

// parse reads a fragment, and tells what is wrong with it in the places of the answer. own is how many of its steps are
// the answer's.
func (r *reading) parse(body []byte, own int, place func(string) string) {
	p, told := plan.Parse(body, entryCatalog{r.f, r.earlier})
	for _, x := range told.Problems {
		x.Path = place(x.Path)
		for i := range x.Paths {
			x.Paths[i] = place(x.Paths[i])
		}
		r.noRound(&x)
		r.Problems = append(r.Problems, x)
	}
	for _, x := range told.Warnings {
		x.Path = place(x.Path)
		r.Warnings = append(r.Warnings, x)
	}
	if p == nil {
		return
	}
	own = min(own, len(p.Steps))
	r.a.Fragment, r.a.Plan = body, p
	r.a.Calls = flatten(nil, p, own, -1)
}

// noRound says of a reference to a round that is not over which rounds there are.
func (r *reading) noRound(p *fault.Problem) {
	rest, is := strings.CutPrefix(p.Message, `there is no step "r`)
	n, err := strconv.Atoi(strings.TrimSuffix(rest, `"`))
	if !is || err != nil || n < len(r.earlier) || p.Code != fault.UnknownRef {
		return
	}
	const own = `refer to steps of this round by their ids alone, "$ref:ID"`
	hint := ""
	switch now := len(r.earlier); {
	case n == now:
		hint = fmt.Sprintf("r%d is this round itself: %s", now, own)
	case now == 0:
		hint = "this is the first round, so there is none before it; " + own
	case now == 1:
		hint = "the only round before this one is r0; " + own
	default:
		hint = fmt.Sprintf("the rounds before this one are r0 to r%d; %s", now-1, own)
	}
	if strings.Count(p.Hint, "$ref:") == 1 { // one step that may have been meant
		hint = p.Hint + " " + hint
	}
	p.Hint = hint
}

// asks refuses questions in steps, and in plans within them, of a planner that has no entry for them: package plan lets
// every plan ask.
func (r *reading) asks(steps value) {
	for _, v := range steps.items() {
		_, m := v.members()
		r.asked(m["tool"])
		if r.handsIn(m) {
			m["plan"] = value{unquoted(m["arguments"]), m["arguments"].at}
		}
		if m["plan"].kind() == jsontape.Object {
			_, inner := m["plan"].members()
			r.asks(inner["steps"])
		}
	}
}

// asked refuses the name of the tool that asks, where there is no entry for it.
func (r *reading) asked(v value) {
	if v.kind() != jsontape.String || jsontape.Unquoted(v.raw) != plan.AskTool {
		return
	}
	if e := r.f.Entry(plan.AskTool); e == nil || e.Kind != KindAsk {
		r.problem(fault.UnknownTool, v.at, thereAre(plan.AskTool, entryCatalog{r.f, nil}.Names()), "there is no tool %q", plan.AskTool)
	}
}

// flatten appends the calls of a plan, each before those of its own plan.
func flatten(calls []Call, p *plan.Plan, own, within int) []Call {
	place := make([]int, own)
	for i := range own {
		s := &p.Steps[i]
		does := s.Does()
		place[i] = len(calls)
		c := Call{ID: s.ID, Within: within, Repeated: s.ForEach != nil || s.Repeat != nil, Listed: s.ForEach != nil, Times: 1}
		if s.Repeat != nil {
			c.Times = s.Repeat.Max
		}
		if s.ForEach != nil {
			if items, err := p.Items(i, func(int) ([]byte, bool) { return nil, false }); err == nil { // it stands there
				c.Times *= len(items)
			}
		}
		if !does.Value && does.Plan == nil {
			c.Entry = does.Tool
		}
		if c.Entry != "" && !s.HasRefs && !s.TakesInput && !s.TakesLast && s.ForEach == nil {
			c.Arguments, _ = p.Arguments(i, func(int) ([]byte, bool) { return nil, false })
		}
		calls = append(calls, c)
		if does.Plan != nil {
			calls = flatten(calls, does.Plan, len(does.Plan.Steps), place[i])
		}
	}
	for i := range own {
		for _, d := range p.Steps[i].Deps {
			if d < own {
				calls[place[i]].After = append(calls[place[i]].After, place[d])
			}
		}
	}
	return calls
}

// entryCatalog is what an answer may call: the entries, by the names that the planner knows, and earlier rounds as steps
// that have run.
type entryCatalog struct {
	f       *Facts
	earlier [][]string
}

// Lookup returns an entry, or an earlier round.
func (c entryCatalog) Lookup(name string) (plan.Tool, bool) {
	if n := c.round(name); n >= 0 {
		properties := map[string]any{}
		for _, id := range c.earlier[n] {
			properties[id] = map[string]any{}
		}
		return plan.Tool{Output: declared(marshal(map[string]any{"type": "object", "properties": properties, "additionalProperties": false}))}, true
	}
	e := c.f.Entry(name)
	if e == nil || e.Kind == KindPlan {
		return plan.Tool{}, false
	}
	return plan.Tool{Input: c.takes(e), Output: e.output()}, true
}

// round returns the number of the earlier round that a name is of; -1 for none.
func (c entryCatalog) round(name string) int {
	if !roundID.MatchString(name) {
		return -1
	}
	if n, err := strconv.Atoi(name[1:]); err == nil && n < len(c.earlier) {
		return n
	}
	return -1
}

// Names returns the names of the entries that are shown.
func (c entryCatalog) Names() (all []string) {
	for e := range c.f.entries {
		if c.f.shown(e) && e.Kind != KindPlan {
			all = append(all, e.Name)
		}
	}
	slices.Sort(all)
	return all
}

// takes is the schema of what a planner gives an entry now; nil accepts anything.
func (c entryCatalog) takes(e *Entry) *tool.Schema {
	if s := c.f.show(e); string(s.InputSchema) != string(e.InputSchema) {
		return declared(s.InputSchema)
	}
	return e.input()
}

// commandIDs names steps by their tools: the name, then that with _2 and so on.
func commandIDs(commands []Command) (ids []string) {
	taken := map[string]bool{}
	for _, c := range commands {
		base := strings.Map(func(r rune) rune {
			if r < 128 && subjects.IsPlain(byte(r)) {
				return r
			}
			return '_'
		}, c.Tool)
		id := base[:min(len(base), subjects.MaxStepID)]
		if roundID.MatchString(id) {
			id = "step_" + id
		}
		base = id
		for n := 2; taken[id]; n++ {
			suffix := "_" + strconv.Itoa(n)
			id = base[:min(len(base), subjects.MaxStepID-len(suffix))] + suffix
		}
		taken[id] = true
		ids = append(ids, id)
	}
	return ids
}

// InlineAgent refuses an agent that an answer defines: what a planner may reach, its author has said.
func (c entryCatalog) InlineAgent(string, string, []byte) (plan.Tool, plan.Report) {
	return plan.Tool{}, plan.Report{Problems: []fault.Problem{{
		Code: fault.InvalidValue, Message: "an answer defines no agents: only the tools that are offered may be called",
		Hint: "call one of them: " + thereAre("", c.Names()),
	}}}
}
