package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/cli/screen"
	"github.com/stepjet/stepjet/internal/eval"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

var noon = time.Date(2026, 2, 23, 12, 0, 0, 0, time.UTC)

// paper is an app that prints into buffers.
func paper(output string) (a *app, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &app{stdout: out, stderr: errs, flags: flags{output: output}, env: Env{Now: func() time.Time { return noon }}}, out, errs
}

func sampleRun() *outcome.Run {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	stats := outcome.Stats{Steps: 4, Succeeded: 2, Failed: 1, Skipped: 1, ElapsedMS: 1234.5, BytesReturned: 12, BytesKeptOut: 5 << 20, TokensKeptOut: 1310720}
	return &outcome.Run{
		Version: 1, Run: "order-42", Tenant: "default", Generation: 7, Digest: strings.Repeat("0123456789abcdef", 4),
		Status: outcome.Partial, Submitted: at(0), Started: at(1), Finished: at(1234), Stats: stats,
		Outcome: &outcome.Outcome{
			Run: "order-42", Status: outcome.Partial, Stats: stats,
			Results: outcome.Results{{Step: "london", JSON: json.RawMessage(`{"temp":13}`)}},
			Errors: []outcome.StepError{
				{Step: "tokyo", Code: fault.ToolFailed, Message: "503 from upstream", Attempts: 3},
				{Step: "compare", Code: fault.Skipped, Message: "Skipped because dependency 'tokyo' failed"}},
		},
		Steps: []outcome.Step{
			{ID: "tokyo", Tool: "get_weather", Status: outcome.StepFailed, Attempts: 3, Started: at(1), Ended: at(1200), Worker: "w-1",
				Tries: []outcome.Try{
					{Attempt: 1, Started: at(1), Ended: at(40), Worker: "w-2", Code: fault.ToolFailed, ToolCode: "over\x1bload", Deliveries: 2},
					{Attempt: 2, Code: fault.Timeout}, {Attempt: 3, Started: at(1), Ended: at(1200), Worker: "w-1", Code: fault.ToolFailed}},
				Error: fault.New(fault.ToolFailed, "503 from upstream\n\x1b[31mred").WithHint("try later")},
			{ID: "london", Tool: "get_weather", Status: outcome.StepSucceeded, Attempts: 1, Started: at(1), Ended: at(13), Worker: "w-2",
				Arguments: json.RawMessage(`{"location":"London"}`), Bytes: 11},
			{ID: "history", Tool: "search", Status: outcome.StepSucceeded, Attempts: 1, Started: at(1), Ended: at(2), Worker: "w-2", Bytes: 5 << 20,
				Blob: &outcome.Handle{Name: "x", Size: 5 << 20}},
			{ID: "compare", Tool: "compare_data", Status: outcome.StepSkipped, Error: fault.New(fault.Skipped, "Skipped because dependency 'tokyo' failed")},
		},
	}
}

func TestGoldenGet(t *testing.T) {
	t.Parallel()
	a, out, _ := paper("text")
	require.NoError(t, a.showRun(sampleRun(), false))
	fmt.Fprintln(out, "----")

	active := sampleRun()
	active.Status, active.Outcome, active.Finished, active.Stats = outcome.Running, nil, time.Time{}, outcome.Stats{Steps: 4, Succeeded: 1}
	active.Submitted = noon.Add(-48 * time.Hour)
	active.Steps[0].Status, active.Steps[0].Waiting = outcome.StepRetrying, "backoff until 12:00:03.000, then attempt 4"
	active.Steps[3].Status, active.Steps[3].Error, active.Steps[3].Waiting = outcome.StepWaiting, nil, "tokyo"
	require.NoError(t, a.showRun(active, false))
	fmt.Fprintln(out, "----")

	telling := sampleRun()
	telling.Steps[0].MessagesLeftOut, telling.Steps[0].Messages = 3, []outcome.Message{
		{Step: "tokyo/=1/m", Round: 1, Text: "It rains\n\x1b[31min \u009bTokyo."}, {Step: "tokyo/=2/m", Round: 2, Text: strings.Repeat("long ", 200), Bytes: 9000},
	}
	require.NoError(t, a.showRun(telling, false))
	fmt.Fprintln(out, "----")

	rejected := &outcome.Run{Run: "bad", Tenant: "acme", Status: outcome.Rejected, Submitted: noon, Digest: "00", Outcome: &outcome.Outcome{
		Run: "bad", Status: outcome.Rejected, Problems: []fault.Problem{{Code: fault.UnknownTool, Path: "/steps/0/tool", Message: "the tool 'ecko' is not registered", Hint: "did you mean 'echo'?"}}}}
	require.NoError(t, a.showRun(rejected, false))
	fmt.Fprintln(out, "----")
	for i := range 2 {
		require.NoError(t, a.writeStep(out, accountOf(sampleRun()), &sampleRun().Steps[i]))
		fmt.Fprintln(out, "----")
	}
	golden(t, "get", out.String())
	require.NotContains(t, out.String(), "\x1b", "what a tool says can't reach the terminal's controls")
}

