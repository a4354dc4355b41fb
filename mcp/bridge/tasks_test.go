package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/subjects"
)

// jobs is a server whose tool "job" goes on in tasks, which the test ends.
type jobs struct {
	mu    sync.Mutex
	tasks map[string]json.RawMessage // what is said of each, but for its handle
	byKey map[string]string          // by idempotency key
	named map[string]string          // the latest of each name that a call has in its arguments
	calls map[string]int             // by name
	asked map[string]int             // polls, by task
	saids map[string]string          // what it was told last, by task
}

type jobParams struct {
	mcp.ParamsBase
	TaskID string `json:"taskId"`
}

// rawResult is a result as it is sent.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

func (r *rawResult) UnmarshalJSON(b []byte) error { r.raw = b; return nil }

const working = `{"status":"working","pollIntervalMs":1,"statusMessage":"page 7"`

func newJobs() (*jobs, *mcp.Server) {
	j := &jobs{tasks: map[string]json.RawMessage{}, byKey: map[string]string{}, named: map[string]string{}, calls: map[string]int{}, asked: map[string]int{}, saids: map[string]string{}}
	capabilities := &mcp.ServerCapabilities{}
	capabilities.AddExtension(task.Extension, nil)
	s := mcp.NewServer(&mcp.Implementation{Name: "jobs"}, &mcp.ServerOptions{Capabilities: capabilities})
	add(s, "job", "", nil)
	for method, do := range map[string]func(id string) (json.RawMessage, error){"tasks/get": j.get, "tasks/cancel": j.cancel} {
		if err := mcp.AddReceivingCustomMethod(s, method, func(_ context.Context, _ *mcp.ServerSession, p *jobParams) (*rawResult, error) {
			raw, err := do(p.TaskID)
			return &rawResult{raw: raw}, err
		}); err != nil {
			panic(err)
		}
	}
	if err := mcp.AddReceivingCustomMethod(s, "tasks/update", func(_ context.Context, _ *mcp.ServerSession, p *updateParams) (*rawResult, error) {
		raw, err := j.update(p)
		return &rawResult{raw: raw}, err
	}); err != nil {
		panic(err)
	}
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if call, ok := r.(*mcp.CallToolRequest); ok {
				return &rawResult{raw: j.begin(call)}, nil
			}
			return next(ctx, method, r)
		}
	})
	return j, s
}

// begin answers a call with a task: the same for the same key.
func (j *jobs) begin(r *mcp.CallToolRequest) json.RawMessage {
	j.mu.Lock()
	defer j.mu.Unlock()
	name := argument(r, "name")
	j.calls[name]++
	key, _ := r.Params.Meta[content.KeyMeta].(string)
	id, known := j.byKey[key]
	if _, there := j.tasks[id]; !known || !there {
		id = fmt.Sprint("task-", len(j.tasks), "-", j.calls[name])
		j.byKey[key], j.named[name], j.tasks[id] = id, id, json.RawMessage(working)
	}
	return j.told(id, "task")
}

// told is a task with its handle.
func (j *jobs) told(id, kind string) json.RawMessage {
	return fmt.Appendf(nil, `%s,"resultType":%q,"taskId":%q,"createdAt":"2026-11-23T00:00:00Z","lastUpdatedAt":"2026-11-23T00:00:00Z","ttlMs":60000}`,
		j.tasks[id], kind, id)
}

var errUnknown = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such task"}

func (j *jobs) get(id string) (json.RawMessage, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.tasks[id] == nil {
		return nil, errUnknown
	}
	j.asked[id]++
	return j.told(id, "complete"), nil
}

type updateParams struct {
	mcp.ParamsBase
	TaskID         string          `json:"taskId"`
	InputResponses json.RawMessage `json:"inputResponses"`
}

// update takes what a task has asked for. It goes on a while later, as the test says.
func (j *jobs) update(p *updateParams) (json.RawMessage, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.tasks[p.TaskID] == nil {
		return nil, errUnknown
	}
	j.saids[p.TaskID] = string(p.InputResponses)
	return json.RawMessage(`{"resultType":"complete"}`), nil
}

func (j *jobs) updated(id string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.saids[id]
}

func (j *jobs) cancel(id string) (json.RawMessage, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.tasks[id] == nil {
		return nil, errUnknown
	}
	j.tasks[id] = json.RawMessage(`{"status":"cancelled","statusMessage":"as asked"`)
	return json.RawMessage(`{"resultType":"complete"}`), nil
}

// polled waits until the latest task of a name was asked about so often.
func (w *world) polled(j *jobs, name string, times int) (id string) {
	w.eventually(name+" is polled for", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		id = j.named[name]
		return j.asked[id] >= times
	})
	return id
}

// becomes says what a task is from now on; nothing: the server has forgotten it.
func (j *jobs) becomes(id, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if what == "" {
		delete(j.tasks, id)
		return
	}
	j.tasks[id] = json.RawMessage(what)
}

func (j *jobs) count(name string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.calls[name]
}

func (j *jobs) stands(id string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.tasks[id])
}

const jobDone = `{"status":"completed","result":{"content":[{"type":"text","text":"{\"n\":12345678901234567890.10}"}]}`

func jobPlan(name string) []byte {
	return []byte(`{"steps":[{"id":"s","tool":"web_job","arguments":{"name":"` + name + `"},"retry":{"max_attempts":2}}],"output_steps":["s"]}`)
}

