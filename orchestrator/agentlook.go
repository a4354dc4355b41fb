package orchestrator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/request"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// looked is the loop of an agent as the records have it, with what is to be read beside the loop.
type looked struct {
	loop  agents.Loop
	name  string // the token of the agent
	scope machine.Call
	input *inputs // that the agent's input is made of; nil where it is there
	calls []lookedCall
	from  int        // the first round that is not past
	asked []source   // answers of planners, by round from there on
	sums  []source   // summaries that were made before, likewise
	said  [][]source // by guards, likewise
	size  int64

	gates agents.GatesNow // of which it is a view; the zero value: it has its own
	gate  bool            // a gate is asked: of the last round's calls, what says nothing to it need not be read

	board  *looked // whose blackboard it begins with; nil for nobody's
	above  *looked // of which its share is, as long as that is not known
	share  shareOf
	round  int  // of the agent above
	shared bool // the share is known
	sends  bool // its objects go to sinks
	below  []lookedBelow
}

// lookedBelow is an agent below that is over, of which nobody knows yet what it has used up.
type lookedBelow struct {
	*agents.Below
	*looked
}

// lookedCall is a call of a round whose arguments and result are to be read.
type lookedCall struct {
	round, call int
	in          *inputs // nil for what has no arguments
	value       source
}

// look gathers what there is of an agent's loop, to be asked about a round: all of it where anew, else what is not past.
func (ag *agentry) look(r *run, of machine.Call, round int, anew bool) *looked {
	x := gathered(r, of, round, anew)
	ag.inherits(r, x)
	key, around, is := sharedBy(r, of)
	if !is {
		return x
	}
	var known bool
	if x.loop.Share, known = r.agents.shares.Find(key); !known {
		x.share, x.round = key, around
		x.above = ag.look(r, key.of, around, false)
		x.above.addBelow(r, around)
		x.size += x.above.size
	}
	return x
}

// inherits lets an agent that another calls begin with what is on the blackboard of that one, as of the record that made it
// ready. What is past knows it.
func (ag *agentry) inherits(r *run, x *looked) {
	above, round, _, inRound := machine.RoundAround(r.machine, x.scope)
	if !inRound || x.loop.Past != nil || !slices.Contains(r.start.Needs, wire.SharedBoards) {
		return
	}
	x.board = ag.look(r, above, round, false)
	x.size += x.board.size
	begun, of := machine.ReadySince(r.machine, x.scope), &x.board.loop
	x.loop.Above = func() []agent.Artifact { return agents.BoardOf(of, round, begun) }
}

// toSinks reports whether objects of an agent go to sinks.
func toSinks(r *run, of machine.Call) bool {
	d := r.agents.defined[r.step(of.Step).Does().Tool]
	return d != nil && agent.Sends(d) && slices.Contains(r.start.Needs, wire.Sinks)
}

// captures reports whether the objects of agents below are an agent's, too.
func captures(r *run, c machine.Call) bool {
	d := r.agents.defined[r.step(c.Step).Does().Tool]
	return d != nil && d.CaptureNested && slices.Contains(r.start.Needs, wire.SharedBoards)
}

// accounts returns what completes the accounts of the agents of a run that is over, beside the loop, and how many bytes that
// reads: those whose planners answer in commands have what these asked for.
func (ag *agentry) accounts(r *run) (complete func(context.Context, []outcome.Step), size int64) {
	all := ag.loops(r, func(d *agent.Definition) bool { return d.Planner.Mode == agent.ModeCommands })
	for _, x := range all {
		size += x.size
	}
	return func(ctx context.Context, steps []outcome.Step) {
		if room := mostLogs; len(all) > 0 {
			ag.logs(ctx, steps, all, &room)
		}
	}, size
}

