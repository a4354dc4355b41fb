package agents

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// roundID reports whether an id is one by which steps refer to an earlier round.
func roundID(id string) bool { return roundIDs.MatchString(id) }

var roundIDs = regexp.MustCompile(`^r[0-9]+$`)

// Decide returns the record of the last round, whose planner has answered. scope is its token. The error is what the
// agent fails with.
func (l *Loop) Decide(scope string) (*wire.Round, *fault.Error) {
	round := len(l.Rounds) - 1
	x, err := l.answer(round)
	if err != nil {
		return nil, err
	}
	if len(x.report.Problems) == 0 {
		x.report.Problems = append(tooLong(scope, x), l.tooMany(round, x)...)
	}
	if l.Final && x.answer != nil && x.answer.Fragment != nil {
		x.report.Problems = append(x.report.Problems, fault.Problem{
			Code: fault.InvalidValue, Message: "the last answer makes calls, and nothing runs any more",
			Hint: `answer with an "output", or with text`,
		})
	}
	if len(x.report.Problems) > 0 {
		return unusable(l, round, x.report.Problems), nil
	}
	a := x.answer
	if a.Fragment == nil {
		return &wire.Round{End: string(a.End), Output: a.Output}, nil
	}
	d := &wire.Round{Fragment: a.Fragment, Settled: map[string]wire.Settled{}, Waits: map[string][]string{}, Tools: map[string]string{}}
	for i, c := range a.Calls {
		l.named(d, round, x, i)
		if c.Within >= 0 && l.Formerly {
			continue
		}
		for _, other := range x.admits.Waits[i] {
			d.Waits[x.paths[i]] = append(d.Waits[x.paths[i]], x.paths[other])
		}
		if c.Within >= 0 { // what it comes to is asked when it is ready
			continue
		}
		if s, is := x.admits.Settled[i]; is {
			d.Settled[c.ID] = wire.Settled{Result: s.Result, Error: s.Err}
		}
		if e := l.entry(round, x, i); e != nil && e.Direct {
			d.Direct = append(d.Direct, c.ID)
		}
	}
	takesBegun(d, l.Rounds[round].Handed)
	if d.Begun != nil && a.End != agent.EndNone && a.Plan.Output == nil { // else the round comes to it, which refers to others
		d.End, d.Output = string(a.End), a.Output
	}
	_, rest := a.Runs(l.Definition.Advance)
	for _, i := range rest {
		d.Rest = append(d.Rest, a.Calls[i].ID)
		delete(d.Settled, a.Calls[i].ID)
	}
	d.Earlier = l.referred(a, round)
	if l.Definition.Approval != nil {
		d.Bound = boundOf(l, round, x)
	}
	if p, _ := planOf(d, l.Templates); p != nil {
		if problem := tooDeep(p, scope); problem != nil {
			return unusable(l, round, []fault.Problem{*problem}), nil
		}
	}
	return d, nil
}

// unusable is the record of a round whose answer is of no use. What had begun before it was whole is what the round has run.
func unusable(l *Loop, round int, problems []fault.Problem) *wire.Round {
	d := &wire.Round{Problems: problems}
	begun := l.Rounds[round].Handed
	if len(begun) == 0 {
		return d
	}
	f, err := l.begin(round)
	if err != nil {
		return d
	}
	x := readBegun(l, begun, round, f)
	if x.answer == nil || x.answer.Fragment == nil { // nobody of ours wrote it
		return d
	}
	d.Fragment, d.Tools = x.answer.Fragment, map[string]string{}
	for i := range x.answer.Calls {
		l.named(d, round, x, i)
	}
	takesBegun(d, begun)
	d.Earlier = l.referred(x.answer, round)
	return d
}

// takesBegun notes which steps of a round have begun before its answer was whole: nothing is decided of them any more.
func takesBegun(d *wire.Round, begun []json.RawMessage) {
	for _, step := range begun {
		id := agent.StepID(step)
		d.Begun = append(d.Begun, id)
		delete(d.Settled, id)
		delete(d.Waits, id)
	}
}

// named notes by which tool a call is made, where the planner calls it otherwise, or that no tool is.
func (l *Loop) named(d *wire.Round, round int, x *reading, call int) {
	e := l.entry(round, x, call)
	switch {
	case e == nil || e.Kind == agent.KindAsk: // a person is asked, as by any plan
	case e.Selects() != "":
		d.Tools[e.Name] = e.Selects()
	case e.Kind != agent.KindTool:
		if !slices.Contains(d.Own, e.Name) {
			d.Own = append(d.Own, e.Name)
		}
	case e.Tool != e.Name:
		d.Tools[e.Name] = e.Tool
	}
}

