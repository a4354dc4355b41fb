package machine

import (
	"slices"
	"time"
)

// MaxSaid is the most words to one agent.
const MaxSaid = 1_000

// Say is the record of a word to an agent.
type Say struct {
	// Agent is the token of its call.
	Agent string
	ID    string
	// Content is a text or a list of parts, as JSON.
	Content []byte
	// Interrupt ends the round that it came in: nothing of it starts any more, and what is out is given up.
	Interrupt bool
	By        string
	Verified  bool
}

// Said is a word that an agent has heard.
type Said struct {
	*Say
	// Round is the one whose planner is told of it: the first that begins behind it in the ledger; -1 as long as none has.
	Round int
}

// takeSay takes a word to an agent. One that has not begun, or whose loop is over, hears nothing any more.
func takeSay(r *Run, s *Say, at time.Time, out *Effects) {
	c, there := r.Find(s.Agent)
	if !there || len(s.Content) == 0 || !Hears(r, c) {
		return
	}
	a := agentAt(&r.tree, c)
	for _, x := range a.said {
		if x.ID == s.ID { // nobody of ours wrote it
			return
		}
	}
	a.said = append(a.said, Said{s, -1})
	if i, _ := r.index(c); s.Interrupt && !a.interrupted(a.current()) {
		a.interrupt(r, i, at, out)
	}
}

// interrupt lets nothing more start in the round that an agent is in. The next one begins once all that is out is
// decided; a planner's answer that is not decided yet means nothing.
func (a *rounds) interrupt(r *Run, i int, at time.Time, out *Effects) {
	sc := a.current()
	a.cut = append(a.cut, sc)
	r.ordered++
	if r.calls[i].state == closing {
		sc.shaping, r.calls[i].state = false, entered
		a.broken(r, i, sc, at, out)
		return
	}
	sc.stopping = true
	sc.halt(r, at, out)
}

// interrupted reports whether somebody has interrupted a round in one of its scopes.
func (a *rounds) interrupted(sc *scope) bool { return slices.Contains(a.cut, sc) }

// broken goes on with an agent whose round somebody has interrupted. One that was not decided is none of those that
// count as of no use.
func (a *rounds) broken(r *Run, i int, sc *scope, at time.Time, out *Effects) {
	if asksPlanner(sc) {
		a.records = append(a.records, &Round{Scope: sc.token, Void: true})
	}
	a.further(r, i, at, out)
}

// Hears reports whether an agent has begun, and its loop goes on: what is said to it then is told in its next round,
// or, where none follows by then, makes one follow.
func Hears(r *Run, agent Call) bool {
	a := agentAt(&r.tree, agent)
	i, ok := r.index(agent)
	return ok && a != nil && a.entered > 0 && !r.calls[i].state.terminal() && !r.halting(i) &&
		(!a.current().stopping || a.interrupted(a.current())) && a.ending == nil &&
		len(a.said) < MaxSaid && len(a.records) < r.stepOf(i).Agent().MaxRounds-a.asking()
}

// asking is 1 while the planner of a round was asked that is not decided yet.
func (a *rounds) asking() int {
	if asksPlanner(a.current()) {
		return 1
	}
	return 0
}

// unheard reports whether something was said that no round has taken.
func (a *rounds) unheard() bool { return len(a.said) > 0 && a.said[len(a.said)-1].Round < 0 }

// hear lets the round that begins take what was said.
func (a *rounds) hear() {
	for k := len(a.said) - 1; k >= 0 && a.said[k].Round < 0; k-- {
		a.said[k].Round = len(a.records)
	}
}

// AllSaid returns what an agent has heard, in the ledger's order. It must not be changed.
func AllSaid(r *Run, agent Call) []Said {
	if a := agentAt(&r.tree, agent); a != nil {
		return a.said
	}
	return nil
}
