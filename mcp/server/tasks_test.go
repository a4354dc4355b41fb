package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func tools(name string, arguments any) request {
	return request{method: "tools/call", tasks: true, params: map[string]any{"name": name, "arguments": arguments}}
}

func ofTask(method, id string) request {
	return request{method: "tasks/" + method, tasks: true, params: map[string]any{"taskId": id}}
}

// settled polls a task until it is in a status.
func (w *world) settled(t *testing.T, id, status string) answer {
	t.Helper()
	var a answer
	require.Eventually(t, func() bool {
		a = w.send(t, ofTask("get", id))
		return a.Result != nil && field[string](t, a, "status") == status
	}, 20*time.Second, 10*time.Millisecond, "%s", status)
	return a
}

func TestATaskIsARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.TaskAfter = 50 * time.Millisecond })
	a := w.send(t, tools("slow", struct{}{}))
	require.Equal(t, "task", field[string](t, a, "resultType"), a.Body)
	id := field[string](t, a, "taskId")
	assert.Equal(t, "working", field[string](t, a, "status"))
	assert.Equal(t, server.DefaultRetention.Milliseconds(), field[int64](t, a, "ttlMs"))
	assert.Equal(t, int64(500), field[int64](t, a, "pollIntervalMs"))
	assert.NotContains(t, a.Result, "result")

	a = w.send(t, ofTask("get", id))
	assert.Equal(t, "complete", field[string](t, a, "resultType"))
	assert.Equal(t, "0 of 1 step", field[string](t, a, "statusMessage"))
	created := field[time.Time](t, a, "createdAt")
	assert.WithinDuration(t, time.Now(), created, time.Minute)

	w.release <- struct{}{}
	a = w.settled(t, id, "completed")
	assert.Equal(t, created, field[time.Time](t, a, "createdAt"))
	result := field[map[string]any](t, a, "result")
	assert.Equal(t, "complete", result["resultType"])
	assert.Equal(t, []any{map[string]any{"type": "text", "text": "late"}}, result["content"])

	a = w.send(t, ofTask("cancel", id))
	assert.Equal(t, "complete", field[string](t, a, "resultType"), "one that is over stays as it is")
	w.settled(t, id, "completed")
}

func TestACallThatIsOverSoonIsNoTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.send(t, tools("greet", named{"Ada"}))
	assert.Equal(t, "complete", field[string](t, a, "resultType"))
	assert.Contains(t, a.Result, "content")
}

func TestATaskIsCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.TaskAfter = time.Nanosecond })
	id := field[string](t, w.send(t, tools("slow", struct{}{})), "taskId")
	a := w.send(t, ofTask("cancel", id))
	assert.JSONEq(t, `"complete"`, string(a.Result["resultType"]))
	assert.NotContains(t, a.Result, "status")
	a = w.settled(t, id, "cancelled")
	assert.NotContains(t, a.Result, "result")
}

func TestWhatFailedIsCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.TaskAfter = time.Nanosecond })
	for _, r := range []request{
		tools("fail", struct{}{}),
		tools("execute_tool_plan", json.RawMessage(`{"steps": [{"id": "a", "tool": "nope"}]}`)),
	} {
		a := w.send(t, r)
		if id := field[string](t, a, "taskId"); id != "" {
			a = w.settled(t, id, "completed")
			a.Result = field[map[string]json.RawMessage](t, a, "result")
		}
		assert.True(t, field[bool](t, a, "isError"), a.Body)
	}
}

func TestAToolSaysWhenItIsATask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.stack.Host(func(k *worker.Worker) {
		for _, mode := range []string{"never", "always", "required"} {
			def, err := tool.ParseDefinition([]byte(`{"name": "` + mode + `", "x-orchestration": {"task": "` + mode + `"}}`))
			require.NoError(t, err)
			require.NoError(t, k.HandleRaw(def, func(context.Context, json.RawMessage) (worker.Output, error) {
				return worker.Output{Body: []byte(`"done"`)}, nil
			}))
		}
	})
	require.Eventually(t, func() bool { return w.send(t, tools("required", struct{}{})).Error == nil }, 20*time.Second, 10*time.Millisecond)
	for mode, want := range map[string]string{"never": "complete", "always": "task", "required": "task"} {
		a := w.send(t, tools(mode, struct{}{}))
		assert.Equal(t, want, field[string](t, a, "resultType"), mode)
		if want == "task" {
			w.settled(t, field[string](t, a, "taskId"), "completed")
		}
		plain := tools(mode, struct{}{})
		plain.tasks = false
		a = w.send(t, plain)
		if mode == "required" {
			assert.Equal(t, http.StatusBadRequest, a.Status)
			assert.Equal(t, int64(-32021), a.Error.Code)
			continue
		}
		assert.Equal(t, "complete", field[string](t, a, "resultType"), mode)
	}
}

func TestWhatIsWrongWithATask(t *testing.T) {
	t.Parallel()
	keys := task.Keys{[]byte("0123456789abcdef")}
	w := newWorld(t, func(c *server.Config) { c.TaskAfter, c.Keys = time.Nanosecond, keys })
	id := field[string](t, w.send(t, tools("slow", struct{}{})), "taskId")
	foreign := keys.Sign(task.ID{Run: id[:36], Kind: task.Tool}, task.Owner{Tenant: "other"})
	gone := keys.Sign(task.ID{Run: "0199b0de-0000-7000-8000-000000000000", Kind: task.Tool}, task.Owner{Tenant: "default"})
	var texts []string
	for _, method := range []string{"get", "update", "cancel"} {
		for _, bad := range []string{"", "x", id[:len(id)-1], foreign, gone} {
			r := ofTask(method, bad)
			r.name = "-"
			if bad != "" {
				r.name = bad
			}
			a := w.send(t, r)
			require.NotNil(t, a.Error, "%s %s: %s", method, bad, a.Body)
			assert.Equal(t, int64(-32602), a.Error.Code, "%s %s", method, bad)
			texts = append(texts, a.Error.Message)
		}
		undeclared := ofTask(method, id)
		undeclared.tasks = false
		a := w.send(t, undeclared)
		assert.Equal(t, http.StatusBadRequest, a.Status)
		assert.Equal(t, int64(-32021), a.Error.Code)
		assert.JSONEq(t, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, string(a.Error.Data))

		other := ofTask(method, id)
		other.name = "other"
		a = w.send(t, other)
		assert.Equal(t, http.StatusBadRequest, a.Status)
		assert.Equal(t, int64(-32020), a.Error.Code)
	}
	for _, text := range texts {
		assert.Equal(t, texts[0], text, "nobody learns which it was")
	}
	w.send(t, ofTask("cancel", id))
}

func TestAHandleIsGoodAtAnyServer(t *testing.T) {
	t.Parallel()
	keys := task.Keys{[]byte("0123456789abcdef")}
	same := func(c *server.Config) { c.TaskAfter, c.Keys = time.Nanosecond, keys }
	w := newWorld(t, same)
	id := field[string](t, w.send(t, tools("slow", struct{}{})), "taskId")
	other := w.beside(t, same)
	w.s.Close()
	w.release <- struct{}{}
	other.settled(t, id, "completed")
}
