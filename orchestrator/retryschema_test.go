package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// deploy starts a worker whose tool "rd" has some schemas.
func (s *system) deploy(name, input, output string, run func(args json.RawMessage) (string, error)) {
	s.t.Helper()
	w, err := worker.New(natstest.Connect(s.t, s.srv), worker.Config{Name: name, Logger: logger(s.t)})
	require.NoError(s.t, err)
	def := &tool.Definition{Name: "rd", InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output)}
	require.NoError(s.t, w.HandleRaw(def, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		text, err := run(args)
		return worker.Output{Body: []byte(text)}, err
	}))
	s.background(w.Run, w.Ready())
}

// changed deploys "rd", has a plan run in which its last step fails, and deploys "rd" with another required argument
// and another type of result.
func (s *system) changed(plan string) (run string) {
	s.t.Helper()
	s.deploy("v1", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{"r":{"type":"integer"}},"required":["r"],"additionalProperties":false}`,
		func(args json.RawMessage) (string, error) {
			if string(args) == `{"a":7}` {
				return "", worker.Terminal(errors.New("out of order"))
			}
			return `{"r":7}`, nil
		})
	r, err := s.client.Submit(ctx(s.t), []byte(plan), client.SubmitOptions{})
	require.NoError(s.t, err)
	require.Equal(s.t, outcome.Partial, s.wait(r).Status)
	s.deploy("v2", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`,
		`{"type":"object","properties":{"r":{"type":"string"}},"required":["r"],"additionalProperties":false}`,
		func(json.RawMessage) (string, error) { return `{"r":"seven"}`, nil })
	require.Eventually(s.t, func() bool { // until orchestrators know of it
		r, err := s.client.Submit(ctx(s.t), []byte(`{"steps":[{"id":"x","tool":"rd","arguments":{"a":1,"b":2}}]}`), client.SubmitOptions{})
		return err == nil && s.wait(r).Status != outcome.Rejected
	}, time.Minute, 50*time.Millisecond)
	return r.ID()
}

// What is taken over was judged when it ran. What its tool declares by now has no say in it.
func TestWhatIsTakenOverIsJudgedByNoNewSchema(t *testing.T) {
	t.Parallel()
	s := start(t)
	run := s.changed(`{"steps":[{"id":"s0","tool":"rd","arguments":{"a":1}},{"id":"s1","tool":"fail","arguments":{"n":"$ref:s0.r"}},
		{"id":"s2","tool":"rd","arguments":{"a":2}}],"output_steps":["s0","s1"]}`)
	out, doc := s.retry(run)
	require.Empty(t, out.Problems)
	require.NotEqual(t, outcome.Rejected, out.Status)
	require.True(t, doc.Steps[0].Reused)
	require.True(t, doc.Steps[2].Reused)
	require.False(t, doc.Steps[1].Reused)
	require.JSONEq(t, `{"n":7}`, string(doc.Steps[1].Arguments), "the old result")
}

// What is left has to fit what will execute it, and the rejection says what doesn't.
func TestARetryThatOutgrewItsDefinitionsSaysWhich(t *testing.T) {
	t.Parallel()
	s := start(t)
	run := s.changed(`{"steps":[{"id":"s0","tool":"rd","arguments":{"a":1}},{"id":"s1","tool":"rd","arguments":{"a":"$ref:s0.r"}},
		{"id":"s2","tool":"rd","arguments":{"a":"$ref:s1.r"}}]}`)
	r, err := s.client.Retry(ctx(t), run, client.RetryOptions{})
	require.NoError(t, err)
	out := s.wait(r)
	require.Equal(t, outcome.Rejected, out.Status)
	require.Equal(t, fault.Conflict, out.Problems[0].Code)
	require.Contains(t, out.Problems[0].Message, "can't be tried again by the definitions that its tools have now: they refuse what is left of it (s1, s2)")
	for _, p := range out.Problems[1:] {
		require.NotEqual(t, "s0", p.Step, "%v", p)
		require.NotEqual(t, "/steps/1/arguments/a", p.Path, "s0's old result is a number: %v", p)
	}
	require.Equal(t, "/steps/1/arguments", out.Problems[1].Path)
}
