package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// spending is what it has used up in the end, with a share of the budget above.
func (b *Below) spending(share agent.Budget) agent.Spending {
	if b.Spent == nil {
		s := agent.Spending{}
		if b.Loop != nil {
			b.Loop.Share = share
			s = b.Loop.Usage(len(b.Loop.Rounds))
		}
		b.Spent = &s
	}
	return *b.Spent
}

// Usage is what the loop, and all agents below it, have used up before a round.
func (l *Loop) Usage(round int) agent.Spending {
	past := l.Past.Rounds()
	if l.spent == nil {
		first := agent.Spending{Budget: l.Definition.Budget.Within(l.Share)}
		if l.Past != nil {
			first = l.Past.spent
		} else {
			greeted(l, 0, &first)
		}
		l.spent = []agent.Spending{first}
	}
	round = min(round, len(l.Rounds))
	for n := past + len(l.spent) - 1; n < round; n++ {
		s := l.asked(n)
		shares := l.shares(n, ^uint64(0))
		s.Used.Steps += made(outcomesOf(l, n, ^uint64(0)))
		for _, b := range l.Rounds[n].Below {
			s.Return(agent.Budget{}, b.spending(shares[b.Begun]))
		}
		guarded(l, n, ^uint64(0), &s)
		l.summed(n+1, &s)
		greeted(l, n+1, &s)
		l.spent = append(l.spent, s)
	}
	return l.spent[round-past]
}

// made counts calls that this run has made.
func made(all []outcome) (n int64) {
	for i := range all {
		if !all[i].again {
			n++
		}
	}
	return n
}

// asked is what was used up before a round, and by the call of its planner, which was decided. One that said nothing of
// what it took keeps all that was reserved for it; one whose answer was taken over takes nothing.
func (l *Loop) asked(round int) agent.Spending {
	s := l.Usage(round)
	if l.Rounds[round].Again || l.Guarded && !l.Rounds[round].Begun {
		return s
	}
	took := l.took(round)
	if l.Rounds[round].Answer != nil {
		took.Model = cmp.Or(took.Model, l.Definition.Planner.Model, l.Definition.Planner.Tool) // which may say no name
	}
	if took.InputTokens+took.OutputTokens > 0 || s.Budget.Tokens == 0 {
		s.Settle(agent.Reservation{}, took)
		return s
	}
	if _, kept, err := l.request(round, s); err == nil { // else nobody was asked
		s.Reserved += kept.Tokens
		s.Settle(kept, took)
	}
	return s
}

// summed adds what the summary took that was made before the planner of a round was asked. As with planners, one that said
// nothing of that keeps all that was reserved for it, and one that was taken over takes nothing.
func (l *Loop) summed(round int, s *agent.Spending) {
	if round >= len(l.Rounds) || !l.Rounds[round].Summarised || l.Rounds[round].SummaryAgain {
		return
	}
	_, took := agent.Summary(l.Rounds[round].Summary)
	if l.Rounds[round].Summary != nil {
		took.Model = cmp.Or(took.Model, l.Definition.Context.Summary)
	}
	if took.InputTokens+took.OutputTokens > 0 || s.Budget.Tokens == 0 {
		s.Settle(agent.Reservation{}, took)
		return
	}
	if _, kept, due := l.summarising(round, *s); due {
		s.Reserved += kept.Tokens
		s.Settle(kept, took)
	}
}

// greeted adds what the guards took that looked at the agent's input, before the planner of a round was asked.
func greeted(l *Loop, round int, s *agent.Spending) {
	if round < len(l.Rounds) {
		guardsTook(l, round, func(g *GuardSaid) bool { return g.On == plan.OnInput }, s)
	}
}

// guarded adds what all other guards of a round took, up to a record.
func guarded(l *Loop, round int, upTo uint64, s *agent.Spending) {
	guardsTook(l, round, func(g *GuardSaid) bool { return g.On != plan.OnInput && g.Seq <= upTo }, s)
}

// guardsTook adds what some guards of a round say that they took. Nothing is reserved for one: nobody tells it how long it may
// answer.
func guardsTook(l *Loop, round int, such func(*GuardSaid) bool, s *agent.Spending) {
	for i := range l.Rounds[round].Guards {
		g := &l.Rounds[round].Guards[i]
		if took := agent.Took(g.Answer); such(g) && took != (agent.Tokens{}) {
			took.Model = cmp.Or(took.Model, g.Tool)
			s.Settle(agent.Reservation{}, took)
		}
	}
}

// took is what the planner of a round says that its answer took, whether that could be used or not.
func (l *Loop) took(round int) agent.Tokens {
	x, err := l.answer(round)
	if err == nil && x.answer != nil && (len(l.Rounds[round].Handed) == 0 || len(x.report.Problems) == 0) {
		return x.answer.Usage
	}
	return agent.Took(l.Rounds[round].Answer)
}

// ShareOf is what each agent may use up that a record made ready in a round, whose planner has answered: it follows from
// what was used up and promised by then, so it stays the same whatever happens later.
func (l *Loop) ShareOf(round int, begun uint64) agent.Budget { return l.shares(round, begun)[begun] }

