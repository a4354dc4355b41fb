package index_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/ui/index"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// told is what the streams say of a run: its plan record, its document, or both.
type told struct {
	run     string
	seq     uint64 // of the plan record; 0 for none
	doc     uint64 // where the document lies; 0 for none
	status  outcome.RunStatus
	retryOf string
	tool    string
	since   time.Time // when its streams were made
}

func (x told) at(seq uint64) time.Time { return x.since.Add(time.Duration(seq) * time.Second) }

func (x told) plan(w world) {
	if x.seq > 0 {
		w.Plan(subjects.NewRun("acme", x.run), x.seq, x.at(x.seq), x.retryOf)
	}
}

func (x told) end(w world) {
	if x.doc > 0 {
		d := doc("acme", x.run, x.status, max(x.seq, x.doc-1), x.at(max(x.seq, x.doc-1)))
		d.RetryOf, d.Steps[1].Tool = x.retryOf, x.tool
		d.Steps[1].Attempts, d.Steps[1].Ready, d.Steps[1].Started, d.Steps[1].Ended = 1, d.Submitted, d.Submitted, d.Finished
		w.Finished(index.Of(subjects.NewRun("acme", x.run), x.doc, outcome.HeadOf(d)))
	}
}

// read tells all of it, in the order in which cursors that don't wait for each other might.
func read(w world, streams []told, r *rand.Rand) {
	var all []func(world)
	for _, x := range streams {
		all = append(all, x.plan, x.end)
		if r.IntN(4) == 0 {
			all = append(all, x.end) // twice
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, tell := range all {
		tell(w)
	}
}

// some is what streams might hold of some of twenty runs; seq goes on, or begins anew where the streams do.
func some(r *rand.Rand, seq *uint64, since time.Time) (all []told) {
	for i := range 20 {
		*seq += 2
		x := told{run: fmt.Sprint("r", i), status: statuses[r.IntN(4)], tool: fmt.Sprint("tool-", r.IntN(200)), since: since}
		if r.IntN(3) == 0 {
			x.retryOf = fmt.Sprint("r", r.IntN(20))
		}
		switch r.IntN(4) {
		case 0:
			continue
		case 1:
			x.seq = *seq
		case 2:
			x.doc = *seq + 1
		case 3:
			x.seq, x.doc = *seq, *seq+1
		}
		all = append(all, x)
	}
	return all
}

func shown(p index.Page) string {
	lines := fmt.Sprint(p.Counts, p.Matched, p.Attention, "\n")
	for _, l := range p.Lines {
		lines += fmt.Sprintln(l.Key, l.Status, l.Generation, l.Submitted, l.Finished, l.Stats, l.Tools, l.RetryOf, l.Settled)
	}
	return lines
}

// TestAnIndexReadAnewIsAsANewOne: whatever was there before, and whatever became of the streams meanwhile.
func TestAnIndexReadAnewIsAsANewOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 5))
		seq, since := uint64(0), epoch
		ix := index.New()
		var streams []told
		for round := range 5 {
			anew := round == 0 || r.IntN(4) == 0
			if anew {
				seq, since = uint64(r.IntN(3)), since.Add(time.Hour)
			}
			next, kept := some(r, &seq, since), map[string]told{}
			for i, x := range streams {
				if !anew && i%2 == 0 { // is as it was
					kept[x.run] = x
				}
			}
			for i, x := range next {
				if was, ok := kept[x.run]; ok {
					next[i] = was
				}
			}
			streams = next
			if r.IntN(3) == 0 {
				read(again(ix), streams[:len(streams)/2], r) // is given up
			}
			w, whole := again(ix), fresh()
			read(w, streams, r)
			read(whole, streams, r)
			w.Complete()
			whole.Complete()
			for _, q := range []index.Query{{}, {Newest: true}, {Tool: "tool-1"}} {
				require.Equal(t, shown(listed(t, whole, q)), shown(listed(t, w, q)), "seed %d, round %d", seed, round)
			}
			require.Equal(t, whole.Figures("acme", epoch), w.Figures("acme", epoch), "seed %d, round %d", seed, round)
		}
	}
}

// TestALineStandsUntilTheNextReadingIsComplete: a run that is over is not seen to go on meanwhile because of its plan
// record, one that is gone goes at the end, and who looks is told once for what changes.
func TestALineStandsUntilTheNextReadingIsComplete(t *testing.T) {
	t.Parallel()
	first := fresh()
	over, gone := told{run: "over", seq: 3, doc: 4, status: outcome.Failed, tool: "t", since: epoch}, told{run: "gone", doc: 9, status: outcome.Succeeded, tool: "t", since: epoch}
	over.plan(first)
	over.end(first)
	gone.end(first)
	require.Equal(t, 2, first.Figures("acme", epoch).Runs, "the first reading is shown as it grows")
	first.Complete()
	version := first.Version()

	next := again(first.Index)
	over.plan(next)
	l, _ := next.Get("acme.over")
	require.Equal(t, outcome.Failed, l.Status)
	over.end(next)
	require.Equal(t, version, next.Version(), "nothing has changed")
	gone.end(first) // its cursor goes on for a moment
	told{run: "late", doc: 12, status: outcome.Succeeded, tool: "t", since: epoch}.end(first)
	require.Equal(t, 2, next.Figures("acme", epoch).Runs)
	require.Equal(t, 2, next.Len())
	next.Complete()
	require.Equal(t, 1, next.Len())
	require.Equal(t, 1, next.Figures("acme", epoch).Runs)
	_, ok := next.Get("acme.gone")
	require.False(t, ok)
	require.Greater(t, next.Version(), version)
}
