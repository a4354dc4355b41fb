package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// bounded is a world whose tokens name groups: web holds greet, polite, which calls it, and sly and scout, which reach
// out of it; sums holds number; and late is in none.
func bounded(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil)
	w.stack.Host(func(k *worker.Worker) {
		worker.Handle(k, "thinks", func(context.Context, map[string]any) (json.RawMessage, error) {
			return json.RawMessage(`{"output": "thought"}`), nil
		})
		worker.Handle(k, "late", func(context.Context, struct{}) (int, error) { return 1, nil },
			worker.Contract(tool.Orchestration{Extra: map[string]json.RawMessage{"task": json.RawMessage(`"required"`)}}))
	})
	for _, definition := range []string{
		`{"name": "polite", "plan": {"steps": [{"id": "a", "tool": "greet", "arguments": {"name": "Ada"}}], "output": "$ref:a.text"}}`,
		`{"name": "sly", "plan": {"steps": [{"id": "a", "tool": "number"}], "output": "$ref:a"}}`,
		`{"name": "guide", "agent": {"planner": {"tool": "thinks", "mode": "plan"}, "tools": ["greet"]}}`,
		`{"name": "scout", "agent": {"planner": {"tool": "thinks", "mode": "plan"}, "tools": ["greet", "number"]}}`,
	} {
		_, err := w.stack.Client().ApplyTemplate(t.Context(), []byte(definition))
		require.NoError(t, err)
	}
	w.group(t, `{"role": "web", "tools": ["greet", "polite", "sly", "guide", "scout", "thinks"], "permissions": ["internet"]}`)
	w.group(t, `{"role": "sums", "tools": ["number"]}`)
	var tokens []string
	for name, groups := range map[string]string{"all": "", "web": `, "group:web"`, "both": `, "group:web", "group:sums"`, "nobody": `, "group:nobodys"`} {
		tokens = append(tokens, fmt.Sprintf(`{"sha256": %q, "tenant": "default", "name": %q, "scopes": ["plans:run", "plans:read"%s]}`, sum(name), name, groups))
	}
	auth, err := server.ParseAuth([]byte(`{"tokens": [` + strings.Join(tokens, ",") + `]}`))
	require.NoError(t, err)
	b := w.beside(t, func(c *server.Config) {
		c.Auth, c.Keys, c.TaskAfter = auth, task.Keys{[]byte("0123456789abcdef")}, time.Minute
	})
	require.Eventually(t, func() bool { return len(b.sees(t, "all")) == 12 }, 20*time.Second, 10*time.Millisecond, b.sees(t, "all"))
	return b
}

// sees returns the names of the exposed tools that are listed for a token.
func (w *world) sees(t *testing.T, token string) (names []string) {
	t.Helper()
	for _, one := range field[[]struct{ Name string }](t, w.send(t, bearer(token, request{method: "tools/list"})), "tools") {
		if !slices.Contains([]string{"cancel_plan", "execute_tool_plan", "get_plan_result", "search_tools"}, one.Name) {
			names = append(names, one.Name)
		}
	}
	return names
}

// told returns what a call came to, as text.
func told(t *testing.T, a answer) string {
	t.Helper()
	items := field[[]struct{ Text string }](t, a, "content")
	require.NotEmpty(t, items, a.Body)
	return items[0].Text
}

func TestAScopeOfAGroupBoundsWhatIsSeen(t *testing.T) {
	t.Parallel()
	w := bounded(t)
	for _, c := range []struct {
		token string
		sees  []string
	}{
		{"web", []string{"greet", "guide", "polite", "scout", "sly", "thinks"}},
		{"both", []string{"greet", "guide", "number", "polite", "scout", "sly", "thinks"}},
		{"nobody", nil},
	} {
		assert.Equal(t, c.sees, w.sees(t, c.token), c.token)
		a := w.send(t, bearer(c.token, request{method: "tools/list"}))
		listed := field[[]struct{ Name, Description string }](t, a, "tools")
		i := slices.IndexFunc(listed, func(one struct{ Name, Description string }) bool { return one.Name == "execute_tool_plan" })
		require.GreaterOrEqual(t, i, 0, "plans are there all the same")
		for _, name := range []string{"greet", "number", "counting"} {
			assert.Equal(t, slices.Contains(c.sees, name), strings.Contains(listed[i].Description, name+"("), "%s: the guide of plans, %s", c.token, name)
			found := told(t, w.send(t, bearer(c.token, tools("search_tools", map[string]any{"query": name, "limit": 20}))))
			assert.Equal(t, slices.Contains(c.sees, name), strings.Contains(found, `"name":"`+name+`"`), "%s: a search for %s", c.token, name)
		}
	}
	search := func(token, group string) string {
		return told(t, w.send(t, bearer(token, tools("search_tools", map[string]any{"query": "number greet", "group": group}))))
	}
	assert.Contains(t, search("both", "sums"), `"name":"number"`)
	other := search("web", "sums")
	assert.Contains(t, other, "there is no group")
	assert.Contains(t, other, "there are: web", "and of others it is not told")
	assert.Contains(t, search("all", "sums"), `"name":"number"`)

	// What a group holds counts as it is now.
	w.group(t, `{"role": "web", "tools": ["many"]}`)
	assert.Equal(t, []string{"many"}, w.sees(t, "web"))
}

