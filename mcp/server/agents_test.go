package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// answers are what the planner of the tests says, round by round.
var answers = []string{
	`{"steps": [
		{"id": "hi", "tool": "greet", "arguments": {"name": "Ada"}},
		{"id": "no", "tool": "fail"},
		{"id": "pay", "tool": "pay", "arguments": {"sum": 12}},
		{"id": "colour", "tool": "choose", "arguments": {"of": "Ada"}}]}`,
	`{"steps": [{"id": "page", "tool": "counting"}]}`,
	`{"output": {"said": "$ref:r0.hi.text", "paid": "$ref:r0.pay.paid", "colour": "$ref:r0.colour", "page": "$ref:r1.page"}}`,
}

// agents applies an agent whose first round has a call that waits for an approval, one of a template that asks, and one
// that fails, and whose second round waits for release. It returns how often the planner was asked.
func (w *world) agents() *atomic.Int32 {
	w.t.Helper()
	var asked atomic.Int32
	w.stack.Host(func(k *worker.Worker) {
		worker.Handle(k, "planner", func(_ context.Context, in map[string]any) (json.RawMessage, error) {
			asked.Add(1)
			round, _ := in["round"].(float64)
			if int(round) >= len(answers) {
				return nil, worker.Terminal(fmt.Errorf("no answer for round %v", in["round"]))
			}
			return json.RawMessage(answers[int(round)]), nil
		})
		worker.Handle(k, "pay", func(_ context.Context, in struct {
			Sum int `json:"sum"`
		}) (map[string]int, error) {
			return map[string]int{"paid": in.Sum}, nil
		}, worker.Contract(tool.Orchestration{Approval: tool.AlwaysApprove}))
	})
	for _, definition := range []string{
		`{"name": "choose", "inputSchema": {"type": "object", "properties": {"of": {"type": "string"}}},
			"plan": {"steps": [{"id": "q", "tool": "ask", "arguments": {"question": "Which colour has ${input.of}?", "choices": ["red", "blue"]}}],
				"output": "$ref:q"}}`,
		`{"name": "clerk", "title": "Clerk", "description": "Settles bills of an account.",
			"inputSchema": {"type": "object", "required": ["account"], "properties": {"account": {"type": "string"}}},
			"agent": {"planner": {"tool": "planner", "mode": "plan"}, "instructions": "Settle the bills of ${input.account}.",
				"tools": ["greet", "fail", "pay", "choose", "counting"]}}`,
	} {
		_, err := w.stack.Client().ApplyTemplate(w.t.Context(), []byte(definition))
		require.NoError(w.t, err)
	}
	return &asked
}

const clerksWork = `{"said": "hello Ada", "paid": 15, "colour": "blue", "page": "read"}`

// listed waits until a tool is listed.
func (w *world) listed(t *testing.T, s *mcp.ClientSession, name string) (found *mcp.Tool) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, err := s.ListTools(t.Context(), nil)
		require.NoError(t, err)
		for _, one := range list.Tools {
			if one.Name == name {
				found = one
			}
		}
		return found != nil
	}, 20*time.Second, 10*time.Millisecond, name)
	return found
}

// TestAnAgentIsATool: it is listed, found and called as any other; what its rounds ask is put to the client's user, and
// a call of a round that failed doesn't make the agent's result an error.
func TestAnAgentIsATool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	asked := w.agents()
	close(w.release)
	for i, version := range versions {
		p := &person{answer: func(p *mcp.ElicitParams) *mcp.ElicitResult {
			if p.Message == "Which colour has Ada?" {
				return accept(map[string]any{"answer": "blue"})
			}
			return accept(map[string]any{"confirm": true, "sum": 15})
		}}
		s := w.connect(version, p.options())
		clerk := w.listed(t, s, "clerk")
		assert.Equal(t, "Clerk", clerk.Title)
		assert.Contains(t, clerk.Description, "Settles bills of an account.")
		schema, err := json.Marshal(clerk.InputSchema)
		require.NoError(t, err)
		assert.JSONEq(t, `{"type": "object", "required": ["account"], "properties": {"account": {"type": "string"}}}`, string(schema))
		assert.Contains(t, textOf(t, call(t, s, "search_tools", map[string]any{"query": "settle bills"})), `"name":"clerk"`)

		res := call(t, s, "clerk", map[string]any{"account": "a1"})
		assert.False(t, res.IsError, textOf(t, res))
		assert.JSONEq(t, clerksWork, textOf(t, res))
		assert.Equal(t, int32(2), p.asked.Load(), version)
		assert.Equal(t, int32(3*(i+1)), asked.Load(), "each round once")

		res = call(t, s, "clerk", map[string]any{})
		assert.True(t, res.IsError)
		assert.Contains(t, textOf(t, res), "account")
	}
}