// loops gathers all rounds of the agents that have begun and of which something is so, by their tokens.
func (ag *agentry) loops(r *run, so func(*agent.Definition) bool) map[string]*looked {
	if r.agents == nil || r.machine == nil {
		return nil
	}
	which := func(s *plan.Step) bool {
		d := r.agents.defined[s.Does().Tool]
		return d != nil && so(d)
	}
	all := map[string]*looked{}
	var within func(p *plan.Plan, of machine.Numbers)
	within = func(p *plan.Plan, of machine.Numbers) {
		for k := range p.Steps {
			c := machine.Call{Step: of.Of(k)}
			n, _ := r.machine.Items(c.Step)
			for c.Item = 0; c.Item <= n; c.Item++ {
				if rounds := machine.RoundCount(r.machine, c); rounds > 0 && which(&p.Steps[k]) {
					all[r.token(c)] = ag.look(r, c, rounds, true)
				}
				for p, of := range r.machine.Inside(c) {
					within(p, of)
				}
			}
		}
	}
	within(r.machine.Scope(0))
	return all
}

// mostLogs is how many bytes the logs of all agents have in a document, longestLog from which on a value there is a preview.
const (
	mostLogs   = 1 << 20
	longestLog = 1 << 10
)

// logs adds the calls that agents made by commands, as long as there is room: the latest first.
func (ag *agentry) logs(ctx context.Context, steps []outcome.Step, logged map[string]*looked, room *int) {
	for i := range steps {
		st := &steps[i]
		if x := logged[st.ID]; x != nil {
			l, err := x.read(ctx, ag.values)
			if err == nil {
				st.ToolLogs, st.LogsLeftOut = lastLogs(l.Logs(longestLog), room)
			}
		}
		ag.logs(ctx, st.Items, logged, room)
		ag.logs(ctx, st.Steps, logged, room)
	}
}

// lastLogs returns the last of a list of logs, as many as there is room for, and how many there are before.
func lastLogs(list []byte, room *int) (logs []outcome.ToolLog, before int) {
	var each []json.RawMessage
	_ = json.Unmarshal(list, &each) // of ours
	for before = len(each); before > 0 && len(each[before-1]) <= *room; before-- {
		*room -= len(each[before-1])
	}
	for _, raw := range each[before:] {
		var x outcome.ToolLog
		_ = json.Unmarshal(raw, &x) // likewise
		logs = append(logs, x)
	}
	return logs, before
}

// pastRound stands for each round that is past: nothing of it is looked at, and nobody writes to it.
var pastRound = &agents.Round{}

// gathered gathers the rounds of an agent that are not past, or all where anew. What agents below have used up counts
// where it is of rounds before one.
func gathered(r *run, of machine.Call, round int, anew bool) *looked {
	x := &looked{name: r.token(of), scope: of}
	x.loop = agents.Loop{
		Definition: r.agents.defined[r.step(of.Step).Does().Tool], Templates: r.agents.templates, Run: r.id.Plain(), Name: x.name, Formerly: formerly(r),
		Part: func(round int) string { return subjects.PartName(r.id, r.generation, x.name, round) },
	}
	x.loop.Shelf, x.sends = r.agents.shelfOf(x.name), toSinks(r, of)
	x.loop.Guarded = slices.Contains(r.start.Needs, wire.GuardUsage)
	x.loop.Bound = slices.Contains(r.start.Needs, wire.BoundArguments)
	x.loop.Objects = slices.Contains(r.start.Needs, wire.ObjectConditions)
	x.loop.Ordered = slices.Contains(r.start.Needs, wire.AnswerOrder)
	x.loop.Within = slices.Contains(r.start.Needs, wire.LockedWithin)
	x.loop.Ends = slices.Contains(r.start.Needs, wire.AgentEnds)
	x.loop.Timed = slices.Contains(r.start.Needs, wire.AgentTime)
	if past := r.agents.past.At(x.name); !anew && past.Rounds() > 0 && past.Rounds() <= round {
		x.loop.Past = past
	}
	x.from = x.loop.Past.Rounds()
	begun := machine.Rounds(r.machine, of, x.from)
	x.loop.Rounds = make([]*agents.Round, x.from, x.from+len(begun))
	for n := range x.loop.Rounds {
		x.loop.Rounds[n] = pastRound
	}
	for _, v := range begun {
		x.begun(r, &v)
		if v.Plan == nil && len(x.loop.Rounds[v.Number].Handed) > 0 {
			x.gather(r, v.Number, "", v.HandedOver, v.HandedNumbers)
		}
		if v.Plan != nil {
			x.gather(r, v.Number, "", v.Plan, v.Numbers)
			if v.Number < round || captures(r, of) {
				x.addBelow(r, v.Number)
			}
		}
	}
	return x
}

