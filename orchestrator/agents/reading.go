package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"weak"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/wire"
)

// reading is an answer as it was read, on the facts of the beginning of its round.
type reading struct {
	answer *agent.Answer
	report plan.Report
	paths  []string       // of its calls
	places map[string]int // of paths among its calls
	admits *agent.Admission

	lacked  map[string]bool         // own steps that had begun before the answer was whole, and that it does not have
	settled map[string]wire.Settled // when it was decided, or amended
	added   map[string]*Amended     // own steps that an amendment has added
	extra   int64                   // calls that amendments have added
	tools   map[string]string       // as wire.Round has them, of all amendments
	own     []string                // likewise
	earlier map[string][]string     // likewise
}

// index notes the paths of the calls, and their places.
func (x *reading) index() {
	x.paths, x.places = make([]string, len(x.answer.Calls)), map[string]int{}
	for i, c := range x.answer.Calls {
		if x.paths[i] = c.ID; c.Within >= 0 {
			x.paths[i] = x.paths[c.Within] + "/" + c.ID
		}
		x.places[x.paths[i]] = i
	}
}

// Amended is an amendment of a round that is in force.
type Amended struct {
	Add     []json.RawMessage
	Discard []string
	Rest    bool
	By      string
	Round   *wire.AmendedRound
}

func (a *Amended) discards(id string) bool { return a.Rest || slices.Contains(a.Discard, id) }

// note is what a planner is told of a step that an amendment has added; empty for none.
func (a *Amended) note() string {
	switch {
	case a == nil:
		return ""
	case a.By == "":
		return "It was added while the round ran."
	}
	return fmt.Sprintf("It was added by %s while the round ran.", a.By)
}

// with returns the reading of an amended answer, whose added calls begin at a place, as its amendment's record has it.
func (x *reading) with(b *agent.Answer, from int, a *Amended) *reading {
	y := &reading{answer: b, report: x.report, lacked: x.lacked, settled: maps.Clone(x.settled), added: maps.Clone(x.added), extra: x.extra}
	y.tools, y.own, y.earlier = maps.Clone(x.tools), slices.Concat(x.own, a.Round.Own), x.earlier
	y.index()
	waits := make([][]int, len(b.Calls))
	wait := func(path string, before []string) {
		i, known := y.places[path]
		for _, other := range before {
			if k, is := y.places[other]; known && is && k != i {
				waits[i] = append(waits[i], k)
			}
		}
	}
	for i, all := range x.admits.Waits {
		if at, known := y.places[x.paths[i]]; known && at < from {
			for _, other := range all {
				wait(x.paths[i], []string{x.paths[other]})
			}
		}
	}
	for id, before := range a.Round.Waits {
		wait(id, before)
	}
	y.admits = agent.Admitted(b.Calls, waits)
	for i, s := range x.admits.Settled {
		if at, known := y.places[x.paths[i]]; known && at < from {
			y.admits.Settled[at] = s
		}
	}
	if y.settled == nil {
		y.settled = map[string]wire.Settled{}
	}
	if y.added == nil {
		y.added = map[string]*Amended{}
	}
	for i, c := range b.Calls[from:] {
		delete(y.settled, c.ID) // what it is written in place of
		if c.Within < 0 {
			y.added[c.ID] = a
		}
		if c.Entry != "" {
			y.extra += y.times(from + i)
		}
	}
	maps.Copy(y.settled, a.Round.Settled)
	for id, s := range a.Round.Settled {
		i, known := y.places[id]
		if known && s.Error != nil && s.Error.Code == fault.Locked {
			y.extra -= y.times(i)
		}
		if known {
			y.admits.Settled[i] = agent.Settled{Result: s.Result, Err: s.Error}
		}
	}
	y.tools, y.earlier = merged(y.tools, a.Round.Tools), reached(reached(y.earlier, a.Round.Earlier), a.Round.Reaches)
	return y
}

// mostCalls bounds what is counted: no budget is larger.
const mostCalls = 1 << 40

// times is how often a call of the answer is made at most: as often as what it stands in lets it, each time.
func (x *reading) times(call int) (n int64) {
	for n = 1; call >= 0; call = x.answer.Calls[call].Within {
		n = min(n*int64(x.answer.Calls[call].Times), mostCalls)
	}
	return n
}

// merged returns a map with what another has besides.
func merged[V any](all, more map[string]V) map[string]V {
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, more)
	return all
}

// reached returns what steps that stand for earlier rounds have of those, with what they have besides.
func reached(all, more map[string][]string) map[string][]string {
	both := map[string][]string{}
	for _, of := range []map[string][]string{all, more} {
		for name, ids := range of {
			both[name] = slices.Concat(both[name], ids)
		}
	}
	return both
}

// idOf returns the id of a step as it stands in a plan; empty for what has none.
func idOf(step json.RawMessage) string {
	var s struct{ ID string }
	_ = json.Unmarshal(step, &s) // what has none is no step
	return s.ID
}

// Shelf keeps what was read of an agent's last answer that was decided, where that is a long one: a thousand gates would each
// read all of it anew. The last answer itself lies there as it was read, until memory is collected: who decides the round has read
// it, and the request behind it tells of it a moment later; an agent that waits holds nothing of it. It may be used by many
// goroutines at a time, and so may what lies there, which never changes.
type Shelf struct {
	kept atomic.Pointer[kept]
	last atomic.Pointer[weak.Pointer[asRead]]
}

// asRead is an answer as it was read in a round, and its bytes: the facts that it was read on are those of the round's beginning,
// which follow from records that don't change any more.
type asRead struct {
	round  int
	bytes  []byte
	answer *agent.Answer
	report plan.Report
}

// read reads an answer, or returns what lies there of it.
func (s *Shelf) read(round int, answer []byte, f *agent.Facts, earlier [][]string) (*agent.Answer, plan.Report) {
	if s == nil {
		return agent.Read(answer, f, earlier)
	}
	if last := s.last.Load(); last != nil {
		if x := last.Value(); x != nil && x.round == round && bytes.Equal(x.bytes, answer) {
			return x.answer, x.report
		}
	}
	x := &asRead{round: round, bytes: answer}
	x.answer, x.report = agent.Read(answer, f, earlier)
	x.report.Problems, x.report.Warnings = slices.Clip(x.report.Problems), slices.Clip(x.report.Warnings) // who finds more adds it to their own
	last := weak.Make(x)
	s.last.Store(&last)
	return x.answer, x.report
}

// kept is one reading, and what it was made of.
type kept struct {
	round   int
	amended []*wire.AmendedRound
	reading *reading
}

// manyCalls are as many as an answer is kept for: agents that wait hold little.
const manyCalls = 32

// of returns what lies there of a round, with the amendments that it has; nil for nothing.
func (s *Shelf) of(round int, amended []*wire.AmendedRound) *reading {
	if s == nil {
		return nil
	}
	if k := s.kept.Load(); k != nil && k.round == round && slices.Equal(k.amended, amended) {
		return k.reading
	}
	return nil
}

// put puts what was read of a round there, if that is worth it.
func (s *Shelf) put(round int, amended []*wire.AmendedRound, x *reading) {
	if s != nil && x.answer != nil && len(x.answer.Calls) >= manyCalls {
		s.kept.Store(&kept{round, amended, x})
	}
}
