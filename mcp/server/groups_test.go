package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/worker"
)

// group sets what stands for a role.
func (w *world) group(t *testing.T, definition string) {
	t.Helper()
	_, err := client.GroupsOf(w.stack.Client()).Apply(t.Context(), []byte(definition))
	require.NoError(t, err)
}

// names returns the names of the tools that are listed.
func names(t *testing.T, s *mcp.ClientSession) (all []string) {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, one := range list.Tools {
		all = append(all, one.Name)
	}
	return all
}

// A group bounds what is found to its tools, as it stands when it is asked for; one that there is not is an answer
// that a model can mend.
func TestAGroupBoundsWhatIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Expose = nil })
	s := w.connect(versions[0], nil)
	find := func(query, group string) *mcp.CallToolResult {
		return call(t, s, "search_tools", map[string]any{"query": query, "group": group})
	}
	res := find("greet", "polite")
	assert.True(t, res.IsError)
	for _, part := range []string{`"invalid_arguments"`, `there is no group \"polite\"`, "there is none yet"} {
		assert.Contains(t, textOf(t, res), part)
	}

	w.group(t, `{"role": "polite", "tools": ["greet"]}`)
	w.group(t, `{"role": "other", "match": ["*"], "exclude": ["greet"]}`)
	w.group(t, `{"role": "ghosts", "tools": ["nobody_hosts_it"]}`)
	assert.Contains(t, textOf(t, find("greet", "polite")), `"name":"greet"`)
	assert.Contains(t, textOf(t, find("greet", "")), `"name":"greet"`)
	for _, group := range []string{"other", "ghosts"} {
		res = find("greet", group)
		assert.False(t, res.IsError)
		assert.JSONEq(t, `{"tools": []}`, textOf(t, res), group)
	}
	res = find("greet", "rude")
	assert.True(t, res.IsError)
	assert.Contains(t, textOf(t, res), "there are: ghosts, other, polite")
}

// What --expose says of groups follows the groups, and what is listed of a tool that stays is not touched.
func TestExposedGroupsAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.group(t, `{"role": "web", "tools": ["greet", "slow"]}`)
	w.group(t, `{"role": "secret", "tools": ["slow"]}`)
	gated := w.beside(t, func(c *server.Config) {
		some, err := selector.Parse("group:web,number,!group:secret")
		require.NoError(t, err)
		c.Expose = &some
	})
	s := gated.connect(versions[0], nil)
	mine := func() string {
		return strings.Join(slices.DeleteFunc(names(t, s), func(name string) bool {
			return slices.Contains([]string{"cancel_plan", "execute_tool_plan", "get_plan_result", "search_tools"}, name)
		}), " ")
	}
	assert.Equal(t, "greet number", mine())

	w.group(t, `{"role": "web", "tools": ["many", "slow"]}`)
	require.Eventually(t, func() bool { return mine() == "many number" }, 30*time.Second, 20*time.Millisecond)
	_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet", Arguments: named{"Ada"}})
	require.Error(t, err, "it is not offered any more")

	require.NoError(t, client.GroupsOf(w.stack.Client()).Remove(t.Context(), "secret", ""))
	require.Eventually(t, func() bool { return mine() == "many number slow" }, 30*time.Second, 20*time.Millisecond)
}

// Where there are too many tools to list them, the guide of plans names groups that hold some.
func TestTheGuideNamesGroupsWhereToolsAreMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Expose = nil })
	w.group(t, `{"role": "web", "tools": ["greet", "slow"], "description": "Reads pages."}`)
	w.group(t, `{"role": "ghosts", "tools": ["nobody_hosts_it"]}`)
	s := w.connect(versions[0], nil)
	guide := func() string {
		list, err := s.ListTools(t.Context(), nil)
		require.NoError(t, err)
		i := slices.IndexFunc(list.Tools, func(one *mcp.Tool) bool { return one.Name == "execute_tool_plan" })
		require.GreaterOrEqual(t, i, 0)
		return list.Tools[i].Description
	}
	assert.NotContains(t, guide(), "GROUPS")
	w.stack.Host(func(k *worker.Worker) {
		for i := range 100 {
			worker.Handle(k, fmt.Sprintf("spare%d", i), func(context.Context, struct{}) (int, error) { return i, nil })
		}
	})
	require.Eventually(t, func() bool { return strings.Contains(guide(), "GROUPS") }, 30*time.Second, 20*time.Millisecond)
	assert.Contains(t, guide(), "- web (2 tools): Reads pages.")
	assert.NotContains(t, guide(), "ghosts")
}
