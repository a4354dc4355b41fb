package machine

import "time"

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
	if i, _ := r.index(c); s.Interrupt {
		a.interrupt(r, i, at, out)
	}
}

// Hears reports whether an agent has begun, and its loop goes on: what is said to it then is told in its next round,
// or, where none follows by then, makes one follow.
func Hears(r *Run, agent Call) bool {
	a := agentAt(&r.tree, agent)
	i, ok := r.index(agent)
	return ok && a != nil && a.entered > 0 && !r.calls[i].state.terminal() && !r.halting(i) &&
		(!a.current().stopping || a.whyCut(a.current()) != nil) && a.ending == nil &&
		len(a.said) < MaxSaid && len(a.records) < r.stepOf(i).Agent().MaxRounds-a.asking()
}

// asking is 1 while the planner of a round was asked that is not decided yet.
func (a *rounds) asking() int {
	if sc := a.current(); asksPlanner(sc) && len(a.records) < int(sc.round) {
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
