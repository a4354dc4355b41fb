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

// TestAnAgentSeesTheBlackboardAsItBegan: what its caller's other calls add while it goes on is not on its own, in no round, and
// is for who begins behind it.
func TestAnAgentSeesTheBlackboardAsItBegan(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"mine","tool":"keep","arguments":{"n":1}}]}`,
		`{"steps":[{"id":"b","tool":"below"},{"id":"side","tool":"keep","arguments":{"n":2}},{"id":"gate","tool":"gate","depends_on":["side"]},{"id":"next","tool":"below","depends_on":["gate"]}]}`,
		`{"output":1}`)
	list := `{"steps":[{"id":"l","tool":"blackboard_list"},{"id":"n","tool":"blackboard_count","arguments":{"type":"Note"}}]}`
	y := s.plays("second", `{"steps":[{"id":"all","tool":"blackboard"}]}`, list, `{"output":2}`)
	first := true
	y.before = func(round int) {
		switch {
		case round == 0 && first: // once what stands beside it has been recorded
			<-s.tools.begun
		case round == 2 && first:
			first = false
			close(s.tools.gate)
		}
	}
	const keep = `{"tool":"echo","as":"keep","artifact":{"type":"a.Note"}}`
	s.agent("below", "", `{"planner":{"tool":"second","mode":"plan"},"tools":["blackboard"]}`)
	s.agent("above", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","below",`+keep+`]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"above"}]}`, "beside")
	require.JSONEq(t, `1`, result(t, o, "a"), "%s", o.JSON())
	boards := func(asked map[string]json.RawMessage) (names []string) {
		var f struct{ Artifacts []struct{ Name string } }
		require.NoError(t, json.Unmarshal(asked["facts"], &f))
		for _, a := range f.Artifacts {
			names = append(names, a.Name)
		}
		return names
	}
	for n := range 3 {
		require.Equal(t, []string{"Note"}, boards(y.asked[n]), "round %d", n)
		require.Equal(t, []string{"Note", "Note_2"}, boards(y.asked[3+n]), "of the next, round %d", n)
	}
	require.Contains(t, string(y.asked[2]["rounds"]), `"result":[{"index":0,"name":"Note","type":"a.Note","bytes":7}]`)
	require.Contains(t, string(y.asked[2]["rounds"]), `"tool":"blackboard_count","arguments":{"type":"Note"},"status":"succeeded","result":1`)
	require.Equal(t, []string{"Note", "Note_2"}, boards(x.asked[2]))
}