func TestGoldenList(t *testing.T) {
	t.Parallel()
	a, out, errs := paper("text")
	runs := []client.Summary{
		{Run: "order-42", Tenant: "default", Status: outcome.Running, Submitted: noon},
		{Run: "a name with blanks and é", Tenant: "default", Status: outcome.Succeeded, Submitted: noon.Add(-time.Hour), Stats: outcome.Stats{Steps: 10000, Succeeded: 10000, ElapsedMS: 2345}},
		{Run: "UcYzE5bHvxGvVkVRoSB1Kd", Tenant: "default", Status: outcome.Partial, Submitted: noon.Add(-30 * time.Hour), Stats: outcome.Stats{Steps: 4, Succeeded: 2, ElapsedMS: 0.42}},
		{Run: "東京\x1b[2J", Tenant: "default", Status: outcome.Expired, Submitted: noon.Add(-300 * time.Hour), Stats: outcome.Stats{Steps: 3, Succeeded: 1, ElapsedMS: 604800000}},
	}
	require.NoError(t, a.showRuns(runs, noon))
	require.NotContains(t, out.String(), "\x1b")
	golden(t, "list", out.String())
	require.NoError(t, a.showRuns(nil, noon))
	require.Equal(t, "no runs\n", errs.String())
}

func TestOutcomeAndItsExitCode(t *testing.T) {
	t.Parallel()
	o := sampleRun().Outcome
	for status, code := range map[outcome.RunStatus]int{
		outcome.Succeeded: 0, outcome.Failed: 1, outcome.Cancelled: 1, outcome.Expired: 1, outcome.Rejected: 2, outcome.Partial: 3,
	} {
		a, out, errs := paper("json")
		o := *o
		o.Status = status
		require.Equal(t, code, codeOf(a.outcome(&o)), status)
		require.Equal(t, string(o.JSON())+"\n", out.String(), "for programs, the bytes as they are")
		require.Contains(t, errs.String(), string(status)+": ")
	}
	a, out, errs := paper("text")
	_ = a.outcome(o)
	golden(t, "outcome", errs.String()+out.String())
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, out.Bytes()))
	require.Equal(t, string(o.JSON()), compact.String())
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{errInterrupt, 130},
		{errWait, 124},
		{fmt.Errorf("x: %w", errWait), 124},
		{fault.New(fault.NoConnection, "x"), 4},
		{fault.New(fault.NoJetStream, "x"), 1},
		{fault.New(fault.Permission, "x"), 1},
		{fault.New(fault.NotReady, "x"), 1},
		{fault.New(fault.NotFound, "x"), 1},
		{fault.New(fault.Conflict, "x"), 2},
		{fault.New(fault.MessageTooLarge, "x"), 2},
		{fault.New(fault.InvalidConfig, "x"), 2},
		{fault.New(fault.UnknownRef, "x"), 2},
		{fault.New(fault.ImpossibleRef, "x"), 2},
		{fault.New(fault.Overtaken, "x"), 1},
		{usage(fault.New(fault.NotFound, "x")), 2},
		{&failure{quietly(3)}, 3},
		{os.ErrNotExist, 1},
	} {
		require.Equal(t, tt.code, codeOf(tt.err), "%v", tt.err)
	}
}

// A plan that is refused part by part ends a command as one that is refused at once does, whatever is wrong with it: with
// every code that the source lists among the problems of a plan.
func TestEveryProblemOfAPlanIsTheSameExitCode(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../fault/code.go")
	require.NoError(t, err)
	_, list, there := strings.Cut(string(source), "// Problems of a plan, found before anything runs")
	require.True(t, there)
	list, _, _ = strings.Cut(list, "\n)")
	codes := regexp.MustCompile(`= "([a-z0-9_]+)"`).FindAllStringSubmatch(list, -1)
	require.Len(t, codes, len(ofPlans))
	for _, code := range codes {
		require.Equal(t, exitInvalid, codeOf(fault.New(fault.Code(code[1]), "x")), code[1])
	}
}

func parsed(t *testing.T, body string) *plan.Plan {
	t.Helper()
	p, report := plan.Parse([]byte(body), nil)
	require.Empty(t, report.Problems)
	return p
}

