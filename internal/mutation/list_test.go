package main

import (
	"go/parser"
	"go/token"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBugsFit keeps the list of bugs up to date with the code: each changes what is there, once, to something else that
// is Go.
func TestBugsFit(t *testing.T) {
	require.NoError(t, os.Chdir("../.."))
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

func TestFirstFailure(t *testing.T) {
	require.Equal(t, "TestA/x", firstFailure("ok\n    --- FAIL: TestA/x (0.1s)\n--- FAIL: TestA (0.2s)\nFAIL"))
	require.Equal(t, "the time limit", firstFailure("panic: test timed out after 4m"))
	require.Equal(t, "a panic", firstFailure("panic: nil map"))
	require.Equal(t, "the test run", firstFailure("FAIL"))
}
