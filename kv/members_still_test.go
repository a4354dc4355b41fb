package kv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
)

// A member that stood still, or can't renew its own key, has heard nothing of the others either: that says nothing of
// them. A member that was heard nothing of all the while is gone.
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
			other, err := open().Members.Join(t.Context(), "other", func([]Member) {})
			require.NoError(t, err)
			t.Cleanup(other.Leave)
			joined, there := make(chan *Membership, 1), make(chan bool, 1)
			once := false
			own, err := open().Members.Join(t.Context(), "own", func(all []Member) { // on the goroutine that has the members
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

// A member of which the server says that nobody listens is gone once it has had the time to connect to another
// server, and to renew its key from there.
func TestAMemberThatConnectsAnewIsNotDead(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		deaf, renewed time.Duration // ago
		remains       bool
	}{
		"connecting":             {pulseGone / 2, 2 * pulseMissed, true},
		"renewed, but not heard": {2 * pulseGone, pulseMissed / 2, true},
		"gone":                   {pulseGone, pulseMissed, false},
	} {
		x := &seenMember{Member: Member{ID: "other"}, unheard: now.Add(-c.deaf), renewed: now.Add(-c.renewed)}
		m := &Membership{seen: map[string]*seenMember{"other": x}}
		m.silent(x, now)
		require.Equal(t, c.remains, m.seen["other"] != nil, name)
	}
}
