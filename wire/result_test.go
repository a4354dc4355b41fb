package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// A blob of a step whose token goes on where another's attempt ends is not that one's.
func TestABlobIsOfOneAttempt(t *testing.T) {
	t.Parallel()
	outer := subjects.Attempt{Run: subjects.NewRun("acme", "r"), Generation: 7, Tool: "t", Step: "a", Number: 1}
	inner := outer
	inner.Step, inner.Number = "a/1", 2
	require.Contains(t, inner.BlobName("x"), outer.BlobName(""), "by what it begins with it could be taken for one")
	for _, c := range []struct {
		name string
		of   subjects.Attempt
		own  bool
	}{
		{outer.BlobName("x"), outer, true}, {inner.BlobName("x"), inner, true}, {inner.BlobName("x"), outer, false}, {outer.BlobName("x"), inner, false},
		{outer.BlobName("x/y"), outer, false},
	} {
		err := wire.CheckResult(&outcome.Handle{Name: c.name}, c.of, "", 1)
		require.Equal(t, c.own, err == nil, "%s of %s", c.name, c.of.MessageID())
		if err != nil {
			require.Equal(t, fault.ToolTerminal, err.Code)
		}
	}
}
