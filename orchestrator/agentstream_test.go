package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// writer is a planner that writes its answers piece by piece: between two of them something may happen.
type writer struct {
	mu    sync.Mutex
	asked []map[string]json.RawMessage
}

func (w *writer) times() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// member returns a member of what the planner was asked.
func (w *writer) member(n int, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.asked[n][name])
}

// writes hosts a planner. say is called with how often it was called, from 1, and writes the answer.
func (s *system) writes(name string, o *tool.Orchestration, say func(ctx context.Context, n int, out *worker.Stream) (string, error)) *writer {
	w, known := &writer{}, parts.NewKeeper(parts.DefaultKept)
	s.host(name, o, func(ctx context.Context, sent json.RawMessage) (worker.Output, error) {
		args, err := known.Whole(ctx, sent, worker.ReadPart)
		if err != nil {
			return worker.Output{}, err
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(args, &all); err != nil {
			return worker.Output{}, worker.Terminal(err)
		}
		w.mu.Lock()
		w.asked = append(w.asked, all)
		n := len(w.asked)
		w.mu.Unlock()
		answer, err := say(ctx, n, worker.NewStream(ctx))
		return worker.Output{Body: []byte(answer)}, err
	})
	return w
}

// tells hosts a tool that says when it is called, and returns its arguments.
func (s *system) tells(name string, o *tool.Orchestration, destructive bool) (called chan string, times *atomic.Int64) {
	called, times = make(chan string, 64), &atomic.Int64{}
	w, err := worker.New(natstest.Connect(s.t, s.srv), worker.Config{Name: "w-" + name, Logger: logger(s.t)})
	require.NoError(s.t, err)
	d := &tool.Definition{Name: name, Orchestration: o}
	if destructive {
		d.Annotations = &tool.Annotations{DestructiveHint: &destructive}
	}
	require.NoError(s.t, w.HandleRaw(d, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		times.Add(1)
		called <- string(args)
		return worker.Output{Body: args}, nil
	}))
	s.background(w.Run, w.Ready())
	return called, times
}

