package orchestrator

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
)

// filled is a window without room, so that what is pushed is held.
func filled(limit int, weights map[string]int) *window {
	w := newWindow(limit, 1, weights, &neighbours{})
	w.out = w.most()
	return w
}

// order empties a window call by call and gives the order.
func order(w *window) string {
	var b strings.Builder
	for w.held > 0 {
		w.out = w.most() - 1
		w.sendHeld(func(x *lane, h held) bool {
			b.WriteString(x.run.id.ID + string(rune('0'+h.step)) + " ")
			w.out++
			return true
		})
	}
	return strings.TrimSpace(b.String())
}

func push(w *window, r *run, steps ...int) {
	if r.lanes.Len() == 0 {
		r.lanes.Put("t", &lane{run: r, window: w})
	}
	for _, s := range steps {
		w.hold(r.lanes.At("t"), holding(machine.Dispatch{Call: machine.Call{Step: s}}, 0))
	}
}

func runOf(tenant, id string) *run { return &run{identity: identity{id: subjects.NewRun(tenant, id)}} }

func TestRunsOfATenantTakeTurns(t *testing.T) {
	w := filled(64, nil)
	huge, small := runOf("t", "h"), runOf("t", "s")
	push(w, huge, 1, 2, 3, 4)
	push(w, small, 1, 2)
	require.Equal(t, "h1 s1 h2 s2 h3 h4", order(w))
}

func TestTenantsTakeTurnsWhateverTheirRuns(t *testing.T) {
	w := filled(64, nil)
	a, b, c := runOf("x", "a"), runOf("x", "b"), runOf("y", "c")
	push(w, a, 1, 2)
	push(w, b, 1, 2)
	push(w, c, 1, 2, 3)
	require.Equal(t, "a1 c1 b1 c2 a2 c3 b2", order(w))
}

func TestWeightsGiveLongerTurns(t *testing.T) {
	w := filled(64, map[string]int{"x": 3})
	a, c := runOf("x", "a"), runOf("y", "c")
	push(w, a, 1, 2, 3, 4, 5)
	push(w, c, 1, 2, 3)
	require.Equal(t, "a1 a2 a3 c1 a4 a5 c2 c3", order(w))
}

func TestWhoComesLaterWaitsNoLongerThanOneTurn(t *testing.T) {
	w := filled(64, nil)
	huge, small := runOf("x", "h"), runOf("y", "s")
	for range 9999 {
		push(w, huge, 1)
	}
	push(w, small, 1, 2, 3)
	require.True(t, strings.HasPrefix(order(w), "h1 s1 h1 s2 h1 s3 h1 h1"))
}

// TestARunHasNoMoreOutThanItsShare lets a run of one step through beside one that has used its share.
func TestARunHasNoMoreOutThanItsShare(t *testing.T) {
	w := newWindow(4096, 1, nil, &neighbours{})
	huge, small := runOf("t", "h"), runOf("t", "s")
	for range 1000 {
		push(w, huge, 1)
	}
	sent := map[*run]int{}
	send := func(x *lane, _ held) bool {
		sent[x.run]++
		x.out++
		w.out++
		return true
	}
	w.sendHeld(send)
	require.Equal(t, firstShare, sent[huge])
	push(w, small, 1)
	w.sendHeld(send)
	require.Equal(t, 1, sent[small])
	require.Equal(t, firstShare, sent[huge])
	huge.lanes.At("t").out -= 2 // two are decided
	w.out -= 2
	w.turn(huge.lanes.At("t"))
	w.sendHeld(send)
	require.Equal(t, firstShare+2, sent[huge])
}

func TestCallsThatNobodyWantsTakeNoRoom(t *testing.T) {
	w := filled(64, nil)
	r := runOf("t", "r")
	push(w, r, 1, 2, 3, 4)
	w.out = w.most() - 1
	var sent []int
	w.sendHeld(func(x *lane, h held) bool {
		if h.step < 3 {
			return false
		}
		sent = append(sent, int(h.step))
		w.out++
		return true
	})
	require.Equal(t, []int{3}, sent)
	require.Equal(t, 1, w.held)
}

