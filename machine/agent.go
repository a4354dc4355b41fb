package machine

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// mostInvalid is how many answers in a row may be of no use.
const mostInvalid = 3

// rounds are those of an agent. Each has a scope of one step, the call of its planner, and, once its record came, one of
// what that decided. They keep their places when the state is computed anew.
type rounds struct {
	turns
	of        []*scope // that were ever entered in this process, in their order
	entered   int      // of those, now
	records   []*Round // of the rounds that were decided
	input     input
	ending    *ending // nil as long as the loop goes on
	said      []Said
	cut       []cut             // in their order
	refused   []refused         // by guards and the output schema, likewise
	pending   *Question         // about the round that is to run next, which waits for a person; nil for none
	answered  map[int]*Question // by round: what a person was asked about it, and said
	greeted   bool              // its input has passed its guards
	waits     map[int]*guarding // by the call that waits
	guards    []*scope          // of calls of guards that were ever entered in this process, in their order
	asked     int               // of those, now
	consulted int               // of those, in the round that it is in
	endedAt   uint64            // the record that ended the last attempt without an answer, in the round that it is in
	claim     claim             // of the attempt by which its planner hands over steps, in the round that it is in
	terminal  []Call            // of the round that runs, in the order in which they came to be over
	offered   *Result           // what the loop would have come to, had nobody said anything; nil once the round behind it is decided
}

// ending is what a loop has come to whose planner is asked for a last answer: what the agent comes to without one.
type ending struct {
	result *Result
	err    *fault.Error
}

// current returns the scope that was entered last, nil where none was.
func (a *rounds) current() *scope {
	if a.entered == 0 {
		return nil
	}
	return a.of[a.entered-1]
}

// roundsOf returns the rounds of a call that is an agent.
func roundsOf(t *tree, i int) *rounds {
	c := &t.calls[i]
	if c.below == 0 {
		all := t.nested()
		all.agents = append(all.agents, &rounds{})
		c.below = int32(len(all.agents))
	}
	return t.scopes.agents[c.below-1]
}

// agentAt returns the rounds of a call that is an agent and was entered; nil for any other.
func agentAt(t *tree, c Call) *rounds {
	i, ok := t.index(c)
	if !ok || t.calls[i].below == 0 || !t.isComposite(i) || t.stepOf(i).Repeat != nil || t.stepOf(i).Agent() == nil {
		return nil
	}
	return t.scopes.agents[t.calls[i].below-1]
}

// agentAround returns the rounds that a scope is one of.
func agentAround(t *tree, sc *scope) *rounds {
	i, _ := t.index(sc.of)
	return roundsOf(t, i)
}

// round returns the scope of a round in which what the next segment names stands; nil for one that is not entered.
func (a *rounds) round(x, within *subjects.Segment) *scope {
	if x.Kind == subjects.IterationSegment && within.Kind == subjects.CallSegment && strings.HasPrefix(within.String(), plan.GuardStep) {
		for _, sc := range inRound(a.guards[:a.asked], x.Number) {
			if sc.plan.Steps[0].ID == within.String() {
				return sc
			}
		}
		return nil
	}
	if within.Kind == subjects.IterationSegment || x.Kind != subjects.IterationSegment {
		return nil
	}
	for _, sc := range inRound(a.of[:a.entered], x.Number) {
		if asksPlanner(sc) == (within.Kind == subjects.CallSegment) {
			return sc
		}
	}
	return nil
}

// inRound returns those of scopes that are of a round. They stand in the order in which they were entered, which is that of rounds.
func inRound(all []*scope, round int) []*scope {
	from := sort.Search(len(all), func(i int) bool { return int(all[i].round) > round })
	n := from
	for n < len(all) && int(all[n].round) == round+1 {
		n++
	}
	return all[from:n]
}

// begin enters the first round of an agent whose input is there.
func (a *rounds) begin(r *Run, i int, in input, at time.Time, out *Effects) {
	a.input = in
	if of := r.stepOf(i).Agent().Guards; of != nil {
		if no := of.Refuses(plan.OnInput, 0, seenBy(a)); no != nil && !no.Asks {
			r.fail(i, no.Err, at, out)
			return
		}
	}
	if r.calls[i].expiring {
		r.askDecision(i, out)
	}
	a.goOn(r, i, at, out)
}

