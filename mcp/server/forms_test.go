package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/mcp/server"
)

const (
	older     = "2025-11-25"
	askedPlan = `{"run": "asked", "steps": [{"id": "more", "tool": "ask", "arguments": {"question": "Which colour?", "choices": ["red", "blue"]}}]}`
)

// slowly is a client's user who takes as long as the test says.
type slowly struct {
	asked, withdrawn atomic.Int32
	says             chan *mcp.ElicitResult
}

func (p *slowly) options(t *testing.T) *mcp.ClientOptions {
	p.says = make(chan *mcp.ElicitResult)
	return &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.asked.Add(1)
		select {
		case said := <-p.says:
			return said, nil
		case <-t.Context().Done(): // the SDK's client waits for its user when it is closed
			return nil, t.Context().Err()
		case <-ctx.Done():
			p.withdrawn.Add(1)
			return nil, ctx.Err()
		}
	}}
}

// soon waits until a number is what it should be.
func soon(t *testing.T, want int32, n *atomic.Int32, what string) {
	t.Helper()
	require.Eventually(t, func() bool { return n.Load() == want }, 20*time.Second, 5*time.Millisecond, what)
}

// hurried is a server whose calls don't wait long.
func hurried(c *server.Config) { c.Hold = time.Second }

// shown starts a run whose question stays before the user of a client after the call has returned, and returns the run.
func (w *world) shown(t *testing.T, s *mcp.ClientSession, p *slowly) string {
	t.Helper()
	res := call(t, s, "execute_tool_plan", plan(t, askedPlan))
	var said struct{ Run, Status string }
	require.NoError(t, json.Unmarshal([]byte(textOf(t, res)), &said))
	require.Equal(t, "running", said.Status)
	require.Equal(t, int32(1), p.asked.Load())
	return said.Run
}

// TestAFormOutlivesItsCall: an answer counts that comes after the call which asked has returned, and meanwhile it isn't
// asked for again.
func TestAFormOutlivesItsCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hurried)
	for _, during := range []bool{true, false} { // whether a call waits when the answer comes
		p := &slowly{}
		s := w.connect(older, p.options(t))
		arguments := plan(t, strings.Replace(askedPlan, `"asked"`, fmt.Sprintf(`"asked-%v"`, during), 1))
		assert.Contains(t, textOf(t, call(t, s, "execute_tool_plan", arguments)), `"running"`)
		name := map[string]any{"run": arguments["run"]}
		for range 2 {
			assert.Contains(t, textOf(t, call(t, s, "get_plan_result", name)), `"running"`)
		}
		assert.Zero(t, p.withdrawn.Load(), "it is open all the time")
		if during {
			go func() { p.says <- accept(map[string]any{"answer": "blue"}) }()
		} else {
			p.says <- accept(map[string]any{"answer": "blue"})
		}
		var text string
		require.Eventually(t, func() bool {
			text = textOf(t, call(t, s, "get_plan_result", name))
			return !strings.Contains(text, `"running"`)
		}, 20*time.Second, time.Millisecond)
		assert.Contains(t, text, `"more":"blue"`)
		assert.Equal(t, int32(1), p.asked.Load())
		assert.Zero(t, p.withdrawn.Load())
	}
}

// TestAFormEndsWithItsQuestion: it is withdrawn when somebody else has answered, or the run is over.
func TestAFormEndsWithItsQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hurried)
	c := w.stack.Client()
	for i, end := range []func(run string) error{
		func(run string) error {
			q, err := c.Question(t.Context(), run, "more")
			if err == nil {
				_, err = c.Answer(t.Context(), q, json.RawMessage(`"red"`), client.Answer{})
			}
			return err
		},
		func(run string) error { _, err := c.Cancel(t.Context(), run, "somebody"); return err },
	} {
		p := &slowly{}
		s := w.connect(older, p.options(t))
		text := textOf(t, call(t, s, "execute_tool_plan", plan(t, strings.Replace(askedPlan, `"asked"`, fmt.Sprintf(`"asked-%d"`, i), 1))))
		var said struct{ Run string }
		require.NoError(t, json.Unmarshal([]byte(text), &said))
		require.NoError(t, end(said.Run))
		soon(t, 1, &p.withdrawn, "it is withdrawn")
		assert.Equal(t, int32(1), p.asked.Load())
	}
}

