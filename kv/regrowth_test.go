package kv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that still deletes a stream would remove the files of one that is created in its place.
func TestAStreamIsNotCreatedAnewAtOnce(t *testing.T) {
	t.Parallel()
	at := time.Now()
	var g regrowth
	require.True(t, g.due("a", at), "it was never there")
	g.there("a")
	require.False(t, g.due("a", at))
	require.False(t, g.due("a", at.Add(regrowAfter-1)))
	require.True(t, g.due("a", at.Add(regrowAfter)))
	require.True(t, g.due("a", at.Add(regrowAfter+1)), "the first try may have failed")
	g.there("a")
	require.False(t, g.due("a", at.Add(time.Hour)), "it is deleted again")
	require.True(t, g.due("b", at))
}
