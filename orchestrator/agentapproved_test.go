package orchestrator_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

// asksAboutRound waits until somebody is asked about a round of an agent.
func (s *system) asksAboutRound(run, step string, round int) (q *outcome.Question) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var err error
		q, err = s.client.Question(ctx(s.t), run, step)
		return err == nil && q.Round != nil && *q.Round == round
	}, patience, 10*time.Millisecond)
	return q
}

// TestAPersonApprovesOfRounds: nothing of a round is called before somebody has approved of it, whoever owns the run. Of
// one that is refused nothing runs, and the planner is told why; a round that ends the loop asks nobody.
func TestAPersonApprovesOfRounds(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"pay","tool":"echo","arguments":{"amount":900}}]}`,
		`{"steps":[{"id":"pay","tool":"echo","arguments":{"amount":40}},{"id":"late","tool":"only_then"}]}`,
		`{"steps":[{"id":"v","value":"$ref:r1.pay.amount"}],"output":{"paid":"$ref:v"}}`)
	s.agent("pays", "", `{"planner":{"tool":"planner","mode":"plan"},"approval":{"ask":"May it pay?"},
		"tools":["echo",{"tool":"fail","as":"only_then","needs":{"all":["length"]}},"length"],"budget":{"steps":2}}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"pays"}]}`, "pays")
	first := s.asksAboutRound("pays", "a", 0)
	require.Equal(t, []any{outcome.Approval, "May it pay?", "pays", 1}, []any{first.Kind, first.Text, first.Tool, first.Number})
	require.JSONEq(t, `{"steps":[{"id":"pay","tool":"echo","arguments":{"amount":900}}]}`, string(first.Plan))
	doc, err := s.client.Get(ctx(t), "pays")
	require.NoError(t, err)
	require.Equal(t, "an approval of round 0", doc.Steps[0].Waiting)
	for _, a := range []client.Answer{{Arguments: []byte(`{"amount":1}`)}, {By: "ann"}} {
		q := *first
		if a.By != "" {
			q.Digest = "of another"
		}
		_, err = s.client.Approve(ctx(t), &q, a)
		require.Contains(t, []fault.Code{fault.InvalidValue, fault.Conflict}, fault.CodeOf(err), "%v", err)
	}
	s.orchestrator() // beside the first, which ends
	s.leave()
	for range 2 {
		stands, err := s.client.Reject(ctx(t), first, client.Answer{By: "ann", Reason: "too dear"})
		require.NoError(t, err)
		require.Equal(t, outcome.DecisionRejected, stands.Decision)
	}
	second := s.asksAboutRound("pays", "a", 1)
	require.JSONEq(t, `{"steps":[{"id":"pay","tool":"echo","arguments":{"amount":40}}]}`, string(second.Plan), "what is locked does not run")
	require.Equal(t, 2, second.Number)
	require.Zero(t, s.tools.total(), "nobody has approved of anything")
	_, err = s.client.Approve(ctx(t), first, client.Answer{})
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	_, err = s.client.Approve(ctx(t), second, client.Answer{By: "bob"})
	require.NoError(t, err)
	o := s.wait(r)
	require.JSONEq(t, `{"paid":40}`, result(t, o, "a"), "%s", o.JSON())
	require.Equal(t, 1, s.tools.total())
	require.Equal(t, []int{0, 1, 2}, x.times())
	require.Contains(t, string(x.asked[1]["rounds"]), `"problems":[{"code":"rejected","at":"","message":"Rejected by ann (unverified): too dear; nothing of this answer was run"`)
	require.Contains(t, string(x.asked[1]["budget"]), `"steps":2`, "what did not run is not used up")
	s.noQuestions()
	require.Contains(t, s.frozen("pays").Needs, wire.ApprovedRounds)
	doc = s.history("default", "pays")
	var said []string
	for _, st := range doc.Steps[0].Steps {
		if st.Answer != nil {
			said = append(said, st.ID, st.Answer.Decision, st.Answer.By)
		}
	}
	require.Equal(t, []string{"a/=0/=plan", outcome.DecisionRejected, "ann", "a/=1/=plan", outcome.DecisionApproved, "bob"}, said)
	stands, err := s.client.Approve(ctx(t), second, client.Answer{})
	require.NoError(t, err)
	require.Equal(t, "bob", stands.By, "also once the run is over")
}

// TestWhoApprovesSeesWhatWouldRun: the tool that is called, and the arguments that the planner does not see, whatever the planner
// calls them; that is what runs.
func TestWhoApprovesSeesWhatWouldRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"e","tool":"tiny","arguments":{"name":"x"}},{"id":"p","plan":{"steps":[{"id":"in","tool":"tiny","depends_on":[]}]}},
			{"id":"late","tool":"after","arguments":"{}","depends_on":["e"]}]}`,
		`{"output":"done"}`)
	s.agent("pays", "", `{"planner":{"tool":"planner","mode":"plan"},"approval":"plan","tools":[
		{"tool":"echo","as":"tiny","bind":{"amount":1000000,"who":"$input.who"}},{"tool":"echo","as":"after","bind":{"long":"$input.long","state":"$state.x"}}]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"pays","arguments":{"who":"ann","long":"`+strings.Repeat("x", 5000)+`"}}]}`, "tiny")
	q := s.asksAboutRound("tiny", "a", 0)
	digest := sha256.Sum256([]byte(`"` + strings.Repeat("x", 5000) + `"`))
	require.JSONEq(t, `{"steps":[
		{"id":"e","tool":"echo","arguments":{"name":"x","amount":1000000,"who":"ann"}},
		{"id":"p","plan":{"steps":[{"id":"in","tool":"echo","depends_on":[],"arguments":{"amount":1000000,"who":"ann"}}]}},
		{"id":"late","tool":"echo","depends_on":["e"],"arguments":{
			"long":{"bound_to":"$input.long","bytes":5002,"sha256":"`+hex.EncodeToString(digest[:])+`"},"state":{"bound_to":"$state.x"}}}]}`, string(q.Plan))
	_, err := s.client.Approve(ctx(t), q, client.Answer{By: "ann"})
	require.NoError(t, err)
	s.wait(r)
	require.Contains(t, string(x.asked[1]["rounds"]), `"result":{"amount":1000000,"name":"x","who":"ann"}`)
}