// goOn begins the next round.
func (a *rounds) goOn(r *Run, i int, at time.Time, out *Effects) {
	a.take(func() { a.ask(r, i, at, out) })
}

// ask enters the scope of the call of the planner.
func (a *rounds) ask(r *Run, i int, at time.Time, out *Effects) {
	p := r.stepOf(i).Plan
	if !a.fits(r, i, len(p.Steps), at, out) {
		return
	}
	a.hear()
	a.consulted, a.claim, a.endedAt, a.terminal = 0, claim{}, 0, nil
	sc := a.enter(r, i, p)
	if summarises(sc) && len(a.records) < firstCut {
		now := sc.amend()
		now.changing, sc.reached.taking = true, true
		r.settle(sc.at(1), notTaken, at, out)
		now.changing, sc.reached.taking = false, false
	}
	if !greets(r, i, at, out) {
		return
	}
	sc.open(r, at, out)
	sc.leave(r, at, out)
}

// firstCut is the first round before which rounds may be cut, so that a summary is made of them: the last stays whole.
const firstCut = 2

// summary reports whether a call is that of a summary.
func summary(r *Run, c Call) bool {
	if c.Step < 0 || c.Item != 0 {
		return false
	}
	sc := r.scopeOf(c.Step)
	return sc.outer != nil && sc.round > 0 && c.Step == sc.first+1 && summarises(sc)
}

// summarises reports whether a summary is made in a scope of a planner's call, before that.
func summarises(sc *scope) bool {
	return len(sc.base().Steps) > 1 && sc.base().Steps[1].ID == plan.SummaryStep
}

// fits reports whether the run has room for more steps; where it has not, the agent is over: with what its loop came to before it
// was to be asked once more, else it fails.
func (a *rounds) fits(r *Run, i, steps int, at time.Time, out *Effects) bool {
	if int(r.steps)+steps <= plan.MaxSteps {
		return true
	}
	r.ordered++
	err := fault.New(fault.LimitExceeded, "after %d rounds, the run would have more than %d steps with the next %d", len(a.records), plan.MaxSteps, steps).
		WithHint("let the agent do less, or run the parts as plans of their own")
	switch e := a.ending; {
	case !r.start.AgentEnds:
		r.fail(i, err, at, out)
	case e != nil && e.err != nil:
		r.fail(i, e.err, at, out)
	case e != nil && string(e.result.Value) != "null":
		r.endWith(i, e.result, at, out)
	case a.offered != nil:
		r.endWith(i, a.offered, at, out)
	default:
		r.fail(i, a.withRounds(r, err), at, out)
	}
	return false
}

// enter brings the scope of a plan to where none of its steps is looked at yet. It has a place among the calls from then
// on.
func (a *rounds) enter(r *Run, i int, p *plan.Plan) *scope {
	if a.entered == len(a.of) {
		a.of = append(a.of, nil)
	}
	at := &a.of[a.entered]
	if *at == nil || (*at).base() != p {
		*at = newScopeOf(&r.tree, i, p)
	}
	sc := *at
	sc.round = int32(len(a.records) + 1)
	sc.token = subjects.Iteration(r.Token(r.calls[i].Call), len(a.records))
	a.entered++
	r.calls[i].state = entered
	sc.begin(r)
	sc.input = a.input
	r.steps += int32(len(p.Steps))
	return sc
}

// endedIn notes a call that is over, where it stands in what a round runs.
func endedIn(r *Run, sc *scope, c Call) {
	for ; sc.outer != nil; sc = sc.outer {
		if sc.round == 0 {
			continue
		}
		if sc.asksFor == nil && !asksPlanner(sc) {
			a := agentAround(&r.tree, sc)
			a.terminal = append(a.terminal, c)
		}
		return
	}
}

// asksPlanner reports whether a scope is the call of a planner.
func asksPlanner(sc *scope) bool { return sc.round > 0 && sc.base().Steps[0].ID == plan.PlannerStep }

