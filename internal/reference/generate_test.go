package reference_test

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/reference"
)

// Everything that the generator can make is made, every plan is valid, and runs come to everything that they can.
func TestGenerate(t *testing.T) {
	t.Parallel()
	forms, runs, steps := map[string]int{}, map[string]int{}, map[string]int{}
	for seed := range int64(2000) {
		c := reference.Generate(rand.New(rand.NewSource(seed)), reference.Options{Stop: true})
		r, err := reference.Run(c.Plan, c.Contracts, c.Call)
		require.NoError(t, err, "seed %d: %s", seed, c.Plan)
		for name, n := range c.Forms {
			forms[name] += n
		}
		runs[r.Status]++
		for _, s := range r.Steps {
			steps[s.Status+" "+s.Code]++
		}
	}
	for _, name := range append(reference.Forms(), "stop") {
		require.Greater(t, forms[name], 20, name)
		delete(forms, name)
	}
	require.Empty(t, forms, "counted, but not named by Forms")
	for _, status := range []string{"succeeded", "partial", "failed"} {
		require.Greater(t, runs[status], 20, status)
	}
	for _, status := range []string{
		"succeeded ", "failed tool_failed", "failed timeout", "failed tool_terminal", "failed invalid_arguments",
		"failed unresolved_ref", "skipped skipped", "cancelled cancelled",
	} {
		require.Greater(t, steps[status], 20, status)
	}
}

func TestGenerateReplays(t *testing.T) {
	t.Parallel()
	a := reference.Generate(rand.New(rand.NewSource(7)), reference.Options{Steps: 40})
	b := reference.Generate(rand.New(rand.NewSource(7)), reference.Options{Steps: 40})
	require.Equal(t, a, b)
	require.NotEqual(t, a.Plan, reference.Generate(rand.New(rand.NewSource(8)), reference.Options{Steps: 40}).Plan)
}

func TestGenerateWithoutFailures(t *testing.T) {
	t.Parallel()
	for seed := range int64(200) {
		c := reference.Generate(rand.New(rand.NewSource(seed)), reference.Options{NoFailures: true})
		for _, s := range c.Scripts {
			require.Empty(t, s.Failures)
		}
		require.Zero(t, c.Forms["stop"])
	}
}
