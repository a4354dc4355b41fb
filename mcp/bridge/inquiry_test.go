package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
)

// clerk is a server of 2026-07-28 whose tool "book" asks for a city, then for two things at once, and returns what it was
// told.
type clerk struct {
	mu    sync.Mutex
	calls int
	lost  bool // it has forgotten its state, once

	declared string // what the last call said that its caller's user can be asked by
}

func (c *clerk) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "clerk"}, nil)
	add(s, "book", "", nil)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if call, ok := r.(*mcp.CallToolRequest); ok {
				raw, err := c.call(call)
				return &rawResult{raw: raw}, err
			}
			return next(ctx, method, r)
		}
	})
	return s
}

func (c *clerk) call(r *mcp.CallToolRequest) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	declared, _ := json.Marshal(r.Params.Meta[mcp.MetaKeyClientCapabilities])
	c.declared = string(declared)
	said, _ := json.Marshal(r.Params.InputResponses)
	form := func(field, kind string) string {
		return fmt.Sprintf(`{"method":"elicitation/create","params":{"message":"Which %s?","requestedSchema":{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}}}`, field, field, kind, field)
	}
	switch state := r.Params.RequestState; {
	case argument(r, "name") == "busy" && len(state) < 3:
		return fmt.Appendf(nil, `{"resultType":"input_required","requestState":%q,"inputRequests":{}}`, state+"w"), nil
	case argument(r, "name") == "busy":
		return fmt.Appendf(nil, `{"resultType":"complete","content":[],"structuredContent":{"waited":%q,"said":%s}}`, state, said), nil
	case argument(r, "name") == "full":
		return json.RawMessage(`{"resultType":"input_required","requestState":"w"}`), nil
	case argument(r, "name") == "page":
		return json.RawMessage(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","message":"Log in","url":"https://x.example"}}}}`), nil
	case state == "":
		return json.RawMessage(`{"resultType":"input_required","requestState":"<one>","inputRequests":{"c":` + form("city", "string") + `}}`), nil
	case c.lost:
		c.lost = false
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such requestState"}
	case state == "<one>":
		return fmt.Appendf(nil, `{"resultType":"input_required","requestState":%q,"inputRequests":{"d":%s,"n":%s}}`, "two "+string(said), form("days", "integer"), form("note", "string")), nil
	default:
		return fmt.Appendf(nil, `{"resultType":"complete","content":[],"structuredContent":{"before":%q,"now":%s,"declared":%s}}`, state, said, declared), nil
	}
}

// reply answers the n-th question of the only step of a run.
func (w *world) reply(run string, n int, value string) *outcome.Question {
	w.t.Helper()
	var q *outcome.Question
	w.eventually("the tool asks", func() bool {
		var err error
		q, err = w.Client().Question(w.ctx(), run, "s")
		return err == nil && q.Number == n
	})
	_, err := w.Client().Answer(w.ctx(), q, json.RawMessage(value), client.Answer{})
	require.NoError(w.t, err)
	return q
}

const bookPlan = `{"steps":[{"id":"s","tool":"web_book","arguments":{"name":"x"}}],"output_steps":["s"]}`

// A server that asks in the middle of a call is answered by a person: its questions are those of the step, several at a
// time are one, and it is called again with its state and what was said.
func TestAServerAsksInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	c := &clerk{}
	w := start(t, map[string]any{"web": webServer(t, c.server(), false, nil)})
	run, err := w.Client().Submit(w.ctx(), []byte(bookPlan), client.SubmitOptions{})
	require.NoError(t, err)
	q := w.reply(run.ID(), 1, `{"city":"Kiel"}`)
	require.Equal(t, "Which city?", q.Text)
	require.Equal(t, "web_book", q.Tool)
	require.JSONEq(t, `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`, string(q.Schema))
	q = w.reply(run.ID(), 2, `{"d":{"days":7},"n":{"note":"x"}}`)
	require.Equal(t, "Which days?\nWhich note?", q.Text)
	end, err := run.Wait(w.ctx())
	require.NoError(t, err)
	result, _ := end.Results.Get("s")
	require.Contains(t, string(result), `"days":7`, "%s", end.JSON())
	require.Contains(t, string(result), `Kiel`)
	require.Contains(t, string(result), `"elicitation":{"form":{}}`)
	require.NotContains(t, string(result), `sampling`)
	require.Equal(t, 3, c.calls)

	c.lost = true
	run, err = w.Client().Submit(w.ctx(), []byte(bookPlan), client.SubmitOptions{})
	require.NoError(t, err)
	w.reply(run.ID(), 1, `{"city":"Kiel"}`) // which it knows nothing of any more
	w.reply(run.ID(), 2, `{"city":"Ulm"}`)
	w.reply(run.ID(), 3, `{"d":{"days":1},"n":{"note":"x"}}`)
	end, err = run.Wait(w.ctx())
	require.NoError(t, err)
	result, _ = end.Results.Get("s")
	require.Contains(t, string(result), `Ulm`, "%s", end.JSON())

	f := w.fails("web_book", `{"name":"page"}`)
	require.Equal(t, fault.ToolTerminal, f.Code)
	require.Contains(t, f.Hint, "open https://x.example")
}