// begun adds a round without its calls.
func (x *looked) begun(r *run, v *machine.RoundView) {
	if v.Number == 0 {
		value, away := r.machine.Input(v.Planner.Step)
		if x.loop.Input = value; away {
			in := r.inputs(x.scope)
			in.resolver = nil
			x.input = &in
			x.size += in.most(false)
		}
	}
	x.loop.Final = v.Final
	answer := sourceOf(r, v.Answer)
	x.size += answer.size()
	x.asked = append(x.asked, answer)
	made := sourceOf(r, v.Summary)
	x.size += made.size()
	x.sums = append(x.sums, made)
	round := &agents.Round{Begun: v.Begun, Amended: amendedIn(r, subjects.Iteration(x.name, v.Number)), Refused: v.Refused, Elapsed: v.Elapsed, Said: saidIn(r, x.scope, v.Number), Summarised: v.Summarised, Again: tries(r).Taken(v.Planner)}
	if v.Answer != nil {
		round.Answered = v.Answer.Seq
	}
	round.SummaryAgain = v.Summary != nil && tries(r).Taken(v.Summary.Call)
	switch {
	case v.Record == nil:
	case v.Record.Refused != nil: // nothing of it counts
		round.Record = &wire.Round{Problems: v.Record.Problems}
	default:
		round.Record = r.agents.records.At(subjects.Iteration(x.name, v.Number))
	}
	x.handedOver(r, v, round)
	x.loop.Rounds = append(x.loop.Rounds, round)
	x.guarded(r, round, v.Guards)
}

// guarded adds what guards of a round have answered, where that counts.
func (x *looked) guarded(r *run, round *agents.Round, all []machine.GuardView) {
	var said []source
	if x.loop.Guarded {
		for _, g := range all {
			if tries(r).Taken(g.Said.Call) { // it was paid for by the run that this one tries again
				continue
			}
			round.Guards = append(round.Guards, agents.GuardSaid{On: g.On, Tool: g.Tool, Seq: g.Said.Seq})
			answer := sourceOf(r, g.Said)
			x.size += answer.size()
			said = append(said, answer)
		}
	}
	x.said = append(x.said, said)
}

// handedOver adds to a round what its planner has handed over before its answer was whole, and which of it a later attempt is
// told of.
func (x *looked) handedOver(r *run, v *machine.RoundView, to *agents.Round) {
	if v.HandedOver == nil || len(v.HandedOver.Steps) == 0 {
		return
	}
	if v.Answer == nil && v.Record == nil {
		to.EndedAt = machine.EndedAt(r.machine, x.scope)
	}
	for _, a := range r.machine.InForce(subjects.InScope(subjects.Iteration(x.name, v.Number), plan.StreamStep)) {
		for _, step := range a.Add {
			id := agent.StepID(step)
			n, known := v.HandedOver.Index(id)
			switch {
			case !known || agent.IsRound(id):
			case machine.Gone(r.machine, v.HandedNumbers.Of(n)):
				to.Gone = append(to.Gone, id)
			default:
				to.Handed = append(to.Handed, step)
				if at := machine.BegunAt(r.machine, machine.Call{Step: v.HandedNumbers.Of(n)}); at > 0 && at <= to.EndedAt {
					to.Told = append(to.Told, id)
				}
			}
		}
	}
}