// TestStepsBeginWhileThePlannerWrites: a step runs once its brace has come and what it refers to was written, what refers to
// it too, and each of them once. What is hinted destructive waits for the end of the answer.
func TestStepsBeginWhileThePlannerWrites(t *testing.T) {
	t.Parallel()
	s := start(t)
	called, times := s.tells("find", nil, false)
	paid, _ := s.tells("pay", nil, true)
	w := s.writes("planner", nil, func(_ context.Context, n int, out *worker.Stream) (string, error) {
		if n > 1 {
			return `{"output":"$ref:r0.b.n"}`, nil
		}
		said := `{"steps":[{"id":"p","tool":"pay","arguments":{"n":7}},{"id":"b","tool":"find","arguments":{"n":"$ref:a.n"}},{"id":"a","tool":"find","arguments":{"n":1}}`
		out.Text(said)
		<-called
		<-called
		assert.Empty(t, paid)
		rest := `,{"id":"c","tool":"find","arguments":{"n":3}}]}`
		out.Text(rest)
		return said + rest, nil
	})
	s.agent("finder", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["find","pay"],"stream_plan":true}`)
	o := s.run(`{"steps":[{"id":"a","tool":"finder"}]}`, "streams")
	require.JSONEq(t, `1`, result(t, o, "a"), "%s", o.JSON())
	require.Equal(t, 2, w.times())
	require.EqualValues(t, 3, times.Load())
	require.JSONEq(t, `{"n":7}`, <-paid)
	rounds := w.member(1, "rounds")
	require.Contains(t, rounds, `"id":"a","tool":"find","arguments":{"n":1},"status":"succeeded","result":{"n":1}`)
	require.NotContains(t, rounds, "It began")
	doc := s.history("default", "streams")
	var ids []string
	for _, st := range doc.Steps[0].Steps {
		ids = append(ids, st.ID+" "+string(st.Status))
	}
	require.Subset(t, ids, []string{"a/=0/=plan succeeded", "a/=0/p succeeded", "a/=0/b succeeded", "a/=0/a succeeded", "a/=0/c succeeded"})
}

// TestAnAnswerThatIsAnotherThanWhatHadBegun: what had begun stays, and the planner is told so: of what its answer lacks, and of an id under
// which it now has another step.
func TestAnAnswerThatIsAnotherThanWhatHadBegun(t *testing.T) {
	t.Parallel()
	s := start(t)
	called, times := s.tells("find", nil, false)
	w := s.writes("planner", nil, func(_ context.Context, n int, out *worker.Stream) (string, error) {
		switch n {
		case 1:
			out.Step(json.RawMessage(`{"id":"a","tool":"find","arguments":{"n":1}}`))
			<-called
			return `{"steps":[{"id":"a","tool":"find","arguments":{"n":2}}]}`, nil
		case 2:
			out.Step(json.RawMessage(`{"id":"b","tool":"find","arguments":{"n":"$ref:r0.a.n"}}`))
			<-called
			return `{"steps":[{"id":"c","tool":"find","arguments":{"n":3}}]}`, nil
		case 3:
			<-called // of the round before
			out.Step(json.RawMessage(`{"id":"d","tool":"find","arguments":{"n":4}}`))
			<-called
			return `{"output":"done $5"}`, nil
		}
		return "", worker.Terminal(errors.New("nobody asks again"))
	})
	s.agent("finder", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["find"],"stream_plan":true}`)
	o := s.run(`{"steps":[{"id":"a","tool":"finder"}]}`, "another")
	require.JSONEq(t, `"done $5"`, result(t, o, "a"), "%s", o.JSON())
	require.EqualValues(t, 4, times.Load())
	require.Contains(t, w.member(1, "rounds"), `"code":"duplicate_step"`)
	require.Contains(t, w.member(1, "rounds"), `"id":"a","tool":"find","arguments":{"n":1},"status":"succeeded","result":{"n":1},"note":"It began while you were writing."`)
	require.Contains(t, w.member(2, "rounds"), `"id":"b","tool":"find","arguments":{"n":1},"status":"succeeded","result":{"n":1},"note":"It began while your answer was written, and your answer does not have it."`)
	require.Contains(t, w.member(2, "rounds"), `"id":"c","tool":"find","arguments":{"n":3},"status":"succeeded","result":{"n":3},"ms"`)
}

// TestAnAttemptThatEndsBeforeItsAnswer: nothing more of what it has handed over starts, what had begun stays, and the next attempt
// is told: what it repeats is not made again.
func TestAnAttemptThatEndsBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	s := start(t)
	called, times := s.tells("find", nil, false)
	w := s.writes("planner", &tool.Orchestration{Retry: &tool.Retry{MaxAttempts: 3}}, func(_ context.Context, n int, out *worker.Stream) (string, error) {
		switch n {
		case 1:
			out.Step(json.RawMessage(`{"id":"slow","tool":"gate"}`))
			out.Step(json.RawMessage(`{"id":"a","tool":"find","arguments":{"n":1}}`))
			out.Step(json.RawMessage(`{"id":"never","tool":"find","depends_on":["slow"],"arguments":{"n":2}}`))
			<-called
			<-s.tools.begun
			assert.Eventually(t, func() bool { // the next attempt is told what stands by the end of this one
				doc, err := s.client.Get(ctx(t), "ends")
				return err == nil && doc.Stats.Succeeded > 0
			}, patience, 10*time.Millisecond)
			return "", errors.New("the stream broke off")
		default:
			close(s.tools.gate)
			out.Step(json.RawMessage(`{"id":"a","tool":"find","arguments":{"n":1}}`))
			out.Step(json.RawMessage(`{"id":"b","tool":"find","arguments":{"n":"$ref:a.n"}}`))
			<-called
			return `{"steps":[{"id":"a","tool":"find","arguments":{"n":1}},{"id":"b","tool":"find","arguments":{"n":"$ref:a.n"}},{"id":"c","value":["$ref:b.n","$ref:slow"]},{"id":"slow","tool":"gate"}],"output":"$ref:c"}`, nil
		}
	})
	s.agent("finder", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["find","gate"],"stream_plan":true}`)
	o := s.run(`{"steps":[{"id":"a","tool":"finder"}]}`, "ends")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.EqualValues(t, 2, times.Load(), "what was repeated was not made again, and what had not begun never was")
	require.Equal(t, "", w.member(0, "began"))
	require.Contains(t, w.member(1, "began"), `"id":"a","tool":"find","arguments":{"n":1},"status":"succeeded","result":{"n":1}`)
	require.Contains(t, w.member(1, "began"), `"id":"slow"`)
	require.NotContains(t, w.member(1, "began"), "never")
	for _, e := range o.Errors {
		require.Equal(t, fault.Cancelled, e.Code, "%v", e)
		require.Contains(t, e.Message, "its planner's attempt ended before it had begun")
	}
}

// TestWhoHasNotClaimedHandsOverNothing, nor does anybody for an attempt that is over, or where no agent asks for it.
func TestWhoHasNotClaimedHandsOverNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, times := s.tells("find", nil, false)
	w := s.writes("planner", nil, func(_ context.Context, _ int, out *worker.Stream) (string, error) {
		assert.False(t, out.Wanted())
		out.Step(json.RawMessage(`{"id":"a","tool":"find","arguments":{"n":1}}`))
		assert.False(t, out.Began())
		return `{"output":1}`, nil
	})
	s.agent("finder", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["find"]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"finder"}]}`, "nothing")
	require.JSONEq(t, `1`, result(t, o, "a"))
	require.Zero(t, times.Load())
	require.Equal(t, 1, w.times())
}

