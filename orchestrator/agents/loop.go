package agents

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/request"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/wire"
)

// Loop is the loop of one agent of one run, as the records have it. All that is asked of it follows from that, so every
// owner comes to the same. It is for one goroutine, and for one moment.
type Loop struct {
	Definition *agent.Definition
	// Input is what the agent was called with.
	Input json.RawMessage
	// Rounds are those that were begun, in their order. Of those that are past nothing has to be there.
	Rounds []*Round
	// Past is what is left of the first rounds; nil for a loop of which all are there. It has none behind the round that is
	// asked about.
	Past *Past
	// Shelf has what was read of the last answer; nil: it is read anew.
	Shelf *Shelf
	// Templates are those that the run froze, its agents among them, by name.
	Templates map[string]*plan.Template
	// Final says that the last round is that of the last answer, of an agent that responds. Then no round is past.
	Final bool
	// Formerly says that the run does not need wire.AgentOrder: the order that gates add does not hold in plans within steps.
	Formerly bool
	// Run and Name are the run and the token of the agent, for its account.
	Run, Name string
	// Timed says that requests tell what is left of the budget's time, and not what there was.
	Timed bool
	// Guarded says that what guards took counts, and the planner's call of a round that came to none takes nothing.
	Guarded bool
	// Bound says that calls are the same which were sent the same, what is bound included, and that one fails to which is bound
	// what is not there.
	Bound bool
	// Objects says that conditions about objects may ask for more than these, of entries that are selected too; in runs of before
	// such entries are none.
	Objects bool
	// Ordered says that of the objects of a round the one of the last call in the answer's order counts; in runs of before it is the
	// one that came last.
	Ordered bool
	// Within says that a call of a plan within a step is as locked as one of the answer itself, if it was so when the answer came; in
	// runs of before only whether it is open when it is ready counts.
	Within bool
	// Ends says that a request tells of all that its loop would have come to with the round before.
	Ends bool
	// Share bounds what it may use up of the budget of the agent above it (Loop.ShareOf); zero: nobody does.
	Share agent.Budget
	// Above returns what is on the blackboard of the agent that calls it, as of the record that began it; nil for nothing.
	Above func() []agent.Artifact
	// Part says what the part of a round is called.
	Part func(round int) string

	facts []*agent.Facts   // of the beginnings of rounds, from the first on that is not past, as far as they were asked for
	read  []*reading       // of the answers, likewise
	ids   [][]string       // of the steps of all rounds, likewise
	spent []agent.Spending // before rounds, from the first on that is not past, likewise
	told  *told            // its requests, likewise
	ran   []*came          // of the calls of rounds, from the first on that is not past, likewise

	objects map[uint64]string // names on the blackboard, by the records of calls, likewise
}

// Round is one of them.
type Round struct {
	// Answer is what the planner returned, as JSON; nil while it is asked.
	Answer []byte
	// Answered is the sequence of the record of that; 0 where nobody asks.
	Answered uint64
	// Summary is what a summary tool made of the oldest rounds before the planner was asked; nil for nothing. Summarised says
	// that it was asked to.
	Summary    []byte
	Summarised bool
	// Begun says that its planner was asked; Guards are those that have answered in it, where that counts.
	Begun  bool
	Guards []GuardSaid
	// Record is what was decided of it; nil as long as nothing is.
	Record *wire.Round
	// Handed are the steps that its planner has handed over before its answer was whole, but for those of which nothing began: as
	// they stand in the records, in their order. Gone are the ids of the others.
	Handed []json.RawMessage
	Gone   []string
	// Told are the ids of those of Handed that a later attempt of the planner is told of: they had begun by the record EndedAt,
	// which ended the one before.
	Told    []string
	EndedAt uint64
	// Refused is why a guard did not let pass what the round came to; nil where none said no.
	Refused *fault.Error
	// Amended are the amendments of what it runs that are in force, in their order.
	Amended []Amended
	// Elapsed is how long the agent had run when it began.
	Elapsed time.Duration
	// Said is what people have said to the agent that its planner is told.
	Said []request.Message
	// Again says that its answer was taken over from a run that this one tries again, where it was paid for; SummaryAgain that its
	// summary was.
	Again, SummaryAgain bool
	// Calls are those of the round, at any depth: all steps of its plan, and the items and iterations of these.
	Calls []Call
	// Below are the agents among them, where somebody counts what they use up.
	Below []*Below
}

