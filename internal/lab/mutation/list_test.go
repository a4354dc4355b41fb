package mutation

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBugsFit keeps the list of bugs up to date with the code: each changes what is there, once, to something else that
// is Go.
func TestBugsFit(t *testing.T) {
	require.NoError(t, os.Chdir("../../.."))
	names := map[string]bool{}
	for _, m := range mutants {
		source, err := m.mutated()
		require.NoError(t, err, m.name)
		_, err = parser.ParseFile(token.NewFileSet(), m.file, source, 0)
		require.NoError(t, err, m.name)
		require.False(t, names[m.name], "%s stands twice", m.name)
		names[m.name] = true
		require.NotEqual(t, m.old, m.new, m.name)
	}
	require.GreaterOrEqual(t, len(mutants), 20)
}

func TestResultsAreKept(t *testing.T) {
	o := Options{Results: t.TempDir() + "/results.json", Report: t.TempDir() + "/report.md"}
	all, err := readKept(o.Results)
	require.NoError(t, err)
	require.Contains(t, all.table(), "0 caught, 0 noticed by nobody, "+strconv.Itoa(len(mutants))+" not planted yet")
	all[mutants[0].name] = kept{Caught: true, By: "TestA", Seconds: 3, Commit: "ab12"}
	all[mutants[1].name] = kept{}
	all["not-on-the-list"] = kept{}
	require.NoError(t, all.write(o))
	back, err := readKept(o.Results)
	require.NoError(t, err)
	require.Equal(t, all, back)
	text, err := os.ReadFile(o.Report)
	require.NoError(t, err)
	require.Contains(t, string(text), "| `TestA` | 3 | ab12 |")
	require.Contains(t, string(text), "1 caught, 1 noticed by nobody, "+strconv.Itoa(len(mutants)-2)+" not planted yet")
	require.NotContains(t, string(text), "not-on-the-list")
}

func TestWanted(t *testing.T) {
	require.True(t, Options{}.wanted(mutant{name: "a"}))
	require.True(t, Options{Only: "x,b"}.wanted(mutant{name: "abc"}))
	require.False(t, Options{Only: "x,y"}.wanted(mutant{name: "abc"}))
}

func TestFirstFailure(t *testing.T) {
	require.Equal(t, "TestA/x", firstFailure("ok\n    --- FAIL: TestA/x (0.1s)\n--- FAIL: TestA (0.2s)\nFAIL"))
	require.Equal(t, "the time limit", firstFailure("panic: test timed out after 4m"))
	require.Equal(t, "the time limit of TestA", firstFailure("panic: test timed out after 4m\n\trunning tests:\n\t\tTestA (4m0s)\n"))
	require.Equal(t, "a panic", firstFailure("panic: nil map"))
	require.Equal(t, "the test run", firstFailure("FAIL"))
}
