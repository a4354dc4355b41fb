package chaos

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/journal"
)

func brief(t *testing.T, seed int64) Settings {
	self, err := os.Executable()
	require.NoError(t, err)
	return Settings{Command: []string{self}, Seconds: 4, Seed: seed, Brief: true, Out: t.Output()}
}

// TestBadDays is the short form of make chaos: a few seconds of some scenarios, on the loopback interface.
func TestBadDays(t *testing.T) {
	t.Parallel()
	for _, s := range []Scenario{orchestratorKill, workerKill, natsKill, newerBeside, livingToday, bombScenario(true)} {
		t.Run(s.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			s.Shape.Parallel = 3
			row, err := Run(ctx, s, brief(t, 1))
			require.NoError(t, err)
			row.Print(t.Output())
			require.Empty(t, row.Violations)
			require.Positive(t, row.Injections)
			require.Positive(t, row.Runs)
		})
	}
}

func TestLogsAreReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log.jsonl")
	l, err := journal.Open(path, "w1.1")
	require.NoError(t, err)
	l.Add(journal.Event{Kind: journal.Begin, Run: "random-1"})
	l.Add(journal.Event{Kind: journal.End, Run: "random-1", Code: "tool_failed: no"})
	_, err = l.Write([]byte(`{"ev":"cut o`))
	require.NoError(t, err)
	events, err := journal.Read(path)
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.Equal(t, "w1.1", events[0].Who)
	require.GreaterOrEqual(t, events[1].At, events[0].At)
	none, err := journal.Read(path + ".absent")
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestTheTableIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	doc, results := filepath.Join(dir, "doc.md"), filepath.Join(dir, "rows.json")
	require.NoError(t, os.WriteFile(doc, []byte("before\n"+tableBegin+"\nold\n"+tableEnd+"\nafter\n"), 0o600))
	_, err := Keep(results, []Row{{Scenario: "nats-kill", Runs: 1}, {Scenario: "worker-kill", Runs: 2, Machine: "m"}})
	require.NoError(t, err)
	rows, err := Keep(results, []Row{{Scenario: "nats-kill", Runs: 3, Figures: []string{"outage 1s"}}})
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, "worker-kill", rows[0].Scenario, "in the order of the scenarios")
	rows, err = Keep(results, []Row{{Scenario: "worker-kill", Shipped: true, Settings: shipped, Load: 3}})
	require.NoError(t, err)
	require.Len(t, rows, 3, "beside the one with other settings")
	require.True(t, rows[1].Shipped)
	require.NoError(t, WriteTable(doc, rows))
	text, err := os.ReadFile(doc)
	require.NoError(t, err)
	require.NotContains(t, string(text), "old")
	require.Contains(t, string(text), "outage 1s")
	require.Contains(t, string(text), "| **shipped**: sweep 10s, lease 30s, 5 deliveries, grace 1m |")
	require.Contains(t, string(text), ", load 3.0 before |")
	require.Regexp(t, "(?s)^before.*after\n$", string(text))
	require.NoError(t, os.WriteFile(doc, nil, 0o600))
	require.ErrorContains(t, WriteTable(doc, rows), "markers")
}
