package orchestrator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// filled returns steps with their number, and with what they come after.
func filled(steps, number, after string) string {
	return strings.NewReplacer("%", number, "@", after).Replace(steps)
}

// account is what a planner is told by the entries of process in one round.
type account struct {
	Left struct {
		Steps, Tokens struct{ Limit, Left int64 }
		Cost          struct{ Limit, Left float64 } `json:"cost_usd"`
	}
	Cost struct {
		Steps  int64
		Calls  int64   `json:"model_calls"`
		In     int64   `json:"input_tokens"`
		Out    int64   `json:"output_tokens"`
		Amount float64 `json:"cost_usd"`
	}
	Who json.RawMessage
}

// TestAnAccountAgreesWithTheBudget that the planner's requests tell of, and in itself: what was reserved for an answer that said
// nothing of what it took stays taken, the answer that asks is counted, and so are agents below, as of the record that made the
// call ready: what one may use up that goes on is not left, and of one that is over what it has used up counts.
func TestAnAccountAgreesWithTheBudget(t *testing.T) {
	t.Parallel()
	s := start(t)
	asks := `{"id":"b%","tool":"process_budget","depends_on":["@"]},{"id":"c%","tool":"process_cost","depends_on":["@"]},{"id":"w%","tool":"process_models","depends_on":["@"]},
		{"id":"all%","value":{"left":"$ref:b%","cost":"$ref:c%","who":"$ref:w%"}}`
	took := `"usage":{"model":"large","input_tokens":100,"output_tokens":10,"cost_usd":0.01},`
	lower := s.plays("lower", `{`+took+`"steps":[{"id":"gate","tool":"gate"},{"id":"open","tool":"process"}]}`,
		`{"usage":{"model":"small","input_tokens":7},"steps":[{"id":"e","tool":"echo"},`+filled(asks, "", "e")+`],"output":"$ref:all"}`)
	x := s.plays("planner", `{"steps":[{"id":"e","tool":"echo"},{"id":"open","tool":"process"}]}`,
		`{`+took+`"steps":[{"id":"e","tool":"echo"},{"id":"below","tool":"below","depends_on":["e"]},`+filled(asks, "1", "e")+`,`+filled(asks, "2", "below")+`,
			{"id":"came","value":["$ref:all1","$ref:all2","$ref:below"]}],"output":"$ref:came"}`)
	s.agent("below", "", `{"planner":{"tool":"lower","mode":"plan"},"tools":["gate","echo","process"]}`)
	s.agent("payer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo","below","process"],"budget":{"tokens":1000000,"cost_usd":9,"steps":100}}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"payer"}]}`, "accounts")
	<-s.tools.begun
	close(s.tools.gate)
	o := s.wait(r)
	var came []account
	require.NoError(t, json.Unmarshal([]byte(result(t, o, "a")), &came), "%s", o.JSON())
	require.Len(t, came, 3)
	left := func(asked map[string]json.RawMessage) (tokens int64) {
		var b struct{ Tokens int64 }
		require.NoError(t, json.Unmarshal(asked["budget"], &b))
		return b.Tokens
	}

	before, share := left(x.asked[1]), left(lower.asked[0])
	require.Less(t, before, int64(1_000_000-4096), "the first answer keeps its reservation")
	during, after, below := came[0], came[1], came[2]
	require.Equal(t, int64(1_000_000), during.Left.Tokens.Limit)
	require.Equal(t, before-110-share, during.Left.Tokens.Left, "the answer that asks is counted, and the one below goes on")
	require.Equal(t, []int64{3, 2, 100, 10}, []int64{during.Cost.Steps, during.Cost.Calls, during.Cost.In, during.Cost.Out})
	require.JSONEq(t, `[{"model":"planner","answers":1,"tokens":0,"cost_usd":0},{"model":"large","answers":1,"tokens":110,"cost_usd":0.01}]`, string(during.Who))

	require.Equal(t, before-110-110-7, after.Left.Tokens.Left, "the one below has left what it did not use up")
	require.InDelta(t, 9-0.02, after.Left.Cost.Left, 1e-9)
	require.Equal(t, []int64{4, 207, 20}, []int64{after.Cost.Calls, after.Cost.In, after.Cost.Out})
	require.Equal(t, int64(100)-after.Cost.Steps, after.Left.Steps.Left)
	require.JSONEq(t, `[{"model":"planner","answers":1,"tokens":0,"cost_usd":0},{"model":"large","answers":2,"tokens":220,"cost_usd":0.02},
		{"model":"small","answers":1,"tokens":7,"cost_usd":0}]`, string(after.Who))

	require.Equal(t, share, below.Left.Tokens.Limit, "the share of what the one above has")
	require.Equal(t, left(lower.asked[1])-7, below.Left.Tokens.Left)
	require.Equal(t, []int64{2, 107, 10}, []int64{below.Cost.Calls, below.Cost.In, below.Cost.Out})
}