// TestWhatStreamingWins writes an answer of four calls at 50 tokens a second, whose tools take 300 ms each, and says how long the round
// took with steps that begin while it is written and without.
func TestWhatStreamingWins(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes as long as the answer is")
	}
	t.Parallel()
	s := start(t)
	s.host("find", nil, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
		return worker.Output{Body: args}, nil
	})
	const answer = `{"steps":[{"id":"tides","tool":"find","arguments":{"query":"tide tables of the North Sea, next week"}},` +
		`{"id":"wind","tool":"find","arguments":{"query":"wind and waves off Texel, next week"}},` +
		`{"id":"ferry","tool":"find","arguments":{"query":"${ref:tides.query}: ferries that run"}},` +
		`{"id":"room","tool":"find","arguments":{"query":"${ref:ferry.query}, and a room for two nights"}}],"output":"$ref:room.query"}`
	writes := func(_ context.Context, _ int, out *worker.Stream) (string, error) {
		for at := 0; at < len(answer); at += 4 { // a token is four letters, more or less
			time.Sleep(20 * time.Millisecond)
			out.Text(answer[at:min(at+4, len(answer))])
		}
		return answer, nil
	}
	s.writes("planner", nil, writes)
	took := map[string]time.Duration{}
	for _, more := range []string{"", `,"stream_plan":true`} {
		name := "trip" + string(rune('0'+len(took)))
		s.agent(name, "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["find"]`+more+`}`)
		begun := time.Now()
		o := s.run(`{"steps":[{"id":"a","tool":"`+name+`"}]}`, name)
		took[name] = time.Since(begun)
		require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	}
	t.Logf("an answer of %d tokens: %d ms without, %d ms with steps that begin while it is written: %d ms won", len(answer)/4,
		took["trip0"].Milliseconds(), took["trip1"].Milliseconds(), (took["trip0"] - took["trip1"]).Milliseconds())
}

