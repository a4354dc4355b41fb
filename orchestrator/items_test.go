package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// host runs a worker of one more tool.
func (s *system) host(name string, o *tool.Orchestration, fn func(ctx context.Context, args json.RawMessage) (worker.Output, error)) (stop func()) {
	s.t.Helper()
	w, err := worker.New(natstest.Connect(s.t, s.srv), worker.Config{Name: "w-" + name, Logger: logger(s.t)})
	require.NoError(s.t, err)
	require.NoError(s.t, w.HandleRaw(&tool.Definition{Name: name, Orchestration: o}, fn))
	return s.background(w.Run, w.Ready())
}

func partial(limit int) *tool.Orchestration {
	return &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: limit, ErrorPropagation: tool.PartialSuccess}
}

// double answers {"n": 2n}, and fails for n = 3.
func double(_ context.Context, args json.RawMessage) (worker.Output, error) {
	var in struct{ N int }
	if err := json.Unmarshal(args, &in); err != nil {
		return worker.Output{}, worker.Terminal(err)
	}
	if in.N == 3 {
		return worker.Output{}, worker.Terminal(errors.New("three is too many"))
	}
	return worker.Output{Body: fmt.Appendf(nil, `{"n":%d}`, 2*in.N)}, nil
}

func result(t testing.TB, o *outcome.Outcome, step string) string {
	t.Helper()
	raw, ok := o.Results.Get(step)
	require.True(t, ok, "%s", o.JSON())
	return string(raw)
}

func TestForEachRunsAStepOnceForEachItem(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.host("double", partial(4), double)
	o := s.run(`{"steps":[
		{"id":"list","tool":"echo","arguments":{"numbers":[1,2,3,4]}},
		{"id":"all","tool":"double","for_each":{"in":"$ref:list.numbers","as":"x"},"arguments":{"n":"$ref:x"}},
		{"id":"sum","tool":"echo","arguments":{"first":"$ref:all[0].data.n","failed":"$ref:all[2].error.code","whole":"$ref:all"}}]}`, "items")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	const entries = `[{"index":0,"status":"ok","data":{"n":2}},{"index":1,"status":"ok","data":{"n":4}},` +
		`{"index":2,"status":"error","error":{"code":"tool_terminal","message":"three is too many","retryable":false}},{"index":3,"status":"ok","data":{"n":8}}]`
	require.JSONEq(t, `{"results":`+entries+`,"summary":{"ok":3,"error":1}}`, result(t, o, "all"))
	require.JSONEq(t, `{"first":2,"failed":"tool_terminal","whole":`+entries+`}`, result(t, o, "sum"))

	doc := s.history("default", "items")
	require.Len(t, doc.Steps[1].Items, 4)
	require.Equal(t, "all=2", doc.Steps[1].Items[2].ID)
	require.Equal(t, outcome.StepFailed, doc.Steps[1].Items[2].Status)
	require.Equal(t, 4, doc.Steps[1].Attempts)

	letter, err := s.client.DeadLetter(ctx(t), "items", "all=2")
	require.NoError(t, err)
	require.JSONEq(t, `{"n":3}`, string(letter.Arguments))
	require.Equal(t, 1, letter.Attempts)
}

func TestForEachOverNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"all","tool":"echo","for_each":{"in":[]},"arguments":{"n":"$ref:item"}},
		{"id":"after","tool":"echo","arguments":{"list":"$ref:all"}}]}`, "none")
	require.Equal(t, outcome.Succeeded, o.Status)
	require.JSONEq(t, `{"list":[]}`, result(t, o, "after"))
	require.JSONEq(t, `{"results":[],"summary":{"ok":0,"error":0}}`, result(t, o, "all"))
}

func TestForEachWithoutAListFails(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"a","tool":"echo","arguments":{"n":1}},
		{"id":"all","tool":"echo","for_each":{"in":"$ref:a.n"},"arguments":{"n":"$ref:item"}},
		{"id":"after","tool":"echo","arguments":{"list":"$ref:all"}}]}`, "nolist")
	require.Equal(t, outcome.Partial, o.Status)
	require.Equal(t, fault.UnresolvedRef, o.Errors[0].Code)
	require.Equal(t, "Skipped because dependency 'all' failed", o.Errors[1].Message)
}