const progressPlan = `{"steps":[
	{"id":"tokyo","tool":"get_weather"},{"id":"london","tool":"get_weather"},{"id":"paris","tool":"get_weather","optional":true},
	{"id":"compare","tool":"compare_data","depends_on":["tokyo","london"]},{"id":"note","tool":"text_concat","depends_on":["paris"]}]}`

func TestGoldenProgress(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	g := newProgress("order-42", parsed(t, progressPlan), noon)
	show := func(ms int, events ...client.Event) {
		now := noon.Add(time.Duration(ms) * time.Millisecond)
		for _, e := range events {
			g.apply(e, now)
		}
		fmt.Fprintf(&b, "after %d ms\n%s\n\n", ms, strings.Join(g.lines(style{}, 80, 24, now), "\n"))
	}
	step := func(id string, status outcome.StepStatus, attempt int, why string) client.Event {
		e := client.Event{Kind: subjects.EventStep, Step: id, Status: status, Attempt: attempt, MS: 12.34}
		if why != "" {
			e.Error = fault.New(fault.ToolFailed, "%s", why)
		}
		if status == outcome.StepRetrying {
			e.RetryAt = noon.Add(time.Second)
		}
		return e
	}
	show(0)
	show(100, client.Event{Kind: subjects.EventStart, Steps: 5})
	show(250, step("tokyo", outcome.StepSucceeded, 1, ""), step("paris", outcome.StepFailed, 1, "no such place, and a long explanation of why there is none"))
	show(300, client.Event{Kind: subjects.EventProgress, Step: "london", Progress: &outcome.Progress{Done: 3, Total: 12, Message: "reading page 3"}})
	show(400, step("london", outcome.StepRetrying, 1, "503"), step("nobody", outcome.StepSucceeded, 1, ""))
	show(1200, step("london", outcome.StepSucceeded, 2, ""), step("note", outcome.StepCancelled, 0, ""))
	show(5000, step("compare", outcome.StepSucceeded, 1, ""), client.Event{Kind: subjects.EventEnd})
	golden(t, "progress", b.String())
}

// What an agent of a plan tells people is seen with its step, also once that is over, and where there is no room for steps;
// nothing in it steers a terminal.
func TestProgressHasWhatAgentsTellPeople(t *testing.T) {
	t.Parallel()
	g := newProgress("trip", parsed(t, `{"steps":[{"id":"plan","tool":"planner"},{"id":"each","tool":"planner","depends_on":["plan"]},{"id":"pay","tool":"pay","depends_on":["each"]}]}`), noon)
	tell := func(agent, text string) {
		g.apply(client.Event{Kind: subjects.EventMessage, Agent: agent, Step: agent + "/=0/m", Message: &outcome.Message{Step: agent + "/=0/m", Text: text}}, noon)
	}
	g.apply(client.Event{Kind: subjects.EventStart, Steps: 3}, noon)
	tell("plan", "It rains\n\x1b[2Jin Tokyo.")
	drawn := func(rows int) string { return strings.Join(g.lines(style{}, 100, rows, noon), "\n") }
	require.Regexp(t, `plan +planner +queued  0 ms  says: It rains  \[2Jin Tokyo\.`, drawn(24))
	g.apply(client.Event{Kind: subjects.EventStep, Step: "plan", Status: outcome.StepSucceeded, MS: 12}, noon)
	require.Regexp(t, `plan +planner +12\.0 ms  says: It rains`, drawn(24))
	tell("each=2/=0/below", "Paid.")
	require.Regexp(t, `each +planner +queued  0 ms  says: Paid\.`, drawn(24))
	require.Contains(t, drawn(4), "message  each: Paid.")
	require.NotContains(t, drawn(24)+drawn(4), "\x1b")
	for rows := range 8 {
		require.LessOrEqual(t, len(g.lines(style{}, 80, rows, noon)), max(rows, 2))
	}
}

// onto is a terminal that can be redrawn.
func onto(w io.Writer) *screen.Screen {
	return screen.New(w, true, func() (columns, rows int) { return 80, 24 })
}

