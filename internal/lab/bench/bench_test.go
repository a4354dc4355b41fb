package bench

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/programs"
)

func testEnv(t *testing.T) Env {
	return Env{
		Env: bench.Env{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, Progress: func(string) {},
	}
}

// Every shape comes to its end on either side, under flushes and several shards too.
func TestFloorAndStepjetInTurns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		layout Layout
		config Config
		shapes int
	}{
		"every shape":        {Layouts[0], Config{Scale: 0.02, Sustain: 600 * time.Millisecond}, len(Shapes(1)) + 1},
		"flushed and shards": {Layout{Part: "flushed", Always: true, Shards: 4}, Config{Scale: 0.01, Only: "diamonds"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.config.Rounds = 1
			got, err := Ratios(t.Context(), testEnv(t), tt.layout, tt.config)
			require.NoError(t, err)
			if got.Sustained != nil {
				got.Pairs = append(got.Pairs, *got.Sustained)
			}
			require.Len(t, got.Pairs, tt.shapes)
			for _, p := range got.Pairs {
				require.Positive(t, p.Floor.RunMS, p.Shape)
				require.Positive(t, p.Stepjet.RunMS, p.Shape)
				require.Positive(t, p.Stepjet.Rate, p.Shape)
				require.Positive(t, p.Ratio.RunMS, p.Shape)
			}
			require.Positive(t, got.Disk.P50)
		})
	}
}

// The floor makes each step of a plan once, and one in ten twice where these fail.
func TestFloorMakesEveryRecord(t *testing.T) {
	t.Parallel()
	for _, s := range []Shape{chainShape(5, 4), fanOutShape(30, 2), diamondShape(3, 10), flakyShape(7, 20)} {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			w, err := newWorld(t.Context(), testEnv(t), Layouts[0], false)
			require.NoError(t, err)
			defer w.close()
			nc, err := w.Connect("floor")
			require.NoError(t, err)
			f, err := newFloor(t.Context(), nc, w.Layout)
			require.NoError(t, err)
			times, err := f.drive(t.Context(), s, 0)
			require.NoError(t, err)
			require.Len(t, times, s.Runs)
			want := s.Runs * s.Steps
			if s.tool == flakyTool {
				want += want / failOneIn
			}
			stream, err := w.JS.Stream(t.Context(), floorRecords+"0")
			require.NoError(t, err)
			require.EqualValues(t, want, stream.CachedInfo().State.Msgs)
		})
	}
}

// What the floor knows of a plan is what the plan says.
func TestGraphsAgreeWithPlans(t *testing.T) {
	t.Parallel()
	for _, s := range append(Shapes(1), chainShape(3, 1)) {
		require.Len(t, s.graph.waits, s.Steps, s.Name)
		edges := 0
		for _, next := range s.graph.next {
			edges += len(next)
		}
		waits := 0
		for _, n := range s.graph.waits {
			waits += int(n)
		}
		require.Equal(t, waits, edges, s.Name)
		require.Equal(t, s.Steps, strings.Count(string(s.Plan), `"id":`), s.Name)
	}
}

func TestAFloorThatIsRefusedSaysSo(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t.Context(), testEnv(t), Layouts[0], false)
	require.NoError(t, err)
	defer w.close()
	nc, err := w.Connect("floor")
	require.NoError(t, err)
	f, err := newFloor(t.Context(), nc, w.Layout)
	require.NoError(t, err)
	require.NoError(t, w.JS.DeleteStream(t.Context(), floorQueue))
	_, err = f.drive(t.Context(), chainShape(2, 1), 0)
	require.Error(t, err)
	require.Equal(t, fault.Internal, fault.CodeOf(err))
}

