package agents

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
)

// outcome is one of a call, by its place among those of the answer.
type outcome struct {
	call  int
	since uint64 // the record that made it ready
	seq   uint64
	again bool
	token string // of the call, where that is known
	below *Below // the agent that it was, whose objects count; nil for none
	agent.Outcome
}

// asOf returns it as facts take it, with the state as of a record, of all calls or of some. What an agent below has put on its
// blackboard hangs upon what came before it.
func (o *outcome) asOf(l *Loop, round int, upTo uint64, among map[int]bool) agent.Outcome {
	came := o.Outcome
	if o.below != nil {
		came.Nested = o.below.objects()
	}
	came.Place = o.place(round)
	came.State = func() json.RawMessage {
		shared, _ := l.shared(round, upTo, among)
		return shared
	}
	return came
}

// place says where the call stands among those of its agent, the items and iterations on the way to it by their numbers.
func (o *outcome) place(round int) []int {
	at := []int{round, o.call}
	for part := range strings.SplitSeq(o.token, "/") {
		_, number, is := strings.Cut(part, "=")
		if n, err := strconv.Atoi(number); is && err == nil {
			at = append(at, n)
		}
	}
	return at
}

// addTo adds it to facts, in the order of the ledger.
func (o *outcome) addTo(f *agent.Facts, l *Loop, round int) { f.Add(o.asOf(l, round, o.seq, nil)) }

// addSent is addTo with what the call was sent.
func (o *outcome) addSent(f *agent.Facts, l *Loop, round int) {
	made := *o
	if x, err := l.answer(round); err == nil && x.answer != nil {
		made.Arguments = sent(l, round, x, o.call, o.since, o.Arguments)
	}
	made.addTo(f, l, round)
}

// came is what the calls of a round came to. It is added to as calls are over, so that a thousand gates look at each of them
// once, and not each at all of them.
type came struct {
	taken int            // calls of the round that were looked at
	all   []outcome      // in the order of the ledger: first what the round's own record settled, in the answer's order
	first int            // behind those
	by    map[int][]int  // their places, by call
	facts []*agent.Facts // behind none of them, behind the first, and so on, as far as they were asked for

	sending sending
}

// Sent is an object that goes to sinks, beside the blackboard.
type Sent struct {
	// Step is the token of the call that returned it, Tool what it called.
	Step, Tool string
	// Type is that of the object, Value the object.
	Type  string
	Value json.RawMessage
	// To are the sinks, by their places in the entry.
	To map[int]agent.Sink
}

// sending is how far the calls of a round were gone through for what goes to sinks: each is once, however often somebody asks.
type sending struct {
	facts   *agent.Facts // behind those
	through int          // so many of what calls came to
	unsent  []Sent
}

// outcomesOf returns what the calls of a round came to up to a record, in the order of the ledger. They must not be changed.
func outcomesOf(l *Loop, round int, upTo uint64) []outcome {
	c := cameIn(l, round)
	return c.all[:c.upTo(upTo)]
}

// upTo is how many of them there are up to a record.
func (c *came) upTo(seq uint64) int {
	return c.first + sort.Search(len(c.all)-c.first, func(i int) bool { return c.all[c.first+i].seq > seq })
}

// cameIn returns what is known of the calls of a round: nothing of one that runs nothing.
func cameIn(l *Loop, round int) *came {
	r := l.Rounds[round]
	if !r.hasRun() {
		return &came{}
	}
	x, err := l.answer(round)
	if err != nil || x.answer == nil {
		return &came{}
	}
	at := round - l.Past.Rounds()
	for len(l.ran) <= at {
		l.ran = append(l.ran, nil)
	}
	c := l.ran[at]
	if c == nil {
		c = &came{by: map[int][]int{}}
		l.ran[at] = c
		settledBy(l, round, x, c)
	}
	if c.taken == len(r.Calls) {
		return c
	}
	more := takenOf(l, round, x, c.taken)
	if n := len(c.all); n > c.first && len(more) > 0 && more[0].seq <= c.all[n-1].seq { // they belong in between
		more = takenOf(l, round, x, 0)
		c.all, c.by, c.facts, c.sending = nil, map[int][]int{}, nil, sending{}
		settledBy(l, round, x, c)
	}
	for _, o := range more {
		c.add(o)
	}
	c.taken = len(r.Calls)
	return c
}

func (c *came) add(o outcome) {
	c.by[o.call] = append(c.by[o.call], len(c.all))
	c.all = append(c.all, o)
}

