package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// longAnswer is an answer whose round has more than a record's 256 KiB: what a call is made with, and what another refers to.
func longAnswer(letters int) string {
	return fmt.Sprintf(`{"steps":[{"id":"x","tool":"echo","arguments":{"text":%q}},{"id":"g","tool":"gate","depends_on":["x"]},{"id":"y","tool":"length","depends_on":["g"],"arguments":{"text":"$ref:x.text"}}]}`,
		strings.Repeat("t", letters))
}

// TestALargeRoundIsRun: its record says where it lies, an owner that comes in the middle of it goes on with it, and what it
// runs, comes to and is amended by is as of any round. Who doesn't know of such leaves the run alone.
func TestALargeRoundIsRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	const letters = 900 << 10
	x := s.plays("planner", longAnswer(letters), `{"output":{"long":"$ref:r0.y","added":"$ref:r0.z.n"}}`)
	s.agent("talker", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo","gate","length"]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"talker"}]}`, "long")
	<-s.tools.begun
	run := subjects.NewRun("default", "long")
	e, err := s.store.Ledger.Read(ctx(t), subjects.RoundRecord(run, r.Generation(), "a/=0", 1))
	require.NoError(t, err)
	require.Less(t, len(e.Data), 1024)
	require.Equal(t, []string{wire.LargeRounds}, wire.RecordNeeds(e.Header, e.Data))
	blob := wire.RoundBlob(e.Header, e.Data, run, r.Generation(), "")
	require.NotNil(t, blob)
	body, err := s.store.Archive.Blob(ctx(t), blob)
	require.NoError(t, err)
	require.Contains(t, string(wire.ParseRound(body).Fragment), `"id":"y"`)

	require.Eventually(t, func() bool { // an owner on a busy machine may be longer at a round of this size than clients wait
		_, err = s.client.Amend(ctx(t), "long", client.Amendment{Scope: "a/=0", Add: raws(`{"id":"z","tool":"echo","arguments":{"n":3}}`)})
		return fault.CodeOf(err) != fault.NotReady
	}, patience, 20*time.Millisecond)
	require.NoError(t, err)
	next := s.orchestrator()
	s.leave()
	s.leave = next
	s.tools.gate <- struct{}{}
	o := s.wait(r)
	require.JSONEq(t, fmt.Sprintf(`{"long":%d,"added":3}`, letters), result(t, o, "a"), "%s", o.JSON())
	require.Equal(t, []int{0, 1}, x.times())
	doc := s.history("default", "long")
	require.Equal(t, outcome.StepSucceeded, doc.Steps[0].Status)
}

// TestALargeRoundIsApprovedOf: who is asked about it is shown all of it.
func TestALargeRoundIsApprovedOf(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", longAnswer(900<<10), `{"output":"done"}`)
	s.agent("talker", "", `{"planner":{"tool":"planner","mode":"plan"},"approval":"plan","tools":["echo","gate","length"]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"talker"}]}`, "long")
	s.asked("long", "a")
	q, err := s.client.Question(ctx(t), "long", "a")
	require.NoError(t, err)
	require.Empty(t, q.Arguments)
	require.NotNil(t, q.Blob)
	var shown struct{ Steps []json.RawMessage }
	require.NoError(t, json.Unmarshal(q.Plan, &shown))
	require.Len(t, shown.Steps, 3)
	_, err = s.client.Reject(ctx(t), q, client.Answer{Reason: "too long"})
	require.NoError(t, err)
	require.JSONEq(t, `"done"`, result(t, s.wait(r), "a"))
}