// A call that becomes a task is followed to its end, whatever that is, and what the task says of how far it is is
// passed on.
func TestACallBecomesATask(t *testing.T) {
	t.Parallel()
	for _, stateful := range []bool{true, false} {
		t.Run(fmt.Sprint("stateful ", stateful), func(t *testing.T) {
			t.Parallel()
			j, s := newJobs()
			w := start(t, map[string]any{"web": webServer(t, s, stateful, nil)})
			for name, c := range map[string]struct {
				becomes string
				code    fault.Code
				says    string
				calls   int
			}{
				"completed": {jobDone, "", "", 1},
				"reports an error": {
					`{"status":"completed","result":{"isError":true,"content":[{"type":"text","text":"no room"}]}`, fault.ToolFailed, "no room", 1,
				},
				"failed":    {`{"status":"failed","error":{"code":-32602,"message":"not like that"}`, fault.ToolTerminal, "not like that", 1},
				"cancelled": {`{"status":"cancelled","statusMessage":"by the night shift"`, fault.ToolTerminal, "by the night shift", 1},
				"asks": {
					`{"status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","url":"https://x.example","message":"Which city?"}}}`,
					fault.ToolTerminal, "Which city?", 1,
				},
				"strange":   {`{"status":"asleep"`, fault.ToolTerminal, "asleep", 1},
				"no task":   {`{"status":""`, fault.ToolTerminal, "no task", 1},
				"forgotten": {"", "", "", 2},
			} {
				run, err := w.Client().Submit(w.ctx(), jobPlan(name), client.SubmitOptions{})
				require.NoError(t, err)
				id := w.polled(j, name, 2)
				j.becomes(id, c.becomes)
				if name == "forgotten" { // the next attempt calls again
					w.eventually("it is called again", func() bool {
						doc, err := w.Client().Get(w.ctx(), run.ID())
						require.True(t, err != nil || doc.Status == outcome.Running, "it is not worth another attempt")
						return j.count(name) == 2
					})
					j.becomes(w.polled(j, name, 1), jobDone)
				}
				end, err := run.Wait(w.ctx())
				require.NoError(t, err)
				require.Equal(t, c.calls, j.count(name), name)
				if c.code == "" {
					result, _ := end.Results.Get("s")
					require.Equal(t, `{"n":12345678901234567890.10}`, string(result), "%s %s", name, end.JSON())
					continue
				}
				doc, err := w.Client().Get(w.ctx(), run.ID())
				require.NoError(t, err)
				require.Equal(t, c.code, doc.Steps[0].Error.Code, "%s %s", name, end.JSON())
				require.Contains(t, doc.Steps[0].Error.Message, c.says, name)
				if name == "asks" {
					require.Contains(t, doc.Steps[0].Error.Hint, "open https://x.example")
					require.Contains(t, j.stands(id), "cancelled", "nobody waits for it")
				}
			}
		})
	}
}

// While a task works, its words are progress; a cancel reaches it; a connection that breaks is made again.
func TestATaskIsFollowed(t *testing.T) {
	t.Parallel()
	j, s := newJobs()
	var drop func()
	entry := webServerDropping(t, s, &drop)
	w := start(t, map[string]any{"web": entry})
	watcher, err := w.Client().NewWatcher(w.ctx(), "r")
	require.NoError(t, err)
	defer watcher.Close()
	_, err = w.Client().Submit(w.ctx(), jobPlan("x"), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	told := 0
	require.NoError(t, watcher.Follow(w.ctx(), func(e client.Event) {
		if e.Kind != subjects.EventProgress {
			return
		}
		require.Equal(t, "page 7", e.Progress.Message)
		switch told++; told {
		case 1:
			drop()
		case 2:
			require.NoError(t, cancelled(w.Client().Cancel(w.ctx(), "r", "test")))
		}
	}))
	require.GreaterOrEqual(t, told, 2)
	id := w.polled(j, "x", 1)
	w.eventually("the task is cancelled", func() bool { return j.stands(id) == `{"status":"cancelled","statusMessage":"as asked"` })
	require.Equal(t, 1, j.count("x"))
}

// A worker that is killed while it polls loses nothing: the next one polls for the same task, and nothing is called
// twice.
func TestKilledBridgesPollOn(t *testing.T) {
	t.Parallel()
	j, s := newJobs()
	file := fileOf(t, map[string]any{"web": webServer(t, s, false, nil)})
	w := &world{Stack: stepjettest.New(t), t: t, file: file}
	var runs []*client.Run
	for i := range *kills {
		name := fmt.Sprint("k", i)
		cmd := spawn(t, w.URL(), file)
		run, err := w.Client().Submit(w.ctx(), jobPlan(name), client.SubmitOptions{})
		require.NoError(t, err)
		runs = append(runs, run)
		w.polled(j, name, 1)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
	for i := range runs { // all of them: a worker has room for 16
		j.mu.Lock()
		id := j.named[fmt.Sprint("k", i)]
		j.mu.Unlock()
		j.becomes(id, jobDone)
	}
	last := spawn(t, w.URL(), file)
	for i, run := range runs {
		name := fmt.Sprint("k", i)
		end, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, end.Status, "%s", end.JSON())
		require.Equal(t, 1, j.count(name), "it is called once")
		doc, err := w.Client().Get(w.ctx(), run.ID())
		require.NoError(t, err)
		require.Equal(t, 1, doc.Steps[0].Attempts, "the same attempt")
	}
	require.NoError(t, last.Process.Kill())
	_ = last.Wait()
}