// left goes on with an agent one of whose scopes is over.
func (a *rounds) left(r *Run, i int, sc *scope, at time.Time, out *Effects) {
	switch each := &r.calls[sc.first]; {
	case a.whyCut(sc) != nil:
		a.broken(r, i, sc, at, out)
	case asksPlanner(sc) && r.halting(i): // what came of it is not followed any more
		r.end(i, cancelled, at, out)
	case !asksPlanner(sc):
		a.over(r, i, sc, at, out)
	case a.offered != nil && exceeded(each):
		r.endWith(i, a.offered, at, out) // nobody can be asked what was said to it
	case exceeded(each) && a.ending == nil && r.stepOf(i).Agent().Responds:
		why := a.plannerFailure(r, each, sc)
		a.records = append(a.records, &Round{Scope: sc.token, Void: true}) // nobody was asked
		a.end(r, i, nil, why, at, out)
	case each.state != succeeded:
		r.fail(i, a.plannerFailure(r, each, sc), at, out)
	default:
		r.calls[i].state = closing
		r.askToClose(i, out)
	}
}

// exceeded reports whether the planner of a round was not asked, since the budget has no room for it.
func exceeded(planner *call) bool {
	return planner.state == failed && planner.result.ByOwner && planner.result.Error.Code == fault.BudgetExceeded
}

// plannerFailure is the error of an agent whose planner failed, or was not asked.
func (a *rounds) plannerFailure(r *Run, each *call, sc *scope) *fault.Error {
	err := *each.result.Error
	if exceeded(each) && r.start.AgentEnds {
		return a.withRounds(r, &err)
	}
	err.Message = "the planner, in round " + strconv.Itoa(int(sc.round)-1) + ": " + err.Message
	err.Retryable = false
	return &err
}

// takeRound takes the record of a round. One that nobody waits for says nothing.
func takeRound(r *Run, rec *Record, out *Effects) {
	i, ok := waitsForRound(r, rec.Round.Scope)
	if !ok {
		return
	}
	a, d := roundsOf(&r.tree, i), rec.Round
	a.offered = nil
	if d.Plan != nil && !a.fits(r, i, len(d.Plan.Steps), rec.Time, out) {
		return
	}
	switch {
	case d.Plan != nil && d.Approval != nil:
		a.wait(r, i, d, rec.Time, out)
		return
	case d.Plan != nil:
		a.run(r, i, d, rec.Time, out)
		return
	}
	a.records = append(a.records, d)
	r.calls[i].state = entered
	switch {
	case d.Error != nil:
		r.fail(i, d.Error, rec.Time, out)
	case a.ending != nil:
		a.responded(r, i, d, rec.Time, out)
	case d.Ends:
		a.end(r, i, a.comesTo(r, i, d.Output), nil, rec.Time, out)
	default:
		a.further(r, i, rec.Time, out)
	}
}

// waitsForRound returns the agent that waits for the record of a round.
func waitsForRound(r *Run, scope string) (i int, ok bool) {
	c, there := r.Find(subjects.ScopeOf(scope))
	if !there {
		return 0, false
	}
	if i, ok = r.index(c); !ok || r.stepOf(i).Agent() == nil || r.calls[i].state != closing {
		return 0, false
	}
	sc := r.insideOf(i)
	return i, sc != nil && asksPlanner(sc) && !sc.shaping && sc.token == scope && roundsOf(&r.tree, i).pending == nil
}

// run enters the scope of what a round runs.
func (a *rounds) run(r *Run, i int, d *Round, at time.Time, out *Effects) {
	plan.Renumber(d.Plan, len(r.contracts))
	r.contracts = appendContracts(r.contracts, d.Plan, d.Contracts)
	sc := a.enter(r, i, d.Plan)
	a.records = append(a.records, d)
	now := sc.amend()
	now.changing, sc.reached.taking = true, true // nobody is taken before all that is settled is
	for n := range d.Plan.Steps {
		a.settled(r, sc, n, d, at, out)
	}
	now.changing, sc.reached.taking = false, false
	sc.open(r, at, out)
	sc.leave(r, at, out)
}

