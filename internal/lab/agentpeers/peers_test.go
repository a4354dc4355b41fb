package agentpeers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was called twice is counted, and a loop that called too little is none.
func TestCrashOf(t *testing.T) {
	t.Parallel()
	notes := filepath.Join(t.TempDir(), "notes")
	text := ""
	for round := range crashRounds {
		for _, what := range []string{"planner ", "tool 0 ", "tool 1 ", "tool 2 "} {
			text += what + string(rune('0'+round)) + "\n"
		}
	}
	require.NoError(t, os.WriteFile(notes, []byte(text+"planner 3\ntool 0 3\ntool 2 3\n"), 0o600))
	c, err := crashOf("x", notes)
	require.NoError(t, err)
	require.Equal(t, Crash{"x", 1, 2}, c)
	require.NoError(t, os.WriteFile(notes, []byte("planner 0\n"), 0o600))
	_, err = crashOf("x", notes)
	require.ErrorContains(t, err, "called only 1 things")
}

func TestLongLoopsOfAnEngine(t *testing.T) {
	t.Parallel()
	e := engine{once: 100, never: 1000}
	require.Equal(t, []int{10, 100}, e.of(Lengths, 0))
	require.Equal(t, []int{10}, e.of(Lengths, 1))
	require.Equal(t, Lengths, engine{}.of(Lengths, 1))
}

// Of several turns the median counts, and of a loop its last rounds by themselves.
func TestLoopOf(t *testing.T) {
	t.Parallel()
	turn := func(us int64) (f figures) {
		f = figures{Input: 200, Prefix: 150, Written: 3000}
		for i := range int64(100) {
			if f.Micros = append(f.Micros, us); i >= 90 {
				f.Micros[i] = 2 * us
			}
		}
		return f
	}
	l := loopOf("x", 100, []figures{turn(9000), turn(1000), turn(2000)})
	require.Equal(t, Loop{"x", 100, 2, 4, 3000, 0.75}, l)
	p := Peers{Results: 30, Loops: []Loop{l}, Crashes: []Crash{{"y", 4, 1}, {"x", 0, 0}}}
	require.Contains(t, p.Markdown(), "| x | 100 | 2.00 | 4.00 | 0.003 | 1.0 × | 75.0 % |")
	require.Contains(t, p.Markdown(), "| x | 0 | 0 |\n| y | 4 | 1 |")
}
