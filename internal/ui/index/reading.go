package index

import (
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/ui/index/tally"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Reading is one reading of the streams from their beginnings, and what they say after it. It goes into the lines that are
// there, so that a list that is read anew is there once: a line that the reading has told nothing of stands as it was until
// the reading is complete, and is dropped then. Where a reading ends before that, the next one finds all lines there.
//
// What was told by readings before counts for nothing where this one says otherwise: the streams may have been made anew
// meanwhile, with sequences that begin at one. Only the last reading of an index is heard.
type Reading struct {
	ix     *Index
	number uint32
	// calls are summed up beside those that are shown, and take their place once all is told: so a run that is gone counts
	// no further, and none counts twice. They are small, and bounded.
	calls *tally.Tally
	done  bool
}

// Read begins a reading.
func (ix *Index) Read() *Reading {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	rd := &Reading{ix: ix, number: 1, calls: tally.New()}
	if last := ix.reading; last != nil {
		rd.number = last.number + 1
	}
	if last := ix.reading; last == nil || last.calls == ix.calls && !last.done { // no reading is complete: this is shown as it grows
		ix.calls = rd.calls
	}
	ix.reading = rd
	return rd
}

// Plan takes the news that a run was submitted: its plan record has this sequence and time.
func (rd *Reading) Plan(r subjects.Run, seq uint64, at time.Time, retryOf string) {
	ix := rd.ix
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.reading != rd {
		return
	}
	e := ix.entry(r.Key())
	e.plan, e.planIn = seq, rd.number
	goesOn := e.at == 0 && e.Status != "" && e.Generation == seq && e.Submitted.Equal(at) && e.RetryOf == retryOf
	if goesOn || e.at != 0 && rd.stands(e, seq, at) { // as it was told before
		return
	}
	ix.begin(e, at, retryOf)
	ix.touch()
}

// stands reports whether the line of a run that is over stands though there is a plan record of this sequence. What
// was told of its document before this reading counts if it is of that very plan; the reading will tell of it, or it goes.
func (rd *Reading) stands(e *entry, seq uint64, at time.Time) bool {
	if e.docIn == rd.number {
		return e.Generation >= seq
	}
	return e.Generation == seq && e.Submitted.Equal(at)
}

// begin makes the line of a run that goes on, by its plan record.
func (ix *Index) begin(e *entry, at time.Time, retryOf string) {
	e.Line = Line{
		Key: e.Key, Status: outcome.Running, Generation: e.plan, Submitted: at, RetryOf: retryOf, Settled: ix.settled[e.Key],
	}
	e.tools = ""
}

// Finished takes what is kept of a run that is over.
func (rd *Reading) Finished(l Line) {
	ix := rd.ix
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.reading != rd {
		return
	}
	e := ix.entry(l.Key)
	told := e.docIn == rd.number
	if told && e.at > l.at || e.planIn == rd.number && e.plan > l.Generation && l.Generation > 0 { // a later one is known
		return
	}
	if !(told && e.at == l.at) && l.Status != outcome.Rejected { // it may be told twice
		rd.sum(&l)
	}
	e.docIn = rd.number
	if e.at == l.at && e.Generation == l.Generation && e.Finished.Equal(l.Finished) { // as a reading before told it
		return
	}
	e.tools = ix.tools.pack(l.Tools)
	l.Key, l.Tools, l.Settled, l.calls = e.Key, nil, ix.settled[l.Key], nil
	e.Line = l
	ix.touch()
	ix.settleBy(e)
}

// Complete says that all was told that was there when the reading began. What it told nothing of is gone.
func (rd *Reading) Complete() {
	ix := rd.ix
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.reading != rd || rd.done {
		return
	}
	rd.done, ix.calls = true, rd.calls
	before := len(ix.order)
	ix.order = slices.DeleteFunc(ix.order, func(e *entry) bool {
		switch {
		case e.docIn != rd.number && e.planIn != rd.number:
			delete(ix.runs, e.Key)
			return true
		case e.docIn != rd.number && e.at != 0: // its document is gone, and its plan record is not
			ix.begin(e, e.Submitted, e.RetryOf)
		}
		return false
	})
	if len(ix.order) < before/2 { // a map keeps the room of all that it ever had
		ix.order = slices.Clone(ix.order)
		ix.runs = make(map[string]*entry, len(ix.order))
		for _, e := range ix.order {
			ix.runs[e.Key] = e
		}
	}
	ix.renumber()
	ix.resettle()
	ix.touch()
}

// renumber forgets the names of tools that no line has any more, where they are most of all.
func (ix *Index) renumber() {
	used := map[uint64]bool{}
	for _, e := range ix.order {
		for number := range numbers(e.tools) {
			used[number] = true
		}
	}
	if len(ix.tools.all) <= 2*len(used) {
		return
	}
	var fresh names
	for _, e := range ix.order {
		e.tools = fresh.pack(ix.tools.unpack(e.tools))
	}
	ix.tools = fresh
}

// resettle finds out anew which runs were tried again with success: a retry that is gone settles nothing.
func (ix *Index) resettle() {
	clear(ix.settled)
	for _, e := range ix.order {
		e.Settled = false
	}
	for _, e := range ix.order {
		ix.settleBy(e)
	}
}

func (ix *Index) entry(key string) *entry {
	e := ix.runs[key]
	if e == nil {
		key = strings.Clone(key) // not a part of a larger text
		e = &entry{Line: Line{Key: key}}
		ix.runs[key] = e
		ix.order = append(ix.order, e)
	}
	return e
}

// settleBy settles the run that a run tried again, if it did so with success or was so itself.
func (ix *Index) settleBy(e *entry) {
	if e.at != 0 && e.RetryOf != "" && (e.Settled || e.Status == outcome.Succeeded) {
		ix.settle(subjects.NewRun(e.Tenant(), e.RetryOf).Key())
	}
}