// settled decides a step that does not run.
func (a *rounds) settled(r *Run, sc *scope, n int, d *Round, at time.Time, out *Effects) {
	i, id := sc.at(n), sc.plan.Steps[n].ID
	s := &r.calls[i]
	if slices.Contains(d.Rest, id) {
		s.discarded = leftOver
		r.settle(i, cancelled, at, out)
		return
	}
	if k := slices.IndexFunc(d.Earlier, func(e Earlier) bool { return e.Step == id }); k >= 0 {
		s.result = &Result{Call: s.Call, Attempt: 1, ByOwner: true, Parts: a.parts(r, d.Earlier[k])}
		r.settle(i, succeeded, at, out)
		return
	}
	if takesBegun(a, r, sc, i, id, d, at, out) {
		return
	}
	res := d.Settled[id]
	if res == nil {
		return
	}
	own := *res
	own.Call, own.Attempt, own.ByOwner = s.Call, 1, true
	own.Size = int64(len(own.Value))
	if s.result = &own; own.Error != nil {
		r.settle(i, failed, at, out)
		return
	}
	r.settle(i, succeeded, at, out)
}

// parts returns the results of an earlier round that there are.
func (a *rounds) parts(r *Run, e Earlier) []Part {
	list := []Part{}
	sc := ran(a, r, e.Round)
	if sc == nil {
		return list
	}
	for _, id := range e.IDs {
		if n, known := sc.plan.Index(id); known && r.calls[sc.at(n)].state == succeeded {
			list = append(list, Part{id, begunAs(r, sc.at(n))})
		}
	}
	return list
}

// over goes on with an agent of which what a round decided has run.
func (a *rounds) over(r *Run, i int, sc *scope, at time.Time, out *Effects) {
	d := a.records[len(a.records)-1]
	for _, id := range slices.Concat(d.Direct, sc.added().direct) {
		if n, known := sc.plan.Index(id); known && r.calls[sc.at(n)].state == succeeded {
			a.direct(r, i, sc, n, d.Formerly, at, out)
			return
		}
	}
	if d.Ends && !sc.standing(r).bad() { // what had begun the answer does not have
		a.end(r, i, a.comesTo(r, i, d.Output), nil, at, out)
		return
	}
	if sc.plan.Output == nil || len(d.Rest) > 0 || sc.standing(r).bad() || misses(r, sc) {
		a.further(r, i, at, out)
		return
	}
	a.shape(r, i, sc, at, out)
}

// misses reports whether people discarded what a round was to run, and nothing came of it: its planner put forward an output that
// reckoned with it, and is told.
func misses(r *Run, sc *scope) bool {
	return slices.ContainsFunc(sc.added().missed, func(i int) bool { return r.calls[i].state != succeeded })
}

// direct ends the loop with the result of a direct call that has succeeded. The items of a list have it together, so that it
// is put together as an output is. formerly lets it be null.
func (a *rounds) direct(r *Run, i int, sc *scope, n int, formerly bool, at time.Time, out *Effects) {
	if _, list := r.Items(sc.at(n)); list && !formerly {
		sc.direct, sc.plan = true, sc.plan.Returning(n)
		a.shape(r, i, sc, at, out)
		return
	}
	res := a.comesTo(r, i, r.calls[sc.at(n)].result)
	if err := returnsDirectly(r, i, sc.plan.Steps[n].ID, res); err != nil {
		a.unfit(r, i, refused{len(a.records) - 1, err, false}, at, out)
		return
	}
	a.offer(r, i, res, direct, at, out)
}

// shape puts together what a round comes to that is over, or asks for the record of that.
func (a *rounds) shape(r *Run, i int, sc *scope, at time.Time, out *Effects) {
	if sc.output = sc.derived(r); sc.output == nil {
		sc.shaping, r.calls[i].state = true, closing
		r.askToClose(i, out)
		return
	}
	a.shaped(r, i, sc, at, out)
}

// returnsDirectly reports why the result of a direct tool is none that the agent may come to. One that lies apart for its size
// is not looked at here; an output that refers to it is, once an owner has read it.
func returnsDirectly(r *Run, i int, id string, res *Result) *fault.Error {
	t := r.stepOf(i).Template
	if t.Output != nil && res.Value == nil {
		return fault.New(fault.TooLarge, "the result of %q lies apart for its size, and is not held against the output schema by itself", id).
			WithHint(`answer with an "output" that refers to it, or to what of it is wanted`)
	}
	return t.Returns(res.Value)
}