func TestAScopeOfAGroupBoundsWhatIsCalled(t *testing.T) {
	t.Parallel()
	w := bounded(t)
	ada := map[string]any{"name": "Ada"}
	for _, c := range []struct {
		token, tool string
		arguments   any
		want        string // in the result; a code of a fault; "unknown": there is no such tool
	}{
		{"all", "greet", ada, "hello Ada"}, {"web", "greet", ada, "hello Ada"}, {"nobody", "greet", ada, "unknown"},
		{"all", "number", nil, "12345678901234567890.10"}, {"web", "number", nil, "unknown"}, {"both", "number", nil, "12345678901234567890.10"},
		{"web", "late", nil, "unknown"}, {"both", "late", nil, "unknown"}, {"web", "never_heard_of", nil, "unknown"},
		{"web", "polite", nil, "hello Ada"}, {"web", "guide", nil, "thought"},
		{"web", "sly", nil, string(fault.NotPermitted)}, {"both", "sly", nil, "12345678901234567890.10"},
		{"web", "scout", nil, string(fault.NotPermitted)}, {"both", "scout", nil, "thought"},
	} {
		a := w.send(t, bearer(c.token, tools(c.tool, c.arguments)))
		if c.want == "unknown" {
			require.NotNil(t, a.Error, "%s %s: %s", c.token, c.tool, a.Body)
			assert.Equal(t, int64(-32602), a.Error.Code, "%s %s", c.token, c.tool)
		} else {
			assert.Contains(t, told(t, a), c.want, "%s %s", c.token, c.tool)
		}
		step := map[string]any{"id": "a", "tool": c.tool, "arguments": c.arguments}
		if c.arguments == nil {
			delete(step, "arguments")
		}
		for place, steps := range map[string]any{
			"": []any{step}, "a sub-plan": []any{map[string]any{"id": "s", "plan": map[string]any{"steps": []any{step}, "output": "$ref:a"}}},
		} {
			want := c.want
			if want == "unknown" {
				want = string(fault.NotPermitted)
			}
			if c.tool == "never_heard_of" {
				want = string(fault.UnknownTool)
			}
			said := told(t, w.send(t, bearer(c.token, tools("execute_tool_plan", map[string]any{"steps": steps}))))
			assert.Contains(t, said, want, "%s %s in a plan %s", c.token, c.tool, place)
			if c.tool == "never_heard_of" {
				assert.NotContains(t, said, "number", "no tool of others is named")
			}
		}
	}
	undeclared := tools("late", nil)
	undeclared.tasks = false
	for token, code := range map[string]int64{"all": -32021, "web": -32602} {
		a := w.send(t, bearer(token, undeclared))
		require.NotNil(t, a.Error, a.Body)
		assert.Equal(t, code, a.Error.Code, "that there is such a tool is not told")
	}
	asked := w.send(t, bearer("web", tools("execute_tool_plan", json.RawMessage(`{"run": "q", "steps": [
		{"id": "a", "tool": "ask", "arguments": {"question": "Which?"}, "timeout": "1ms"}]}`))))
	assert.NotContains(t, asked.Body, string(fault.NotPermitted), "to ask is no tool")
}

func TestScopesOfGroupsAreRead(t *testing.T) {
	t.Parallel()
	for scopes, good := range map[string]bool{
		`"plans:run", "group:web"`: true, `"group:"`: false, `"group:a b"`: false, `"groups:web"`: false,
		`"group:a"` + strings.Repeat(`, "group:b"`, 64): false,
	} {
		_, err := server.ParseAuth([]byte(`{"tokens": [{"sha256": "` + sum("x") + `", "tenant": "a", "scopes": [` + scopes + `]}]}`))
		assert.Equal(t, good, err == nil, "%s: %v", scopes, err)
	}
	i := newIssuer(t)
	w := guarded(t, i, answeredAtOnce)
	_, err := client.GroupsOf(w.stack.Client()).Apply(t.Context(), []byte(`{"role": "web", "tools": ["greet"]}`))
	require.NoError(t, err)
	for scope, want := range map[string]int{
		"plans:run group:web": http.StatusOK, "plans:run": http.StatusOK, "group:web": http.StatusForbidden,
		"plans:run group:": http.StatusUnauthorized, "plans:run group:a/b": http.StatusUnauthorized,
	} {
		a := w.send(t, bearer(i.token(map[string]any{"tenant": "acme", "scope": scope}), tools("greet", named{"Ada"})))
		assert.Equal(t, want, a.Status, "%s: %s", scope, a.Body)
		assert.Equal(t, want == http.StatusOK, strings.Contains(a.Body, "hello Ada"), scope)
	}
	a := w.send(t, bearer(i.token(map[string]any{"tenant": "acme", "scope": "plans:run group:web"}), tools("number", nil)))
	require.NotNil(t, a.Error, a.Body)
	assert.Equal(t, int64(-32602), a.Error.Code)
}
