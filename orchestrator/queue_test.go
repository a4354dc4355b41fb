package orchestrator

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
)

func order(q *queue) string {
	var b strings.Builder
	for q.held > 0 {
		r, h := q.pop()
		b.WriteString(r.id.ID)
		b.WriteByte(byte('0' + h.dispatch.Step))
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func push(q *queue, r *run, steps ...int) {
	for _, s := range steps {
		q.push(r, held{dispatch: machine.Dispatch{Call: machine.Call{Step: s}}})
	}
}

func runOf(tenant, id string) *run { return &run{id: subjects.NewRun(tenant, id)} }

func TestRunsOfATenantTakeTurns(t *testing.T) {
	q := &queue{}
	huge, small := runOf("t", "h"), runOf("t", "s")
	push(q, huge, 1, 2, 3, 4)
	push(q, small, 1, 2)
	require.Equal(t, "h1 s1 h2 s2 h3 h4", order(q))
}

func TestTenantsTakeTurnsWhateverTheirRuns(t *testing.T) {
	q := &queue{}
	a, b, c := runOf("x", "a"), runOf("x", "b"), runOf("y", "c")
	push(q, a, 1, 2)
	push(q, b, 1, 2)
	push(q, c, 1, 2, 3)
	require.Equal(t, "a1 c1 b1 c2 a2 c3 b2", order(q))
}

func TestWeightsGiveLongerTurns(t *testing.T) {
	q := &queue{weights: map[string]int{"x": 3}}
	a, c := runOf("x", "a"), runOf("y", "c")
	push(q, a, 1, 2, 3, 4, 5)
	push(q, c, 1, 2, 3)
	require.Equal(t, "a1 a2 a3 c1 a4 a5 c2 c3", order(q))
}

func TestWhoComesLaterWaitsNoLongerThanOneTurn(t *testing.T) {
	q := &queue{}
	huge := runOf("x", "h")
	for range 9999 {
		push(q, huge, 1)
	}
	for range 100 {
		q.pop()
	}
	small := runOf("y", "s")
	push(q, small, 1, 2, 3)
	var got []int
	for i := range 10 {
		if r, _ := q.pop(); r == small {
			got = append(got, i)
		}
	}
	require.Equal(t, []int{1, 3, 5}, got)
}

func TestAQueueLetsGoOfWhatIsThrough(t *testing.T) {
	q := &queue{}
	for i := range 1000 {
		r := runOf("t", "r"+string(rune('a'+i%26)))
		push(q, r, 1, 2)
		q.pop()
		q.pop()
	}
	require.Empty(t, q.tenants)
	require.Zero(t, q.turns.len())
	require.LessOrEqual(t, len(q.turns.items), 64, "its memory is used again")
}

func TestAWindowGrowsWhileCallsAreQuickAndShrinksWhenTheyWait(t *testing.T) {
	w := newWindow(4096, nil)
	require.Equal(t, firstWindow, w.size)
	w.held = 1
	for range firstWindow { // a round trip without waiting
		w.measured(10*time.Millisecond+200*time.Microsecond, 10*time.Millisecond)
	}
	require.Equal(t, 2*firstWindow, w.size)
	for !w.steady { // calls wait for others
		w.measured(40*time.Millisecond, 10*time.Millisecond)
	}
	require.Equal(t, 2*firstWindow*3/4, w.size)
	before := w.size
	for range w.size {
		w.measured(10*time.Millisecond, 10*time.Millisecond)
	}
	require.Equal(t, before+before/16, w.size, "now with care")
	w.held, before = 0, w.size
	for range 1000 { // nothing is held back: there is no need for more
		w.measured(time.Millisecond, time.Millisecond)
	}
	require.Equal(t, before, w.size)
}

func TestAWindowIsBounded(t *testing.T) {
	w := newWindow(1, nil)
	require.Equal(t, 2, w.size)
	w.held = 1
	for range 1000 {
		w.measured(0, 0)
	}
	require.Equal(t, 2+firstWindow, w.size)
	for range 100_000 {
		w.measured(time.Hour, 0)
	}
	require.Equal(t, 1, w.size, "it never closes")
	w = newWindow(65536, nil)
	w.held = 1
	for range 100_000 {
		w.measured(0, 0)
	}
	require.Equal(t, maxWindow, w.size)
	for range 1_000_000 {
		w.measured(time.Hour, 0)
	}
	require.Equal(t, leastWindow, w.size)
}
