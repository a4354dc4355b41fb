package task_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/outcome"
)

var (
	ada  = task.Owner{Tenant: "acme", Principal: "ada"}
	bob  = task.Owner{Tenant: "acme", Principal: "bob"}
	keys = task.Keys{[]byte("0123456789abcdef"), []byte("fedcba9876543210")}
)

func TestAHandleIsGoodForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	id := task.ID{Run: "order.42", Kind: task.Tool}
	handle := keys.Sign(id, ada)
	got, ok := keys.Parse(handle, ada)
	require.True(t, ok)
	assert.Equal(t, id, got)

	for _, bad := range []struct {
		handle string
		owner  task.Owner
	}{
		{handle, bob},
		{handle, task.Owner{Tenant: "other", Principal: "ada"}},
		{"order.43" + handle[len("order.42"):], ada},
		{handle[:len(handle)-1], ada},
		{handle + "A", ada},
		{"order.42.p" + handle[len("order.42.t"):], ada},
		{"order.42.t", ada},
		{"", ada}, {".", ada}, {"..", ada},
		{task.Keys{}.Sign(id, ada), ada},
	} {
		_, ok := keys.Parse(bad.handle, bad.owner)
		assert.False(t, ok, bad.handle)
	}
}

func TestAnOlderKeyStillOpens(t *testing.T) {
	t.Parallel()
	id := task.ID{Run: "r", Kind: task.Plan}
	old := keys[1:]
	_, ok := keys.Parse(old.Sign(id, ada), ada)
	assert.True(t, ok)
	_, ok = old.Parse(keys.Sign(id, ada), ada)
	assert.False(t, ok, "a key that is gone")

	now := time.Unix(1000, 0)
	sealed := old.Seal(task.State{Run: "r", Until: now.Add(time.Minute)}, ada)
	_, ok = keys.Open(sealed, ada, now)
	assert.True(t, ok)
}

func TestWithoutAKeyAHandleIsPlain(t *testing.T) {
	t.Parallel()
	id := task.ID{Run: "a.b", Kind: task.Plan}
	assert.Equal(t, "a.b.p", task.Keys(nil).Sign(id, ada))
	got, ok := task.Keys(nil).Parse("a.b.p", bob)
	assert.True(t, ok)
	assert.Equal(t, id, got)
	_, ok = task.Keys(nil).Parse("a.b.x", bob)
	assert.False(t, ok)
}

func TestAStateIsGoodForItsOwnerUntilItIsOld(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0).UTC()
	s := task.State{Run: "r", Kind: task.Plan, Arguments: "digest", Until: now.Add(10 * time.Minute), Named: true}
	sealed := keys.Seal(s, ada)
	got, ok := keys.Open(sealed, ada, now)
	require.True(t, ok)
	assert.Equal(t, s, got)

	_, ok = keys.Open(sealed, bob, now)
	assert.False(t, ok, "another's")
	_, ok = keys.Open(sealed, ada, now.Add(10*time.Minute))
	assert.False(t, ok, "too old")
	for i := range sealed {
		changed := []byte(sealed)
		changed[i] ^= 1
		_, ok = keys.Open(string(changed), ada, now)
		assert.False(t, ok, "changed at %d", i)
	}
	_, ok = keys.Open("", ada, now)
	assert.False(t, ok)
}

func TestKeysAreRead(t *testing.T) {
	t.Parallel()
	got, err := task.ParseKeys([]byte("# the new one\nMDEyMzQ1Njc4OWFiY2RlZg==\n\nZmVkY2JhOTg3NjU0MzIxMA==\n"))
	require.NoError(t, err)
	assert.Equal(t, keys, got)
	for _, bad := range []string{"", "# none", "not base64!", "c2hvcnQ="} {
		_, err := task.ParseKeys([]byte(bad))
		assert.Equal(t, fault.InvalidConfig, fault.CodeOf(err), bad)
	}
}

func at(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0).UTC() }

func TestWhatARunIsAsATask(t *testing.T) {
	t.Parallel()
	steps := []outcome.Step{
		{ID: "a", Status: outcome.StepSucceeded, Decided: at(2)},
		{ID: "b", Status: outcome.StepFailed, Decided: at(3)},
		{ID: "c", Status: outcome.StepAsking},
	}
	for _, c := range []struct {
		name string
		doc  outcome.Run
		want task.Task
	}{
		{
			"one that runs",
			outcome.Run{Status: outcome.Running, Submitted: at(0), Started: at(1), Steps: steps},
			task.Task{
				Status: task.Working, StatusMessage: "2 of 3 steps, 1 failed, waiting for a person: c",
				CreatedAt: at(0), LastUpdatedAt: at(3), TTLMs: 60_000, PollIntervalMs: 500,
			},
		},
		{
			"one that is over",
			outcome.Run{Status: outcome.Failed, Submitted: at(0), Finished: at(20)},
			task.Task{Status: task.Completed, CreatedAt: at(0), LastUpdatedAt: at(20), TTLMs: 80_000, PollIntervalMs: 2000},
		},
		{
			"one that was cancelled",
			outcome.Run{Status: outcome.Cancelled, Submitted: at(0), Finished: at(600)},
			task.Task{Status: task.Cancelled, CreatedAt: at(0), LastUpdatedAt: at(600), TTLMs: 660_000, PollIntervalMs: 5000},
		},
	} {
		assert.Equal(t, c.want, task.Of(&c.doc, time.Minute), c.name)
	}
	assert.Equal(t, task.Task{
		Status: task.Working, CreatedAt: at(5), LastUpdatedAt: at(5), TTLMs: 60_000, PollIntervalMs: 500,
	}, task.Fresh(at(5), time.Minute))
}

