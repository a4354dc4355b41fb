package server_test

import (
	"context"
	"encoding/json"
	"fmt"
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

// group applies a group of tools.
func (w *world) group(definition string) {
	w.t.Helper()
	_, err := client.GroupsOf(w.stack.Client()).Apply(w.t.Context(), []byte(definition))
	require.NoError(w.t, err)
}

// found searches, and returns the names of what is found.
func found(t *testing.T, s *mcp.ClientSession, arguments map[string]any) (names []string) {
	t.Helper()
	res := call(t, s, "search_tools", arguments)
	require.False(t, res.IsError, "%v", res.Content)
	var said struct{ Tools []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(textOf(t, res)), &said))
	for _, one := range said.Tools {
		names = append(names, one.Name)
	}
	return names
}

// TestAGroupIsSearched: what else fits the words stays out, however well it fits; and a group that there is not is told
// with those that there are.
func TestAGroupIsSearched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s := w.connect(versions[0], nil)
	res := call(t, s, "search_tools", map[string]any{"query": "greets", "group": "polite"})
	require.True(t, res.IsError)
	assert.Contains(t, textOf(t, res), "there is none yet")

	w.group(`{"role":"polite","tools":["greet"]}`)
	w.group(`{"role":"rude","tools":["fail","slow"]}`)
	assert.Equal(t, []string{"greet"}, found(t, s, map[string]any{"query": "greets somebody", "group": "polite"}))
	assert.Empty(t, found(t, s, map[string]any{"query": "greets somebody", "group": "rude"}))
	assert.Contains(t, found(t, s, map[string]any{"query": "greets somebody"}), "greet")
	res = call(t, s, "search_tools", map[string]any{"query": "greets", "group": "polit"})
	require.True(t, res.IsError)
	assert.Contains(t, textOf(t, res), `there is no group \"polit\"`)
	assert.Contains(t, textOf(t, res), "polite, rude")
}

// TestAGroupIsExposed: what --expose names as a group follows the group, which nobody tells of.
func TestAGroupIsExposed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		s, err := selector.Parse("group:polite,many")
		require.NoError(t, err)
		c.Expose = &s
	})
	s := w.connect(versions[0], nil)
	w.listed(t, s, "many")
	_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"})
	require.Error(t, err, "no group holds it yet")
	w.group(`{"role":"polite","tools":["greet"]}`)
	w.listed(t, s, "greet")
	require.NoError(t, client.GroupsOf(w.stack.Client()).Remove(t.Context(), "polite", "default"))
	require.Eventually(t, func() bool {
		all, err := s.ListTools(t.Context(), nil)
		require.NoError(t, err)
		for _, one := range all.Tools {
			if one.Name == "greet" {
				return false
			}
		}
		return true
	}, 30*time.Second, 50*time.Millisecond)
}

// TestTheGuideNamesGroups: where tools are too many to be listed, it says which groups can be searched.
func TestTheGuideNamesGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Expose = nil })
	w.stack.Host(func(k *worker.Worker) {
		for n := range 100 {
			worker.Handle(k, fmt.Sprint("crm_", n), func(context.Context, struct{}) (int, error) { return n, nil })
		}
	})
	w.group(`{"role":"crm","match":["crm_*"],"description":"Customers and what they ordered."}`)
	w.group(`{"role":"empty","tools":["nobody"]}`)
	s := w.connect(versions[0], nil)
	require.Eventually(t, func() bool {
		guide := w.listed(t, s, "execute_tool_plan").Description
		return strings.Contains(guide, "- crm (100 tools): Customers and what they ordered.") && !strings.Contains(guide, "- empty")
	}, 30*time.Second, 50*time.Millisecond)
	assert.Equal(t, []string{"crm_7"}, found(t, s, map[string]any{"query": "crm_7", "group": "crm", "limit": 1}))
}
