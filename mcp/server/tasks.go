package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/outcome"
)

// unknownHandle is what is said of handles and states that were made up, are another's, or too old: it tells nobody
// which of these it is.
const unknownHandle = "unknown task or request state, or it is no longer kept"

// taskParams are those of tasks/get, tasks/update and tasks/cancel.
type taskParams struct {
	mcp.ParamsBase
	TaskID string `json:"taskId"`
	// InputResponses are read one by one: what answers nothing may be anything.
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// taskResult is a task as a result: of tools/call, as a handle, and of tasks/get.
type taskResult struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
	task.Task
}

// ack is the empty answer to tasks/update and tasks/cancel.
type ack struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

const complete = "complete"

// The methods of the extension.
const (
	getMethod    = "tasks/get"
	updateMethod = "tasks/update"
	cancelMethod = "tasks/cancel"
)

var taskMethods = []string{getMethod, updateMethod, cancelMethod}

// holder takes a task out of the handler of a tool: the SDK knows results of tools only, so the middleware puts the task
// in their place.
type holder struct{ task *taskResult }

type holderKey struct{}

func holderOf(ctx context.Context) *holder {
	h, _ := ctx.Value(holderKey{}).(*holder)
	return h
}

// tasks serves the methods of the tasks extension.
type tasks struct {
	runs      *runs
	keys      task.Keys
	retention time.Duration
}

// offer adds the methods to a server.
func (t *tasks) offer(s *mcp.Server) {
	add := func(err error) {
		if err != nil {
			panic(err) // they shadow no method of the protocol
		}
	}
	add(mcp.AddReceivingCustomMethod(s, getMethod, handled(t, ScopeRead, t.getTask)))
	add(mcp.AddReceivingCustomMethod(s, updateMethod, handled(t, ScopeRun, t.updateTask)))
	add(mcp.AddReceivingCustomMethod(s, cancelMethod, handled(t, ScopeRun, t.cancelTask)))
}

// handled checks what all methods of tasks check: that the client knows tasks, that its token has the scope, and that the
// handle is its own.
func handled[R mcp.Result](
	t *tasks, scope string, do func(context.Context, Principal, task.ID, *taskParams) (R, error),
) func(context.Context, *mcp.ServerSession, *taskParams) (R, error) {
	return func(ctx context.Context, session *mcp.ServerSession, p *taskParams) (none R, err error) {
		who := callerOf(ctx)
		switch {
		case p == nil:
			return none, invalidParams("params are missing")
		case !declaresTasks(p.Meta, session):
			return none, missingTasks()
		case !who.May(scope):
			return none, noScope(scope)
		}
		id, ok := t.keys.Parse(p.TaskID, who.owner())
		if !ok {
			return none, invalidParams(unknownHandle)
		}
		return do(ctx, who, id, p)
	}
}

// getTask is tasks/get.
func (t *tasks) getTask(ctx context.Context, who Principal, id task.ID, p *taskParams) (*taskResult, error) {
	doc, err := t.runs.document(ctx, id.Run)
	switch fault.CodeOf(err) {
	case "":
	case fault.NotReady: // nobody owns it just now
		return t.asResult(task.Fresh(began(id.Run), t.retention), p.TaskID), nil
	case fault.NewerVersion:
		now := task.Fresh(began(id.Run), t.retention)
		return t.asResult(failedTask(now, internalError(fault.As(err))), p.TaskID), nil
	default:
		return nil, handleError(err)
	}
	now := task.Of(doc, t.retention)
	if now.Status == task.Working {
		err = t.addRequests(ctx, who, id.Run, &now)
	} else if now.Status == task.Completed {
		err = t.addResult(ctx, id, doc, &now)
	}
	if err != nil {
		return nil, internalError(fault.As(err))
	}
	return t.asResult(now, p.TaskID), nil
}

func (t *tasks) asResult(now task.Task, handle string) *taskResult {
	now.ID = handle
	return &taskResult{ResultType: complete, Task: now}
}

// addRequests puts what the caller may answer into a task.
func (t *tasks) addRequests(ctx context.Context, who Principal, run string, now *task.Task) error {
	asked, err := t.runs.asked(ctx, who, run)
	if err != nil || len(asked) == 0 {
		return err
	}
	now.Status = task.InputRequired
	now.InputRequests, err = json.Marshal(requests(asked, nil))
	return err
}

// addResult puts the result that a plain call gives into a task.
func (t *tasks) addResult(ctx context.Context, id task.ID, doc *outcome.Run, now *task.Task) error {
	r, err := t.runs.client.Attach(id.Run)
	if err != nil {
		return err
	}
	out := doc.Outcome
	if out == nil { // it was too large to be with its document
		if out, err = r.Wait(ctx); err != nil {
			return err
		}
	}
	res, err := t.runs.result(ctx, out, id.Kind, stateless)
	if err != nil {
		*now = failedTask(*now, err)
		return nil
	}
	raw, err := json.Marshal(res)
	if err != nil {
		return err
	}
	now.Result = append([]byte(`{"resultType":"complete",`), raw[1:]...)
	return nil
}

// failedTask is a task whose call came to an error of JSON-RPC.
func failedTask(now task.Task, err error) task.Task {
	rpc, ok := err.(*jsonrpc.Error) //nolint:errorlint // it is written as it is
	if !ok {
		rpc = internalError(fault.As(err))
	}
	now.Status, now.StatusMessage, now.Result = task.Failed, rpc.Message, nil
	now.Error, _ = json.Marshal(rpc) // it can be written
	return now
}

// updateTask is tasks/update: answers to what is not asked, or not any more, count for nothing.
func (t *tasks) updateTask(ctx context.Context, who Principal, id task.ID, p *taskParams) (*ack, error) {
	if err := t.runs.exists(ctx, id.Run); err != nil {
		return nil, handleError(err)
	}
	for key, response := range p.InputResponses {
		if err := t.runs.answer(ctx, who, id.Run, key, func() (f filled, err error) { return readFilled(response) }); err != nil {
			if mendable(fault.CodeOf(err)) {
				return nil, invalidParams(err.Error())
			}
			return nil, internalError(fault.As(err))
		}
	}
	return &ack{ResultType: complete}, nil
}

// cancelTask is tasks/cancel: one that is over stays as it is.
func (t *tasks) cancelTask(ctx context.Context, who Principal, id task.ID, _ *taskParams) (*ack, error) {
	_, err := t.runs.client.Cancel(ctx, id.Run, who.by())
	if err != nil && fault.CodeOf(err) != fault.AlreadyFinished {
		return nil, handleError(err)
	}
	return &ack{ResultType: complete}, nil
}

// handleError is what a caller gets of an error of the run that its handle names.
func handleError(err error) error {
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.InvalidID:
		return invalidParams(unknownHandle)
	}
	return internalError(fault.As(err))
}

// taskOf is the handle of a run that was just submitted, or joined.
func (t *tasks) taskOf(ctx context.Context, handle, run string) (*taskResult, error) {
	now := task.Fresh(began(run), t.retention)
	soon, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if doc, err := t.runs.client.Get(soon, run); err == nil {
		now = task.Of(doc, t.retention)
		now.Status = task.Working // all else is told by tasks/get
	} else if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	res := t.asResult(now, handle)
	res.ResultType = "task"
	return res, nil
}

// began is when a run was submitted, by its id; of one that was named by its caller, as far as is known, now.
func began(run string) time.Time {
	id, err := uuid.Parse(run)
	if err != nil || id.Version() != 7 {
		return time.Now()
	}
	sec, nsec := id.Time().UnixTime()
	return time.Unix(sec, nsec)
}
