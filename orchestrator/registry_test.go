package orchestrator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
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

// definitionsOf is a storage that has definitions alone, and counts how often they are read.
type definitionsOf struct {
	toolStorage
	all  map[string]string
	read int
}

func (s *definitionsOf) Definition(_ context.Context, digest string) (*tool.Definition, error) {
	s.read++
	return tool.ParseDefinition([]byte(s.all[digest]))
}

// Runs that froze the same tools have their agents in common; a tool of another digest makes another agent.
func TestRunsShareTheirAgents(t *testing.T) {
	t.Parallel()
	look := func(description string) string { return `{"name":"look","description":"` + description + `"}` }
	s := &definitionsOf{all: map[string]string{
		"a": `{"name":"agent","agent":{"planner":{"tool":"plan"},"tools":["look"]}}`, "p": `{"name":"plan"}`, "1": look("one"), "2": look("two"),
	}}
	g := newRegistry(s, nil)
	start := func(digest string) *wire.Start {
		return &wire.Start{Tools: map[string]*wire.FrozenTool{"agent": {Digest: "a", Agent: true}, "plan": {Digest: "p"}, "look": {Digest: digest}}}
	}
	of := func(digest string) *agent.Definition {
		all, err := g.agents(t.Context(), start(digest))
		require.NoError(t, err)
		return all.defined["agent"]
	}
	called := func() *plan.Template {
		all, err := g.templates(t.Context(), start("1"))
		require.NoError(t, err)
		return all["agent"]
	}
	first, read := of("1"), s.read
	require.Same(t, first, of("1"))
	require.Same(t, called(), called())
	require.Equal(t, read, s.read, "nothing is read twice")
	other := of("2")
	require.NotSame(t, first, other)
	require.Equal(t, "two", other.Entries()[0].Description)
	require.Equal(t, "one", of("1").Entries()[0].Description)
}
