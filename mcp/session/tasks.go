package session

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/task"
)

// Task is what a server says of a task of its own (io.modelcontextprotocol/tasks).
type Task struct {
	Status         task.Status     `json:"status"`
	StatusMessage  string          `json:"statusMessage"`
	PollIntervalMs int64           `json:"pollIntervalMs"`
	InputRequests  json.RawMessage `json:"inputRequests"`
	Result         json.RawMessage `json:"result"` // of the call, as it came
	Error          *jsonrpc.Error  `json:"-"`      // of JSON-RPC, of a task that failed
}

// taskParams are those of tasks/get and tasks/cancel.
type taskParams struct {
	mcp.ParamsBase
	TaskID string `json:"taskId"`
}

// updateParams are those of tasks/update.
type updateParams struct {
	mcp.ParamsBase
	TaskID         string               `json:"taskId"`
	InputResponses mcp.InputResponseMap `json:"inputResponses"`
}

// anything is a result that go-sdk need not understand.
type anything struct{ mcp.ResultBase }

const (
	getTask    = "tasks/get"
	cancelTask = "tasks/cancel"
	updateTask = "tasks/update"
)

// declareTasks has a client say that it knows tasks, and lets it ask for them.
func declareTasks(c *mcp.ClientCapabilities) { c.AddExtension(task.Extension, nil) }

func addTaskMethods(c *mcp.Client) error {
	return errors.Join(
		mcp.AddSendingCustomMethod[*taskParams, *anything](c, getTask),
		mcp.AddSendingCustomMethod[*taskParams, *anything](c, cancelTask),
		mcp.AddSendingCustomMethod[*updateParams, *anything](c, updateTask))
}

// servesTasks reports whether a server says that it knows tasks.
func servesTasks(r *mcp.InitializeResult) bool {
	if r == nil || r.Capabilities == nil {
		return false
	}
	_, there := r.Capabilities.Extensions[task.Extension]
	return there
}

type taskKey struct{}

// taskOf returns the task that a request is about, whose name HTTP wants in a header of its own; go-sdk sets none for
// methods that it doesn't know.
func taskOf(ctx context.Context) string {
	id, _ := ctx.Value(taskKey{}).(string)
	return id
}

// Task asks how far a task is. Errors: a Failure; tool_terminal for what is no answer to that.
func (s *Session) Task(ctx context.Context, id string) (*Task, error) {
	raw, err := s.about(ctx, getTask, id)
	if err != nil {
		return nil, err
	}
	var t struct {
		Task
		Error *struct {
			Code    int64           `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal(raw, &t); err != nil || t.Status == "" {
		return nil, fault.New(fault.ToolTerminal, "the MCP server %s says of a task what is no task", s.entry.Name).
			WithHint("the server doesn't keep to the protocol; its maintainers should know")
	}
	if t.Error != nil {
		t.Task.Error = &jsonrpc.Error{Code: t.Error.Code, Message: t.Error.Message, Data: t.Error.Data}
	}
	return &t.Task, nil
}

// CancelTask has the server stop a task. Errors: a Failure.
func (s *Session) CancelTask(ctx context.Context, id string) error {
	_, err := s.about(ctx, cancelTask, id)
	return err
}

// UpdateTask tells a task what it has asked, by the names of its questions. Told again, it changes nothing. Errors: a
// Failure.
func (s *Session) UpdateTask(ctx context.Context, id string, answers mcp.InputResponseMap) error {
	c := newCapture()
	ctx = context.WithValue(ctx, taskKey{}, id)
	params := &updateParams{TaskID: id, InputResponses: answers}
	_, err := mcp.CallCustomMethod[*updateParams, *anything](c.in(ctx), s.cs, updateTask, params)
	if f := c.failure(err); f != nil {
		return f
	}
	return nil
}

func (s *Session) about(ctx context.Context, method, id string) (json.RawMessage, error) {
	c := newCapture()
	ctx = context.WithValue(ctx, taskKey{}, id)
	_, err := mcp.CallCustomMethod[*taskParams, *anything](c.in(ctx), s.cs, method, &taskParams{TaskID: id})
	if f := c.failure(err); f != nil {
		return nil, f
	}
	return c.result(), nil
}
