package orchestrator_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnAgentSeesItsCallersBlackboard, as of the record that began it; what it adds is its caller's too, once it is over and
// where that captures it. Who takes the run over comes to the same.
func TestAnAgentSeesItsCallersBlackboard(t *testing.T) {
	t.Parallel()
	for _, captures := range []bool{false, true} {
		s := start(t)
		x := s.plays("planner",
			`{"steps":[{"id":"mine","tool":"keep","arguments":{"n":1}}]}`,
			`{"steps":[{"id":"gate","tool":"gate"},{"id":"b","tool":"below","depends_on":["gate"]},{"id":"late","tool":"keep","depends_on":["b"],"arguments":{"n":3}},
				{"id":"again","tool":"below","depends_on":["late"]}]}`,
			`{"output":1}`)
		y := s.plays("second", `{"steps":[{"id":"all","tool":"blackboard"}]}`, `{"steps":[{"id":"last","tool":"blackboard_last","arguments":{"type":"Note"}},{"id":"own","tool":"keep","arguments":{"n":"$ref:last.n"}}]}`, `{"output":2}`)
		capture := map[bool]string{true: `"capture_nested":true,`}[captures]
		const keep = `{"tool":"echo","as":"keep","artifact":{"type":"a.Note"}}`
		s.agent("below", "", `{"planner":{"tool":"second","mode":"plan"},"tools":["blackboard",`+keep+`]}`)
		s.agent("above", "", `{"planner":{"tool":"planner","mode":"plan"},`+capture+`"tools":["gate","below",`+keep+`]}`)
		r := s.submit(`{"steps":[{"id":"a","tool":"above"}]}`, "boards")
		<-s.tools.begun
		s.orchestrator()
		s.leave()
		close(s.tools.gate)
		o := s.wait(r)
		require.JSONEq(t, `1`, result(t, o, "a"), "%s", o.JSON())
		names := func(asked map[string]json.RawMessage) (all []string) {
			var f struct{ Artifacts []struct{ Name string } }
			require.NoError(t, json.Unmarshal(asked["facts"], &f))
			for _, a := range f.Artifacts {
				all = append(all, a.Name)
			}
			return all
		}
		require.Equal(t, []string{"Note"}, names(y.asked[0]))
		require.Equal(t, []string{"Note", "Note_2"}, names(y.asked[2]), "its own is behind its caller's")
		if captures {
			require.Equal(t, []string{"Note", "Note_2", "Note_3"}, names(y.asked[3]))
			require.Equal(t, []string{"Note", "Note_2", "Note_3", "Note_4"}, names(x.asked[2]))
		} else {
			require.Equal(t, []string{"Note", "Note_2"}, names(y.asked[3]), "what the first has added is its own")
			require.Equal(t, []string{"Note", "Note_2"}, names(x.asked[2]))
		}
		require.Contains(t, string(y.asked[5]["rounds"]), `"tool":"keep","arguments":{"n":3}`, "the last is the one that its caller had then")
	}
}