// TestAFormEndsWithItsSession: neither a client that ends its session, nor one that says nothing more, nor a server that
// stops waits for an answer.
func TestAFormEndsWithItsSession(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(*world, *mcp.ClientSession){
		"ended": func(w *world, s *mcp.ClientSession) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.url, nil)
			require.NoError(t, err)
			req.Header.Set("Mcp-Protocol-Version", older)
			req.Header.Set("Mcp-Session-Id", s.ID())
			res, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
		},
		"silent":  func(*world, *mcp.ClientSession) {},
		"stopped": func(w *world, _ *mcp.ClientSession) { w.s.Close() },
	} {
		w := newWorld(t, func(c *server.Config) {
			hurried(c)
			if what == "silent" {
				server.Shorten(c, 0, 2*time.Second)
			}
		})
		p := &slowly{}
		s := w.connect(older, p.options(t))
		w.shown(t, s, p)
		require.Equal(t, 1, w.s.Forms(), what)
		began := time.Now()
		end(w, s)
		require.Eventually(t, func() bool { return w.s.Forms() == 0 }, 20*time.Second, 5*time.Millisecond, what)
		if what != "stopped" {
			require.Eventually(t, func() bool { return w.s.Sessions() == 0 }, 20*time.Second, 5*time.Millisecond, what)
		}
		assert.Less(t, time.Since(began), 15*time.Second, what)
	}
}

// TestAFormEndsWithACancelledCall: and the run of a caller that named it goes on.
func TestAFormEndsWithACancelledCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	p := &slowly{}
	s := w.connect(older, p.options(t))
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "execute_tool_plan", Arguments: plan(t, askedPlan)})
		assert.Error(t, err)
	}()
	soon(t, 1, &p.asked, "it is asked")
	cancel()
	<-over
	soon(t, 1, &p.withdrawn, "it is withdrawn")
	go func() { p.says <- accept(map[string]any{"answer": "red"}) }()
	assert.Contains(t, textOf(t, call(t, s, "get_plan_result", map[string]any{"run": "asked"})), `"more":"red"`)
	assert.Equal(t, int32(2), p.asked.Load(), "asked anew")
}

// TestASessionHasSoManyForms: more questions wait until there is room.
func TestASessionHasSoManyForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hurried)
	p := &slowly{}
	s := w.connect(older, p.options(t))
	over := make(chan string)
	for i := range 20 {
		go func() {
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{
				Name: "execute_tool_plan", Arguments: plan(t, strings.Replace(askedPlan, `"asked"`, fmt.Sprintf(`"asked-%d"`, i), 1)),
			})
			if assert.NoError(t, err) {
				over <- res.Content[0].(*mcp.TextContent).Text
			} else {
				over <- ""
			}
		}()
	}
	for range 20 {
		assert.Contains(t, <-over, `"running"`)
	}
	soon(t, 16, &p.asked, "sixteen are asked")
	require.Eventually(t, func() bool { // all runs ask by now, however slow the machine is
		all, err := w.stack.Client().Questions(t.Context(), "")
		return err == nil && len(all) == 20
	}, 20*time.Second, 5*time.Millisecond)
	assert.Equal(t, 16, w.s.Forms())
	assert.Equal(t, int32(16), p.asked.Load())
}

// strict is a client whose user's answers reach the server as they are: the SDK's own would hold some back.
type strict struct {
	says     func(n int) *mcp.ElicitResult
	messages []string
	call     func(name, arguments string) string
}

func (c *strict) asked(message string) *mcp.ElicitResult {
	c.messages = append(c.messages, message)
	return c.says(len(c.messages))
}

