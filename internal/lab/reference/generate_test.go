package reference_test

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/reference"
)

// Everything that the generator can make is made, every plan is valid, and runs come to everything that they can.
func TestGenerate(t *testing.T) {
	t.Parallel()
	forms, runs, steps, items := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for seed := range int64(2000) {
		c := reference.Generate(rand.New(rand.NewSource(seed)), reference.Options{Stop: true, ForEach: seed%2 == 0, Second: seed%3 == 0, Questions: seed%4 < 2})
		r, err := reference.RunAsking(c.Plan, c.Contracts, c.Call, c.Say)
		require.NoError(t, err, "seed %d: %s", seed, c.Plan)
		for name, n := range c.Forms {
			forms[name] += n
		}
		runs[r.Status]++
		for _, s := range r.Steps {
			steps[s.Status+" "+s.Code]++
			for _, item := range s.Items {
				items[item.Status+" "+item.Code]++
			}
		}
	}
	for _, name := range append(slices.Concat(reference.Forms(), reference.EachForms(), reference.SecondForms(), reference.QuestionForms()), "stop") {
		require.Greater(t, forms[name], 20, name)
		delete(forms, name)
	}
	require.Empty(t, forms, "counted, but not named by Forms")
	for _, status := range []string{"succeeded", "partial", "failed"} {
		require.Greater(t, runs[status], 20, status)
	}
	require.Greater(t, runs["cancelled"], 5, "runs whose plan was rejected")
	for _, status := range []string{
		"succeeded ", "failed tool_failed", "failed timeout", "failed tool_terminal", "failed invalid_arguments",
		"failed unresolved_ref", "skipped skipped", "cancelled cancelled", "not_taken ", "failed condition_failed",
		"failed rejected", "cancelled rejected",
	} {
		require.Greater(t, steps[status], 20, status)
	}
	for _, status := range []string{"succeeded ", "failed tool_failed", "failed tool_terminal", "cancelled cancelled", "failed rejected"} {
		require.Greater(t, items[status], 10, status)
	}
	require.Zero(t, items["failed unresolved_ref"], "items fail by their tools alone")
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