// TestRoundsThatNobodyAnswers are refused, or approved of, as the agent says; of one below another each has its own say.
func TestRoundsThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("outer", `{"steps":[{"id":"in","tool":"inner"}],"output":"$ref:in"}`)
	s.plays("planner", `{"steps":[{"id":"e","tool":"echo","arguments":{"n":1}}]}`, `{"output":"nobody looked"}`)
	s.agent("inner", "", `{"planner":{"tool":"planner","mode":"plan"},"approval":{"timeout":"100ms"},"tools":["echo"]}`)
	s.agent("above", "", `{"planner":{"tool":"outer","mode":"plan"},"approval":{"timeout":"100ms","on_timeout":"approve"},"tools":["inner"]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"above"}]}`, "late")
	require.JSONEq(t, `"nobody looked"`, result(t, o, "a"), "%s", o.JSON())
	require.Zero(t, s.tools.total())
	doc := s.history("default", "late")
	require.Equal(t, outcome.DecisionExpired, doc.Steps[0].Steps[0].Answer.Decision)
	require.Equal(t, outcome.DecisionExpired, doc.Steps[0].Steps[1].Steps[0].Answer.Decision)

	s.agent("plain", "", `{"planner":{"tool":"outer","mode":"plan"},"tools":["inner"]}`)
	o = s.run(`{"steps":[{"id":"a","tool":"plain"}]}`, "below")
	require.JSONEq(t, `"nobody looked"`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, s.frozen("below").Needs, wire.ApprovedRounds, "of what it can reach alone")
}
