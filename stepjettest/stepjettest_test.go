package stepjettest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type greeting struct {
	Text string `json:"text"`
}

func greet(_ context.Context, in struct {
	Name string `json:"name"`
}) (greeting, error) {
	if in.Name == "" {
		return greeting{}, worker.Terminal(errors.New("nobody to greet"))
	}
	return greeting{"hello " + in.Name}, nil
}

// shout takes what greet returns.
func shout(_ context.Context, in greeting) (string, error) { return strings.ToUpper(in.Text), nil }

const plan = `{"steps": [
	{"id": "one", "tool": "greet", "arguments": {"name": "Ada"}},
	{"id": "two", "tool": "shout", "arguments": {"text": "$ref:one.text"}}
], "output_steps": ["two"]}`

func TestAPlanRunsThroughToolsOfATest(t *testing.T) {
	t.Parallel()
	s := stepjettest.New(t)
	stepjettest.Register(s, "greet", greet)
	stepjettest.Register(s, "shout", shout)
	out := s.Run(plan)
	require.Equal(t, outcome.Succeeded, out.Status)
	result, there := out.Results.Get("two")
	require.True(t, there)
	require.JSONEq(t, `"HELLO ADA"`, string(result))

	again := s.Run(plan) // each Run is a run of its own
	require.NotEqual(t, out.Run, again.Run)
}

func TestWhatBecomesOfAPlanIsReturned(t *testing.T) {
	t.Parallel()
	s := stepjettest.New(t)
	out := s.Run(plan)
	require.Equal(t, outcome.Rejected, out.Status)
	require.Equal(t, fault.UnknownTool, out.Problems[0].Code)

	s.Host(func(w *worker.Worker) {
		worker.Handle(w, "greet", greet)
		worker.Handle(w, "shout", shout)
	})
	out = s.Run(strings.ReplaceAll(plan, "Ada", ""))
	require.Equal(t, outcome.Failed, out.Status)
	require.Equal(t, "nobody to greet", out.Errors[0].Message)
}

// Programs under test find the server by its address, and what they publish is run.
func TestOtherProgramsConnect(t *testing.T) {
	t.Parallel()
	s := stepjettest.New(t)
	stepjettest.Register(s, "greet", greet)
	stepjettest.Register(s, "shout", shout)
	nc, err := nats.Connect(s.URL())
	require.NoError(t, err)
	defer nc.Close()
	_, err = nc.Request("plan.submit.default.by-hand", []byte(plan), nats.DefaultTimeout*30)
	require.NoError(t, err)
	run, err := s.Client().Attach("by-hand")
	require.NoError(t, err)
	out, err := run.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	require.NoError(t, s.Conn().Flush())
}

// failing is a test that is expected to fail: it keeps what it was told.
type failing struct {
	*testing.T
	said []string
}

func (f *failing) Helper()                   {}
func (f *failing) Errorf(s string, a ...any) { f.said = append(f.said, fmt.Sprintf(s, a...)) }
func (f *failing) FailNow()                  { runtime.Goexit() }

func TestATwofoldToolFailsItsTest(t *testing.T) {
	t.Parallel()
	var f *failing
	t.Run("inner", func(t *testing.T) {
		f = &failing{T: t}
		done := make(chan struct{})
		go func() { // which FailNow ends
			defer close(done)
			s := stepjettest.New(f)
			s.Host(func(w *worker.Worker) {
				worker.Handle(w, "greet", greet)
				worker.Handle(w, "greet", greet)
			})
			f.said = append(f.said, "went on")
		}()
		<-done
	})
	require.Len(t, f.said, 1)
	require.Contains(t, f.said[0], "greet")
}