// referred returns, for each earlier round that an answer refers to, the steps whose results it may take.
func (l *Loop) referred(a *agent.Answer, round int) map[string][]string {
	all := map[string][]string{}
	text := string(a.Fragment)
	for n, ids := range l.earlier(round) {
		name := "r" + strconv.Itoa(n)
		if _, there := a.Plan.Index(name); !there {
			continue
		}
		all[name] = []string{}
		whole := regexp.MustCompile(`:` + name + `(?:[^0-9A-Za-z_.\[-]|$)`).MatchString(text)
		for _, id := range ids {
			if whole || strings.Contains(text, name+"."+id) || strings.Contains(text, name+`[`) {
				all[name] = append(all[name], id)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Decided returns the record of a round as the machine takes it. The definition is that of the agent; nil where it is not
// known. Templates and contracts are those that the run froze, by the names of tools, formerly is
// Loop.Formerly.
func Decided(d *wire.Round, scope string, a *agent.Definition, of *plan.Agent, templates map[string]*plan.Template, contracts map[string]*tool.Contract, formerly bool) *machine.Round {
	out := &machine.Round{Formerly: formerly, Scope: scope, Contracts: contracts, Rest: d.Rest, Direct: d.Direct, Settled: map[string]*machine.Result{}}
	if len(d.Problems) > 0 {
		out.Invalid, out.Problems = true, first(d.Problems)
	}
	if out.Ends = !out.Invalid && (d.Fragment == nil || d.End != ""); out.Ends && len(d.Output) > 0 {
		out.Output = &machine.Result{Value: d.Output}
	}
	if out.Begun = d.Begun; d.Fragment == nil {
		return out
	}
	p, report := planOf(d, templates)
	if p == nil {
		why := report.Problems[0]
		out.Error = fault.New(why.Code, "what the planner answered can't run: %s: %s", why.Path, why.Message).WithHint("%s", why.Hint)
		return out
	}
	rename(p.Steps, d.Tools, d.Own, a)
	for _, step := range slices.Sorted(maps.Keys(d.Waits)) {
		for _, other := range d.Waits[step] {
			order(p, step, other, formerly)
		}
	}
	if p.Concurrency == 0 || of.Concurrency > 0 && of.Concurrency < p.Concurrency {
		p.Concurrency = of.Concurrency
	}
	out.Plan = p
	if of.Approval != nil && makesCalls(p, d) {
		out.Approval = of.Approval
	}
	for id, s := range d.Settled {
		out.Settled[id] = &machine.Result{Value: s.Result, Error: s.Error}
	}
	for name, ids := range d.Earlier {
		out.Earlier = append(out.Earlier, earlierOf(name, ids))
	}
	return out
}

// earlierOf returns what a step that stands for an earlier round has of that.
func earlierOf(name string, ids []string) machine.Earlier {
	return machine.Earlier{Step: name, Round: roundOf(name), IDs: ids}
}

// roundOf returns the round that a step stands for, such as r0.
func roundOf(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "r"))
	return n
}

// orderWithin keeps, in the plan of a step, the order that was added there.
func orderWithin(s *plan.Step, waits map[string][]string) {
	inner := s.Does().Plan
	if inner == nil || s.Template != nil {
		return
	}
	for _, step := range slices.Sorted(maps.Keys(waits)) {
		path, is := strings.CutPrefix(step, s.ID+"/")
		for _, other := range waits[step] {
			if behind, same := strings.CutPrefix(other, s.ID+"/"); is && same {
				order(inner, path, behind, false)
			}
		}
	}
}

// order lets a step begin after another one of the same plan: of the fragment, or within a step of it. Both are named by the
// ids of the steps down to them.
func order(p *plan.Plan, step, other string, formerly bool) {
	for {
		above, rest, within := strings.Cut(step, "/")
		i, known := p.Index(above)
		if !within {
			k, is := p.Index(other)
			switch {
			case !known || !is:
			case formerly:
				plan.OrderFormerly(p, i, k)
			default:
				plan.Order(p, i, k)
			}
			return
		}
		also, same := strings.CutPrefix(other, above+"/")
		if !known || !same {
			return // nobody of ours wrote it
		}
		if p = p.Steps[i].Does().Plan; p == nil {
			return
		}
		step, other = rest, also
	}
}

// ran reports whether a step of a fragment is one of the round that runs: it is not left for later, has not come to
// something already, and stands for no earlier round.
func ran(id string, d *wire.Round) bool {
	_, settled := d.Settled[id]
	_, earlier := d.Earlier[id]
	return !settled && !earlier && !slices.Contains(d.Rest, id)
}

// makesCalls reports whether a round makes calls: a value calls nothing.
func makesCalls(p *plan.Plan, d *wire.Round) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return !s.Does().Value && ran(s.ID, d) })
}

