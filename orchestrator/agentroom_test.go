package orchestrator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// manyCalls writes n steps for a tool, without what stands around them.
func manyCalls(tool string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"id":"c%d","tool":%q,"arguments":{"n":%d}}`, i, tool, i))
	}
	return strings.Join(all, ",")
}

// TestARoundHasRoomForSoManyCalls: at most so many calls of a round are under way as its definition says, 16 where it says nothing,
// whatever the answer would have; an answer may ask for fewer. The items of its lists, and the calls of plans within it, count.
func TestARoundHasRoomForSoManyCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		definition, answer string
		calls, most        int
	}{
		"default":     {"", `{"steps":[` + manyCalls("crowd", 40) + `]}`, 40, 16},
		"definition":  {`,"concurrency":3`, `{"steps":[` + manyCalls("crowd", 9) + `]}`, 9, 3},
		"asked":       {`,"concurrency":3`, `{"steps":[` + manyCalls("crowd", 9) + `],"concurrency":50}`, 9, 3},
		"asked fewer": {`,"concurrency":3`, `{"steps":[` + manyCalls("crowd", 9) + `],"concurrency":2}`, 9, 2},
		"list":        {`,"concurrency":3`, `{"steps":[{"id":"l","tool":"crowd","arguments":{"n":"$ref:item"},"for_each":{"in":[1,2,3,4,5,6,7,8]}}]}`, 8, 3},
		"plan":        {`,"concurrency":3`, `{"steps":[{"id":"p","plan":{"steps":[` + manyCalls("crowd", 6) + `],"concurrency":6}},{"id":"x","tool":"crowd"},{"id":"y","tool":"crowd"}]}`, 8, 3},
		"commands":    {`,"concurrency":2`, `{"execution_commands":[` + strings.TrimSuffix(strings.Repeat(`{"purpose":"p","tool_name":"crowd","tool_kwargs":{}},`, 5), ",") + `]}`, 5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			at := newCrowd()
			at.host(s, "crowd", &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 64})
			s.plays("planner", c.answer, `{"output":"done"}`)
			s.agent("busy", "", `{"planner":{"tool":"planner"},"tools":["crowd"]`+c.definition+`}`)
			r := s.submit(`{"steps":[{"id":"a","tool":"busy"}]}`, "room")
			for gone := 0; gone < c.calls; gone++ {
				want := min(c.most, c.calls-gone)
				require.Eventually(t, func() bool { return at.of("room") >= want }, patience, time.Millisecond, "%d are over", gone)
				require.LessOrEqual(t, at.of("room"), c.most)
				at.pass("room", 1)
				require.Eventually(t, func() bool { return len(at.gate("room")) == 0 }, patience, time.Millisecond)
			}
			require.JSONEq(t, `"done"`, result(t, s.wait(r), "a"))
		})
	}
}

// TestWhatBeginsEarlyHasRoomForSoManyCalls: so do the calls that begin while the planner writes.
func TestWhatBeginsEarlyHasRoomForSoManyCalls(t *testing.T) {
	t.Parallel()
	s := start(t)
	at := newCrowd()
	at.host(s, "crowd", &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 64})
	full := make(chan struct{})
	s.writes("planner", nil, func(_ context.Context, n int, out *worker.Stream) (string, error) {
		if n > 1 {
			return `{"output":"done"}`, nil
		}
		said := `{"steps":[` + manyCalls("crowd", 8)
		out.Text(said)
		<-full
		return said + `]}`, nil
	})
	s.agent("busy", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["crowd"],"stream_plan":true,"concurrency":3}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"busy"}]}`, "room")
	for gone := range 8 {
		want := min(3, 8-gone)
		require.Eventually(t, func() bool { return at.of("room") >= want }, patience, time.Millisecond, "%d are over", gone)
		require.LessOrEqual(t, at.of("room"), 3)
		at.pass("room", 1)
		require.Eventually(t, func() bool { return len(at.gate("room")) == 0 }, patience, time.Millisecond)
		if gone == 2 {
			close(full)
		}
	}
	require.JSONEq(t, `"done"`, result(t, s.wait(r), "a"))
}

// TestWhatAnAgentAnswersItselfIsNoTool: what its entries process and blackboard open is there in its loop alone. A plan that
// calls such a thing is refused with what it lacks; nothing is run.
func TestWhatAnAgentAnswersItselfIsNoTool(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, code := range map[string]fault.Code{
		"process_status": fault.UnknownTool, "process_budget": fault.UnknownTool, "blackboard_list": fault.UnknownTool, "progress": fault.UnknownTool,
		"communicate": fault.UnknownTool, "search_tools": fault.UnknownTool, "execute_tool_plan": fault.RecursivePlan,
	} {
		o := s.run(`{"steps":[{"id":"a","tool":"`+name+`"}]}`, "no-"+name)
		require.Equal(t, outcome.Rejected, o.Status, name)
		require.Len(t, o.Problems, 1, "%s", o.JSON())
		require.Equal(t, code, o.Problems[0].Code, "%s", o.JSON())
	}
}