// settledBy adds what the record of a round has settled.
func settledBy(l *Loop, round int, x *reading, c *came) {
	for i, path := range x.paths {
		s, is := x.settled[path]
		if !is || s.Error != nil && s.Error.Code == fault.Locked {
			continue
		}
		if e := l.entry(round, x, i); e != nil && e.Kind != agent.KindTool {
			c.add(outcome{i, 0, 0, false, "", nil, agent.Outcome{
				Entry: x.answer.Calls[i].Entry, Failed: s.Error != nil, Arguments: x.answer.Calls[i].Arguments, Result: s.Result,
			}})
		}
	}
	c.first = len(c.all)
}

// takenOf returns what the calls of a round came to, from one on, in the order of the ledger.
func takenOf(l *Loop, round int, x *reading, from int) (all []outcome) {
	r := l.Rounds[round]
	for k := from; k < len(r.Calls); k++ {
		c := &r.Calls[k]
		i, known := x.places[c.Path]
		if !known || c.Seq == 0 || x.answer.Calls[i].Entry == "" {
			continue
		}
		e := l.entry(round, x, i)
		if c.ByOwner && (e == nil || e.Kind == agent.KindTool) && (c.Err == nil || c.Err.Code == fault.Locked) {
			continue // it was not made
		}
		if c.Err != nil && l.Definition.NotMade(c.Err) {
			continue
		}
		o := outcome{i, c.Since, c.Seq, c.Again, c.Token, belowOf(l, round, c), agent.Outcome{Entry: x.answer.Calls[i].Entry, Failed: c.Err != nil, Arguments: c.Arguments, Result: c.Value, Type: c.Type}}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b outcome) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// Matters reports whether what a call of a round was called with and returned matters to the gates of that round, and not only
// that it was called.
func Matters(l *Loop, round int, c *Call) bool {
	x, err := l.answer(round)
	if err != nil || x.answer == nil {
		return false
	}
	i, known := x.places[c.Path]
	if !known {
		return false
	}
	f, _ := l.begin(round)
	return x.answer.Writes() || f.Keeps(x.answer.Calls[i].Entry, c.Type)
}

// factsAt returns the facts behind the first outcomes of a round. They must not be changed.
func factsAt(l *Loop, round, outcomes int) *agent.Facts {
	begun, _ := l.begin(round)
	c := cameIn(l, round)
	if len(c.facts) == 0 {
		c.facts = []*agent.Facts{begun}
	}
	for n := len(c.facts); n <= outcomes; n++ {
		f := c.facts[n-1].Clone()
		c.all[n-1].addSent(f, l, round)
		c.facts = append(c.facts, f)
	}
	return c.facts[outcomes]
}

// asOf returns the facts that the gate of a call is asked of, whose entry is called by a name: those as of the record that made
// it ready, and those of the beginning of the round with what came of the calls that it waits for.
func asOf(l *Loop, round int, x *reading, call int, since uint64) (now, seen *agent.Facts) {
	n := cameIn(l, round).upTo(since)
	now = factsAt(l, round, n)
	if shared, _ := l.shared(round, since, nil); shared != nil {
		now = now.Clone()
		now.Share(shared)
	}
	if !now.Acts(x.answer.Calls[call].Entry) {
		return now, now
	}
	return now, seenBy(l, round, x, call, since)
}

// seenBy returns the facts of which bound arguments of a call are taken: those of the beginning of its round, with what the
// calls came to that it waits for, up to the record that made it ready.
func seenBy(l *Loop, round int, x *reading, call int, since uint64) *agent.Facts {
	c := cameIn(l, round)
	n := c.upTo(since)
	begun, _ := l.begin(round)
	seen := begun.Clone()
	behind := map[int]bool{}
	for _, before := range x.admits.Behind(call) {
		behind[before] = true
		for _, k := range c.by[before] {
			if k < n {
				seen.Add(c.all[k].asOf(l, round, since, behind)) // of those before it in the answer's order
			}
		}
	}
	agent.Settle(seen) // items of one call came as they came
	shared, _ := l.shared(round, since, behind)
	seen.Share(shared)
	return seen
}

// sent returns what a call was sent that was made ready by a record: what was written with what is bound. No record says so: it
// follows from those that made the call ready. Of calls that nobody compares with others it is what was written.
func sent(l *Loop, round int, x *reading, call int, since uint64, written json.RawMessage) json.RawMessage {
	f, err := l.begin(round)
	if err != nil || !l.Bound {
		return written
	}
	entry := x.answer.Calls[call].Entry
	compared, moves := agent.Compared(f, entry)
	if !compared {
		return written
	}
	if moves {
		f = seenBy(l, round, x, call, since)
	}
	return agent.Sent(f, entry, written)
}