// A server that asks nobody anything, and gives a state, is called again with that; one that goes on so fails the attempt,
// which may be tried again.
func TestAServerWantsToBeCalledAgain(t *testing.T) {
	t.Parallel()
	c := &clerk{}
	w := start(t, map[string]any{"web": webServer(t, c.server(), false, nil)})
	result := w.succeeds("web_book", `{"name":"busy"}`)
	require.JSONEq(t, `{"waited":"www","said":null}`, result)
	require.Equal(t, 4, c.calls)

	c.calls = 0
	f := w.fails("web_book", `{"name":"full"}`)
	require.Equal(t, fault.ToolFailed, f.Code)
	require.Contains(t, f.Message, "again 8 times")
	require.Zero(t, c.calls%9, "each attempt calls it once and 8 times again")
}

// A file may say that a tool asks nobody: then nothing is declared, and what it asks is an error as of one that can't.
func TestAToolThatMayNotAsk(t *testing.T) {
	t.Parallel()
	c := &clerk{}
	entry := webServer(t, c.server(), false, nil)
	entry["x-stepjet"] = map[string]any{"allow_private": true, "tools": map[string]any{"book": map[string]any{"x-orchestration": map[string]any{"asks": false}}}}
	w := start(t, map[string]any{"web": entry})
	f := w.fails("web_book", `{"name":"x"}`)
	require.Equal(t, fault.ToolTerminal, f.Code)
	require.Contains(t, f.Hint, "ask")
	require.Equal(t, 1, c.calls)
	require.NotContains(t, c.declared, "elicitation")
}

// A task that asks waits at its server: it is told what was said, and polled for again, by whichever worker.
func TestATaskAsks(t *testing.T) {
	t.Parallel()
	j, s := newJobs()
	w := start(t, map[string]any{"web": webServer(t, s, false, nil)})
	run, err := w.Client().Submit(w.ctx(), jobPlan("asks"), client.SubmitOptions{})
	require.NoError(t, err)
	id := w.polled(j, "asks", 2)
	j.becomes(id, `{"status":"input_required","pollIntervalMs":1,"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Which city?","requestedSchema":`+cityForm+`}}}`)
	q := w.reply(run.ID(), 1, `{"city":"Kiel"}`)
	require.Equal(t, "Which city?", q.Text)
	require.NotContains(t, j.stands(id), "cancelled", "it waits for what is said")
	w.eventually("the task is told", func() bool { return j.updated(id) == `{"a":{"action":"accept","content":{"city":"Kiel"}}}` })
	j.becomes(id, jobDone)
	end, err := run.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, end.Status, "%s", end.JSON())
	require.Equal(t, 1, j.count("asks"), "it is called once")

	run, err = w.Client().Submit(w.ctx(), jobPlan("lost"), client.SubmitOptions{})
	require.NoError(t, err)
	id = w.polled(j, "lost", 2)
	j.becomes(id, `{"status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Which city?"}}}`)
	w.eventually("it asks", func() bool { _, err := w.Client().Question(w.ctx(), run.ID(), "s"); return err == nil })
	j.becomes(id, "") // its server was started anew
	w.reply(run.ID(), 1, `{}`)
	w.eventually("it is called again", func() bool { return j.count("lost") == 2 })
	j.becomes(w.polled(j, "lost", 1), jobDone)
	end, err = run.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, end.Status, "%s", end.JSON())
}

// A bridge that is killed loses nothing of a tool that asks: before the question stands, while somebody thinks, and while
// it tells the server what was said.
func TestKilledBridgesThatAsk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := fileOf(t, map[string]any{"s": childEntry(t, dir)})
	w := &world{Stack: stepjettest.New(t), t: t, file: file}
	cmd := spawn(t, w.URL(), file)
	kill := func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		cmd = spawn(t, w.URL(), file)
	}
	run, err := w.Client().Submit(w.ctx(), []byte(`{"steps":[{"id":"s","tool":"s_asks","arguments":{"name":"k"}}],"output_steps":["s"]}`), client.SubmitOptions{})
	require.NoError(t, err)
	began := func(what string) {
		w.eventually(what, func() bool { return exists(filepath.Join(dir, what+".began")) })
		kill()
		require.NoError(t, os.WriteFile(filepath.Join(dir, what+".go"), nil, 0o600))
	}
	began("k1")
	w.eventually("it asks", func() bool { _, err := w.Client().Question(w.ctx(), run.ID(), "s"); return err == nil })
	kill()
	w.reply(run.ID(), 1, `{"city":"Kiel"}`)
	began("k2")
	end, err := run.Wait(w.ctx())
	require.NoError(t, err)
	result, _ := end.Results.Get("s")
	require.Equal(t, `"in Kiel"`, string(result), "%s", end.JSON())
	doc, err := w.Client().Get(w.ctx(), run.ID())
	require.NoError(t, err)
	require.Equal(t, 2, doc.Steps[0].Attempts)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}