func TestTurnsLetGoOfWhatIsThrough(t *testing.T) {
	w := filled(64, nil)
	for i := range 1000 {
		push(w, runOf("t", "r"+string(rune('a'+i%26))), 1, 2)
		order(w)
	}
	require.Empty(t, w.tenants)
	require.True(t, w.empty())
	require.LessOrEqual(t, len(w.order.items), 64, "its memory is used again")
}

func TestAShareGrowsWhileCallsAreQuickAndShrinksWhenTheyWait(t *testing.T) {
	w := newWindow(4096, 1, nil, &neighbours{})
	s := w.share()
	require.Equal(t, firstShare, s.size)
	for range firstShare { // a round trip without waiting
		s.measured(10*time.Millisecond+200*time.Microsecond, 10*time.Millisecond)
	}
	require.Equal(t, 2*firstShare, s.size)
	for !s.steady { // calls wait for others
		s.measured(40*time.Millisecond, 10*time.Millisecond)
	}
	require.Equal(t, 2*firstShare*3/4, s.size)
	before := s.size
	for range s.size {
		s.measured(10*time.Millisecond, 10*time.Millisecond)
	}
	require.Equal(t, before+before/16, s.size, "now with care")
}

func TestAShareIsBounded(t *testing.T) {
	for _, limit := range []int{1, 8, 64, 65536} {
		for calls, least := range map[int64]int{0: leastAlone, neighbourCalls: leastBeside} {
			w := newWindow(limit, 1, nil, &neighbours{})
			w.neighbours.calls.Store(calls)
			require.Equal(t, max(min(firstShare, w.most()), min(limit+1, least)), w.share().size, "a slow tool has much at once")
			for range 200_000 {
				w.share().measured(0, 0)
			}
			require.Equal(t, w.most(), w.share().size)
			for range 1_000_000 {
				w.share().measured(time.Hour, 0)
			}
			require.Equal(t, min(limit+1, w.most(), least), w.share().size, "it never closes")
		}
	}
}

func TestAShareLetsBatchesBeFull(t *testing.T) {
	for limit, least := range map[int]int{4096: 100, 60: 61} {
		n := &neighbours{}
		n.calls.Store(neighbourCalls)
		w := newWindow(limit, 50, nil, n)
		for range 10_000 {
			w.share().measured(time.Hour, 0)
		}
		require.Equal(t, least, w.share().size)
	}
}

func TestARunIsAloneAfterManyCallsOfItsOwn(t *testing.T) {
	c := &neighbours{}
	a, b := runOf("t", "a"), runOf("t", "b")
	c.decided(a)
	require.True(t, c.alone())
	c.decided(b) // beside a, which goes on
	for range neighbourCalls {
		require.False(t, c.alone())
		c.decided(a) // b has no more to do
	}
	c.decided(a)
	require.True(t, c.alone())
}

func TestARunIsAloneBehindOneThatIsOver(t *testing.T) {
	c := &neighbours{}
	a, b := runOf("t", "a"), runOf("t", "b")
	c.decided(a)
	c.over(a)
	c.decided(b)
	require.True(t, c.alone())
}

// TestAHugeRunLeavesRoomAtOnce lets a run begin beside a huge one that calls another tool: what is out of the huge one
// falls to what the share of a run beside others was found to be before, and until then no more of it goes.
func TestAHugeRunLeavesRoomAtOnce(t *testing.T) {
	c := &neighbours{}
	w := newWindow(4096, 1, nil, c)
	for range 10_000 {
		w.beside.measured(time.Second, 0)
	}
	huge, small := runOf("t", "h"), runOf("t", "s")
	for step := range 1000 {
		push(w, huge, step)
	}
	x := huge.lanes.At("t")
	sent := 0
	send := func(x *lane, _ held) bool {
		x.out++
		w.out++
		sent++
		return true
	}
	decided := func() {
		x.out--
		w.out--
		c.decided(huge)
		w.turn(x)
		w.sendHeld(send)
	}
	w.sendHeld(send)
	decided()
	require.Equal(t, firstShare+1, sent)
	c.decided(small) // of a window of its own
	for range firstShare - leastBeside {
		decided()
	}
	require.Equal(t, firstShare+1, sent)
	decided()
	require.Equal(t, firstShare+2, sent)
	require.Equal(t, leastBeside, x.out)
}