// TestAnAgentIsATask: its task outlives the server that handed it out, says in which round it is, asks, and has the
// result of the call.
func TestAnAgentIsATask(t *testing.T) {
	t.Parallel()
	keys := task.Keys{[]byte("0123456789abcdef")}
	same := func(c *server.Config) { c.TaskAfter, c.Keys = time.Nanosecond, keys }
	w := newWorld(t, same)
	asked := w.agents()
	w.listed(t, w.connect(versions[0], nil), "clerk")
	r := tools("clerk", map[string]any{"account": "a1"})
	r.elicit = true
	id := field[string](t, w.send(t, r), "taskId")
	other := w.beside(t, same)
	w.s.Close()

	var a answer
	require.Eventually(t, func() bool {
		a = other.send(t, ofTask("get", id))
		return len(field[map[string]any](t, a, "inputRequests")) == 2
	}, 20*time.Second, 10*time.Millisecond)
	assert.Equal(t, "input_required", field[string](t, a, "status"))
	requests := field[map[string]struct{ Params struct{ Message string } }](t, a, "inputRequests")
	assert.Equal(t, "Which colour has Ada?", requests["call/=0/colour/q#1"].Params.Message, "%s", a.Body)
	update := ofTask("update", id)
	update.params["inputResponses"] = map[string]any{
		"call/=0/pay#1":      map[string]any{"action": "accept", "content": map[string]any{"confirm": true, "sum": 15}},
		"call/=0/colour/q#1": map[string]any{"action": "accept", "content": map[string]any{"answer": "blue"}},
	}
	a = other.send(t, update)
	assert.Equal(t, "complete", field[string](t, a, "resultType"), a.Body)

	require.Eventually(t, func() bool {
		a = other.send(t, ofTask("get", id))
		return field[string](t, a, "statusMessage") == "0 of 1 step, round 1"
	}, 20*time.Second, 10*time.Millisecond)
	assert.Equal(t, "working", field[string](t, a, "status"))
	close(w.release)
	a = other.settled(t, id, "completed")
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	require.NoError(t, json.Unmarshal(a.Result["result"], &result))
	assert.False(t, result.IsError, a.Body)
	assert.JSONEq(t, clerksWork, result.Content[0].Text)
	assert.Equal(t, int32(3), asked.Load(), "each round once")
}

// TestAnAgentsRoundsAreProgress: a client hears of rounds, and what a worker says of its own call is not taken for how
// far the agent is.
func TestAnAgentsRoundsAreProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.agents()
	definition := `{"name": "reader", "agent": {"planner": {"tool": "second"}, "tools": ["counting"]}}`
	w.stack.Host(func(k *worker.Worker) {
		worker.Handle(k, "second", func(_ context.Context, in map[string]any) (json.RawMessage, error) {
			if in["round"] == 0.0 {
				return json.RawMessage(answers[1]), nil
			}
			return json.RawMessage(`{"output": "done"}`), nil
		})
	})
	_, err := w.stack.Client().ApplyTemplate(t.Context(), []byte(definition))
	require.NoError(t, err)
	for _, version := range versions {
		told := make(chan *mcp.ProgressNotificationParams, 100)
		s := w.connect(version, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params },
		})
		w.listed(t, s, "reader")
		p := &mcp.CallToolParams{Name: "reader", Arguments: struct{}{}}
		p.SetProgressToken("tok")
		over := make(chan error, 1)
		go func() {
			_, err := s.CallTool(t.Context(), p)
			over <- err
		}()
		var all []string
		for said := ""; said != "round 0: page: page two"; {
			select {
			case n := <-told:
				said = n.Message
				all = append(all, said)
				assert.LessOrEqual(t, n.Progress, 1.0, "%s", said)
				assert.LessOrEqual(t, n.Total, 1.0, "%s", said)
			case err := <-over:
				t.Fatalf("it is over before it was told: %v, of %q", err, all)
			}
		}
		w.release <- struct{}{}
		require.NoError(t, <-over)
	}
}

// TestAnAgentAsksItsCaller: what its planner asks by the entry "ask" is put to the client's user too.
func TestAnAgentAsksItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.stack.Host(func(k *worker.Worker) {
		worker.Handle(k, "curious", func(_ context.Context, in map[string]any) (json.RawMessage, error) {
			if in["round"] == 0.0 {
				return json.RawMessage(`{"steps": [{"id": "sure", "tool": "ask", "arguments": {"question": "Sure?", "choices": ["yes", "no"]}}]}`), nil
			}
			return json.RawMessage(`{"output": {"sure": "$ref:r0.sure"}}`), nil
		})
	})
	_, err := w.stack.Client().ApplyTemplate(t.Context(), []byte(`{"name": "asker", "agent": {"planner": {"tool": "curious", "mode": "plan"}, "tools": ["ask"]}}`))
	require.NoError(t, err)
	for _, version := range versions {
		p := &person{answer: func(p *mcp.ElicitParams) *mcp.ElicitResult {
			assert.Equal(t, "Sure?", p.Message)
			return accept(map[string]any{"answer": "yes"})
		}}
		s := w.connect(version, p.options())
		w.listed(t, s, "asker")
		res := call(t, s, "asker", map[string]any{})
		assert.False(t, res.IsError, textOf(t, res))
		assert.JSONEq(t, `{"sure": "yes"}`, textOf(t, res))
		assert.Equal(t, int32(1), p.asked.Load(), version)
	}
}
