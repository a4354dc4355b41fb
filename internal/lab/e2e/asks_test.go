package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/lab/chaos"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// desk hosts the tool "seat", which asks a person in the middle of its work, and notes each call.
type desk struct {
	mu      sync.Mutex
	asked   int
	replies []worker.Reply

	reached, goOn chan struct{} // a call that has not asked yet says where it is, and waits; nil: it does not
}

func (d *desk) seat(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, ok := worker.Answered(ctx); ok {
		d.replies = append(d.replies, r)
		body, err := json.Marshal(map[string]any{"seat": r.Answer, "state": r.State, "of": r.Attempt})
		return worker.Output{Body: body}, err
	}
	d.asked++
	if d.reached != nil {
		close(d.reached)
		<-d.goOn
	}
	return worker.Output{}, worker.Ask(ctx, worker.Question{
		Text: "Which seat?", Schema: json.RawMessage(`{"type":"string"}`), State: json.RawMessage(`{"hold":7}`),
	})
}

func (d *desk) host(t *testing.T, nc *nats.Conn) {
	t.Helper()
	w, err := worker.New(nc, worker.Config{Name: "desk"})
	require.NoError(t, err)
	require.NoError(t, w.HandleRaw(&tool.Definition{Name: "seat", Orchestration: &tool.Orchestration{Asks: true}}, d.seat))
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

// booked is the run whose owner is killed.
const booked = "booked"

// TestTheOwnerIsKilledWhileAToolAsks: the owner of a run whose tool asks a person dies by kill -9 before the question's
// record stands, while it asks, right before and right after each thing that it does for it, and after the answer until
// the run is over. The next owner goes on: there is one question, with the same digest, that is answered once, the tool
// is called once to ask and once with the answer, and the run comes to the same.
func TestTheOwnerIsKilledWhileAToolAsks(t *testing.T) {
	t.Parallel()
	step := subjects.Step(subjects.Attempt{
		Run: subjects.NewRun(subjects.DefaultTenant, booked), Generation: 7, Tool: "seat", Step: "a", Number: 1,
	}, 0)
	step = step[:strings.LastIndex(step, ".7.")+1]
	question := subjects.BucketSubject(subjects.QuestionsBucket, subjects.DefaultTenant+"."+booked)
	history := subjects.BucketSubject(subjects.HistoryBucket, subjects.DefaultTenant+"."+booked)
	two := make(chan struct{}, 2) // at a time: each has a server and processes of its own
	for _, k := range []struct {
		name  string
		point chaos.Point // without a text: the test kills it
	}{
		{"at the first attempt", chaos.Point{Text: step, Nth: 1}},
		{name: "while the tool works"},
		{"at the question", chaos.Point{Text: question, Nth: 1}},
		{name: "while a person thinks"},
		{"at the end of the question", chaos.Point{Text: question, Nth: 2}},
		{"at the second attempt", chaos.Point{Text: step, Nth: 2}},
		{"at the history", chaos.Point{Text: history, Nth: 1}},
	} {
		sides := map[string]bool{"before": false, "after": true}
		if k.point.Text == "" {
			delete(sides, "after")
		}
		for side, after := range sides {
			name, p := k.name, k.point
			if p.After = after; p.Text != "" {
				name = side + " what it sends " + name
			}
			p.Name = name
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				two <- struct{}{}
				defer func() { <-two }()
				outlives(t, &p)
			})
		}
	}
}

func outlives(t *testing.T, p *chaos.Point) {
	ctx, logs := within(t, 2*time.Minute), t.TempDir()
	srv, url := server(t)
	die, thinks, works := p, p.Name == "while a person thinks", p.Name == "while the tool works"
	if thinks || works {
		die = nil
	}
	first, err := chaos.StartOrchestrator(ctx, url, "first", filepath.Join(logs, "first"), die)
	require.NoError(t, err)
	t.Cleanup(first.Kill)
	nc, c := connect(t, srv)
	d := &desk{}
	if works {
		d.reached, d.goOn = make(chan struct{}), make(chan struct{})
	}
	d.host(t, nc)

	next := make(chan error, 1) // the next owner begins when the first is dead, whenever that is
	go func() {
		select {
		case <-first.Gone():
		case <-ctx.Done():
			next <- fmt.Errorf("its moment never came: %w", ctx.Err())
			return
		}
		second, err := chaos.StartOrchestrator(ctx, url, "second", filepath.Join(logs, "second"), nil)
		if err == nil {
			t.Cleanup(second.Kill)
		}
		next <- err
	}()
	r, err := c.Submit(ctx, []byte(`{"steps":[{"id":"a","tool":"seat","arguments":{"flight":"LH 400"}}]}`), client.SubmitOptions{Run: booked})
	require.NoError(t, err)
	if works {
		<-d.reached
		first.Kill()
		close(d.goOn)
	}
	q := asked(t, c, booked, 1)["a"]
	if thinks {
		first.Kill()
		require.NoError(t, <-next)
		next <- nil
		require.Equal(t, q, asked(t, c, booked, 1)["a"], "what is asked follows from the records")
	}
	require.Equal(t, 1, q.Number)
	_, err = c.Answer(ctx, q, json.RawMessage(`"12A"`), client.Answer{By: "ann"})
	require.NoError(t, err)
	o, err := r.Wait(ctx)
	require.NoError(t, err)
	require.NoError(t, <-next)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	got, _ := o.Results.Get("a")
	require.JSONEq(t, `{"seat":"12A","state":{"hold":7},"of":1}`, string(got))

	var doc *outcome.Run
	require.Eventually(t, func() bool {
		doc, err = c.Get(ctx, booked)
		return err == nil && doc.Outcome != nil && len(doc.Steps) == 1
	}, time.Minute, 10*time.Millisecond)
	a := doc.Steps[0]
	require.Equal(t, 2, a.Attempts)
	require.Equal(t, []bool{true, false}, []bool{a.Tries[0].Asked, a.Tries[1].Asked})
	require.Len(t, a.Answers, 1, "it is answered once")
	require.Equal(t, q.Digest, a.Answers[0].Digest)
	require.Equal(t, "ann", a.Answers[0].By)
	asked(t, c, booked, 0)
	d.mu.Lock()
	defer d.mu.Unlock()
	require.Equal(t, 1, d.asked, "the tool asks once")
	require.Equal(t, []worker.Reply{{Attempt: 1, Answer: json.RawMessage(`"12A"`), State: json.RawMessage(`{"hold":7}`)}}, d.replies)
}