// mostTold is how many bytes of a round's problems the error of an agent may have.
const mostTold = 16 << 10

// first returns the first problems, as many as there is room for.
func first(all []fault.Problem) []fault.Problem {
	room := mostTold
	for i, p := range all {
		if room -= len(p.Message) + len(p.Hint) + len(p.Path) + 64; room < 0 {
			return all[:i]
		}
	}
	return all
}

// planOf reads the fragment of a round.
func planOf(d *wire.Round, templates map[string]*plan.Template) (*plan.Plan, plan.Report) {
	return plan.ParseLimited(d.Fragment, nil, plan.Limits{Templates: renamed(templates, d.Tools), Language2: true})
}

// renamed returns templates by the names by which steps call them.
func renamed(templates map[string]*plan.Template, tools map[string]string) map[string]*plan.Template {
	known := map[string]*plan.Template{}
	for name, t := range templates {
		known[name] = t
	}
	for name, of := range tools {
		delete(known, name)
		if t := templates[of]; t != nil {
			known[name] = t
		}
	}
	return known
}

// rename gives the steps of a fragment the names of their tools, and notes which calls are free.
func rename(steps []plan.Step, tools map[string]string, own []string, of *agent.Definition) {
	for i := range steps {
		s := &steps[i]
		s.Free = of != nil && of.Free(s.Tool)
		switch {
		case s.Tool == "":
		case slices.Contains(own, s.Tool) && s.Template == nil:
			s.Own = true
		case tools[s.Tool] != "":
			s.Tool = tools[s.Tool]
		}
		if s.Plan != nil && s.Template == nil {
			rename(s.Plan.Steps, tools, own, of)
		}
	}
}

// Ready decides about a call of a round that is ready, since a record: what it is called with, or what it has come to
// without being called.
func (l *Loop) Ready(round int, path string, since uint64, arguments json.RawMessage) (args, result json.RawMessage, failed *fault.Error) {
	c, err := readied(l, round, path, since, arguments)
	switch {
	case err != nil:
		return nil, nil, err
	case c == nil:
		return arguments, nil, nil
	case c.result != nil:
		return nil, c.result, nil
	}
	if no := c.refused(l, round, asks); no != nil {
		return nil, nil, no.Err
	}
	if own, refused, is := c.now.Answer(c.entry, c.args, l.account(c, round, since)); is {
		return nil, own, refused
	}
	if before, was := c.before(); was {
		return nil, before, nil
	}
	return c.args, nil, nil
}

// Said is what a call of a round tells the user in passing, for one that does; empty for all others, and for what stays: that is
// told by its record.
func (l *Loop) Said(round int, path string, arguments json.RawMessage) string {
	x, err := l.answer(round)
	if err != nil || x.answer == nil {
		return ""
	}
	i, known := x.places[path]
	if !known {
		return ""
	}
	if e := l.entry(round, x, i); e == nil || e.Kind != agent.KindTell || e.Name == agent.Communicate {
		return ""
	}
	return agent.Message(arguments)
}

// joined adds bound arguments to those that a planner gave, which they go before.
func joined(arguments, bound json.RawMessage) (json.RawMessage, *fault.Error) {
	if len(bound) == 0 {
		return arguments, nil
	}
	var all, more map[string]json.RawMessage
	if json.Unmarshal(arguments, &all) != nil || json.Unmarshal(bound, &more) != nil {
		return nil, fault.New(fault.InvalidArguments, "the arguments are no object")
	}
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for name, v := range more {
		all[name] = v
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArguments, err, "the arguments")
	}
	return raw, nil
}

// account is what the agent's planner may ask for of itself, as of the record that made the call ready by which it does;
// nothing for a call that asks for something else.
func (l *Loop) account(c *ready, round int, since uint64) *agent.Account {
	if e := c.now.Entry(c.entry); e == nil || e.Kind != agent.KindBuiltIn {
		return nil
	}
	return &agent.Account{
		Run: l.Run, Agent: l.Name, Goal: l.Definition.Description, Milliseconds: l.Rounds[round].Elapsed.Milliseconds(), Spent: spentBy(l, round, since),
		Calls: l.called(round+1, since),
	}
}

func (l *Loop) toolOf(round int, path string) string {
	x, err := l.answer(round)
	if err != nil || x.answer == nil {
		return ""
	}
	if i, known := x.places[path]; known {
		return x.answer.Calls[i].Entry
	}
	return ""
}