// amendedIn returns the amendments of a round that are in force.
func amendedIn(r *run, scope string) (all []agents.Amended) {
	for _, a := range r.machine.InForce(scope) {
		all = append(all, agents.Amended{Add: a.Add, Discard: a.Discard, Rest: a.Rest, By: a.By, Round: r.agents.amended.At(amendedRound{scope, a.Revision})})
	}
	return all
}

// saidIn returns what the planner of a round is told that people have said.
func saidIn(r *run, agent machine.Call, round int) (all []request.Message) {
	for _, s := range machine.AllSaid(r.machine, agent) {
		if s.Round == round {
			all = append(all, request.Message{ID: s.ID, By: s.By, Content: s.Content, Interrupt: s.Interrupt})
		}
	}
	return all
}

// gather adds the calls of a plan in a round, and of those within it but for the rounds of other agents.
func (x *looked) gather(r *run, round int, above string, p *plan.Plan, of machine.Numbers) {
	for k := range p.Steps {
		s := &p.Steps[k]
		if slices.Contains(x.loop.Rounds[round].Gone, s.ID) && above == "" && machine.Gone(r.machine, of.Of(k)) {
			continue
		}
		path, single := above+"/"+s.ID, true
		if above == "" {
			path = s.ID
		}
		if s.ID == plan.IterationStep {
			path, single = above, false
		}
		c := machine.Call{Step: of.Of(k)}
		x.add(r, round, path, c, single)
		n, _ := r.machine.Items(c.Step)
		for c.Item = 0; c.Item <= n; c.Item++ {
			if c.Item > 0 {
				x.add(r, round, path, c, false)
			}
			if s.Agent() != nil && s.Repeat == nil {
				continue
			}
			for inner, numbers := range r.machine.Inside(c) {
				x.gather(r, round, path, inner, numbers)
			}
		}
	}
}

func (x *looked) add(r *run, round int, path string, c machine.Call, single bool) {
	call, seen := x.at(r, path, c, single)
	seen.round, seen.call = round, len(x.loop.Rounds[round].Calls)
	x.size += seen.size()
	x.loop.Rounds[round].Calls = append(x.loop.Rounds[round].Calls, call)
	x.calls = append(x.calls, seen)
}

// at gathers what there is of a call.
func (x *looked) at(r *run, path string, c machine.Call, single bool) (agents.Call, lookedCall) {
	st := r.machine.Step(c, time.Time{})
	s := r.step(c.Step)
	call := agents.Call{Path: path, Single: single, Status: string(st.Status), Err: st.Error, MS: st.Ended.Sub(st.Started).Milliseconds()}
	among := x.loop.Ordered && (!single || strings.Contains(path, "/")) // its place is that of an item or an iteration, too
	if s.Agent() != nil && s.Repeat == nil || x.sends || among {
		call.Token = r.token(c)
	}
	res := r.machine.Decided(c)
	over := res != nil && (st.Status == outcome.StepSucceeded || st.Status == outcome.StepFailed)
	_, isList := r.machine.Items(c.Step)
	if over && s.Repeat == nil && (c.Item > 0 || !isList) {
		call.Since, call.Seq, call.Again = machine.ReadySince(r.machine, c), res.Seq, tries(r).Taken(c) || s.Plan != nil && !tries(r).Made(c)
		call.ByOwner = res.ByOwner && s.Plan == nil && !call.Again
		if r.agents.said.Len() > 0 && s.Plan == nil {
			said := r.agents.said.At(attemptOf{r.token(res.Call), res.Attempt}) // of the call that was made
			call.Type, call.Said = said.kind, said.planner
		}
	}
	seen := lookedCall{}
	if over && st.Status == outcome.StepSucceeded {
		if seen.value = sourceOf(r, res); c.Item == 0 {
			seen.value = r.source(c.Step)
		}
	}
	if over && s.Tool != "" && !(c.Item == 0 && isList) && s.Repeat == nil {
		in := asWritten(r, c)
		in.resolver, in.schema = nil, nil
		seen.in = &in
	}
	return call, seen
}