// The live view of a run whose plan is amended has the steps of the plan as it is now, where they stand, also those whose
// events came before the plan was read again.
func TestAnAmendedPlanIsDrawn(t *testing.T) {
	t.Parallel()
	var drawn shared
	amended := make(chan *plan.Plan, 1)
	l := newLive(onto(&drawn), style{}, planned{newProgress("dog-day", parsed(t, `{"steps":[{"id":"walk","tool":"walk"},{"id":"feed","tool":"feed","depends_on":["walk"]}]}`), time.Now()),
		func() *plan.Plan { return <-amended }})
	defer l.close()
	shows := func(lines ...string) {
		require.Eventually(t, func() bool {
			frames := strings.Split(drawn.String(), "dog-day")
			frame := frames[len(frames)-1]
			return !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(frame, line) })
		}, patience, time.Millisecond, "%q in %s", lines, drawn.String())
	}
	done := func(id string) client.Event {
		return client.Event{Kind: subjects.EventStep, Step: id, Tool: id, Status: outcome.StepSucceeded, MS: 1}
	}
	l.event(client.Event{Kind: subjects.EventStart, Steps: 2})
	l.event(done("walk"))
	shows("1 of 2 steps", "feed")
	l.event(client.Event{Kind: subjects.EventAmend, Step: "=", Revision: 1, Steps: 2})
	l.event(done("indoors"))
	amended <- parsed(t, `{"steps":[{"id":"walk","tool":"walk"},{"id":"indoors","tool":"indoors"},{"id":"nap","tool":"nap","depends_on":["indoors"]}]}`)
	shows("2 of 3 steps", "✓  walk", "✓  indoors", "nap")
	l.event(done("nap"))
	shows("3 of 3 steps", "✓  nap")
}

// A plan with more steps than the terminal has rows is shown by waves, and never in more lines than there are.
func TestProgressOfALargePlan(t *testing.T) {
	t.Parallel()
	var steps []string
	for w := range 30 {
		for i := range 40 {
			dep := ""
			if w > 0 {
				dep = fmt.Sprintf(`,"depends_on":["s%d_%d"]`, w-1, i)
			}
			steps = append(steps, fmt.Sprintf(`{"id":"s%d_%d","tool":"echo"%s}`, w, i, dep))
		}
	}
	g := newProgress("wide", parsed(t, `{"steps":[`+strings.Join(steps, ",")+`]}`), noon)
	g.apply(client.Event{Kind: subjects.EventStart}, noon)
	for i := range 40 {
		g.apply(client.Event{Kind: subjects.EventStep, Step: fmt.Sprintf("s0_%d", i), Status: outcome.StepSucceeded}, noon)
	}
	for i := range 10 {
		g.apply(client.Event{Kind: subjects.EventStep, Step: fmt.Sprintf("s1_%d", i), Status: outcome.StepFailed}, noon)
	}
	lines := g.lines(style{}, 80, 10, noon.Add(time.Second))
	require.LessOrEqual(t, len(lines), 9)
	golden(t, "progress_large", strings.Join(lines, "\n")+"\n")
	for rows := range 50 {
		require.LessOrEqual(t, len(g.lines(style{on: true}, 80, rows, noon)), max(rows, 2))
	}
}

func TestGoldenReport(t *testing.T) {
	t.Parallel()
	a, out, _ := paper("text")
	r := &eval.Report{
		Total: 128, Right: 127, Steps: 600, Succeeded: 599, Elapsed: 187654 * time.Microsecond, P50: 12345 * time.Microsecond, P99: 45678 * time.Microsecond,
		Verdicts: []eval.Verdict{{Name: "56a41db0-98cd-455e-ba7b-5cc7333e3b35", Why: "want 625.0, got {\"result\":624}"}, {Name: "b", Right: true}},
	}
	c := eval.Case{Name: "weather", Plan: json.RawMessage(progressPlan)}
	require.NoError(t, a.showReport(r, &session{where: "nats://127.0.0.1:4222"}, time.Millisecond, drawn([]eval.Case{c}, true)))
	golden(t, "report", out.String())
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, columns(line), 81)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", cut("short", 20))
	require.Equal(t, "a rather…", cut("a rather long text", 9))
	require.Equal(t, "東京都…", cut("東京都東京都", 6), "never less than eight columns")
	require.LessOrEqual(t, columns(cut(strings.Repeat("東", 40), 20)), 20)
}

func TestDurationsAndSizes(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 420 * time.Microsecond: "0.42 ms", 1234 * time.Microsecond: "1.23 ms", 12345 * time.Microsecond: "12.3 ms",
		123456 * time.Microsecond: "123 ms", 1234 * time.Millisecond: "1.23 s", 12345 * time.Millisecond: "12.3 s",
		125 * time.Second: "2m05s", 168 * time.Hour: "168h00m",
	} {
		require.Equal(t, want, took(d))
	}
	for n, want := range map[int64]string{12: "12 B", 2048: "2.0 KiB", 5 << 20: "5.0 MiB", 3 << 30: "3.0 GiB"} {
		require.Equal(t, want, size(n))
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.False(t, styleOf(&b, func(string) string { return "" }).on)
	require.Equal(t, "x", style{}.red("x"))
	require.Equal(t, "\x1b[31mx\x1b[0m", style{on: true}.red("x"))
}
