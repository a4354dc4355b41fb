package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheAccountOfAnAgentHasItsToolLogs: of each command that was executed, as it was written, what came of it, also of an agent
// within another, of an item, and of rounds that its owner has let go of. Another owner comes to the same.
func TestTheAccountOfAnAgentHasItsToolLogs(t *testing.T) {
	t.Parallel()
	s := start(t)
	long := strings.Repeat("l", 5000)
	s.plays("planner",
		`{"next_action":"execute","execution_commands":[{"purpose":"Look","tool_name":"look","tool_kwargs":{"n":1},"todo_suggestion":"look twice","next":"add"},
			{"tool_name":"fail","tool_kwargs":{}},{"tool_name":"late","tool_kwargs":{"text":"abc"}}]}`,
		fmt.Sprintf(`{"tool_command":{"tool_name":"look","tool_kwargs":{"text":%q}}}`, long),
		`{"execution_commands":[{"tool_name":"gate"}]}`,
		`{"next_action":"response","text":"done"}`)
	s.plays("upper", `{"steps":[{"id":"x","tool":"desk","arguments":{}}]}`, `{"output":"above"}`)
	s.agent("desk", "", `{"planner":{"tool":"planner","mode":"commands"},"tools":[{"tool":"echo","as":"look"},"fail","gate",{"tool":"length","as":"late","needs":{"all":["gate"]}}]}`)
	s.agent("over", "", `{"planner":{"tool":"upper","mode":"plan"},"tools":["desk"]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"desk"},{"id":"o","tool":"over","depends_on":["a"]},{"id":"i","tool":"desk","depends_on":["o"],"for_each":{"in":[1]}}]}`, "logs")
	for n := range 3 {
		<-s.tools.begun
		if n == 0 {
			next := s.orchestrator()
			s.leave()
			s.leave = next
		}
		s.tools.gate <- struct{}{}
	}
	s.wait(r)
	doc := s.history("default", "logs")
	logs := doc.Steps[0].ToolLogs
	require.Len(t, logs, 5, "%s", doc.JSON())
	first, err := json.Marshal(logs[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"purpose":"Look","tool_name":"look","kwargs":{"n":1},"todo_suggestion":"look twice","next":"add","success":true,"result":{"n":1},"error":null}`, string(first))
	require.Equal(t, "Use fail", logs[1].Purpose)
	require.False(t, logs[1].Success)
	require.Contains(t, string(logs[1].Error), `"code"`)
	require.Equal(t, "null", string(logs[1].Result))
	require.Contains(t, string(logs[2].Error), `"locked"`)
	require.Less(t, len(logs[3].Kwargs), 2000, "a preview")
	require.Equal(t, "gate", logs[4].ToolName)
	require.Empty(t, doc.Steps[1].ToolLogs, "its planner writes plans")
	within := doc.Steps[1].Steps
	require.Equal(t, "o/=0/x", within[1].ID)
	require.Equal(t, logs, within[1].ToolLogs)
	require.Equal(t, logs, doc.Steps[2].Items[0].ToolLogs)
}