// TestARetryOfWhatHadBegun takes over each call that had begun as that of the answer which has it: neither is the planner asked for
// that answer again nor the call made. From a round on whose answer lacked what had begun, or could not be used, it is asked anew.
func TestARetryOfWhatHadBegun(t *testing.T) {
	t.Parallel()
	s := start(t)
	called, times := s.tells("find", nil, false)
	call := func(id, n string) string {
		return `{"id":"` + id + `","tool":"find","arguments":{"n":` + n + `,"id":"` + id + `"}}`
	}
	done := atomic.Bool{}
	var asked []string
	w := s.writes("planner", nil, func(ctx context.Context, _ int, out *worker.Stream) (string, error) {
		info, _ := worker.InfoFrom(ctx)
		round := info.Step[len("a/"):]
		asked = append(asked, round)
		begin := func(step string) {
			out.Step(json.RawMessage(step))
			for !strings.Contains(<-called, `"id":"`+step[7:9]) { // it
			}
		}
		switch round {
		case "=0/=plan":
			begin(call("a", "1"))
			return `{"steps":[` + call("b", `"$ref:a.n"`) + `,` + call("a", "1") + `]}`, nil
		case "=1/=plan":
			begin(call("c", `"$ref:r0.b.n"`))
			return `{"steps":[` + call("c", `"$ref:r0.b.n"`) + `]}`, nil
		case "=2/=plan":
			begin(call("d", "4"))
			if done.Load() {
				return `{"output":["$ref:r0.b.n","$ref:r1.c.n"]}`, nil
			}
			return `{"steps":[` + call("d", "5") + `]}`, nil
		}
		if done.Load() {
			return `{"output":"too late"}`, nil
		}
		return "", worker.Terminal(errors.New("no more"))
	})
	s.agent("finder", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["find"],"stream_plan":true}`)
	o := s.run(`{"steps":[{"id":"a","tool":"finder"}]}`, "r")
	require.Equal(t, outcome.Failed, o.Status, "%s", o.JSON())
	require.EqualValues(t, 4, times.Load())
	require.Equal(t, []string{"=0/=plan", "=1/=plan", "=2/=plan", "=3/=plan"}, asked)
	times.Store(0)
	asked = nil
	done.Store(true)
	o, doc := s.retry("r")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `[1,1]`, result(t, o, "a"), "%s", o.JSON())
	require.Equal(t, []string{"=2/=plan"}, asked)
	require.EqualValues(t, 1, times.Load(), "d, which the answer of before had otherwise")
	require.Equal(t, []string{"=0/=plan", "=0/a", "=0/b", "=1/=plan", "=1/c"}, takenOver(doc, "a"))
	require.Equal(t, 5, w.times())
}

// TestAnotherOwnerTakesStepsOver while the answer is written: what had begun stays, and the rest is handed over to it. One of before,
// which knows of no such plans, leaves the run alone and sends nothing of it.
func TestAnotherOwnerTakesStepsOver(t *testing.T) {
	t.Parallel()
	s := start(t)
	called, times := s.tells("find", nil, false)
	call := func(id, n string) string { return `{"id":"` + id + `","tool":"find","arguments":{"n":` + n + `}}` }
	goOn := make(chan struct{})
	w := s.writes("planner", nil, func(ctx context.Context, n int, out *worker.Stream) (string, error) {
		if n > 1 {
			return `{"output":"$ref:r0.c.n"}`, nil
		}
		out.Step(json.RawMessage(call("a", "1")))
		<-called
		select {
		case <-goOn:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		out.Step(json.RawMessage(call("b", `"$ref:a.n"`)))
		<-called
		return `{"steps":[` + call("a", "1") + `,` + call("b", `"$ref:a.n"`) + `,` + call("c", `"$ref:b.n"`) + `]}`, nil
	})
	put := s.agent("finder", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["find"],"stream_plan":true}`)
	require.Contains(t, put.Needs, wire.StreamedPlans)
	r := s.submit(`{"steps":[{"id":"a","tool":"finder"}]}`, "taken")
	require.Eventually(t, func() bool { return times.Load() == 1 }, patience, time.Millisecond)
	before := wire.Ours()
	delete(before, wire.StreamedPlans)
	older := s.knowing("older", before)
	s.leave()
	require.Eventually(t, func() bool {
		_, err := s.client.Get(ctx(t), "taken")
		return fault.CodeOf(err) == fault.NewerVersion
	}, patience, 20*time.Millisecond, "it owns the run, and leaves it alone")
	s.knowing("newer", wire.Ours())
	require.Eventually(t, func() bool {
		_, err := s.client.Get(ctx(t), "taken")
		return err == nil
	}, patience, 20*time.Millisecond)
	close(goOn)
	o := s.wait(r)
	require.JSONEq(t, `1`, result(t, o, "a"), "%s", o.JSON())
	require.EqualValues(t, 3, times.Load())
	require.Equal(t, 2, w.times())
	require.Contains(t, s.frozen("taken").Needs, wire.StreamedPlans)
	older()
}