func TestFailFastGivesTheOtherItemsUp(t *testing.T) {
	t.Parallel()
	s := start(t)
	fast := &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 1, ErrorPropagation: tool.FailFast}
	var calls atomic.Int32
	s.host("double", fast, func(c context.Context, args json.RawMessage) (worker.Output, error) {
		if calls.Add(1) > 2 { // what comes after the failed one is given up, not executed to its end
			<-c.Done()
			return worker.Output{}, context.Cause(c)
		}
		return double(c, args)
	})
	o := s.run(`{"steps":[{"id":"all","tool":"double","for_each":{"in":[1,3,4,5,6,7,8,9]},"arguments":{"n":"$ref:item"}}]}`, "fast")
	require.Equal(t, outcome.Failed, o.Status)
	require.Equal(t, fault.ToolTerminal, o.Errors[0].Code)
	require.Equal(t, "item 1: three is too many", o.Errors[0].Message)
	doc := s.history("default", "fast")
	require.Equal(t, outcome.StepSucceeded, doc.Steps[0].Items[0].Status)
	require.Equal(t, outcome.StepCancelled, doc.Steps[0].Items[7].Status)
	require.Equal(t, "Cancelled because item 1 of the step failed", doc.Steps[0].Items[7].Error.Message)
	require.LessOrEqual(t, int(calls.Load()), 3, "of the items after the failed one, one at most was begun")
}

func TestItemsAreRetriedOneByOne(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"all","tool":"flaky","for_each":{"in":["a","b"]},"arguments":{"n":"$ref:item"}}]}`, "retries")
	require.Equal(t, outcome.Succeeded, o.Status)
	require.JSONEq(t, `{"results":[{"index":0,"status":"ok","data":"at last"},{"index":1,"status":"ok","data":"at last"}],"summary":{"ok":2,"error":0}}`, result(t, o, "all"))
	all := s.history("default", "retries").Steps[0]
	require.Equal(t, 6, all.Attempts)
	require.Nil(t, all.Tries, "they are those of its items")
	for _, item := range all.Items {
		require.Len(t, item.Tries, 3)
		for i, x := range item.Tries {
			require.Equal(t, outcome.Try{
				Attempt: i + 1, Started: x.Started, Ended: x.Ended, Worker: "w", Code: []fault.Code{fault.ToolFailed, fault.ToolFailed, ""}[i],
			}, x)
			require.False(t, x.Started.IsZero() || x.Ended.Before(x.Started))
		}
		require.Equal(t, item.Started, item.Tries[2].Started, "the step's own are those of the last")
	}
}

// TestALargeListIsReadFromItsBlob runs over a list that lies in a blob, with results that lie in blobs too.
func TestALargeListIsReadFromItsBlob(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.host("list", nil, func(context.Context, json.RawMessage) (worker.Output, error) {
		var parts []string
		for i := range 4 {
			parts = append(parts, fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", 100_000)))
		}
		return worker.Output{Body: []byte(`{"parts":[` + strings.Join(parts, ",") + `]}`)}, nil
	})
	o := s.run(`{"steps":[{"id":"list","tool":"list"},
		{"id":"each","tool":"big","for_each":{"in":"$ref:list.parts"},"arguments":{"bytes":300000,"n":"$ref:item.n"}},
		{"id":"after","tool":"length","arguments":{"text":"$ref:each[3].data.text"}}],"output_steps":["after"]}`, "large")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, "300000", result(t, o, "after"))
}

// TestTakingOverARunInTheMiddleOfItsItems lets another orchestrator go on with a run of which some items are done.
func TestTakingOverARunInTheMiddleOfItsItems(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"steps":[{"id":"all","tool":"gate","for_each":{"in":[1,2,3]},"arguments":{"n":"$ref:item"}}]}`, "over")
	require.ElementsMatch(t, []string{"all=0", "all=1", "all=2"}, []string{<-s.tools.begun, <-s.tools.begun, <-s.tools.begun})
	second := s.orchestrator()
	defer second()
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	require.Equal(t, 3, s.tools.total(), "no item ran twice")
}