func approval() *outcome.Question {
	return &outcome.Question{
		Kind: outcome.Approval, Step: "pay", Tool: "refund",
		Arguments: json.RawMessage(`{"amount":9007199254740993,"confirm":"x","items":[1],"note":"late","urgent":false}`),
	}
}

func TestAnApprovalIsAFormWithWhatMayBeEdited(t *testing.T) {
	t.Parallel()
	f := task.FormOf(approval())
	assert.Equal(t, "Approve the call of refund (step pay)?\n\n"+`{"items":[1]}`, f.Message)
	assert.JSONEq(t, `{"type":"object","properties":{
		"confirm": {"type":"boolean","title":"Approve","description":"false rejects it.","default":true},
		"reason": {"type":"string","title":"Reason","description":"For who reads what became of the run."},
		"amount": {"type":"integer","title":"amount","default":9007199254740993},
		"argument_confirm": {"type":"string","title":"confirm","default":"x"},
		"note": {"type":"string","title":"note","default":"late"},
		"urgent": {"type":"boolean","title":"urgent","default":false}}}`, string(f.Schema))
	assert.Contains(t, string(f.Schema), "9007199254740993")
}

func TestWhatAFilledInFormSays(t *testing.T) {
	t.Parallel()
	choices := &outcome.Question{Kind: outcome.Ask, Choices: json.RawMessage(`["red",7,{"a":1}]`)}
	object := &outcome.Question{Kind: outcome.Ask, Schema: json.RawMessage(`{"type":"object","properties":{"age":{"type":"integer"}}}`)}
	nested := &outcome.Question{Kind: outcome.Ask, Schema: json.RawMessage(`{"type":"array","items":{"type":"string"}}`)}
	number := &outcome.Question{Kind: outcome.Ask, Schema: json.RawMessage(`{"type":"number","minimum":3}`)}
	free := &outcome.Question{Kind: outcome.Ask}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct {
		name, action, content string
		q                     *outcome.Question
		want                  task.Reply
	}{
		{"yes", "accept", `{}`, approval(), task.Reply{Verdict: task.Approve}},
		{"yes, in words", "accept", `{"confirm":true,"reason":"fine"}`, approval(), task.Reply{Verdict: task.Approve, Reason: "fine"}},
		{"a no in the form", "accept", `{"confirm":false,"reason":"too much"}`, approval(), task.Reply{Verdict: task.Reject, Reason: "too much"}},
		{"a no", "decline", ``, approval(), task.Reply{Verdict: task.Reject}},
		{"neither", "cancel", ``, approval(), task.Reply{Verdict: task.Open}},
		{"unheard of", "", ``, approval(), task.Reply{Verdict: task.Open}},
		{
			"as it stands, rounded by a client", "accept", `{"amount":9007199254740992,"note":"late","urgent":false}`, approval(),
			task.Reply{Verdict: task.Approve},
		},
		{
			"edited", "accept", `{"amount":12.50,"argument_confirm":"y"}`, approval(),
			task.Reply{Verdict: task.Approve, Arguments: raw(`{"amount":12.50,"confirm":"y","items":[1],"note":"late","urgent":false}`)},
		},
		{"a choice", "accept", `{"answer":"7"}`, choices, task.Reply{Verdict: task.Answer, Value: raw(`7`)}},
		{"a choice of an object", "accept", `{"answer":"{\"a\":1}"}`, choices, task.Reply{Verdict: task.Answer, Value: raw(`{"a":1}`)}},
		{"an object", "accept", `{"age":30}`, object, task.Reply{Verdict: task.Answer, Value: raw(`{"age":30}`)}},
		{"nothing of an object", "accept", ``, object, task.Reply{Verdict: task.Answer, Value: raw(`{}`)}},
		{"a list", "accept", `{"answer":"[\"a\"]"}`, nested, task.Reply{Verdict: task.Answer, Value: raw(`["a"]`)}},
		{"a number", "accept", `{"answer":3.50}`, number, task.Reply{Verdict: task.Answer, Value: raw(`3.50`)}},
		{"a text", "accept", `{"answer":"blue"}`, free, task.Reply{Verdict: task.Answer, Value: raw(`"blue"`)}},
		{"no answer", "decline", ``, free, task.Reply{Verdict: task.Reject}},
	} {
		got, err := task.Read(c.q, c.action, raw(c.content))
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
	}
	for _, c := range []struct {
		content string
		q       *outcome.Question
	}{
		{`{"answer":"green"}`, choices}, {`{}`, free}, {`[]`, free}, {`{"answer":"[1"}`, nested},
		{`{"confirm":"yes"}`, approval()}, {`{"reason":1}`, approval()}, {`{"note":{"a":1}}`, approval()},
	} {
		_, err := task.Read(c.q, "accept", raw(c.content))
		assert.Equal(t, fault.InvalidValue, fault.CodeOf(err), c.content)
	}
}

func TestTheFormsOfQuestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		q             outcome.Question
		message, want string
	}{
		{outcome.Question{Kind: outcome.Ask, Text: "Which?"}, "Which?", `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`},
		{
			outcome.Question{Kind: outcome.Ask, Choices: json.RawMessage(`["red",7]`)}, "",
			`{"type":"object","properties":{"answer":{"type":"string","enum":["red","7"]}},"required":["answer"]}`,
		},
		{
			outcome.Question{Kind: outcome.Ask, Schema: json.RawMessage(`{"type":"number","minimum":3}`)}, "",
			`{"type":"object","properties":{"answer":{"type":"number","minimum":3}},"required":["answer"]}`,
		},
		{
			outcome.Question{Kind: outcome.Ask, Schema: json.RawMessage(`{"type":"object","properties":{"age":{"type":"integer"}}}`)}, "",
			`{"type":"object","properties":{"age":{"type":"integer"}}}`,
		},
		{
			outcome.Question{Kind: outcome.Ask, Schema: json.RawMessage(`{"type":"array"}`)}, "",
			`{"type":"object","properties":{"answer":{"type":"string","description":"JSON that fits the schema {\"type\":\"array\"}"}},"required":["answer"]}`,
		},
		{
			outcome.Question{Kind: outcome.Approval, Step: "="}, "Approve the plan?",
			`{"type":"object","properties":{
				"confirm": {"type":"boolean","title":"Approve","description":"false rejects it.","default":true},
				"reason": {"type":"string","title":"Reason","description":"For who reads what became of the run."}}}`,
		},
		{
			outcome.Question{Kind: outcome.Approval, Step: "=", Revision: 2, Text: "May this run?", By: "bot", Reason: "it rains", Change: json.RawMessage(`{"close":true}`)},
			"Approve amendment 2 of the plan? (May this run?) Asked for by bot (unverified).\n\nit rains\n\n" + `{"close":true}`,
			`{"type":"object","properties":{
				"confirm": {"type":"boolean","title":"Approve","description":"false rejects it.","default":true},
				"reason": {"type":"string","title":"Reason","description":"For who reads what became of the run."}}}`,
		},
		{
			outcome.Question{Kind: outcome.Approval, Step: "p", Revision: 1, Verified: true, By: "a/b", Change: json.RawMessage(`{"discard":"rest"}`)},
			"Approve amendment 1 of the plan of step p? Asked for by a/b.\n\n" + `{"discard":"rest"}`,
			`{"type":"object","properties":{
				"confirm": {"type":"boolean","title":"Approve","description":"false rejects it.","default":true},
				"reason": {"type":"string","title":"Reason","description":"For who reads what became of the run."}}}`,
		},
		{
			outcome.Question{Kind: outcome.Approval, Step: "m", Tool: "x", Items: 2, Arguments: json.RawMessage(`[{"a":1},{"a":2}]`)},
			"Approve 2 calls of x (step m)?\n\n" + `[{"a":1},{"a":2}]`,
			`{"type":"object","properties":{
				"confirm": {"type":"boolean","title":"Approve","description":"false rejects it.","default":true},
				"reason": {"type":"string","title":"Reason","description":"For who reads what became of the run."}}}`,
		},
	} {
		f := task.FormOf(&c.q)
		assert.Equal(t, c.message, f.Message)
		assert.JSONEq(t, c.want, string(f.Schema))
	}
}

func TestAnAgentsProgressIsItsRound(t *testing.T) {
	t.Parallel()
	looks := outcome.Step{ID: "a", Steps: []outcome.Step{{ID: "a/=0/=plan"}, {ID: "a/=0/x"}, {ID: "a/=1/=plan"}}}
	repeats := outcome.Step{ID: "b", Steps: []outcome.Step{{ID: "b/=0/x"}, {ID: "b/=1/x"}}}
	ended := looks
	ended.Status = outcome.StepSucceeded
	assert.Equal(t, "0 of 1 step, round 1", task.Progress(&outcome.Run{Steps: []outcome.Step{looks}}))
	assert.Equal(t, "0 of 2 steps, round 1 of a", task.Progress(&outcome.Run{Steps: []outcome.Step{looks, repeats}}))
	assert.Equal(t, "1 of 1 step", task.Progress(&outcome.Run{Steps: []outcome.Step{ended}}))

	for token, want := range map[string]string{
		"a/=0/=plan": "0 the planner", "a/=12/x": "12 x", "a/=1/x/y": "1 x/y", "a/x": "", "a/=1": "", "a": "", "b/=1/x": "", "a/b/=1/x": "", "ab/=1/x": "",
	} {
		n, call, ok := task.Round("a", token)
		assert.Equal(t, want != "", ok, token)
		if ok {
			assert.Equal(t, want, fmt.Sprintf("%d %s", n, call))
		}
	}
}