// strict connects one.
func (w *world) strict(t *testing.T, version string, says func(int) *mcp.ElicitResult) *strict {
	t.Helper()
	c := &strict{says: says}
	if version != older {
		c.call = func(name, arguments string) string { return c.rounds(t, w, name, arguments) }
		return c
	}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, (&person{}).options())
	sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if asked, is := req.(*mcp.ElicitRequest); is {
				return c.asked(asked.Params.Message), nil
			}
			return next(ctx, method, req)
		}
	})
	s, err := sdk.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	c.call = func(name, arguments string) string {
		res := call(t, s, name, json.RawMessage(arguments))
		assert.False(t, res.IsError)
		return textOf(t, res)
	}
	return c
}

// rounds calls a tool until nothing is asked any more.
func (c *strict) rounds(t *testing.T, w *world, name, arguments string) string {
	t.Helper()
	r := request{method: "tools/call", elicit: true, params: map[string]any{"name": name, "arguments": json.RawMessage(arguments)}}
	states := map[string]bool{}
	for {
		a := w.send(t, r)
		if field[string](t, a, "resultType") != "input_required" {
			assert.False(t, field[bool](t, a, "isError"), a.Body)
			content := field[[]struct{ Text string }](t, a, "content")
			require.NotEmpty(t, content, a.Body)
			return content[0].Text
		}
		state := field[string](t, a, "requestState")
		assert.False(t, states[state], "each state is new")
		states[state] = true
		responses := map[string]any{}
		for key, asked := range field[map[string]struct{ Params struct{ Message string } }](t, a, "inputRequests") {
			responses[key] = c.asked(asked.Params.Message)
		}
		r.params["requestState"], r.params["inputResponses"] = state, responses
	}
}

// TestARefusedAnswerIsAskedForAgain: the person is told why, and the call goes on with what is right.
func TestARefusedAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	wrong := map[int]*mcp.ElicitResult{
		1: accept(map[string]any{"answer": "gr\u202een\n"}), 2: accept(nil), 3: accept(map[string]any{"answer": strings.Repeat("x", 17<<10)}),
	}
	for _, version := range versions {
		c := w.strict(t, version, func(n int) *mcp.ElicitResult {
			if said := wrong[n]; said != nil {
				return said
			}
			return accept(map[string]any{"answer": "blue"})
		})
		assert.Contains(t, c.call("execute_tool_plan", strings.Replace(askedPlan, `"run": "asked", `, "", 1)), `"more":"blue"`, version)
		require.Len(t, c.messages, 4, version)
		assert.Equal(t, "Which colour?", c.messages[0])
		for i, want := range []string{`gr en  is none of the choices`, `the field "answer" is not filled in`, "xxx…"} {
			said := c.messages[i+1]
			assert.Contains(t, said, want)
			assert.True(t, strings.HasPrefix(said, "Not taken: ") && strings.HasSuffix(said, "\n\nWhich colour?"), said)
			assert.Less(t, len(said), 600)
		}
	}
}

// TestAnAnswerIsRefusedSoOften: then the caller reads so, and the run waits.
func TestAnAnswerIsRefusedSoOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		right := false
		c := w.strict(t, version, func(int) *mcp.ElicitResult {
			if right {
				return accept(map[string]any{"answer": "red"})
			}
			return accept(map[string]any{"answer": "green"})
		})
		text := c.call("execute_tool_plan", strings.Replace(askedPlan, `"asked"`, `"`+version+`"`, 1))
		var said struct{ Run, Status, Next, Refused string }
		require.NoError(t, json.Unmarshal([]byte(text), &said), text)
		assert.Equal(t, "running", said.Status, version)
		assert.Contains(t, said.Next, `get_plan_result with {"run": "`+said.Run+`"}`)
		assert.Equal(t, "green is none of the choices", said.Refused)
		assert.Len(t, c.messages, 5, version)
		right = true
		assert.Contains(t, c.call("get_plan_result", `{"run": "`+said.Run+`"}`), `"more":"red"`)
	}
}