func TestACancelledForEach(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"steps":[{"id":"all","tool":"gate","for_each":{"in":[1,2,3]},"arguments":{"n":"$ref:item"}},{"id":"b","tool":"echo","depends_on":["all"]}]}`, "stop")
	for range 3 {
		<-s.tools.begun
	}
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "stop", "test")))
	o := s.wait(r)
	require.Equal(t, outcome.Cancelled, o.Status)
	doc := s.history("default", "stop")
	require.Equal(t, outcome.StepCancelled, doc.Steps[0].Status)
	require.Equal(t, outcome.StepCancelled, doc.Steps[0].Items[1].Status)
}

func TestContextReachesTheToolAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	got := make(chan wire.Context, 2)
	s.host("who", nil, func(c context.Context, _ json.RawMessage) (worker.Output, error) {
		info, _ := worker.InfoFrom(c)
		got <- info.Context
		return worker.Output{Body: []byte(`1`)}, nil
	})
	all, err := wire.NewContext(map[string]string{"user": "ada", "token": "s3cret-of-ada"}, "token")
	require.NoError(t, err)
	own, err := wire.NewContext(map[string]string{"user": "bob"})
	require.NoError(t, err)
	plan := []byte(`{"steps":[{"id":"a","tool":"who"},{"id":"b","tool":"who","depends_on":["a"]}]}`)
	_, err = s.client.Run(ctx(t), plan, client.SubmitOptions{Run: "ctx", Context: wire.RunContext{All: all, Steps: map[string]wire.Context{"b": own}}})
	require.NoError(t, err)
	a, b := <-got, <-got
	user, _ := a.Get("user")
	token, _ := a.Get("token")
	require.Equal(t, []string{"ada", "s3cret-of-ada"}, []string{user, token})
	require.True(t, a.Secret("token"))
	user, _ = b.Get("user")
	token, _ = b.Get("token")
	require.Equal(t, []string{"bob", "s3cret-of-ada"}, []string{user, token}, "the step's own entries win, the run's others stay")
	require.NotContains(t, string(s.history("default", "ctx").JSON()), "s3cret")

	o, err := s.client.Run(ctx(t), plan, client.SubmitOptions{Run: "ctx2", Context: wire.RunContext{Steps: map[string]wire.Context{"c": own}}})
	require.NoError(t, err)
	require.Equal(t, outcome.Rejected, o.Status)
	require.Contains(t, o.Problems[0].Message, `the step "c"`)
}

func TestARetriedRunTakesSuccessesOver(t *testing.T) {
	t.Parallel()
	s := start(t)
	var broken atomic.Bool
	broken.Store(true)
	s.host("mends", nil, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		if broken.Load() {
			return worker.Output{}, worker.Terminal(errors.New("broken"))
		}
		return worker.Output{Body: args}, nil
	})
	const plan = ` {"steps":[{"id":"a","tool":"echo","arguments":{"n":1.0,"html":"<b>"}},{"id":"big","tool":"big","arguments":{"bytes":300000}},
		{"id":"each","tool":"echo","for_each":{"in":[1,2]},"arguments":{"i":"$ref:item"}},
		{"id":"m","tool":"mends","arguments":{"a":"$ref:a","n":"$ref:big.n","e":"$ref:each[1].data.i"}},{"id":"z","tool":"echo","arguments":{"m":"$ref:m"}}]}
