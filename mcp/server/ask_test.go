package server_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/mcp/server"
)

const approvedPlan = `{"steps": [
	{"id": "pay", "tool": "greet", "arguments": {"name": "Ada"}, "approval": {"ask": "Pay Ada?"}},
	{"id": "more", "tool": "ask", "arguments": {"question": "Which colour?", "choices": ["red", "blue"]}}]}`

// person answers forms as a client's user would.
type person struct {
	asked  atomic.Int32
	forms  chan *mcp.ElicitParams
	answer func(*mcp.ElicitParams) *mcp.ElicitResult
}

func (p *person) options() *mcp.ClientOptions {
	p.forms = make(chan *mcp.ElicitParams, 10)
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.asked.Add(1)
		p.forms <- r.Params
		return p.answer(r.Params), nil
	}}
}

func accept(content map[string]any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: content}
}

// both answers the two questions of approvedPlan.
func both(p *mcp.ElicitParams) *mcp.ElicitResult {
	if p.Message == "Pay Ada?" {
		return accept(map[string]any{"confirm": true, "name": "Grace"})
	}
	return accept(map[string]any{"answer": "blue"})
}

func TestWhatARunAsksIsPutToTheClientsUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		p := &person{answer: both}
		s := w.connect(version, p.options())
		res := call(t, s, "execute_tool_plan", plan(t, approvedPlan))
		assert.False(t, res.IsError, textOf(t, res))
		assert.Contains(t, textOf(t, res), "hello Grace", "the arguments were edited")
		assert.Contains(t, textOf(t, res), `"more":"blue"`)
		assert.Equal(t, int32(2), p.asked.Load(), version)
	}
}

func TestANoRejects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		p := &person{answer: func(*mcp.ElicitParams) *mcp.ElicitResult { return &mcp.ElicitResult{Action: "decline"} }}
		s := w.connect(version, p.options())
		res := call(t, s, "execute_tool_plan", plan(t, `{"steps": [{"id": "pay", "tool": "greet", "arguments": {"name": "Ada"}, "approval": true}]}`))
		assert.True(t, res.IsError)
		assert.Contains(t, textOf(t, res), `"code":"rejected"`)
	}
}

func TestWhoCantAnswerReadsWhoCan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Hold = time.Second })
	s := w.connect(versions[0], nil) // its user can't be asked
	res := call(t, s, "execute_tool_plan", plan(t, approvedPlan))
	var said struct {
		Status  string
		Waiting []struct{ Step, Question, Who string }
	}
	require.NoError(t, json.Unmarshal([]byte(textOf(t, res)), &said))
	assert.Equal(t, "running", said.Status)
	require.Len(t, said.Waiting, 2)
	assert.Contains(t, said.Waiting[0].Who+said.Waiting[1].Who, "an approver: stepjet approve")
}

func TestATaskAsksItsUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.TaskAfter = 50 * time.Millisecond })
	r := tools("execute_tool_plan", json.RawMessage(approvedPlan))
	r.elicit = true
	id := field[string](t, w.send(t, r), "taskId")
	a := w.settled(t, id, "input_required")
	require.Eventually(t, func() bool {
		a = w.send(t, ofTask("get", id))
		return len(field[map[string]any](t, a, "inputRequests")) == 2
	}, 20*time.Second, 10*time.Millisecond)
	requests := field[map[string]struct {
		Method string
		Params struct{ Message string }
	}](t, a, "inputRequests")
	assert.Equal(t, "elicitation/create", requests["pay#1"].Method)
	assert.Equal(t, "Pay Ada?", requests["pay#1"].Params.Message)

	update := ofTask("update", id)
	update.params["inputResponses"] = map[string]any{
		"pay#1":   map[string]any{"action": "accept", "content": map[string]any{"confirm": true}},
		"nobody#": map[string]any{"action": "accept"}, "pay#2": map[string]any{"action": "decline"},
	}
	for range 2 { // said twice is said once
		a = w.send(t, update)
		assert.Equal(t, "complete", field[string](t, a, "resultType"), a.Body)
	}
	require.Eventually(t, func() bool {
		return len(field[map[string]any](t, w.send(t, ofTask("get", id)), "inputRequests")) == 1
	}, 20*time.Second, 10*time.Millisecond)
	update.params["inputResponses"] = map[string]any{"more#1": map[string]any{"action": "accept", "content": map[string]any{"answer": "red"}}}
	w.send(t, update)
	a = w.settled(t, id, "completed")
	assert.Contains(t, string(a.Result["result"]), "hello Ada")
}

func TestAStateIsGoodForItsCallAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	r := tools("execute_tool_plan", json.RawMessage(approvedPlan))
	r.tasks, r.elicit = false, true
	a := w.send(t, r)
	require.Equal(t, "input_required", field[string](t, a, "resultType"), a.Body)
	state := field[string](t, a, "requestState")
	for what, change := range map[string]func(map[string]any){
		"changed":        func(p map[string]any) { p["requestState"] = "A" + state[1:] },
		"of another":     func(p map[string]any) { p["arguments"] = json.RawMessage(`{"steps": []}`) },
		"of another run": func(p map[string]any) { p["requestState"] = "x" },
	} {
		params := map[string]any{"name": "execute_tool_plan", "arguments": json.RawMessage(approvedPlan), "requestState": state}
		change(params)
		a := w.send(t, request{method: "tools/call", elicit: true, params: params})
		require.NotNil(t, a.Error, what)
		assert.Equal(t, int64(-32602), a.Error.Code, what)
	}
	// Without an answer it asks again.
	a = w.send(t, request{method: "tools/call", elicit: true, params: map[string]any{
		"name": "execute_tool_plan", "arguments": json.RawMessage(approvedPlan), "requestState": state,
	}})
	assert.Equal(t, "input_required", field[string](t, a, "resultType"), a.Body)
}

func TestApprovalsAreGivenByTheApprover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	elsewhere, err := client.New(t.Context(), w.stack.Conn(), client.Config{Tenant: "elsewhere"})
	require.NoError(t, err)
	t.Cleanup(elsewhere.Close)
	other := w.beside(t, func(c *server.Config) {
		c.Approver = func(context.Context, string) (*client.Client, error) { return elsewhere, nil }
	})
	arguments := json.RawMessage(`{"steps": [{"id": "pay", "tool": "greet", "arguments": {"name": "Ada"}, "approval": true}]}`)
	for at, want := range map[*world]string{w: "complete", other: "input_required"} { // it knows no such run
		r := request{method: "tools/call", elicit: true, params: map[string]any{"name": "execute_tool_plan", "arguments": arguments}}
		r.params["requestState"] = field[string](t, at.send(t, r), "requestState")
		r.params["inputResponses"] = map[string]any{"pay#1": map[string]any{"action": "accept", "content": map[string]any{}}}
		a := at.send(t, r)
		assert.Equal(t, want, field[string](t, a, "resultType"), a.Body)
	}
}
