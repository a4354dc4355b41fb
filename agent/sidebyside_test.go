package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// copyOf is one of those that a call is made as: once for each item of the list that it, or the plan around it, is called for.
type copyOf struct{ call, above, own int }

// stage lets the copies of an answer's calls begin and end in some order, as their workers happen to be, and asks the naive
// interpreter what each of them may.
type stage struct {
	h       history
	calls   []Call
	a       *Admission
	all     []copyOf
	done    map[copyOf]bool
	failed  map[copyOf]bool
	running []copyOf
}

const items = 2 // of each list

func newStage(h history, calls []Call, a *Admission) *stage {
	s := &stage{h: history{h.agent, slices.Clone(h.events)}, calls: calls, a: a, done: map[copyOf]bool{}, failed: map[copyOf]bool{}}
	for i, c := range calls {
		above, own := 1, 1
		if c.Within >= 0 && calls[c.Within].Listed {
			above = items
		}
		if c.Listed && c.Entry != "" {
			own = items
		}
		for k := range above * own {
			if c.Entry != "" {
				s.all = append(s.all, copyOf{i, k / own, k % own})
			}
		}
	}
	return s
}

// before are the copies that one waits for at calls of a plan: of its own item where that is the plan around it.
func (s *stage) before(x copyOf, deps []int, within bool) (list []copyOf) {
	for _, y := range s.all {
		for _, d := range deps {
			if (y.call == d || s.calls[y.call].Within == d) && (!within || y.above == x.above) {
				list = append(list, y)
			}
		}
	}
	return list
}

// free reports whether a copy may begin, and whether it is skipped, since what it depends on failed.
func (s *stage) free(x copyOf) (free, skipped bool) {
	free = true
	look := func(deps []int, within, needs bool) {
		for _, y := range s.before(x, deps, within) {
			free, skipped = free && s.done[y], skipped || needs && s.failed[y]
		}
	}
	w := s.calls[x.call].Within
	look(s.calls[x.call].After, w >= 0, true)
	look(s.a.Waits[x.call], w >= 0, false)
	if w >= 0 {
		look(s.calls[w].After, false, true)
		look(s.a.Waits[w], false, false)
	}
	return free, skipped
}

// locks reports whether something that others do locks an entry now: the state machine, another call of what is called once, or
// a facade.
func (s *stage) locks(entry string) bool {
	t, is := s.h.tool(entry)
	if !is {
		return s.h.verdict(entry) == "hidden"
	}
	return t.in != nil && !slices.Contains(t.in, s.h.state()) || t.once && s.h.count(t.name, true) > 0 || s.h.hidden(t.facade, t.category)
}

// play returns the copy that was locked while a worker had it, though it was open when it began; ok where there is none.
func (s *stage) play(r *rand.Rand) (bad copyOf, ok bool) {
	over := func(x copyOf, failed bool) { s.done[x], s.failed[x] = true, failed }
	happens := func(x copyOf, failed bool) {
		over(x, failed)
		s.h.events = append(s.h.events, happened{entry: s.calls[x.call].Entry, failed: failed, category: categoryOf(s.calls[x.call])})
	}
	for _, x := range s.all {
		if st, settled := s.a.Settled[x.call]; settled && (s.calls[x.call].Within < 0 || st.Err != nil && st.Err.Code == fault.Locked) {
			if _, isTool := s.h.tool(s.calls[x.call].Entry); st.Err != nil || isTool {
				over(x, st.Err != nil)
			} else {
				happens(x, false)
			}
		}
	}
	for {
		var may []copyOf
		for _, x := range s.all {
			if free, _ := s.free(x); free && !s.done[x] && !slices.Contains(s.running, x) {
				may = append(may, x)
			}
		}
		switch n := len(may) + len(s.running); {
		case n == 0:
			return copyOf{}, len(s.done) == len(s.all)
		case r.IntN(n) < len(may):
			x := may[r.IntN(len(may))]
			_, skipped := s.free(x)
			if v := s.h.verdict(s.calls[x.call].Entry); skipped || v != "open" {
				over(x, v != "loaded")
				continue
			}
			s.running = append(s.running, x)
		default:
			i := r.IntN(len(s.running))
			x := s.running[i]
			if s.running = slices.Delete(s.running, i, i+1); s.locks(s.calls[x.call].Entry) {
				return x, false
			}
			happens(x, x.call%3 == 1)
		}
	}
}

// TestSideBySideNothingLocks: no call that a worker has is locked by another one that ends meanwhile, also where lists have it
// made several times at once. Those for which that can't be had are problems of the answer.
func TestSideBySideNothingLocks(t *testing.T) {
	t.Parallel()
	played, refused, harmless := 0, 0, 0
	for seed := range uint64(6_000) {
		r := rand.New(rand.NewPCG(seed, []uint64{8, 43, 102}[seed%3]))
		agent := randomAgent(r)
		for i := range agent.tools { // these are asked of the record at which a call is ready, whoever has another meanwhile
			agent.tools[i].needsType, agent.tools[i].unless = "", ""
		}
		d, _ := Parse(agent.JSON(), nil)
		if d == nil {
			continue
		}
		h := history{agent: agent}
		f, _ := d.Begin(nil, nil)
		for range r.IntN(4) {
			h.goOn(r, f)
		}
		calls := randomCalls(r, agent, 8)
		for i := range calls {
			calls[i].Listed = r.IntN(5) == 0
			calls[i].Repeated = calls[i].Listed
		}
		a := f.Admit(calls)
		bad := 0
		for n := range uint64(20) {
			x, ok := newStage(h, calls, a).play(rand.New(rand.NewPCG(seed, 100+n)))
			if !ok && len(a.Lists)+len(a.Problems) == 0 {
				require.Fail(t, fmt.Sprintf("seed %d: %+v was locked while a worker had it", seed, x), "%s\n%s", shownCalls(calls, a), h)
			}
			if !ok {
				bad++
			}
		}
		switch {
		case len(a.Lists)+len(a.Problems) == 0:
			played++
		case bad > 0:
			refused++
		default:
			harmless++
		}
	}
	t.Log(played, "played,", refused, "refused,", harmless, "refused for what may happen and did not")
	require.Greater(t, played, 500)
	require.Greater(t, refused, 10)
}