// shaped goes on with an agent once it is known what the output of a round came to: what its schema does not allow, and
// what could not be made, is dropped. An answer that puts forward nothing else is of no use.
func (a *rounds) shaped(r *Run, i int, sc *scope, at time.Time, out *Effects) {
	if err := sc.output.Error; err != nil {
		d := a.records[len(a.records)-1]
		a.unfit(r, i, refused{len(a.records) - 1, err, !callsOf(sc, d, func(int) bool { return true })}, at, out)
		return
	}
	if sc.direct {
		a.offer(r, i, a.comesTo(r, i, sc.output), direct, at, out)
		return
	}
	a.end(r, i, sc.output, nil, at, out)
}

// unfit goes on with an agent of which a round came to what it may not come to.
func (a *rounds) unfit(r *Run, i int, why refused, at time.Time, out *Effects) {
	a.refused = append(a.refused, why)
	r.calls[i].state = entered
	a.further(r, i, at, out)
}

// invalid reports whether the answer of a round was of no use.
func (a *rounds) invalid(round int) bool {
	return a.records[round].Invalid || slices.ContainsFunc(a.refused, func(x refused) bool { return x.round == round && x.invalid })
}

// end ends an agent with what its loop came to, a result or an error. One that responds, and of which something was
// executed, asks its planner once more before.
func (a *rounds) end(r *Run, i int, res *Result, err *fault.Error, at time.Time, out *Effects) {
	switch {
	case err == nil:
		a.offer(r, i, res, offered, at, out)
	case r.stepOf(i).Agent().Responds && !r.halting(i) && a.executed(r):
		a.respond(r, i, &ending{nil, err}, at, out)
	default:
		r.fail(i, err, at, out)
	}
}

// accept lets an agent come to an output that has passed, unless somebody has said something that no round has taken, or
// its planner is asked for a last answer.
func (a *rounds) accept(r *Run, i int, res *Result, as offer, at time.Time, out *Effects) {
	switch {
	case as != responded && a.hearsOut(r, i, res, at, out):
	case as == offered && r.stepOf(i).Agent().Responds && !r.halting(i) && a.executed(r):
		a.respond(r, i, &ending{res, nil}, at, out)
	default:
		r.endWith(i, res, at, out)
	}
}

// respond asks the planner for a last answer.
func (a *rounds) respond(r *Run, i int, e *ending, at time.Time, out *Effects) {
	a.ending = e
	r.calls[i].state = entered
	a.goOn(r, i, at, out)
}

// hearsOut begins another round in the place of the end of a loop, where something was said that no round has taken.
func (a *rounds) hearsOut(r *Run, i int, res *Result, at time.Time, out *Effects) bool {
	if !a.unheard() || r.halting(i) || len(a.records) >= r.stepOf(i).Agent().MaxRounds {
		return false
	}
	a.offered = res
	r.calls[i].state = entered
	a.goOn(r, i, at, out)
	return true
}

// executed reports whether a call was made in some round, whatever it came to.
func (a *rounds) executed(r *Run) bool {
	was := func(call int) bool {
		state := r.calls[call].state
		return state == succeeded || state == failed
	}
	for _, sc := range a.of[:a.entered] {
		if begun := begunIn(r, sc); begun != nil && callsOf(begun, &Round{}, was) {
			return true
		}
		if !asksPlanner(sc) && callsOf(sc, a.records[sc.round-1], was) {
			return true
		}
	}
	return false
}

// callsOf reports whether there is such a call in what a round runs: a value is none, nor is what stands for an earlier round.
func callsOf(sc *scope, d *Round, such func(call int) bool) bool {
	earlier := slices.Concat(d.Earlier, sc.added().earlier)
	for n := range sc.plan.Steps {
		s := &sc.plan.Steps[n]
		own := slices.ContainsFunc(earlier, func(e Earlier) bool { return e.Step == s.ID })
		if !own && (s.Tool != "" || s.Plan != nil) && such(sc.at(n)) {
			return true
		}
	}
	return false
}

// responded ends an agent with the last answer of its planner; one of no use leaves what the loop came to.
func (a *rounds) responded(r *Run, i int, d *Round, at time.Time, out *Effects) {
	if d.Ends {
		a.offer(r, i, a.comesTo(r, i, d.Output), responded, at, out)
		return
	}
	a.unresponded(r, i, at, out)
}

