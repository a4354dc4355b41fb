package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/natstest"
)

// A member that stood still, or can't renew its own key, has heard nothing of the others either: that says nothing of them. A
// member that was heard nothing of all the while is gone.
func TestAMemberThatStoodStillDeclaresNobodyDead(t *testing.T) {
	t.Parallel()
	const still = 10 * memberPatience
	for name, c := range map[string]struct {
		passed  func(*Membership)
		remains bool
	}{
		"stood still":           {func(m *Membership) { m.looked = m.looked.Add(-still) }, true},
		"its key isn't renewed": {func(m *Membership) { m.written = m.written.Add(-still) }, true},
		"all was well":          {func(*Membership) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := natstest.Start(t)
			open := func() *Store {
				s, err := Setup(t.Context(), natstest.Connect(t, srv), Config{})
				require.NoError(t, err)
				t.Cleanup(s.Close)
				return s
			}
			other, err := open().Join(t.Context(), "other", func([]Member) {})
			require.NoError(t, err)
			t.Cleanup(other.Leave)
			joined, there := make(chan *Membership, 1), make(chan bool, 1)
			once := false
			own, err := open().Join(t.Context(), "own", func(all []Member) { // on the goroutine that has the members
				if len(all) == 2 && !once {
					once = true
					m := <-joined
					for _, x := range m.seen {
						x.renewed, x.heard = x.renewed.Add(-still), x.heard.Add(-still)
					}
					c.passed(m)
					m.expire()
					there <- m.seen["other"] != nil
				}
			})
			require.NoError(t, err)
			t.Cleanup(own.Leave)
			joined <- own
			require.Equal(t, c.remains, <-there)
		})
	}
}
