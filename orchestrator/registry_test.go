package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
)

// Whoever wrote or read an entry tells of it when it can, which may be after the watch told of what came later.
func TestOfAToolTheNewestCounts(t *testing.T) {
	t.Parallel()
	at := func(revision uint64) tool.Registered {
		return tool.Registered{Name: "a", Revision: revision, Definition: &tool.Definition{Name: "a"}}
	}
	g := newRegistry(nil, nil)
	knows := func(revision uint64) {
		t.Helper()
		if revision == 0 {
			require.Empty(t, g.registered())
			return
		}
		require.Len(t, g.registered(), 1)
		require.Equal(t, revision, g.registered()[0].Revision)
	}
	mark := func(revision uint64) tool.Registered { return tool.Registered{Name: "a", Revision: revision} }

	g.changed(at(3))
	knows(3)
	g.changed(at(2))
	knows(3)
	g.heard(mark(4), true) // the watch saw nothing of what stood before
	knows(0)
	g.changed(at(3)) // who registered it is late to tell
	knows(0)
	g.changed(at(5))
	knows(5)
	g.heard(mark(4), true) // again, since the watch read all anew
	knows(5)

	g.heard(mark(6), true)
	g.heard(at(1), false) // the registry was begun anew
	knows(1)
	g.changed(at(2))
	knows(2)
}
