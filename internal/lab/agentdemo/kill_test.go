package agentdemo

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/chaos"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/worker"
)

// killed is the run during which orchestrators are killed: in the first round two calls at once, in the second one that
// fails, in the third one whose arguments come from the first.
const killed = "killed"

var scripted = []string{
	`{"steps":[{"id":"a","tool":"look","arguments":{"n":1}},{"id":"b","tool":"look","arguments":{"n":2}}]}`,
	`{"steps":[{"id":"c","tool":"look","arguments":{"n":13}}]}`,
	`{"steps":[{"id":"d","tool":"look","arguments":{"n":"$ref:r0.b.n"}}]}`,
	`{"output":{"sum":["$ref:r0.a.n","$ref:r2.d.n"]}}`,
}

// counted hosts the planner and the tool, and notes what each was called with.
type counted struct {
	mu     sync.Mutex
	rounds []int
	looked map[int]int
}

func (c *counted) host(t *testing.T, nc *nats.Conn) {
	t.Helper()
	w, err := worker.New(nc, worker.Config{Name: "w"})
	require.NoError(t, err)
	worker.Handle(w, "planner", func(_ context.Context, in struct {
		Round int `json:"round"`
	}) (json.RawMessage, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.rounds = append(c.rounds, in.Round)
		return json.RawMessage(scripted[in.Round]), nil
	}, worker.InputSchema(json.RawMessage(`{"type":"object"}`)))
	type number struct {
		N int `json:"n"`
	}
	worker.Handle(w, "look", func(_ context.Context, in number) (number, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.looked[in.N]++; in.N == 13 {
			return in, worker.Terminal(errors.New("not this one"))
		}
		return number{10 * in.N}, nil
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case <-w.Ready():
	case err := <-done:
		require.FailNow(t, "the worker ended", "%v", err)
	}
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}

// dispatched is what the subject holds that a call of the run is sent to, and no filter.
func dispatched(tool string) string {
	s := subjects.Step(subjects.Attempt{Run: subjects.NewRun(subjects.DefaultTenant, killed), Generation: 7, Tool: tool, Step: "agent", Number: 1}, 0)
	return s[:strings.LastIndex(s, ".7.")+1]
}

// An orchestrator kills itself with -9 right before and right after each thing that it does for a round. Another one goes
// on: no planner is asked about a round again and no tool is called again, since the answers and the results stand, and
// the run comes to the same.
func TestAgentsSurviveKillsInEachPhaseOfARound(t *testing.T) {
	t.Parallel()
	var points []chaos.Point
	for _, p := range []struct {
		name, text string
		nths       []int
	}{
		{"the planner's call", dispatched("planner"), []int{1, 2}},
		{"the round's record", ".round.", []int{1, 2, 4}},
		{"a call", dispatched("look"), []int{1, 2, 4}},
		{"an object on its way to a stream", subjects.SinkSubject(subjects.DefaultTenant, "kept"), []int{1, 2, 4}},
		{"an object on its way to the bucket", subjects.BucketSubject(subjects.SinksBucket, subjects.DefaultTenant+".looks."), []int{1, 4}},
		{"the history", subjects.BucketSubject(subjects.HistoryBucket, subjects.DefaultTenant+"."+killed), []int{1}},
	} {
		for _, n := range p.nths {
			before := chaos.Point{Name: p.name, Text: p.text, Nth: n}
			after := before
			after.After = true
			points = append(points, before, after)
		}
	}
	two := make(chan struct{}, 2) // at a time: each has a server and a process of its own
	for _, p := range points {
		name := map[bool]string{false: "before ", true: "after "}[p.After] + p.Name + " " + string(rune('0'+p.Nth))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			two <- struct{}{}
			defer func() { <-two }()
			survives(t, &p)
		})
	}
}

// sinks makes a stream and the bucket that objects go to.
func sinks(ctx context.Context, t *testing.T, nc *nats.Conn) (jetstream.Stream, jetstream.KeyValue) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kept, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "KEPT", Subjects: []string{subjects.SinkSubject(subjects.DefaultTenant, "kept")}})
	require.NoError(t, err)
	bucket, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: subjects.SinksBucket})
	require.NoError(t, err)
	return kept, bucket
}

func survives(t *testing.T, p *chaos.Point) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	logs := t.TempDir()
	first, err := chaos.StartOrchestrator(ctx, srv.URL(), "first", filepath.Join(logs, "first"), p)
	require.NoError(t, err)
	t.Cleanup(first.Kill)
	nc := natstest.Connect(t, srv)
	x := &counted{looked: map[int]int{}}
	x.host(t, nc)
	kept, bucket := sinks(ctx, t, nc)
	c, err := client.New(ctx, nc, client.Config{})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.ApplyTemplate(ctx, []byte(`{"name":"looker","agent":{"planner":{"tool":"planner","mode":"plan"},"tools":[{"tool":"look","artifact":{"type":"Look","path":"n","sink":[{"subject":"kept"},{"bucket":"looks"}]}}]}}`))
	require.NoError(t, err)
	r, err := client.AgentOf(c, "looker").Submit(ctx, nil, client.SubmitOptions{Run: killed})
	require.NoError(t, err)
	select {
	case <-first.Gone():
	case <-ctx.Done():
		require.FailNow(t, "its moment never came")
	}
	second, err := chaos.StartOrchestrator(ctx, srv.URL(), "second", filepath.Join(logs, "second"), nil)
	require.NoError(t, err)
	t.Cleanup(second.Kill)
	out, err := r.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status, "%s", out.JSON())
	got, _ := out.Results.Get(client.AgentStep)
	require.JSONEq(t, `{"sum":[10,200]}`, string(got))
	info, err := kept.Info(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 3, info.State.Msgs, "each object lies in the stream once")
	keys, err := bucket.Keys(ctx)
	require.NoError(t, err)
	require.Len(t, keys, 3)
	x.mu.Lock()
	defer x.mu.Unlock()
	require.Equal(t, []int{0, 1, 2, 3}, x.rounds, "a planner was asked again whose answer stood")
	require.Equal(t, map[int]int{1: 1, 2: 1, 13: 1, 20: 1}, x.looked)
}
