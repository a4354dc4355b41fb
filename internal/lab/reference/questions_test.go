package reference_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/reference"
)

func asking(t *testing.T, plan string, contracts map[string]reference.Contract, say map[string]reference.Answer) *reference.Result {
	t.Helper()
	c := reference.Case{Scripts: map[string]reference.Script{}, Sayings: say}
	for _, id := range []string{"a", "b", "c"} {
		c.Scripts[id] = reference.Script{Echo: true}
	}
	r, err := reference.RunAsking([]byte(plan), contracts, c.Call, c.Say)
	require.NoError(t, err)
	return r
}

func TestAPersonDecides(t *testing.T) {
	t.Parallel()
	const plan = `{"steps":[{"id":"a","tool":"x","arguments":{"n":1}},
		{"id":"b","tool":"x","arguments":{"n":"$ref:a.n"},"approval":{"ask":"${ref:a.n}?","timeout":"1h"}},
		{"id":"c","tool":"ask","arguments":{"question":"And ${ref:b.n}?"},"timeout":"1h"}]}`
	r := asking(t, plan, nil, map[string]reference.Answer{"c": {Value: []byte(`"yes"`)}})
	require.Equal(t, "succeeded", r.Status)
	require.Equal(t, `"yes"`, string(r.Steps["c"].Result))
	require.Zero(t, r.Steps["c"].Attempts, "nobody's work")

	r = asking(t, plan, nil, map[string]reference.Answer{"b": {Decision: "approve", Arguments: []byte(`{"n":7}`)}})
	require.Equal(t, `{"n":7}`, string(r.Steps["b"].Result))
	require.Equal(t, `{"question":"And 7?"}`, string(r.Steps["c"].Arguments))

	r = asking(t, plan, nil, map[string]reference.Answer{"b": {Decision: "reject", Refusal: "no"}})
	require.Equal(t, map[string]string{"a": "succeeded", "b": "failed", "c": "skipped"}, statuses(r))
	require.Equal(t, "rejected", r.Steps["b"].Code)

	r = asking(t, plan, nil, map[string]reference.Answer{"b": {Decision: "expire"}})
	require.Equal(t, "rejected", r.Steps["b"].Code)
	r = asking(t, plan, nil, map[string]reference.Answer{"c": {Decision: "expire"}})
	require.Equal(t, "timeout", r.Steps["c"].Code)

	const guarded = `{"approval":true,"steps":[{"id":"a","tool":"x","arguments":{"n":1},"approval":{"timeout":"1h","on_timeout":"approve"}},{"id":"b","tool":"y"}]}`
	late := map[string]reference.Answer{"a": {Decision: "expire"}}
	require.Equal(t, "succeeded", asking(t, guarded, nil, late).Status)
	r = asking(t, guarded, map[string]reference.Contract{"x": {Approval: "$args.n > 0"}}, late)
	require.Equal(t, "rejected", r.Steps["a"].Code, "no timeout stands for what a contract asks")
	r = asking(t, guarded, nil, map[string]reference.Answer{"=": {Decision: "reject"}})
	require.Equal(t, "cancelled", r.Status)
	require.Equal(t, map[string]string{"a": "cancelled", "b": "cancelled"}, statuses(r))
	require.Equal(t, "rejected", r.Steps["b"].Code)
}

// A condition of a contract is about the arguments; what can't be told means yes.
func TestAContractAsks(t *testing.T) {
	t.Parallel()
	no := map[string]reference.Answer{"a": {Decision: "reject"}}
	for rule, asked := range map[string]bool{"always": true, "$args.n > 1": true, "$args.n > 2": false, "$args.no.such == 1": false, "$args > 1": true} {
		r := asking(t, `{"steps":[{"id":"a","tool":"x","arguments":{"n":2}}]}`, map[string]reference.Contract{"x": {Approval: rule}}, no)
		require.Equal(t, asked, r.Status == "failed", rule)
	}
}

// Where a record of an answer stands decides, also against a stop.
func TestAnAnswerCountsWhereItStands(t *testing.T) {
	t.Parallel()
	const plan = `{"steps":[{"id":"a","tool":"x","approval":true},{"id":"b","tool":"x","approval":true,"for_each":{"in":[1,2]}}]}`
	yes := func(step string, number int) reference.Decided {
		return reference.Decided{Step: step, Answer: &reference.Answer{Number: number, Decision: "approve"}}
	}
	done := func(step string) reference.Decided {
		return reference.Decided{Step: step, Reply: reference.Reply{Body: []byte("1")}}
	}
	stale := yes("a", 1)
	stale.Answer.Other = true
	stop := reference.Decided{Stop: "cancelled"}
	run := func(decided ...reference.Decided) map[string]string {
		t.Helper()
		r, err := reference.RunStopped([]byte(plan), nil, decided)
		require.NoError(t, err)
		return statuses(r)
	}
	require.Equal(t, map[string]string{"a": "cancelled", "b": "cancelled"}, run(stop, yes("a", 1)))
	require.Equal(t, map[string]string{"a": "succeeded", "b": "cancelled"}, run(yes("a", 1), stop, done("a")))
	require.Equal(t, map[string]string{"a": "cancelled", "b": "cancelled"}, run(stale, yes("a", 1), stop), "its number is used up")
	require.Equal(t, map[string]string{"a": "succeeded", "b": "succeeded"},
		run(stale, yes("a", 2), done("a"), yes("b=1", 1), yes("b=0", 1), done("b=1"), done("b=0")))
	require.Equal(t, map[string]string{"a": "failed", "b": "cancelled"},
		run(reference.Decided{Step: "a", Answer: &reference.Answer{Number: 1, Err: &reference.Err{Code: "unresolved_ref"}}}, stop), "nothing could be shown")
	_, err := reference.RunStopped([]byte(plan), nil, []reference.Decided{done("a")})
	require.ErrorContains(t, err, "nobody has approved")
}

// Items that wait for room go with the one that was rejected, as those that wait for a person do.
func TestARejectedItemEndsThoseWithoutRoom(t *testing.T) {
	t.Parallel()
	const plan = `{"concurrency":1,"steps":[{"id":"a","tool":"x","approval":true,"for_each":{"in":[1,2]}},{"id":"b","tool":"x"}]}`
	r, err := reference.RunStopped([]byte(plan), nil, []reference.Decided{
		{Step: "a=1", Answer: &reference.Answer{Number: 1, Decision: "approve"}},
		{Step: "a=0", Answer: &reference.Answer{Number: 1, Decision: "reject"}},
		{Step: "b", Reply: reference.Reply{Body: []byte("1")}},
	})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "failed", "b": "succeeded"}, statuses(r))
}
