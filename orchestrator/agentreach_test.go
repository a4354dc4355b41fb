package orchestrator_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestAnAmendmentReachesFurtherBack: steps that people add to a round refer to all that earlier rounds came to, also to what the
// round's answer does not refer to, one amendment after the other. Who does not know of such leaves the run alone, another owner
// comes to the same, and a retry takes over what was not amended.
func TestAnAmendmentReachesFurtherBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"first","tool":"echo","arguments":{"n":7}},{"id":"second","tool":"big","arguments":{"Bytes":300000}},{"id":"third","tool":"echo","arguments":{"n":{"deep":[1,9]}}},{"id":"last","tool":"echo","arguments":{"n":0}}]}`,
		`{"steps":[{"id":"g","tool":"gate"},{"id":"seen","value":"$ref:r0.first.n"},{"id":"w","tool":"echo","depends_on":["g"],"arguments":{"n":"$ref:r0.first.n"}}]}`)
	s.agent("desk", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","echo","big","fail","length"]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"desk"}]}`, "further")
	<-s.tools.begun
	needs := func(revision int) []string {
		e, err := s.store.Ledger.Read(ctx(t), subjects.AmendRecord(subjects.NewRun("default", "further"), r.Generation(), "a/=1", revision, 1))
		require.NoError(t, err)
		return wire.RecordNeeds(e.Header, e.Data)
	}
	amend := func(revision int, add ...string) error {
		_, err := s.client.Amend(ctx(t), "further", client.Amendment{Scope: "a/=1", Revision: revision, Add: raws(add...)})
		return err
	}
	err := amend(0, `{"id":"x","tool":"echo","arguments":{"n":"$ref:r0.none"}}`, `{"id":"y","tool":"echo","arguments":{"n":"$ref:r1.g"}}`, `{"id":"z","tool":"echo","arguments":{"n":"$ref:r9.first"}}`)
	require.Error(t, err)
	var p wire.AmendProblems
	require.NoError(t, json.Unmarshal(fault.As(err).Details, &p))
	require.Contains(t, p.Problems[0].Message+p.Problems[0].Hint, "first, last, second, third")
	require.Contains(t, p.Problems[1].Hint, "r1 is this round itself")
	require.Contains(t, p.Problems[2].Hint, "the only round before this one is r0")
	require.Equal(t, []string{"impossible_ref /add/0/arguments/n", "unknown_ref /add/1/arguments/n", "unknown_ref /add/2/arguments/n"}, problemsOf(t, err))

	require.NoError(t, amend(0, `{"id":"there","tool":"echo","arguments":{"n":"$ref:r0.first.n"}}`))
	require.Equal(t, []string{wire.AmendedRounds}, needs(1), "its answer referred to that")
	require.NoError(t, amend(1, `{"id":"x","tool":"echo","arguments":{"n":"$ref:r0.third.n.deep[1]"}}`, `{"id":"sub","arguments":{"t":"$ref:r0.second.text"},"plan":{"steps":[{"id":"i","tool":"length","arguments":{"text":"$input.t"}}],"output":"$ref:i"}}`))
	require.Equal(t, []string{wire.AmendedRounds, wire.RoundReferences}, needs(2), "who does not know of such leaves the run alone")
	require.NoError(t, amend(2, `{"id":"again","tool":"echo","arguments":{"n":["$ref:r0.third.n.deep[0]","$ref:r0.first.n","$ref:x.n"]}}`))
	require.Equal(t, []string{wire.AmendedRounds}, needs(3), "the amendment before referred to that")

	older := maps.Clone(wire.Ours())
	delete(older, wire.RoundReferences)
	stop := s.knowing("older", older)
	s.leave()
	require.Eventually(t, func() bool {
		_, err := s.client.Get(ctx(t), "further")
		return fault.CodeOf(err) == fault.NewerVersion
	}, patience, 20e6)
	s.leave = s.orchestrator()
	stop()
	s.tools.gate <- struct{}{}
	o := s.wait(r)
	require.Equal(t, outcome.Failed, o.Status, "its planner has no answer yet")
	doc := s.history("default", "further")
	came := map[string]string{}
	for _, st := range doc.Steps[0].Steps {
		came[st.ID] = string(st.Result)
	}
	require.JSONEq(t, `{"n":9}`, came["a/=1/x"])
	require.JSONEq(t, `{"n":[1,7,9]}`, came["a/=1/again"])
	require.JSONEq(t, `300000`, came["a/=1/sub"])
	require.JSONEq(t, `{"n":7}`, came["a/=1/w"])

	x.answers = append(x.answers, `{"output":{"w":"$ref:r1.w.n","third":"$ref:r0.third.n"}}`)
	x.asks()
	o, doc = s.retry("further")
	require.JSONEq(t, `{"w":7,"third":{"deep":[1,9]}}`, result(t, o, "a"), "%s", o.JSON())
	require.Equal(t, []string{"=0/=plan", "=0/first", "=0/last", "=0/second", "=0/third", "=1/=plan", "=1/g", "=1/w"}, takenOver(doc, "a"))
	require.Equal(t, []int{2}, x.asks(), "it had been told what was added")
}