// shares returns those of the agents below a round, by the records that made them ready, up to one of these.
func (l *Loop) shares(round int, upTo uint64) map[uint64]agent.Budget {
	below := slices.Clone(l.Rounds[round].Below)
	if len(below) == 0 {
		return nil
	}
	slices.SortStableFunc(below, func(a, b *Below) int { return cmp.Compare(a.Begun, b.Begun) })
	all, s := map[uint64]agent.Budget{}, l.asked(round)
	read, _ := l.answer(round) // one that can't be read makes no calls
	before, own := s.Used.Steps, read.calls(l.Definition.Advance)
	for first := 0; first < len(below) && below[first].Begun <= upTo; {
		begun, n := below[first].Begun, 0
		for first+n < len(below) && below[first+n].Begun == begun {
			n++
		}
		now := s
		guarded(l, round, begun, &now)
		now.Used.Steps = before + max(own, made(outcomesOf(l, round, begun)))
		promised(below[:first], all, begun, &now)
		all[begun] = now.Share(int64(n))
		first += n
	}
	return all
}

// promised adds what agents below may use up that have begun, as of a record: of those that are over by then what they have used up.
func promised(below []*Below, shares map[uint64]agent.Budget, upTo uint64, s *agent.Spending) {
	for _, b := range below {
		if share := shares[b.Begun]; b.Over == 0 || b.Over > upTo {
			s.Promise(b.Budget.Within(share))
		} else {
			s.Return(agent.Budget{}, b.spending(share))
		}
	}
}

// spentBy is what was used up, reserved and promised as of a record of a round. One that began while the planner wrote is before
// its answer, for which all is reserved as yet.
func spentBy(l *Loop, round int, upTo uint64) agent.Spending {
	s, shares := l.asked(round), l.shares(round, upTo)
	if r := l.Rounds[round]; r.Answer == nil || r.Answered > upTo {
		s = l.Usage(round)
		if _, kept, err := l.request(round, s); err == nil {
			s.Reserved += kept.Tokens
		}
	}
	guarded(l, round, upTo, &s)
	s.Used.Steps += made(outcomesOf(l, round, upTo))
	begun := slices.DeleteFunc(slices.Clone(l.Rounds[round].Below), func(b *Below) bool { return b.Begun > upTo })
	promised(begun, shares, upTo, &s)
	return s
}

// tooMany refuses an answer that would make more calls than the budget has steps left, or may. How many items a list has that is
// referred to is not known before it runs: there, the budget is asked before the next round.
func (l *Loop) tooMany(round int, x *reading) []fault.Problem {
	calls, left, over := x.overBudget(l.Usage(round), l.Definition.Advance)
	if !over {
		return nil
	}
	hint := fmt.Sprintf("answer with at most %d of them, the most important first; calls of plans within steps, all items of a list and \"max\" of a repeat count", left)
	if left == 0 {
		hint = `answer with an "output" alone`
	}
	return []fault.Problem{{Code: fault.BudgetExceeded,
		Message: fmt.Sprintf("this answer makes %d calls, and the budget leaves %d; nothing of it was run", calls, left), Hint: hint}}
}

// overBudget reports whether a round makes more calls than a budget has steps left for it, and how many there are of both.
func (x *reading) overBudget(spent agent.Spending, advance agent.Advance) (calls, left int64, over bool) {
	left = spent.Left().Steps
	if x.answer == nil || left == 0 { // no bound
		return 0, 0, false
	}
	calls, left = x.calls(advance), max(left, 0)
	return calls, left, calls > left
}

// calls is how many calls an answer makes at most, as far as that is known before it runs.
func (x *reading) calls(advance agent.Advance) (n int64) {
	if x == nil || x.answer == nil {
		return 0
	}
	_, rest := x.answer.Runs(advance)
	n = x.extra
	for i, c := range x.answer.Calls {
		own := i
		for x.answer.Calls[own].Within >= 0 {
			own = x.answer.Calls[own].Within
		}
		if x.added[x.answer.Calls[own].ID] != nil { // which are counted
			continue
		}
		s, settled := x.admits.Settled[i]
		if locked := settled && s.Err != nil && s.Err.Code == fault.Locked; c.Entry != "" && !locked && !slices.Contains(rest, own) {
			n = min(n+x.times(i), mostCalls)
		}
	}
	return n
}

// Needs says what an agent needs to know of what is used up.
type Needs struct {
	// Bounds says that it has a budget that agents below count against, Tells that its planner may ask what they have cost.
	Bounds, Tells bool
	// Captures says that the objects of agents below are its own, too.
	Captures bool
	// Sends says that objects of its calls go to sinks.
	Sends bool
}

// NeedsOf returns those of a definition.
func NeedsOf(d *agent.Definition) *Needs {
	b := d.Budget
	n := &Needs{Bounds: b.Steps != 0 || b.Tokens != 0 || b.CostUSD != 0, Captures: d.CaptureNested, Sends: agent.Sends(d)}
	for _, e := range d.Entries() {
		n.Tells = n.Tells || e.Kind == agent.KindBuiltIn && strings.HasPrefix(e.Name, "process_")
	}
	return n
}

// exceeded is the error of an agent that has used up its budget, or its share of the one above.
func exceeded(what string, share agent.Budget) *fault.Error {
	err := fault.New(fault.BudgetExceeded, "the budget of %s is used up", what)
	if share == (agent.Budget{}) {
		return err.WithHint(`raise it in the agent's "budget", or let its planner see what is left: it stands in each request`)
	}
	return err.WithHint(`an agent called by another has a share of what that has left: raise "budget" above, or let fewer agents be called at once`)
}
