package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/conformance"
)

// Stepjet's own worker does everything that it must and everything that it should.
func TestStepjetsOwnWorkerConforms(t *testing.T) {
	t.Parallel()
	seen := 0
	r := drive(t, stepjets, func(o *conformance.Options) { o.Each = func(conformance.Check) { seen++ } })
	for _, c := range r.Checks {
		t.Logf("%-16s %-8s %6.0f ms %s %v", c.Name, c.Status, c.MS, c.Why, c.Findings)
		assert.Equal(t, conformance.Passed, c.Status, "%s: %s %v", c.Name, c.Why, c.Findings)
	}
	require.True(t, r.Conforms)
	require.Equal(t, "go", r.Worker)
	require.Len(t, r.Checks, len(conformance.Names()))
	require.Equal(t, len(r.Checks), seen)
}