// GuardSaid is what a guard that is a tool answered.
type GuardSaid struct {
	// On is one of plan.OnInput to plan.OnOutput.
	On string
	// Tool is the guard's.
	Tool string
	// Seq is the sequence of its record.
	Seq uint64
	// Answer is what it returned, as JSON.
	Answer []byte
}

// Call is one call of a round.
type Call struct {
	// Path names it by the ids of the steps down to it, without numbers of items and iterations.
	Path string
	// Token is its own, of an agent, of items and of what is within steps, and of all calls of an agent that sends objects to sinks;
	// empty for others.
	Token string
	// Since is the sequence of the record that made it ready, Seq of the one that decided it; 0 for one that none has.
	Since, Seq uint64
	// ByOwner says that no worker did; Again that a worker did in a run that this one tries again.
	ByOwner, Again bool
	// Single says that it is the step itself, and not an item or an iteration of it.
	Single bool
	// Status is that of the step, Arguments what it was called with, as far as that is known.
	Status    string
	Arguments json.RawMessage
	// Type is what kind of object its worker says that it returned, and Said what a planner is to read in its place; both
	// mostly empty.
	Type, Said string
	// Value is what it returned, Err why it did not.
	Value json.RawMessage
	Err   *fault.Error
	MS    int64
}

// Below is an agent among the calls of a round, at any depth, but not one within another agent.
type Below struct {
	// Begun is the sequence of the record that made it ready, Over of the one that ended it; 0 where there is none, also
	// for one that was given up without a record of its own.
	Begun, Over uint64
	// Token is its own.
	Token string
	// Added are the objects that it has put on its blackboard, once it is over and somebody has found out: then Captured is
	// true.
	Added    []agent.Artifact
	Captured bool
	// Budget is its own, beyond which it uses up nothing of its share.
	Budget agent.Budget
	// Loop is its own, once it is over; nil where Spent is there.
	Loop *Loop
	// Spent is what it has used up in the end, as soon as somebody has found out.
	Spent *agent.Spending
}

// objects are those that it has put on its blackboard in the end: what it was handed is not among them.
func (b *Below) objects() []agent.Artifact {
	if !b.Captured && b.Loop != nil && len(b.Loop.Rounds) > 0 {
		all := BoardOf(b.Loop, len(b.Loop.Rounds)-1, ^uint64(0))
		b.Added, b.Captured = all[min(len(inheritedBy(b.Loop)), len(all)):], true
	}
	return b.Added
}

// answer returns what the planner answered in a round.
func (l *Loop) answer(round int) (*reading, *fault.Error) {
	at := round - l.Past.Rounds()
	for len(l.read) <= at {
		l.read = append(l.read, nil)
	}
	if l.read[at] != nil {
		return l.read[at], nil
	}
	var amendments []*wire.AmendedRound
	for i := range l.Rounds[round].Amended {
		amendments = append(amendments, l.Rounds[round].Amended[i].Round)
	}
	decided := l.Rounds[round].Record != nil
	if x := l.Shelf.of(round, amendments); x != nil && decided {
		l.read[at] = x
		return x, nil
	}
	f, err := l.begin(round)
	if err != nil {
		return nil, err
	}
	x := readAs(l, round, f)
	l.read[at] = x
	if decided {
		l.Shelf.put(round, amendments, x)
	}
	return x, nil
}

