package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// real is a client of a real Stepjet: server, orchestrator and toolworker with the built-in tools.
func real(t *testing.T) (context.Context, *client.Client, *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stack, err := dev.Start(ctx, dev.Options{Dir: t.TempDir(), Tools: "../examples/tools.json"})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	nc, err := stack.Connect(ctx, "test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	cl, err := client.New(ctx, nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return ctx, cl, nc
}

func TestRealRun(t *testing.T) {
	t.Parallel()
	ctx, cl, _ := real(t)
	plan := `{"steps":[{"id":"a","tool":"echo","arguments":{"n":12345678901234567890}},{"id":"b","tool":"echo","arguments":{"from":"$ref:a.n"}},
		{"id":"c","tool":"fail","arguments":{"message":"no","terminal":true}},{"id":"d","tool":"echo","arguments":{"from":"$ref:c"}}],"output_steps":["b","d"]}`
	watcher, err := cl.NewWatcher(ctx, "r")
	require.NoError(t, err)
	defer watcher.Close()
	r, err := cl.Submit(ctx, []byte(plan), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	var steps []string
	require.NoError(t, watcher.Follow(ctx, func(e client.Event) {
		if e.Kind == subjects.EventStep && e.Status.Terminal() {
			steps = append(steps, e.Step+" "+string(e.Status))
		}
	}))
	require.ElementsMatch(t, []string{"a succeeded", "b succeeded", "c failed", "d skipped"}, steps)
	out, err := r.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Partial, out.Status)
	require.Equal(t, `{"b":{"from":12345678901234567890}}`, jsonOf(t, out.Results))

	doc, err := cl.Get(ctx, "r")
	require.NoError(t, err)
	require.Equal(t, `{"from":12345678901234567890}`, string(doc.Steps[1].Arguments))
	require.Nil(t, doc.Steps[3].Arguments)

	again, err := cl.Submit(ctx, []byte(plan), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	require.True(t, again.Attached())
	same, err := again.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, string(out.JSON()), string(same.JSON()))
	_, err = cl.Submit(ctx, []byte(planA), client.SubmitOptions{Run: "r"})
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(cancelled(cl.Cancel(ctx, "r", "test"))))
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestRealCancelAndGetOfAnActiveRun(t *testing.T) {
	t.Parallel()
	ctx, cl, _ := real(t)
	plan := `{"steps":[{"id":"a","tool":"echo","arguments":{"x":1}},{"id":"s","tool":"sleep","arguments":{"ms":600000},"depends_on":["a"]},{"id":"z","tool":"echo","depends_on":["s"]}]}`
	r, err := cl.Submit(ctx, []byte(plan), client.SubmitOptions{Run: "long"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		doc, err := cl.Get(ctx, "long")
		return err == nil && doc.Status == outcome.Running && len(doc.Steps) == 3 && doc.Steps[0].Status == outcome.StepSucceeded && doc.Steps[0].Arguments != nil
	}, patience, 1e7)
	runs, err := cl.List(ctx, client.ListOptions{})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, outcome.Running, runs[0].Status)

	require.NoError(t, cancelled(cl.Cancel(ctx, "long", "test")))
	out, err := r.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Cancelled, out.Status)
	require.Equal(t, `{"a":{"x":1}}`, jsonOf(t, out.Results))
	doc, err := cl.Get(ctx, "long")
	require.NoError(t, err)
	require.Equal(t, "test", doc.StoppedBy)
	require.Equal(t, fault.NotFound, fault.CodeOf(cancelled(cl.Cancel(ctx, "nobody", "test"))))
}

func TestRealRejection(t *testing.T) {
	t.Parallel()
	ctx, cl, _ := real(t)
	for name, plan := range map[string]string{
		"no JSON": `{"steps":`, "no tool": `{"steps":[{"id":"a","tool":"nope"}]}`, "cycle": `{"steps":[{"id":"a","tool":"echo","depends_on":["a"]}]}`,
	} {
		out, err := cl.Run(ctx, []byte(plan), client.SubmitOptions{Run: name})
		require.NoError(t, err, name)
		require.Equal(t, outcome.Rejected, out.Status, name)
		require.NotEmpty(t, out.Problems, name)
	}
}

func TestRealManyAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cl, _ := real(t)
	const n = 200
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() {
			plan := fmt.Sprintf(`{"steps":[{"id":"a","tool":"add","arguments":{"a":%d,"b":1}},{"id":"b","tool":"add","arguments":{"a":"$ref:a.result","b":1}}],"output_steps":["b"]}`, i)
			out, err := cl.Run(ctx, []byte(plan), client.SubmitOptions{})
			if err == nil && !strings.Contains(string(out.JSON()), fmt.Sprintf(`{"result":%d}`, i+2)) {
				err = fmt.Errorf("plan %d: %s", i, out.JSON())
			}
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

// Two clients send different plans under one id at the same time: one of them is the run's, the other learns so.
func TestRealConflictAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cl, nc := real(t)
	other, err := client.New(ctx, nc, client.Config{})
	require.NoError(t, err)
	defer other.Close()
	for i := range 20 {
		run := fmt.Sprintf("r%d", i)
		type answer struct {
			out *outcome.Outcome
			err error
		}
		answers := make(chan answer, 2)
		for c, plan := range map[*client.Client]string{cl: planA, other: planB} {
			go func() {
				out, err := c.Run(ctx, []byte(plan), client.SubmitOptions{Run: run})
				answers <- answer{out, err}
			}()
		}
		a, b := <-answers, <-answers
		if a.err != nil {
			a, b = b, a
		}
		require.NoError(t, a.err)
		require.Equal(t, outcome.Succeeded, a.out.Status)
		require.Equal(t, fault.Conflict, fault.CodeOf(b.err), "%v", b.err)
	}
}

// TestWhoWatchesLateHearsWhatIsAskedInside: a question in the plan of a step, or of an item of one, that stood before is
// told once, as those of the run's own steps are.
func TestWhoWatchesLateHearsWhatIsAskedInside(t *testing.T) {
	t.Parallel()
	ctx, cl, _ := real(t)
	const ask = `"plan":{"steps":[{"id":"q","tool":"ask","arguments":{"question":"Which?","choices":["x","y"]}}]}`
	_, err := cl.Submit(ctx, []byte(`{"steps":[{"id":"a",`+ask+`},{"id":"b","for_each":{"in":[1]},`+ask+`}]}`), client.SubmitOptions{Run: "inside"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		asked, err := cl.Questions(ctx, "inside")
		return err == nil && len(asked) == 2
	}, patience, 10*time.Millisecond)
	told := map[string]int{}
	ctx, enough := context.WithCancel(ctx)
	err = cl.Watch(ctx, "inside", func(e client.Event) {
		if told[e.Step]++; told["a/q"] > 0 && told["b=0/q"] > 0 {
			require.Equal(t, outcome.StepAsking, e.Status)
			enough()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, told["a/q"])
	require.Equal(t, 1, told["b=0/q"])
}
