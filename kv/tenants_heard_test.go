package kv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two questions are on their way at once, and the answer to the first comes last: it says nothing of a tenant that was
// declared in between.
func TestATenantIsNotForgotten(t *testing.T) {
	t.Parallel()
	var known tenants
	first, second := known.ask(), known.ask()
	known.hear(second, []string{"acme"})
	known.hear(first, nil)
	require.True(t, known.known["acme"])
	known.hear(known.ask(), nil)
	require.False(t, known.known["acme"], "what is asked later counts")
}