// readAs reads the answer of a round, on the facts of its beginning. What had begun before it was whole belongs to it; one of no
// use is those steps alone, and so is one that is not there.
func readAs(l *Loop, round int, f *agent.Facts) *reading {
	r := l.Rounds[round]
	if len(r.Handed) > 0 && (r.Answer == nil || r.Record != nil && len(r.Record.Problems) > 0) {
		x := readBegun(l, r.Handed, round, f)
		if r.Answer != nil {
			x.report.Problems = r.Record.Problems
		}
		return x
	}
	x := &reading{places: map[string]int{}}
	x.answer, x.report = l.Shelf.read(round, r.Answer, f, l.earlier(round))
	if x.answer != nil && len(r.Handed) > 0 {
		var bad plan.Report
		x.answer, x.lacked, bad = x.answer.WithBegun(r.Handed, f, l.earlier(round))
		x.report.Problems = append(x.report.Problems, bad.Problems...)
	}
	if x.answer != nil {
		admitAll(l, x, f)
		x = amended(l, round, x, f)
	}
	if len(r.Handed) > 0 && r.Record == nil && len(x.report.Problems) > 0 { // the calls of an answer that can't be used are those that had begun
		y := readBegun(l, r.Handed, round, f)
		y.report = x.report
		return y
	}
	return x
}

// readBegun reads what a planner has handed over so far as an answer.
func readBegun(l *Loop, steps []json.RawMessage, round int, f *agent.Facts) *reading {
	x := &reading{places: map[string]int{}, lacked: map[string]bool{}}
	if x.answer, x.report = agent.Begun(steps, f, l.earlier(round)); x.answer == nil {
		return x
	}
	admitAll(l, x, f)
	for _, c := range x.answer.Calls {
		x.lacked[c.ID] = true
	}
	return x
}

// admitAll admits the calls of an answer that was read.
func admitAll(l *Loop, x *reading, f *agent.Facts) {
	x.index()
	x.admits = f.Admit(x.answer.Calls)
	x.report.Problems = append(x.report.Problems, x.admits.Problems...)
	if !l.Formerly {
		x.report.Problems = append(x.report.Problems, x.admits.Lists...)
	}
}

// hasRun reports whether something ran in a round, or runs.
func (r *Round) hasRun() bool {
	return len(r.Handed) > 0 || r.Record != nil && r.Record.Fragment != nil && r.Answer != nil
}

// amended returns the reading of an answer with the amendments of its round. The facts are those of the round's beginning.
func amended(l *Loop, round int, x *reading, f *agent.Facts) *reading {
	r := l.Rounds[round]
	if r.Record == nil || x.answer == nil {
		return x
	}
	x.settled = r.Record.Settled
	for i := range r.Amended {
		a := &r.Amended[i]
		add := slices.DeleteFunc(slices.Clone(a.Add), func(step json.RawMessage) bool { return agent.IsRound(idOf(step)) })
		b, from, report := x.answer.Amend(add, a.discards, f, l.earlier(round))
		if b == nil || a.Round == nil || len(report.Problems) > 0 { // nobody of ours wrote it
			continue
		}
		for _, id := range a.Round.Again {
			if b.Again == nil {
				b.Again = map[string]bool{}
			}
			b.Again[id] = true
		}
		x = x.with(b, from, a)
	}
	return x
}

// idsOf returns the ids of the own steps of a round, but for those that stand for earlier rounds.
func idsOf(calls []Call) (ids []string) {
	for _, c := range calls {
		if c.Single && !strings.Contains(c.Path, "/") && !roundID(c.Path) {
			ids = append(ids, c.Path)
		}
	}
	return ids
}