`
	o := s.run(plan, "first")
	require.Equal(t, outcome.Partial, o.Status)
	before := s.tools.total()
	broken.Store(false)

	r, err := s.client.Retry(ctx(t), "first", client.RetryOptions{})
	require.NoError(t, err)
	o = s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, `{"a":{"n":1.0,"html":"<b>"},"n":300000,"e":2}`, result(t, o, "m"), "to the byte")
	require.JSONEq(t, `{"results":[{"index":0,"status":"ok","data":{"i":1}},{"index":1,"status":"ok","data":{"i":2}}],"summary":{"ok":2,"error":0}}`, result(t, o, "each"))
	require.Equal(t, before+1, s.tools.total(), "of the tools counted, only z ran again")
	doc := s.history("default", r.ID())
	require.Equal(t, "first", doc.RetryOf)
	require.True(t, doc.Steps[0].Reused)
	require.False(t, doc.Steps[3].Reused)

	r, err = s.client.Retry(ctx(t), "first", client.RetryOptions{Run: "again", From: "a"})
	require.NoError(t, err)
	o = s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status)
	require.Equal(t, before+3, s.tools.total(), "a and z")
}

// TestAStepThatWaitsTooLongForASlot shows the first of the three timeouts: waiting, running, the whole step.
func TestAStepThatWaitsTooLongForASlot(t *testing.T) {
	t.Parallel()
	s := start(t)
	gate := make(chan struct{})
	began := make(chan struct{}, 1)
	s.host("narrow", &tool.Orchestration{Mode: tool.SequentialOnly, WaitTimeoutMS: 400}, func(c context.Context, args json.RawMessage) (worker.Output, error) {
		began <- struct{}{}
		<-gate
		return worker.Output{Body: []byte(`1`)}, nil
	})
	r := s.takeSlot(began)
	o := s.run(`{"steps":[{"id":"b","tool":"narrow"}]}`, "second")
	require.Equal(t, fault.Timeout, o.Errors[0].Code, "%s", o.JSON())
	require.Equal(t, "no worker took the step within 400ms", o.Errors[0].Message)
	close(gate)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status, "the one that had a slot isn't touched, however long it runs")
}

// takeSlot returns a run whose step has the only slot of the tool "narrow". On a busy machine a step may wait longer
// for it than the tool allows; then another run tries.
func (s *system) takeSlot(began <-chan struct{}) *client.Run {
	s.t.Helper()
	for i := 0; ; i++ {
		r := s.submit(`{"steps":[{"id":"a","tool":"narrow"}]}`, fmt.Sprint("first", i))
		over, c := make(chan error, 1), ctx(s.t)
		go func() {
			_, err := r.Wait(c)
			over <- err
		}()
		select {
		case <-began:
			return r
		case err := <-over:
			require.NoError(s.t, err)
		}
	}
}

func TestWhyAStepWaits(t *testing.T) {
	t.Parallel()
	s := start(t)
	stop := s.host("absent", partial(8), double)
	stop()
	gate := make(chan struct{})
	began := make(chan struct{}, 10)
	s.host("one", &tool.Orchestration{Mode: tool.SequentialOnly}, func(c context.Context, args json.RawMessage) (worker.Output, error) {
		began <- struct{}{}
		<-gate
		return worker.Output{Body: []byte(`1`)}, nil
	})
	r := s.submit(`{"steps":[{"id":"a","tool":"absent"},{"id":"b","tool":"echo","arguments":{"x":"$ref:a"}},{"id":"f","tool":"flaky","retry":{"backoff":{"initial_ms":60000,"max_ms":60000}}},
		{"id":"n","tool":"one","for_each":{"in":[1,2,3,4,5,6]},"arguments":{"x":"$ref:item"}}]}`, "why")
	<-began
	waiting := func(id string) (text string, status outcome.StepStatus) {
		doc, err := s.client.Get(ctx(t), "why")
		require.NoError(t, err)
		for _, st := range doc.Steps {
			for _, item := range st.Items {
				if item.ID == id {
					return item.Waiting, item.Status
				}
			}
			if st.ID == id {
				return st.Waiting, st.Status
			}
		}
		return "", ""
	}
	says := func(id, want string) {
		require.Eventually(t, func() bool { text, _ := waiting(id); return strings.Contains(text, want) }, patience, 20*time.Millisecond, "%s: %s", id, want)
	}
	says("a", "no worker of absent is alive")
	says("b", "a")
	says("f", "backoff until ")
	says("n=1", "fan-out limit 1 of 1")
	says("n=5", "window full: 2 steps of one are out, 4 of this run's wait")
	_, status := waiting("n=0")
	require.Equal(t, outcome.StepRunning, status)
	close(gate)
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "why", "test")))
	s.wait(r)
}

// TestTheOperatorSaysWhatLeavesForATool returns the workers of a tool only the keys of the context that the operator
// allows.
func TestTheOperatorSaysWhatLeavesForATool(t *testing.T) {
	t.Parallel()
	s := start(t)
	got := make(chan wire.Context, 1)
	s.host("foreign", nil, func(c context.Context, _ json.RawMessage) (worker.Output, error) {
		info, _ := worker.InfoFrom(c)
		got <- info.Context
		return worker.Output{Body: []byte(`1`)}, nil
	})
	all, err := wire.NewContext(map[string]string{"tenantId": "acme", "token": "s3cret", "locale": "de"}, "token")
	require.NoError(t, err)
	run := func(filter string) []string {
		_, err := s.store.Requests.RequestOverride(ctx(t), "foreign", fmt.Appendf(nil, `{"context":%s}`, filter))
		require.NoError(t, err)
		o, err := s.client.Run(ctx(t), []byte(`{"steps":[{"id":"a","tool":"foreign"}]}`), client.SubmitOptions{Context: wire.RunContext{All: all}})
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
		return (<-got).Keys()
	}
	require.Equal(t, []string{"locale", "tenantId", "token"}, run(`{"filter":"pass-through"}`))
	require.Equal(t, []string{"tenantId"}, run(`{"filter":"allow-keys","keys":["tenantId"]}`))
	require.Equal(t, []string{"locale", "tenantId"}, run(`{"filter":"deny-keys","keys":["token"]}`))
	require.Empty(t, run(`{"filter":"none"}`))
}

// TestAHugeRunLetsASmallOneThrough counts, and measures no time: of a run with a thousand ready steps only some are
// executed while three chained steps of another tenant come to their turns.
func TestAHugeRunLetsASmallOneThrough(t *testing.T) {
	t.Parallel()
	s := start(t)
	const limit = 8
	var done atomic.Int64
	enough := make(chan struct{})
	s.host("busy", &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: limit}, func(c context.Context, args json.RawMessage) (worker.Output, error) {
		if done.Add(1) == 100 {
			close(enough)
		}
		select {
		case <-time.After(time.Millisecond): // a tool that takes some time; nothing is waited for
		case <-c.Done():
		}
		return worker.Output{Body: []byte(`1`)}, nil
	})
	other, err := client.New(ctx(t), s.nc, client.Config{Tenant: "small", Logger: logger(t)})
	require.NoError(t, err)
	defer other.Close()
	items := strings.TrimSuffix(strings.Repeat("1,", 5000), ",")
	huge := s.submit(`{"steps":[{"id":"all","tool":"busy","for_each":{"in":[`+items+`]}}]}`, "huge")
	<-enough
	before := done.Load()
	o, err := other.Run(ctx(t), []byte(`{"steps":[{"id":"a","tool":"busy"},{"id":"b","tool":"busy","depends_on":["a"]},{"id":"c","tool":"busy","depends_on":["b"]}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status)
	between := done.Load() - before - 3
	require.Less(t, between, int64(1000), "%d steps of the huge run were executed meanwhile", between)
	t.Logf("%d steps of the huge run were executed while the small one ran", between)
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "huge", "test")))
	s.wait(huge)
}
