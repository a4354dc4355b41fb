package agentbench

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/lab/chaos"
	"github.com/stepjet/stepjet/internal/lab/journal"
)

// TestMain lets the test binary be the processes that are started, and killed.
func TestMain(m *testing.M) {
	if chaos.Main() {
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "role" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		r, err := bench.ParseRole(os.Args[2])
		if err == nil {
			err = r.Run(ctx, slog.New(slog.DiscardHandler), Extra())
		}
		if err != nil {
			panic(err)
		}
		return
	}
	m.Run() // whose result the program exits with, once this has returned
}

func testEnv(t testing.TB) Env {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return Env{Env: bench.Env{Command: []string{self, "role"}, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)},
		Progress: func(line string) { t.Log(line) }}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// What a loop writes grows with its rounds and with what its tools return, and a request begins with the one before.
func TestALoopIsLinearInBytes(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	w, err := newWorld(ctx, testEnv(t), bench.Separate)
	require.NoError(t, err)
	t.Cleanup(w.Close)
	m, err := newMeter(ctx, w.JS, w.Conn())
	require.NoError(t, err)
	t.Cleanup(m.close)
	var each []float64
	for _, rounds := range []int{20, 200} {
		c, err := w.loop(ctx, m, loop{Rounds: rounds, Calls: 3, Bytes: 500, Whole: true})
		require.NoError(t, err)
		require.GreaterOrEqual(t, c.Written.Records, int64(5*rounds))
		require.LessOrEqual(t, c.PerRecord, 2048.)
		each = append(each, float64(c.Written.all())/float64(rounds))
		if rounds == 200 {
			require.GreaterOrEqual(t, c.Prefix, 0.95)
		}
	}
	require.LessOrEqual(t, each[1], 1.05*each[0], "a later round writes more")
	chat, err := w.loop(ctx, m, loop{Rounds: 100, Calls: 1, Bytes: 5000, Whole: true})
	require.NoError(t, err)
	require.LessOrEqual(t, chat.Written.all(), int64(5_000_000))
}

// The parts come to their end, with figures that say something.
func TestRoundsAreMeasured(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	w, err := newWorld(ctx, testEnv(t), bench.Separate)
	require.NoError(t, err)
	t.Cleanup(w.Close)
	f := &Rounds{}
	require.NoError(t, f.cost(ctx, w, 0))
	require.Positive(t, f.Layouts[0].P50)
	require.NoError(t, f.many(ctx, w, 0))
	require.Positive(t, f.PerSecond[1].Rate)
}

func TestAgentsThatWaitAreMeasured(t *testing.T) {
	t.Parallel()
	f, err := measureWaiting(testContext(t), testEnv(t), 0.1, bench.Stamp{})
	require.NoError(t, err)
	w := f.(*Waiting)
	require.Positive(t, w.Drained)
	// Of a thousand, the heap has up to a kilobyte each of queues and buffers that are there once; of ten thousand a tenth.
	require.LessOrEqual(t, w.Live, 11_500., "bytes of the orchestrator's heap for each")
	require.LessOrEqual(t, w.Again, 11_500., "bytes, once another has read them anew")
}

// Orchestrators and workers kill themselves before and after all that they do for a round: no call is made again whose
// record stood, and all agents come to what they should.
func TestNoCallIsRepeatedWhoseRecordStood(t *testing.T) {
	t.Parallel()
	f, err := measureKills(testContext(t), testEnv(t), 0.03, bench.Stamp{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, f.(*Calls).All, 30)
	require.GreaterOrEqual(t, f.(*Calls).Agents, 32)
}

func TestAHerdSurvivesTheDeathOfAllThatRunsIt(t *testing.T) {
	t.Parallel()
	f, err := measureHerd(testContext(t), testEnv(t), 0.1, bench.Stamp{})
	require.NoError(t, err)
	require.Equal(t, 100, f.(*Calls).Agents)
	require.Equal(t, 20, f.(*Calls).Kills["all at once"])
}

// Orchestrators take turns with agents, each killed once the next is there: here all of this version, which takes part in the
// same way as another does.
func TestOrchestratorsTakeTurns(t *testing.T) {
	t.Parallel()
	f, err := upgrades(testContext(t), testEnv(t), 0.1, bench.Stamp{}, "")
	require.NoError(t, err)
	require.GreaterOrEqual(t, f.(*Calls).Agents, 24)
	require.Equal(t, 3, f.(*Calls).Kills["the older version"])
	require.Equal(t, 2, f.(*Calls).Kills["this version"])
	require.Zero(t, f.(*Calls).Again, "no worker died")
}

func TestAgentsGoOnAfterAnOwnersDeath(t *testing.T) {
	t.Parallel()
	f, err := measureOwners(testContext(t), testEnv(t), 0.03, bench.Stamp{})
	require.NoError(t, err)
	require.Positive(t, f.(*Calls).GoOnP50)
}

// Words that race with the end of an agent are heard in one round, or refused.
func TestWordsRaceWithTheEnd(t *testing.T) {
	t.Parallel()
	f, err := measureWords(testContext(t), testEnv(t), 0.05, bench.Stamp{})
	require.NoError(t, err)
	words := f.(*Words)
	require.Equal(t, words.Said, words.Taken+words.Late)
	require.Positive(t, words.Taken)
}

// A loop whose calls were repeated is told from one whose calls were not.
func TestRepetitionsAreSeen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	log, err := journal.Open(file, "w1")
	require.NoError(t, err)
	begin := journal.Event{Kind: "begin", Run: "r", Step: "agent/=0/=plan", Tool: chaos.LoopPlanner, Attempt: 1}
	log.Add(begin)
	log.Add(begin)
	log.Close()
	for name, tt := range map[string]struct {
		records, deaths             map[string]time.Time
		repeated, unexplained, flew int
	}{
		"recorded":  {map[string]time.Time{callKey("r", begin.Step, 1): time.Now().Add(-time.Hour)}, nil, 1, 0, 0},
		"no death":  {nil, nil, 0, 1, 0},
		"in flight": {nil, map[string]time.Time{"w1": time.Now().Add(-time.Minute)}, 0, 0, 1},
	} {
		s := &siege{log: file, records: tt.records, deaths: tt.deaths, progress: func(string) {}}
		var c Calls
		err := s.judge(&c)
		require.Equal(t, []int{1, tt.repeated, tt.unexplained, tt.flew}, []int{c.Planner, c.Repeated, c.Unexplained, c.Again}, name)
		require.Equal(t, tt.flew == 0, err != nil)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	all, err := Choose(nil)
	require.NoError(t, err)
	require.Len(t, all, len(Parts()))
	none, err := Choose([]string{"report"})
	require.NoError(t, err)
	require.Empty(t, none)
	_, err = Choose([]string{"nothing"})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

// Figures that are kept stand in the document, and what misses its target is bold.
func TestTheReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agents-words.json"), []byte(`{"said":10,"taken":4,"answered_already_finished":6}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agents-kills.json"), []byte(`{"all_kills":7,"agents":3,"planner_calls":9,"repeated_although_recorded":1}`), 0o600))
	page := filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(page, []byte("a\n<!-- "+mark+" -->\nstale\n<!-- agents: end -->\nz\n"), 0o600))
	require.NoError(t, WriteReport(dir, page))
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(got), "| 10 words to agents that end | each taken once or refused | 4 taken, 6 `already_finished`, 0 else |")
	require.Contains(t, string(got), "| **1; 0 that were in flight** |")
	require.NotContains(t, string(got), "stale")
	require.Error(t, Insert(page, "other: mark", ""))
}
