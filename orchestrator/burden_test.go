package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
)

// scales is a dispatcher of which only the bytes that are out matter.
type scales struct {
	*dispatcher
	out []*flight // in the order in which they were sent
}

func newScales(b bounds) *scales {
	return &scales{dispatcher: &dispatcher{burdens: map[string]*burden{}, bounds: b}}
}

// hold returns a run calls of some bytes each, and sends what may go.
func (s *scales) hold(r *run, w *window, tool string, bytes ...int64) *lane {
	x := &lane{run: r, window: w}
	s.loaded(x)
	x.weight = func(h held) int64 { return bytes[h.step] }
	r.lanes.Put(tool, x)
	for i := range bytes {
		w.hold(x, holding(machine.Dispatch{Call: machine.Call{Step: i}, Attempt: len(s.out) + 1}, 0))
	}
	s.send(w)
	return x
}

func (s *scales) send(w *window) {
	w.sendHeld(func(x *lane, h held) bool {
		f := &flight{lane: x}
		x.run.track(machine.Call{Step: len(s.out)}, f)
		s.weigh(f, x.weight(h))
		s.out = append(s.out, f)
		return true
	})
}

// decided lands a call and sends what there is room for.
func (s *scales) decided(f *flight) {
	f.release()
	f.lane.ofTenant.wake(s.send)
	f.lane.ofRun.wake(s.send)
	f.lane.window.turn(f.lane)
	s.send(f.lane.window)
}

// whose returns the runs of the calls that were sent after the first n.
func (s *scales) whose(n int) (ids string) {
	for _, f := range s.out[n:] {
		ids += f.lane.run.id.ID
	}
	return ids
}

func TestARunHasNoMoreBytesOutThanItsBound(t *testing.T) {
	s := newScales(bounds{run: 100, tenant: 1000, light: 1})
	w := newWindow(4096, 1, nil, &neighbours{})
	x := s.hold(runOf("t", "h"), w, "a", 40, 40, 40, 40, 40)
	require.Len(t, s.out, 3, "calls go as long as less than the bound is out")
	require.EqualValues(t, 120, x.ofRun.bytes)
	s.decided(s.out[0])
	require.Len(t, s.out, 4)
	s.out[1].add(-30) // it is found to be smaller
	x.ofTenant.wake(s.send)
	x.ofRun.wake(s.send)
	require.Len(t, s.out, 5)
	require.EqualValues(t, 130, x.ofRun.bytes)
	require.Zero(t, w.held)
}

func TestACallLargerThanTheBoundGoes(t *testing.T) {
	s := newScales(bounds{run: 100, tenant: 100, light: 1})
	w := newWindow(4096, 1, nil, &neighbours{})
	s.hold(runOf("t", "h"), w, "a", 500, 500)
	require.Len(t, s.out, 1)
	s.decided(s.out[0])
	require.Len(t, s.out, 2)
}

func TestACallOfFewBytesWaitsForNone(t *testing.T) {
	s := newScales(bounds{run: 100, tenant: 100, light: 2})
	r := runOf("t", "h")
	s.hold(r, newWindow(4096, 1, nil, &neighbours{}), "a", 500, 500)
	s.hold(r, newWindow(4096, 1, nil, &neighbours{}), "b", 2, 2, 3, 2)
	require.Len(t, s.out, 3, "a run's tool keeps the order of its calls")
	s.decided(s.out[0])
	require.Len(t, s.out, 4, "both tools wait, and the first is over the bound again")
	s.hold(runOf("t", "other"), newWindow(4096, 1, nil, &neighbours{}), "b", 2)
	require.Len(t, s.out, 5)
}

// TestRoomInBytesWakesOtherTools lets lanes of other windows, and other runs of the tenant, go on when a call is
// decided.
func TestRoomInBytesWakesOtherTools(t *testing.T) {
	s := newScales(bounds{run: 100, tenant: 150, light: 1})
	a, b := newWindow(4096, 1, nil, &neighbours{}), newWindow(4096, 1, nil, &neighbours{})
	h := runOf("t", "h")
	s.hold(h, a, "a", 100, 100)
	s.hold(h, b, "b", 100)
	s.hold(runOf("t", "i"), b, "b", 100, 100)
	s.hold(runOf("t", "j"), a, "a", 100)
	s.hold(runOf("u", "k"), a, "a", 100)
	require.Equal(t, "hik", s.whose(0), "another tenant's run has bounds of its own")
	for n := 0; n < len(s.out); n++ {
		s.decided(s.out[n])
	}
	require.Equal(t, "jhih", s.whose(3), "one after the other, who waited longest before who made room")
	require.Zero(t, a.held+b.held)
	for _, x := range []*lane{s.out[0].lane, s.out[1].lane} {
		require.Zero(t, x.ofRun.bytes)
		require.Zero(t, x.ofTenant.bytes)
	}
}