// unresponded ends an agent whose last answer is of no use with what its loop came to.
func (a *rounds) unresponded(r *Run, i int, at time.Time, out *Effects) {
	switch e := a.ending; {
	case e.err != nil:
		r.fail(i, e.err, at, out)
	case string(e.result.Value) != "null":
		r.endWith(i, e.result, at, out)
	default:
		r.fail(i, a.ended(r, fault.New(fault.PlannerInvalid, "the planner's last answer can't be used").
			WithHint("it is to be an output, or text; details.problems says why it is none: %s", shows(r, i))), at, out)
	}
}

// comesTo returns a result as that of an agent; nil is null, and so is one that has nothing in it.
func (a *rounds) comesTo(r *Run, i int, res *Result) *Result {
	own := Result{Value: []byte("null"), Size: int64(len("null"))}
	if res != nil && (res.Value != nil || res.Handle != nil) {
		own = *res
	}
	own.Call, own.Attempt, own.ByOwner, own.Token, own.Derived = r.calls[i].Call, 1, true, nil, false
	if own.Handle == nil {
		own.Size = int64(len(own.Value))
	}
	return &own
}

// further begins the next round, unless there may be no more.
func (a *rounds) further(r *Run, i int, at time.Time, out *Effects) {
	n := len(a.records)
	invalid := 0
	for n-invalid > 0 && a.invalid(n-1-invalid) {
		invalid++
	}
	switch {
	case r.halting(i):
		r.end(i, cancelled, at, out)
	case invalid == mostInvalid:
		r.fail(i, a.ended(r, fault.New(fault.PlannerInvalid, "the planner answered %d times in a row with what can't be used", invalid).
			WithHint("a planner reads in its next request what was wrong; details.problems has it of the last answer: %s", shows(r, i))), at, out)
	case n == r.stepOf(i).Agent().MaxRounds:
		a.end(r, i, nil, a.ended(r, fault.New(fault.RoundsExhausted, "the agent came to no output in %d rounds", n).
			WithHint("raise its max_rounds, or ask for less at a time; details.last has what the last round came to: %s", shows(r, i))), at, out)
	default:
		a.goOn(r, i, at, out)
	}
}

// shows is the command that shows the details of a call's error, which an outcome is without.
func shows(r *Run, i int) string { return "stepjet get RUN --step " + r.Token(r.calls[i].Call) }

// ended adds to the error of a loop how many rounds there were, and the results of the last one, or why its answer could
// not be used.
func (a *rounds) ended(r *Run, err *fault.Error) *fault.Error {
	details := endDetails{Rounds: len(a.records)}
	last := len(a.records) - 1
	details.Problems = a.records[last].Problems
	for _, x := range a.refused {
		if x.round == last && x.invalid {
			details.Problems = []fault.Problem{{Code: x.err.Code, Path: "/output", Message: x.err.Message, Hint: x.err.Hint}}
		}
	}
	details.Last = cameOf(r, a.current())
	err.Details, _ = json.Marshal(details) // of JSON
	return err
}

// withRounds adds to the error of a loop that no answer has ended how many rounds were decided, and the results of the round that goes
// on, or of the one before: of others they may have been let go of.
func (a *rounds) withRounds(r *Run, err *fault.Error) *fault.Error {
	sc := a.current()
	if sc != nil && asksPlanner(sc) && a.entered > 1 && a.of[a.entered-2].round == sc.round-1 {
		sc = a.of[a.entered-2]
	}
	err.Details, _ = json.Marshal(endDetails{Rounds: len(a.records), Last: cameOf(r, sc)}) // of JSON
	return err
}

// endDetails are those of the error of a loop.
type endDetails struct {
	Rounds   int                        `json:"rounds"`
	Last     map[string]json.RawMessage `json:"last,omitempty"`
	Problems []fault.Problem            `json:"problems,omitempty"`
}

// cameOf returns the results of what a round runs, by step, as many as there is room for; nil for none.
func cameOf(r *Run, sc *scope) (last map[string]json.RawMessage) {
	if sc == nil || asksPlanner(sc) {
		return nil
	}
	room := maxLast
	for n := range sc.plan.Steps {
		i := sc.at(n)
		value := r.Value(i)
		if room -= len(value); value == nil || room < 0 || r.calls[i].result.Parts != nil {
			continue
		}
		if last == nil {
			last = map[string]json.RawMessage{}
		}
		last[sc.plan.Steps[n].ID] = value
	}
	return last
}