// begin returns the facts of the beginning of a round, which is none that is past. They must not be changed. The error is what is wrong with the
// input.
func (l *Loop) begin(round int) (*agent.Facts, *fault.Error) {
	past := l.Past.Rounds()
	if p := l.Past; len(l.facts) == 0 && p != nil {
		l.facts = append(l.facts, p.facts.Clone())
	}
	if len(l.facts) == 0 {
		f, err := l.Definition.Begin(l.Input, nil)
		if err != nil {
			return nil, err
		}
		if !l.Objects {
			agent.SelectFormerly(f)
		}
		if !l.Ordered {
			agent.OrderFormerly(f)
		}
		f.Inherit(inheritedBy(l))
		f.BeginRound(0, nil)
		l.facts = append(l.facts, f)
	}
	for n := past + len(l.facts); n <= round; n++ {
		f := l.facts[n-past-1].Clone()
		for _, o := range outcomesOf(l, n-1, ^uint64(0)) {
			before := len(f.Artifacts())
			o.addSent(f, l, n-1)
			l.onBoard(&o, f.Artifacts()[before:])
		}
		shared, _ := l.shared(n-1, ^uint64(0), nil)
		f.BeginRound(n, shared)
		l.facts = append(l.facts, f)
	}
	return l.facts[round-past], nil
}

// inheritedBy returns what is on a loop's blackboard before its first round.
func inheritedBy(l *Loop) []agent.Artifact {
	if l.Above == nil {
		return nil
	}
	return l.Above()
}

// BoardOf returns what is on the blackboard of an agent in a round, up to a record.
func BoardOf(l *Loop, round int, upTo uint64) []agent.Artifact {
	f, err := l.begin(round)
	if err != nil {
		return nil
	}
	f = f.Clone()
	for _, o := range outcomesOf(l, round, upTo) {
		o.addTo(f, l, round)
	}
	return f.Artifacts()
}

// belowOf returns the agent that was called, where its objects count.
func belowOf(l *Loop, round int, c *Call) *Below {
	if !l.Definition.CaptureNested || c.Token == "" {
		return nil
	}
	for _, b := range l.Rounds[round].Below {
		if b.Token == c.Token {
			return b
		}
	}
	return nil
}

// onBoard notes by which name the blackboard has all of what a call returned.
func (l *Loop) onBoard(o *outcome, added []agent.Artifact) {
	for _, a := range added {
		if o.seq > 0 && bytes.Equal(a.Value, o.Result) {
			if l.objects == nil {
				l.objects = map[uint64]string{}
			}
			l.objects[o.seq] = a.Name
		}
	}
}

// shared returns the state behind the calls of a round up to a record, or behind some of them; nil for what it was when the
// round began. lost says of calls why what they have written is not in it.
func (l *Loop) shared(round int, upTo uint64, among map[int]bool) (state json.RawMessage, lost map[string]string) {
	r := l.Rounds[round]
	x, err := l.answer(round)
	if err != nil || x.answer == nil || !x.answer.Writes() || !r.hasRun() {
		return nil, nil
	}
	wrote := map[string]agent.Wrote{}
	for k := range r.Calls {
		c := &r.Calls[k]
		i, known := x.places[c.Path]
		if !known || !c.Single || c.Seq > upTo || among != nil && !among[i] || x.answer.Calls[i].Within >= 0 {
			continue
		}
		e := l.entry(round, x, i)
		loaded := e != nil && e.Kind == agent.KindTool && e.HasOnce && c.ByOwner // it was not made, and says so
		switch {
		case c.Status == succeeded && c.Value != nil && !loaded:
			wrote[c.Path] = agent.Wrote{Result: c.Value}
		case c.Status == failed && c.Err != nil:
			wrote[c.Path] = agent.Wrote{Err: c.Err}
		}
	}
	f, _ := l.begin(round)
	return x.answer.Shared(f, wrote)
}

// The statuses of calls that write to the state.
const (
	succeeded = "succeeded"
	failed    = "failed"
)

// entry returns the entry that a call of an answer calls; nil for a value, a plan, and where there is none.
func (l *Loop) entry(round int, x *reading, call int) *agent.Entry {
	f, err := l.begin(round)
	if err != nil {
		return nil
	}
	return f.Entry(x.answer.Calls[call].Entry)
}