func TestPartsAreChosenByNameAndGroup(t *testing.T) {
	t.Parallel()
	all, err := Choose(nil)
	require.NoError(t, err)
	require.Len(t, all, len(Layouts))
	some, err := Choose([]string{"backlog", "cluster", "report"})
	require.NoError(t, err)
	require.Equal(t, []string{"backlog", "cluster"}, []string{some[0].Name, some[1].Name})
	_, err = Choose([]string{"backlogs"})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

const coreOutput = `goos: linux
pkg: github.com/stepjet/stepjet/plan
BenchmarkCoreParseValidate/10000-2   	      54	  30000000 ns/op	     10000 steps/op	 9795440 B/op	   40100 allocs/op
BenchmarkParse7-2   	      54	  22017894 ns/op
PASS
`

func TestBenchmarksAreReadForEachStep(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	env.Stdin = strings.NewReader(coreOutput)
	got, err := readCore(t.Context(), env, Config{}, Stamp{})
	require.NoError(t, err)
	want := CoreFigures{Name: "ParseValidate/10000", Steps: 10_000, NS: 3000, Allocs: 4.01, Bytes: 979.544}
	require.Equal(t, []CoreFigures{want}, got.(*Core).Benchmarks)
	require.InDelta(t, 30, want.TotalMS(), 1e-9)
	env.Stdin = strings.NewReader("PASS\n")
	_, err = readCore(t.Context(), env, Config{}, Stamp{})
	require.Error(t, err)
}

// Runs that wait, for a day and for people, come to their places in the short form too, and an orchestrator to them.
func TestRunsThatWait(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	require.NoError(t, programs.Build(env.Dir, "./cmd/lab"))
	env.Command = []string{filepath.Join(env.Dir, "lab"), "bench", "role"}
	config := Config{Scale: 0.02}
	got, err := measureWaiting(t.Context(), env, config, Stamp{})
	require.NoError(t, err)
	x := got.(*Waiting)
	require.Empty(t, x.Failed)
	require.Positive(t, x.Alone.Rate)
	require.Positive(t, x.Beside.Rate)
	require.GreaterOrEqual(t, x.Beside.Records[0], float64(recordsOfADay*x.Runs))
	require.Positive(t, x.Beside.MemoryMB[2])

	got, err = measurePeople(t.Context(), env, config, Stamp{})
	require.NoError(t, err)
	p := got.(*People)
	require.Empty(t, p.Failed)
	require.GreaterOrEqual(t, p.Listed, p.Answered)
}

// A report holds every target, measured or not, and leaves what was written by hand.
func TestReportKeepsWhatItDoesNotMeasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	doc := filepath.Join(dir, "performance.md")
	require.NoError(t, os.WriteFile(doc, []byte("before\n"+benchBegin+"\nold\n"+benchEnd+"\nafter\n"), 0o600))
	require.NoError(t, WriteReport(dir, doc))
	empty, err := os.ReadFile(doc)
	require.NoError(t, err)
	require.Equal(t, strings.Count(string(empty), "not measured"), wanted()+9)

	pair := Pair{Shape: "chain of 20", Rounds: 3, InFlight: 1, Steps: 20, Floor: Figures{StepMS: 0.1}, Stepjet: Figures{StepMS: 0.14}, Ratio: Figures{StepMS: 1.4}}
	require.NoError(t, Keep(dir, "embedded", LayoutFigures{Layout: Layouts[0], Pairs: []Pair{pair}}))
	require.NoError(t, Keep(dir, "curve", Curve{Points: []Point{{InFlight: 1, Figures: Figures{CPU: 0.3}}, {InFlight: 100_000, Figures: Figures{CPU: 0.1}}}}))
	require.NoError(t, Keep(dir, "backlog", Backlog{Runs: 10, Steps: 100, AllAnswered: 1}))
	require.NoError(t, WriteReport(dir, doc))
	text, err := os.ReadFile(doc)
	require.NoError(t, err)
	require.Contains(t, string(text), "| chain of 20 | ms a step, over JetStream alone | ≤ 1.3 | embedded **1.40**, separate not measured |")
	require.Contains(t, string(text), "| 1 to 100,000 runs in flight | CPU per step, largest rise towards more of them | ≤ 1.1 | 1.00 |")
	require.Contains(t, string(text), "| backlog of 100 steps | restarted, s until every partition is answered for | ≤ 30 | 1.00, measured on less |")
	require.True(t, strings.HasPrefix(string(text), "before\n") && strings.HasSuffix(string(text), "\nafter\n"))
	require.NotContains(t, string(text), "\nold\n")

	svg, err := os.Open(filepath.Join(dir, plotFile))
	require.NoError(t, err)
	defer svg.Close()
	for d := xml.NewDecoder(svg); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
}

// wanted counts the targets of layouts.
func wanted() (n int) {
	for _, group := range targets {
		n += len(group.parts) * len(group.wants)
	}
	return n
}

func TestReportNeedsItsMarks(t *testing.T) {
	t.Parallel()
	doc := filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, os.WriteFile(doc, []byte("nothing\n"), 0o600))
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(WriteReport(filepath.Dir(doc), doc)))
}

func TestAPartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Ratios(ctx, testEnv(t), Layouts[0], Config{Rounds: 1, Scale: 0.01})
	require.Error(t, err)
}
