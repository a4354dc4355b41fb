package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/mcp/servers"
	"github.com/stepjet/stepjet/mcp/session"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/worker"
)

// A server that knows tasks may answer a call with the handle of one. The handle is noted before the first poll, so
// that the next worker that is handed the attempt polls on where this one ends, and the call is not made twice.

// noteOfTask is what is noted.
type noteOfTask struct {
	Task string `json:"task"`
}

// noted returns the task that a worker which was handed this attempt before has noted.
func (t *bridged) noted(ctx context.Context) string {
	raw, err := worker.Noted(ctx)
	var n noteOfTask
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &n)
	}
	if err != nil && ctx.Err() == nil {
		t.up.log.Debug("what a worker has noted can't be read", "tool", t.def.Name, "error", err)
	}
	return n.Task
}

// note notes a task and returns the one that counts: that of another worker, where that was first.
func (t *bridged) note(ctx context.Context, l *line, id string) string {
	raw, _ := json.Marshal(noteOfTask{id}) // a text can be written
	stands, err := worker.Note(ctx, raw)
	var n noteOfTask
	if err == nil {
		err = json.Unmarshal(stands, &n)
	}
	if err != nil {
		if ctx.Err() == nil {
			t.up.log.Warn("the task of an MCP server can't be noted: where this worker ends, the call is made again", "tool",
				t.def.Name, "error", err, "hint", "print the worker's permissions anew with stepjet acl worker")
		}
		return id
	}
	if n.Task != id {
		t.cancelTask(ctx, l, id)
	}
	return n.Task
}

// How often a server is asked about a task, whatever it says.
const (
	leastPoll = 100 * time.Millisecond
	usualPoll = time.Second
	mostPoll  = 30 * time.Second
)

// follow waits for a task and returns the result of its call. A connection that ends is made again: the task goes on.
// told is what its server was told already of what it has asked; nil for nothing.
func (t *bridged) follow(ctx context.Context, l *line, id string, told *inquiry) (worker.Output, error) {
	waits := backoff.Between(firstRestart, lastRestart)
	for {
		now, err := t.look(ctx, l, id)
		wait := time.Duration(0)
		switch {
		case ctx.Err() != nil:
			t.leave(ctx, l, id)
			return worker.Output{}, context.Cause(ctx)
		case err != nil:
			return worker.Output{}, err
		case now == nil:
			wait = waits.Next()
		case now.Status == task.Working:
			waits = backoff.Between(firstRestart, lastRestart)
			wait = pollAfter(now)
			if now.StatusMessage != "" {
				worker.Report(ctx, worker.Progress{Message: servers.Clean(now.StatusMessage)})
			}
		case now.Status == task.InputRequired && told.knows(inputOf(now)): // it has not taken that in yet
			wait = pollAfter(now)
		default:
			return t.ended(ctx, l, id, now)
		}
		if backoff.Pause(ctx, wait) && now == nil {
			_ = l.again(ctx) // where it fails, the next look tells
		}
	}
}

func pollAfter(now *session.Task) time.Duration {
	wait := usualPoll
	if now.PollIntervalMs > 0 {
		wait = time.Duration(min(now.PollIntervalMs, mostPoll.Milliseconds())) * time.Millisecond
	}
	return max(wait, leastPoll)
}

// look asks how far a task is. It returns nil without an error where that isn't to be known just now: then it is asked
// again.
func (t *bridged) look(ctx context.Context, l *line, id string) (*session.Task, error) {
	if l.Session == nil || !l.Alive() {
		return nil, nil
	}
	now, err := l.Task(ctx, id)
	var f *session.Failure
	if err == nil || !errors.As(err, &f) {
		return now, err
	}
	var answer *jsonrpc.Error
	if errors.As(f.Err, &answer) && f.Status == 0 {
		if !final(answer) {
			return nil, nil
		}
		return nil, t.unseen(true, fault.New(fault.ToolFailed, "the MCP server %s knows nothing any more of the task that the call became: %s",
			t.up.entry.Name, text.Clip(servers.Clean(answer.Message), 2<<10)))
	}
	broken := t.broken(ctx, l, err)
	if code := fault.CodeOf(broken); code == fault.ToolTerminal || code == fault.TooLarge {
		return nil, broken
	}
	return nil, nil
}

// ended is what a task came to that doesn't work any more.
func (t *bridged) ended(ctx context.Context, l *line, id string, now *session.Task) (worker.Output, error) {
	switch now.Status {
	case task.Completed:
		return t.output(ctx, now.Result, nil)
	case task.Failed:
		if now.Error != nil {
			return worker.Output{}, t.answered(now.Error, nil)
		}
		return worker.Output{}, t.unseen(true, fault.New(fault.ToolFailed, "the task of the tool %s failed: %s", t.def.Name, said(now)))
	case task.InputRequired:
		err := t.ask(ctx, inputOf(now), id)
		if fault.CodeOf(err) == fault.ToolTerminal { // nobody can be asked
			t.cancelTask(ctx, l, id)
		}
		return worker.Output{}, err
	case task.Working: // whoever asks waits for its end
	case task.Cancelled:
		return worker.Output{}, fault.New(fault.ToolTerminal, "the MCP server %s has cancelled the task of the tool %s: %s", t.up.entry.Name,
			t.def.Name, said(now)).WithHint("somebody has cancelled it there; stepjet retry begins it anew")
	}
	return worker.Output{}, fault.New(fault.ToolTerminal, "the MCP server %s says of a task that it is %q, which is not known here",
		t.up.entry.Name, text.Clip(servers.Clean(string(now.Status)), 64))
}

// inputOf is what a task asks, in the form of an answer to a call.
func inputOf(now *session.Task) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{"inputRequests": now.InputRequests}) // it came as JSON
	return raw
}

func said(now *session.Task) string {
	if s := text.Clip(servers.Clean(now.StatusMessage), 4<<10); s != "" {
		return s
	}
	return "it doesn't say why"
}

// leave ends the wait for a task whose step is given up: it is cancelled, unless the step goes on in another worker.
func (t *bridged) leave(ctx context.Context, l *line, id string) {
	if why := context.Cause(ctx); errors.Is(why, worker.ErrDraining) || errors.Is(why, worker.ErrLeaseLost) {
		return
	}
	t.cancelTask(ctx, l, id)
}

// cancelTask has the server stop a task, if it can be reached.
func (t *bridged) cancelTask(ctx context.Context, l *line, id string) {
	if l.Session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
	defer cancel()
	if err := l.CancelTask(ctx, id); err != nil {
		t.up.log.Warn("a task of an MCP server can't be cancelled", "tool", t.def.Name, "task", text.Clip(id, 128), "error", err)
	}
}

// cancelWithin bounds the wait for a server's word that it stops a task.
const cancelWithin = 5 * time.Second