// size bounds the bytes that are read for it.
func (c *lookedCall) size() (n int64) {
	if n = c.value.size(); c.in != nil {
		n += c.in.most(false)
	}
	return n
}

// read reads what a call was called with and came to.
func (c *lookedCall) read(ctx context.Context, v *values, into *agents.Call) (err *fault.Error) {
	if into.Value, err = v.read(ctx, &c.value); err != nil {
		return err
	}
	if c.in != nil { // what can't be made was never handed to anybody
		into.Arguments, _ = v.arguments(ctx, c.in)
	}
	return nil
}

// pathOf names a call by the ids of the steps down to it in its round.
func (x *looked) pathOf(r *run, c machine.Call) string {
	path := ""
	for c.Step != machine.ThePlan && c != x.scope {
		if id := r.step(c.Step).ID; id == plan.StreamStep { // its steps are those of the round
			c = r.machine.Composite(c.Step)
			continue
		} else if id != plan.IterationStep && path != "" {
			path = id + "/" + path
		} else if id != plan.IterationStep {
			path = id
		}
		c = r.machine.Composite(c.Step)
	}
	return path
}

// read reads all that there is of the loop. The error is one that may not pass.
func (x *looked) read(ctx context.Context, v *values) (*agents.Loop, *fault.Error) {
	var err *fault.Error
	if err := x.readOthers(ctx, v); err != nil {
		return nil, err
	}
	if x.input != nil {
		if x.loop.Input, err = v.arguments(ctx, x.input); err != nil {
			return nil, err
		}
	}
	for n := range x.asked {
		round := x.loop.Rounds[x.from+n]
		if round.Answer, err = v.read(ctx, &x.asked[n]); err != nil {
			return nil, err
		}
		if round.Summary, err = v.read(ctx, &x.sums[n]); err != nil {
			return nil, err
		}
		for k := range x.said[n] {
			if round.Guards[k].Answer, err = v.read(ctx, &x.said[n][k]); err != nil {
				return nil, err
			}
		}
	}
	for i := range x.calls {
		seen := &x.calls[i]
		c := &x.loop.Rounds[seen.round].Calls[seen.call]
		if x.gate && seen.round == len(x.loop.Rounds)-1 && !agents.Matters(&x.loop, seen.round, c) {
			continue
		}
		if err = seen.read(ctx, v, c); err != nil {
			return nil, err
		}
	}
	return &x.loop, nil
}

// manyCalls are as many as a round has calls before its gates share what they look at: an agent that waits holds little.
const manyCalls = 32

// atGate gathers what the gate of a call looks at. A round of few calls, and one whose agents below leave objects to it, are
// gathered anew each time. Of any other all is gathered by the first that asks, and begun is called with what it has read; false
// means that somebody does so: then again is called.
func (ag *agentry) atGate(r *run, of machine.Call, round int, again func()) (x *looked, begun func(*agents.Loop), ok bool) {
	token := r.token(of)
	its := r.agents
	g := its.gates.At(token)
	switch {
	case g == nil || !ag.added(r, g, of, round):
	case g.Begun():
		return viewOf(g, token, of), nil, true
	case again != nil:
		g.Waiting = append(g.Waiting, again)
		return nil, nil, false
	}
	over, anew := machine.Ended(r.machine, of)
	x = ag.look(r, of, round, false)
	x.gate = len(x.loop.Rounds) == round+1
	if !x.gate || again == nil || len(x.calls) < ag.many || x.loop.Rounds[round].Record == nil || captures(r, of) {
		return x, nil, true
	}
	var waiting []func()
	if g != nil {
		waiting, g.Waiting = g.Waiting, nil
	}
	g = &agents.Gates{Round: round, Anew: anew, Terminal: len(over), Amended: r.machine.InForce(subjects.Iteration(token, round)), Waiting: waiting}
	for _, c := range x.loop.Rounds[round].Calls {
		g.Last = max(g.Last, c.Seq)
	}
	its.gates.Put(token, g)
	return x, func(l *agents.Loop) {
		waiting := g.Waiting
		if g.Waiting = nil; l != nil {
			x.calls = nil // they were read
			g.Begin(l)
		} else if its.gates.At(token) == g {
			its.gates.Drop(token)
		}
		for _, again := range waiting {
			again()
		}
	}, true
}

