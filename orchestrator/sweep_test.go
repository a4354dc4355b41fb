package orchestrator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
)

// unread is a storage that reads nothing.
type unread struct{ storage }

func (unread) Read(context.Context, string) (*kv.Entry, error) {
	return nil, fault.New(fault.Timeout, "nobody answers")
}

func (unread) Stored(context.Context, int, string) (map[string]uint64, error) {
	return nil, fault.New(fault.Timeout, "nobody answers")
}

// TestAPlanThatCanNotBeReadIsNotTakenToStand: what is to be sent again waits for the next sweep, and nothing is
// forgotten.
func TestAPlanThatCanNotBeReadIsNotTakenToStand(t *testing.T) {
	l := newWorld(1, none, false).newOrch("o", 0).loops.all[0]
	l.store = unread{l.store}
	l.mail.items = nil // what it was told when it joined
	r := runOf("t", "r")
	r.phase = running
	lost := []expected{{run: r}}
	for _, l.reconciler.reads = range []int{readsAtMost, 0} { // one by one, or all of a partition
		stands, whole := l.reconciler.standing(t.Context(), r.id.Partition(), lost)
		require.False(t, stands[r])
		require.False(t, whole, "so that it is looked again")
		require.Empty(t, l.mail.items)
	}
}
