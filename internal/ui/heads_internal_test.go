package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/ui/index"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestAListIsMadeOfHeaders: of a document with its head nothing is read; one of an older orchestrator waits to be read.
func TestAListIsMadeOfHeaders(t *testing.T) {
	t.Parallel()
	ix := index.New()
	h := &heads{known: ix, into: ix.Read(), todo: make(chan head, 1), behind: newCount(1)}
	doc := &outcome.Run{Run: "r", Tenant: "acme", Generation: 3, Status: outcome.Partial, Submitted: time.Unix(7, 0).UTC(), Steps: []outcome.Step{{ID: "a", Tool: "mail", Status: outcome.StepFailed}}}
	r := subjects.NewRun("acme", "r")
	h.want(t.Context(), r, kv.Entry{Header: wire.Documented(doc, nil), Seq: 9})
	require.Empty(t, h.todo)
	l, known := ix.Known(r.Key(), 9)
	require.True(t, known)
	require.Equal(t, index.Of(r, 9, outcome.HeadOf(doc)), l)
	require.Equal(t, "a", l.Failed)
	h.want(t.Context(), subjects.NewRun("acme", "older"), kv.Entry{Header: wire.Versioned(), Seq: 10})
	require.Equal(t, head{subjects.NewRun("acme", "older"), 10}, <-h.todo)
}