// viewOf returns what there is of gates now.
func viewOf(g *agents.Gates, token string, of machine.Call) *looked {
	x := &looked{name: token, scope: of}
	x.gates, x.size = g.Now()
	return x
}

// added adds to gates the calls that came to be over since somebody looked; false where all is to be gathered anew: another
// round runs, its plan is another, or which calls came first is not told by their records.
func (ag *agentry) added(r *run, g *agents.Gates, of machine.Call, round int) bool {
	over, anew := machine.Ended(r.machine, of)
	if g.Round != round || g.Anew != anew || len(over) < g.Terminal || !slices.Equal(g.Amended, r.machine.InForce(subjects.Iteration(r.token(of), round))) {
		return false
	}
	x := &looked{scope: of, sends: toSinks(r, of)}
	for _, c := range over[g.Terminal:] {
		call, seen := x.at(r, x.pathOf(r, c), c, c.Item == 0 && r.step(c.Step).ID != plan.IterationStep)
		calls := r.step(c.Step).Does().Tool != "" && !inTemplate(r, of, c) // no plan within does, and what a template calls is its author's
		if !g.Add(call, calls, seen.size(), func(ctx context.Context, into *agents.Call) *fault.Error { return seen.read(ctx, ag.values, into) }) {
			return false
		}
	}
	g.Terminal = len(over)
	return true
}

// ask reads all that there is of the loop, and asks it something. The error is one that may not pass, or that of the answer.
func (x *looked) ask(ctx context.Context, v *values, something func(*agents.Loop) *fault.Error) *fault.Error {
	if x.gates.Gates != nil {
		return x.gates.Ask(ctx, something)
	}
	l, err := x.read(ctx, v)
	if err != nil {
		return err
	}
	return something(l)
}

// sharedBy returns the share that an agent has, and the round of the agent above that it is called in; is is false for one
// that no budget above bounds.
func sharedBy(r *run, c machine.Call) (key shareOf, round int, is bool) {
	above, round, _, inRound := machine.RoundAround(r.machine, c)
	if !inRound || !anyAround(r, above, func(a *agents.Needs) bool { return a.Bounds }) {
		return key, 0, false
	}
	return shareOf{above, machine.ReadySince(r.machine, c)}, round, true
}

// anyAround reports whether something is so of an agent, or of one above it.
func anyAround(r *run, c machine.Call, so func(*agents.Needs) bool) bool {
	for inRound := true; inRound; c, _, _, inRound = machine.RoundAround(r.machine, c) {
		if d := r.agents.defined[r.step(c.Step).Does().Tool]; d != nil && so(agents.NeedsOf(d)) {
			return true
		}
	}
	return false
}

// waitsForShare reports whether somebody finds out already which share an agent has; then again is called once that is
// known. Else the caller is the one who does. A hundred agents that one record made ready have one share.
func (ag *agentry) waitsForShare(r *run, of machine.Call, again func()) bool {
	key, _, is := sharedBy(r, of)
	if _, known := r.agents.shares.Find(key); !is || known {
		return false
	}
	waiting, sought := r.agents.sharing.Find(key)
	if sought {
		waiting = append(waiting, again)
	}
	r.agents.sharing.Put(key, waiting)
	return sought
}