// TestARoundWhoseBlobIsGone is an answer of no use, and holds nothing up.
func TestARoundWhoseBlobIsGone(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner", `{"steps":[{"id":"x","tool":"echo"}]}`, `{"output":"done"}`)
	asked, goOn := make(chan int), make(chan struct{})
	x.before = func(round int) {
		asked <- round
		<-goOn
	}
	s.agent("talker", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"talker"}]}`, "gone")
	require.Zero(t, <-asked)
	s.leave()
	close(goOn)
	planner := subjects.Attempt{Run: subjects.NewRun("default", "gone"), Generation: r.Generation(), Step: "a/=0/=plan", Tool: "planner", Number: 1}
	require.Eventually(t, func() bool {
		_, err := s.store.Ledger.Read(ctx(t), subjects.StepRecord(planner, 1))
		return err == nil
	}, patience, time.Millisecond)
	run, digest := subjects.NewRun("default", "gone"), strings.Repeat("ab", 32)
	h, body := wire.LargeRoundMessage(&outcome.Handle{Name: subjects.RoundBlobName(run, r.Generation(), digest), Size: 1000, SHA256: digest, NUID: "nothing", Chunks: 1})
	_, _, err := s.store.Ledger.Create(ctx(t), subjects.RoundRecord(run, r.Generation(), "a/=0", 1), h, body, nil)
	require.NoError(t, err)
	s.leave = s.orchestrator()
	require.Equal(t, 1, <-asked)
	o := s.wait(r)
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, string(x.asked[1]["rounds"]), string(fault.InvalidRecord), "its planner is told")
}

// kindsOfCalls are entries of calls that are free, that ask their gates, and that leave an object for a sink.
var kindsOfCalls = map[string]string{
	"free":  `{"tool":"echo","as":"free"}`,
	"gated": `{"tool":"echo","as":"gated","needs":{"any":["length"]}}`,
	"sunk":  `{"tool":"echo","as":"sunk","artifact":{"type":"Note","sink":{"subject":"kept.notes"}}}`,
}

// roundOf returns the time that a run takes whose agent makes some calls of a kind in one round, and how many bytes the process
// allocates meanwhile.
func roundOf(t testing.TB, calls int, kind string) (time.Duration, uint64) {
	s := start(t)
	s.sinksAreThere()
	steps := []string{`{"id":"first","tool":"length","arguments":{"text":"t"}}`}
	for i := range calls {
		behind := "first"
		if kind == "sunk" && i > 0 { // one behind the other: of many at once an object goes to its sink with others
			behind = fmt.Sprint("s", i-1)
		}
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":%q,"depends_on":[%q],"arguments":{"n":%d}}`, i, kind, behind, i))
	}
	s.plays("planner", `{"steps":[`+strings.Join(steps, ",")+`]}`, `{"output":"done"}`)
	s.agent("talker", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["length",`+kindsOfCalls[kind]+`]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	o := s.wait(s.submit(`{"steps":[{"id":"a","tool":"talker"}]}`, "many"))
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	if kind == "sunk" {
		all, _ := s.sunk("KEPT")
		require.Len(t, all, calls)
	}
	return took, after.TotalAlloc - before.TotalAlloc
}

// TestAGateSeesWhatIsOverMeanwhile: the gates of a round of many calls, which share what they look at, see what those came to
// that were over after the first of them was asked, and act on the object that one returned.
func TestAGateSeesWhatIsOverMeanwhile(t *testing.T) {
	t.Parallel()
	s := start(t)
	const calls = 50
	steps := []string{`{"id":"s0","tool":"gated","arguments":{"n":0}}`}
	for i := 1; i < calls; i++ {
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":"gated","depends_on":["s%d"],"arguments":{"n":%d}}`, i, i-1, i))
	}
	steps = append(steps, fmt.Sprintf(`{"id":"hit","tool":"finds","depends_on":["s%d"],"arguments":{"n":7}}`, calls-1),
		`{"id":"last","tool":"acts","depends_on":["hit"],"arguments":{"m":1}}`)
	s.plays("planner", `{"steps":[`+strings.Join(steps, ",")+`],"output":"$ref:last"}`)
	s.agent("talker", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":[{"tool":"echo","as":"gated","needs":{"when":"$round < 5"}},
		{"tool":"echo","as":"finds","bind":{"k":3},"artifact":{"type":"Hit"}},{"tool":"echo","as":"acts","needs":{"artifact":"Hit"},"bind":{"of":"$artifact.Hit.n"}}]}`)
	o := s.wait(s.submit(`{"steps":[{"id":"a","tool":"talker"}]}`, "sees"))
	require.JSONEq(t, `{"m":1,"of":7}`, result(t, o, "a"), "%s", o.JSON())
}

// TestGatesOfARoundCostWhatItsCallsDo: of a round of ten times as many calls, each with its gate or an object for a sink, all of
// it allocates about ten times as many bytes. Where each gate, or who sends, looks at all of the calls, it is by far more.
func TestGatesOfARoundCostWhatItsCallsDo(t *testing.T) { //nolint:paralleltest // it counts bytes
	for _, kind := range []string{"gated", "sunk"} {
		_, few := roundOf(t, 100, kind)
		_, many := roundOf(t, 1_000, kind)
		t.Logf("%s: %d bytes a call of 100, %d of 1,000", kind, few/100, many/1_000)
		require.Less(t, 2*many, 3*10*few, kind)
	}
}

// BenchmarkRoundOfManyCalls is how long rounds take whose calls ask their gates, leave objects for a sink, or are free.
func BenchmarkRoundOfManyCalls(b *testing.B) {
	for _, calls := range []int{500, 2_000} {
		for kind := range kindsOfCalls {
			b.Run(fmt.Sprintf("%d/%s", calls, kind), func(b *testing.B) {
				for b.Loop() {
					took, bytes := roundOf(b, calls, kind)
					b.ReportMetric(float64(took.Milliseconds()), "ms/run")
					b.ReportMetric(float64(bytes)/float64(calls), "B/call")
				}
			})
		}
	}
}
