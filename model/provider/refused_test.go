package provider

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheLastRefusedSchemasAreRemembered: as many as there is room for, each once, however many there are.
func TestTheLastRefusedSchemasAreRemembered(t *testing.T) {
	t.Parallel()
	var s refusedSchemas
	require.False(t, s.has("0"))
	const more = 2*mostRefused + 7
	for n := range more {
		s.add(fmt.Sprint(n))
		s.add(fmt.Sprint(n))
	}
	for n := range more {
		require.Equal(t, n >= more-mostRefused, s.has(fmt.Sprint(n)), n)
	}
	require.Len(t, s.all, mostRefused)
	require.Len(t, s.order, mostRefused)
}