// found keeps what was found out beside the loop of shares and of agents that are over.
func (x *looked) found(its *agentsOf) {
	for _, b := range x.below {
		b.found(its)
		if b.Spent != nil {
			its.spent.Put(b.name, *b.Spent)
		}
		if b.Captured {
			its.added.Put(b.name, b.Added)
		}
	}
	if x.board != nil {
		x.board.found(its)
	}
	if x.above == nil {
		return
	}
	x.above.found(its)
	if x.shared {
		its.shares.Put(x.share, x.loop.Share)
	}
	waiting := its.sharing.At(x.share)
	its.sharing.Drop(x.share)
	for _, again := range waiting {
		again()
	}
}

// readOthers reads what is to be known of agents above and below.
func (x *looked) readOthers(ctx context.Context, v *values) *fault.Error {
	for _, b := range x.below {
		if _, err := b.read(ctx, v); err != nil {
			return err
		}
	}
	if x.board != nil {
		if _, err := x.board.read(ctx, v); err != nil {
			return err
		}
	}
	if x.above == nil {
		return nil
	}
	l, err := x.above.read(ctx, v)
	if err != nil {
		return err
	}
	x.loop.Share, x.shared = l.ShareOf(x.round, x.share.begun), true
	return nil
}

// addBelow adds the agents that are called in a round, where somebody counts what they use up.
func (x *looked) addBelow(r *run, round int) {
	if !anyAround(r, x.scope, func(a *agents.Needs) bool { return a.Bounds || a.Tells }) && !captures(r, x.scope) {
		return
	}
	if len(x.loop.Rounds[round].Below) > 0 && x.loop.Ordered {
		return // of who captures their objects they were added before; in runs of before each counted twice, for their shares too
	}
	if v := machine.Rounds(r.machine, x.scope, round); len(v) > 0 && v[0].Plan != nil {
		x.belowOf(r, round, v[0].Plan, v[0].Numbers)
	}
}

// belowOf adds the agents among the calls of a plan in a round, and of those within it, but for those within agents.
func (x *looked) belowOf(r *run, round int, p *plan.Plan, of machine.Numbers) {
	for k := range p.Steps {
		s, c := &p.Steps[k], machine.Call{Step: of.Of(k)}
		n, isList := r.machine.Items(c.Step)
		for c.Item = 0; c.Item <= n; c.Item++ {
			if s.Agent() == nil || s.Repeat != nil {
				for inner, numbers := range r.machine.Inside(c) {
					x.belowOf(r, round, inner, numbers)
				}
			} else if c.Item > 0 || !isList {
				x.addAgent(r, round, c)
			}
		}
	}
}

// addAgent adds an agent that has begun.
func (x *looked) addAgent(r *run, round int, c machine.Call) {
	b := &agents.Below{Begun: machine.BegunAt(r.machine, c), Token: r.token(c)}
	if b.Begun == 0 {
		return
	}
	if d := r.agents.defined[r.step(c.Step).Does().Tool]; d != nil {
		b.Budget = d.Budget
	}
	to := x.loop.Rounds[round]
	to.Below = append(to.Below, b)
	if !r.machine.Step(c, time.Time{}).Status.Terminal() {
		return
	}
	if res := r.machine.Decided(c); res != nil {
		b.Over = res.Seq
	}
	if spent, known := r.agents.spent.Find(b.Token); known {
		b.Spent = &spent
	}
	b.Added, b.Captured = r.agents.added.Find(b.Token)
	if b.Spent != nil && (b.Captured || !captures(r, x.scope)) {
		return
	}
	y := gathered(r, c, machine.RoundCount(r.machine, c), false)
	if b.Loop = &y.loop; slices.Contains(r.start.Needs, wire.SharedBoards) {
		y.loop.Above = func() []agent.Artifact { return agents.BoardOf(&x.loop, round, b.Begun) }
	}
	x.below = append(x.below, lookedBelow{b, y})
	x.size += y.size
}
