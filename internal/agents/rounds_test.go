package agents

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]struct {
		round int
		what  string
		ok    bool
	}{
		"a/=0/=plan": {0, "", true}, "a/=12/look": {12, "look", true}, "a/=1/b/=0/=plan": {1, "b/=0/=plan", true},
		"a/=1/all=3": {1, "all=3", true}, "a": {}, "a/=1": {}, "a/look": {}, "ab/=0/=plan": {}, "b/=0/look": {}, "a/=x/look": {},
	} {
		round, what, ok := Place("a", step)
		require.Equal(t, want.ok, ok, step)
		require.Equal(t, want.round, round, step)
		require.Equal(t, want.what, what, step)
	}
}

// Of a run, the rounds of one agent count, tries of its planner included; what stands for earlier rounds, values, and what
// was left to the planner's next answer are no calls.
func TestRoundsOf(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "b", Steps: []outcome.Step{{ID: "b/=0/=plan", Attempts: 9}}}, {ID: "a", Steps: []outcome.Step{
		{ID: "a/=0/=plan", Status: outcome.StepSucceeded, Attempts: 2, Ready: at, Started: at, Ended: at.Add(time.Second),
			Result: json.RawMessage(`{"steps":[],"usage":{"input_tokens":7,"output_tokens":2,"cost_usd":0.25}}`)},
		{ID: "a/=0/x", Tool: "t", Status: outcome.StepSucceeded}, {ID: "a/=0/y", Tool: "t", Status: outcome.StepFailed},
		{ID: "a/=0/z", Status: outcome.StepSkipped, Steps: []outcome.Step{{ID: "a/=0/z/w"}}}, {ID: "a/=0/sum", Status: outcome.StepSucceeded},
		{ID: "a/=0/later", Tool: "t", Status: outcome.StepCancelled, Discarded: true},
		{ID: "a/=1/=plan", Status: outcome.StepSucceeded, Attempts: 1, Blob: &outcome.Handle{}},
		{ID: "a/=1/r0", Status: outcome.StepSucceeded},
		{ID: "a/=2/=plan", Status: outcome.StepRunning, Result: json.RawMessage(`"text"`)},
	}}}}
	rounds := RoundsOf(At(doc, "a"), func(*outcome.Handle) (json.RawMessage, error) {
		return json.RawMessage(`{"usage":{"input_tokens":3,"output_tokens":-3000}}`), nil
	})
	require.Equal(t, []Round{
		{Number: 0, Planner: outcome.StepSucceeded, Calls: 2, Took: time.Second, Used: &agent.Tokens{InputTokens: 7, OutputTokens: 2, CostUSD: 0.25}, Steps: 3, Failed: 2},
		{Number: 1, Planner: outcome.StepSucceeded, Calls: 1, Used: &agent.Tokens{InputTokens: 3}},
		{Number: 2, Planner: outcome.StepRunning},
	}, rounds)
	require.Equal(t, "3 rounds, 3 calls of the planner, 3 calls that it asked for, 10 tokens in, 2 out, $0.25", Summary(rounds))
	require.Equal(t, []string{"0", "succeeded", "1s", "7", "2", "$0.25", "3 (2 did not succeed)"}, Table(rounds)[1])
	require.Equal(t, []string{"2", "running", "0s", "-", "-", "-", "0"}, Table(rounds)[3])
}

// What agents below took is said beside what an agent took itself, at any depth, items of lists too: it is what a run costs. A model
// whose provider counts nothing says its name, and that is no number; sums are as long as what they are made of.
func TestWhatAgentsBelowTook(t *testing.T) {
	t.Parallel()
	said := func(id, usage string) outcome.Step {
		return outcome.Step{ID: id, Status: outcome.StepSucceeded, Attempts: 1, Result: json.RawMessage(`{"usage":` + usage + `}`)}
	}
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "a", Steps: []outcome.Step{
		said("a/=0/=plan", `{"model":"small"}`),
		{ID: "a/=0/c", Steps: []outcome.Step{said("a/=0/c/=0/=plan", `{"input_tokens":5,"output_tokens":1,"cost_usd":0.0003}`), said("a/=0/c/=0/=guard-0", `{"input_tokens":1}`),
			{ID: "a/=0/c/=0/d", Steps: []outcome.Step{said("a/=0/c/=0/d/=0/=plan", `{"input_tokens":10,"output_tokens":2,"cost_usd":0.0006}`)}}}},
		{ID: "a/=0/l", Tool: "child", Items: []outcome.Step{{ID: "a/=0/l=0", Steps: []outcome.Step{said("a/=0/l=0/=0/=plan", `{"input_tokens":100,"cost_usd":0.0001}`)}}}},
		{ID: "a/=0/p", Steps: []outcome.Step{said("a/=0/p/x", `{"input_tokens":9999}`)}},
	}}}}
	none := func(*outcome.Handle) (json.RawMessage, error) { return nil, nil }
	require.Equal(t, "1 round, 1 call of the planner, 3 calls that it asked for; agents below: 3 calls of planners, 116 tokens in, 3 out, $0.001", Whole(At(doc, "a"), RoundsOf(At(doc, "a"), none), none))
	require.Equal(t, []string{"-", "-", "-"}, Table(RoundsOf(At(doc, "a"), none))[1][3:6])
	doc.Steps[0].Steps = doc.Steps[0].Steps[:1]
	require.Equal(t, "1 round, 1 call of the planner, 0 calls that it asked for", Whole(At(doc, "a"), RoundsOf(At(doc, "a"), none), none))
	require.Equal(t, "$0.001097", dollars(0.0010969999999999999))
}

// While its planner is asked an agent is not queued, and what its rows hold that is no call of a tool is named.
func TestWhatAnAgentIsAbout(t *testing.T) {
	t.Parallel()
	plan := func(round string, status outcome.StepStatus) outcome.Step {
		return outcome.Step{ID: "a/=" + round + "/=plan", Tool: "model", Status: status}
	}
	first := []outcome.Step{plan("0", outcome.StepSucceeded), {ID: "a/=0/x", Tool: "x", Status: outcome.StepSucceeded}, {ID: "a/=0/y", Tool: "y", Status: outcome.StepRunning},
		{ID: "a/=0/r7", Tool: "r7", Status: outcome.StepSucceeded}}
	for want, steps := range map[string][]outcome.Step{
		"": nil, "the planner, round 0": {plan("0", outcome.StepReady)}, "2 calls of round 0, 1 over": first,
		"the planner, round 1": append(first[:len(first):len(first)], plan("1", outcome.StepRunning)),
	} {
		require.Equal(t, want, Standing(&outcome.Step{ID: "a", Steps: steps}))
	}
	for id, want := range map[string]string{"a/=0/=plan": "t, the planner", "a/=1/r0": "", "a/=1/x": "", "a": "", "a/x": ""} {
		words, ok := OwnWords(&outcome.Step{ID: id, Tool: "t"})
		require.Equal(t, want, words, id)
		require.Equal(t, want != "", ok, id)
	}
	words, ok := OwnWords(&outcome.Step{ID: "a/=12/r0", Tool: "r0"})
	require.True(t, ok)
	require.Equal(t, "results of round 0", words)
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "b"}, {ID: "a", Steps: first}, {ID: "c", Steps: []outcome.Step{{ID: "c/x"}}}}}
	require.Equal(t, []*outcome.Step{&doc.Steps[1]}, Steps(doc))
	for answer, want := range map[string]string{
		`{"steps":[1,2],"output":"x","usage":{"input_tokens":7,"output_tokens":2,"cost_usd":0.25}}`: "2 calls, an output, 7 tokens in, 2 out, $0.25",
		`{"usage":{"input_tokens":-3000,"output_tokens":-1,"cost_usd":-2}}`:                         "0 tokens in, 0 out",
		`{"output":null,"calls":[1]}`: "1 call", `"text"`: "", `{"n":1}`: "",
	} {
		require.Equal(t, want, Answered(json.RawMessage(answer)), answer)
	}
}

// A round's number stands above the first that is told of it alone.
func TestTold(t *testing.T) {
	t.Parallel()
	var told Told
	for _, x := range []struct {
		step, heading, name string
		known               bool
	}{
		{"a/=0/=plan", "round 0", "the planner", true}, {"a/=0/x", "", "x", true}, {"a/=1/r0", "", "", false},
		{"a/=1/y", "round 1", "y", true}, {"a/=1/r0x", "", "r0x", true}, {"a", "", "a", true},
		{"a/=2/=stream/x", "round 2", "x", true}, {"a/=2/=stream/x", "", "x", true}, {"a/=2/=plan", "", "the planner", true}, {"a/=2/x", "", "", false},
		{"a/=2/y", "", "y", true}, {"a/=2/=stream", "", "", false}, {"a/=3/x", "round 3", "x", true},
	} {
		heading, name, known := told.Name("a", x.step, outcome.StepSucceeded)
		require.Equal(t, x, struct {
			step, heading, name string
			known               bool
		}{x.step, heading, name, known})
	}
	_, _, known := told.Name("a", "a/=3/=stream/z", outcome.StepSkipped)
	require.True(t, known)
	_, name, known := told.Name("a", "a/=3/z", outcome.StepSucceeded)
	require.True(t, known, "another attempt has begun it")
	require.Equal(t, "z", name)
}

// What began while a planner wrote counts once, before its answer is whole and behind that; the step that it stands in is no
// call, and where nothing began it is not shown.
func TestWhatBeganWhileAPlannerWroteCountsOnce(t *testing.T) {
	t.Parallel()
	early := []outcome.Step{{ID: "a/=0/=stream/x", Tool: "t", Status: outcome.StepSucceeded}, {ID: "a/=0/=stream/y", Tool: "t", Status: outcome.StepFailed},
		{ID: "a/=0/=stream/gone", Tool: "t", Status: outcome.StepCancelled, Discarded: true}}
	steps := []outcome.Step{{ID: "a/=0/=plan", Status: outcome.StepRunning}, {ID: "a/=0/=stream", Status: outcome.StepRunning, Steps: early}}
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "a", Steps: steps}}}
	rounds := RoundsOf(At(doc, "a"), NoBlob)
	require.Equal(t, []int{2, 1}, []int{rounds[0].Steps, rounds[0].Failed})
	require.Equal(t, "the planner, round 0", Standing(&doc.Steps[0]))
	require.False(t, Unneeded(&steps[1]))
	require.True(t, Unneeded(&outcome.Step{ID: "a/=0/=stream", Status: outcome.StepSucceeded}))
	steps[0].Status = outcome.StepSucceeded
	doc.Steps[0].Steps = append(steps, outcome.Step{ID: "a/=0/x", Tool: "t", Status: outcome.StepSucceeded}, outcome.Step{ID: "a/=0/y", Tool: "t", Status: outcome.StepFailed},
		outcome.Step{ID: "a/=0/z", Tool: "t", Status: outcome.StepRunning})
	rounds = RoundsOf(At(doc, "a"), NoBlob)
	require.Equal(t, []int{3, 1}, []int{rounds[0].Steps, rounds[0].Failed})
	require.Equal(t, "3 calls of round 0, 2 over", Standing(&doc.Steps[0]))
	words, own := OwnWords(&steps[1])
	require.True(t, own)
	require.Equal(t, "calls while it writes", words)
}

// TestWhatWasRefused is told with the round, the place and the first reason, and stands in the table of rounds.
func TestWhatWasRefused(t *testing.T) {
	t.Parallel()
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "a", Steps: []outcome.Step{{ID: "a/=0/=plan", Status: outcome.StepSucceeded}, {ID: "a/=1/=plan", Status: outcome.StepSucceeded}},
		Refused: []outcome.Refused{{Round: 1, Problems: []fault.Problem{{Code: fault.UnknownTool, Path: "/steps/0/tool", Message: "no tool 'x'"}}, Count: 3}, {Round: 7}}}}}
	require.Equal(t, []string{
		"the answer of round 1 was refused: /steps/0/tool: unknown_tool: no tool 'x' (and 2 more)", "the answer of round 7 was refused: nothing more is known",
	}, Refusals(At(doc, "a")))
	require.Empty(t, Refusals(At(doc, "b")))
	rounds := Table(RoundsOf(At(doc, "a"), nil))
	require.Equal(t, "0", rounds[1][6])
	require.Equal(t, "0, refused: unknown_tool", rounds[2][6])
	v := NewView("r", "a", time.Time{})
	v.Merge(doc, nil, time.Time{})
	require.Equal(t, "refused: /steps/0/tool: unknown_tool: no tool 'x' (and 2 more)", v.rounds[1].planner.why)
}

// TestWhatWasSaid is told with who said it, whether that is known, and which round took it.
func TestWhatWasSaid(t *testing.T) {
	t.Parallel()
	two := 2
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "b", Said: []outcome.Said{{ID: "x"}}}, {ID: "a", Said: []outcome.Said{
		{ID: "m1", By: "ann", Verified: true, Round: &two, Content: json.RawMessage(`"With my dog."`)}, {ID: "m2", By: "ben", Interrupt: true, Content: json.RawMessage(`"Stop."`)}, {ID: "m3"},
		{ID: "m4", Bytes: 3000, Content: json.RawMessage(`"By the"`)}, {ID: "m5", Bytes: 4000},
	}}}}
	require.Equal(t, []string{
		`ann said, told in round 2: "With my dog."`, `ben (unverified) interrupted, no round has taken it: "Stop."`, "somebody said, no round has taken it: (too long to be shown)",
		`somebody said, no round has taken it: "By the" (the beginning of 3000 bytes)`, "somebody said, no round has taken it: (4000 bytes, too long to be kept here)",
	}, Said(At(doc, "a")))
	require.Empty(t, Said(At(doc, "c")))

	a := &doc.Steps[1]
	a.Status, a.Steps = outcome.StepFailed, []outcome.Step{{ID: "a/=1/=plan", Status: outcome.StepSucceeded, Attempts: 1}}
	require.Contains(t, Said(At(doc, "a"))[0], "for round 2, whose planner was not asked", "its agent ended before")
	a.Steps = append(a.Steps, outcome.Step{ID: "a/=2/=plan", Status: outcome.StepFailed})
	require.Contains(t, Said(At(doc, "a"))[0], "for round 2, whose planner was not asked", "it had no budget")
	a.Steps[1].Attempts = 1
	require.Contains(t, Said(At(doc, "a"))[0], "told in round 2", "it failed itself")
	a.Status, a.Steps = outcome.StepRunning, a.Steps[:1]
	require.Contains(t, Said(At(doc, "a"))[0], "told in round 2", "it is about to be asked")
}

// The summary of a round that was none to make is shown nowhere; one that was made, or is being made, is.
func TestASummaryThatNobodyNeededIsNotShown(t *testing.T) {
	t.Parallel()
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "a", Steps: []outcome.Step{
		{ID: "a/=0/=plan", Tool: "model", Status: outcome.StepSucceeded}, {ID: "a/=0/=summary", Tool: "sum", Status: outcome.StepNotTaken},
		{ID: "a/=1/=plan", Tool: "model", Status: outcome.StepReady}, {ID: "a/=1/=summary", Tool: "sum", Status: outcome.StepRunning},
	}}}}
	require.True(t, Unneeded(&doc.Steps[0].Steps[1]))
	require.False(t, Unneeded(&doc.Steps[0].Steps[3]))
	require.False(t, Unneeded(&outcome.Step{ID: "a/=0/summary", Status: outcome.StepNotTaken}))
	v := NewView("r", "a", noon)
	v.Apply(told("a/=0/=summary", "sum", outcome.StepNotTaken), noon)
	v.Merge(doc, NoBlob, noon)
	drawn := strings.Join(v.Lines(plainLook(), 30, noon), "\n")
	require.NotContains(t, drawn, "not_taken")
	require.Equal(t, 1, strings.Count(drawn, "summary"), drawn)
}

// A round that the agent ended before, of which no planner was asked, is told as one that was not asked, and counts as none; one whose
// planner is about to be asked has begun, and one that took over an answer was asked once.
func TestARoundWhosePlannerIsNeverAskedIsNone(t *testing.T) {
	t.Parallel()
	last := outcome.Step{ID: "a/=1/=plan", Status: outcome.StepCancelled}
	of := &outcome.Step{ID: "a", Status: outcome.StepFailed, Steps: []outcome.Step{
		{ID: "a/=0/=plan", Status: outcome.StepSucceeded, Attempts: 1}, {ID: "a/=0/x", Tool: "t", Status: outcome.StepSucceeded}, last}}
	rounds := RoundsOf(of, NoBlob)
	require.Equal(t, "1 round, 1 call of the planner, 1 call that it asked for", Summary(rounds))
	require.Equal(t, []string{"1", "not asked", "0s", "-", "-", "-", "0"}, Table(rounds)[2])
	for status, want := range map[outcome.StepStatus]string{outcome.StepReady: "2 rounds, ", outcome.StepWaiting: "2 rounds, ", outcome.StepSucceeded: "2 rounds, ", outcome.StepFailed: "1 round, "} {
		of.Steps[2].Status = status
		require.Contains(t, Summary(RoundsOf(of, NoBlob)), want, status)
	}
	of.Steps[2].Attempts = 1
	require.Contains(t, Summary(RoundsOf(of, NoBlob)), "2 rounds, ", "it was asked, and failed")
}

// What agents heard that are no steps of the plan, and which of their answers came to nothing, is told behind their names, at any depth:
// below an agent, as items of a list, and in the plan of a step.
func TestOthers(t *testing.T) {
	t.Parallel()
	one := 1
	agent := func(id string, refused ...outcome.Refused) outcome.Step {
		return outcome.Step{ID: id, Refused: refused, Said: []outcome.Said{{ID: "m", By: "ann", Verified: true, Round: &one, Content: json.RawMessage(`"Hi."`)}},
			Steps: []outcome.Step{{ID: id + "/=0/=plan", Status: outcome.StepSucceeded, Attempts: 1}, {ID: id + "/=1/=plan", Status: outcome.StepRunning, Attempts: 1}}}
	}
	a := agent("a", outcome.Refused{Round: 0})
	c := agent("a/=0/c", outcome.Refused{Round: 0, Problems: []fault.Problem{{Code: fault.InvalidValue, Path: "/steps", Message: "must be an array"}}, Count: 1})
	c.Steps = append(c.Steps, agent("a/=1/c/=0/d"))
	a.Steps = append(a.Steps, c, outcome.Step{ID: "a/=0/l", Items: []outcome.Step{agent("a/=0/l=0")}})
	doc := &outcome.Run{Steps: []outcome.Step{a, {ID: "p", Steps: []outcome.Step{agent("p/b")}}}}
	require.Equal(t, []Line{
		{"a/=0/c", "the answer of round 0 was refused: /steps: invalid_value: must be an array"}, {"a/=0/c", `ann said, told in round 1: "Hi."`},
		{"a/=1/c/=0/d", `ann said, told in round 1: "Hi."`}, {"a/=0/l=0", `ann said, told in round 1: "Hi."`}, {"p/b", `ann said, told in round 1: "Hi."`},
	}, Others(doc))
	require.Equal(t, map[string]string{"a/=0/=plan": "nothing more is known", "a/=0/c/=0/=plan": "/steps: invalid_value: must be an array"}, RefusedCalls(doc))
	require.Empty(t, Others(&outcome.Run{Steps: doc.Steps[1].Steps}), "a step of the plan")
}

// What an outcome doesn't list, as summaries that nobody needed, counts for nobody; one of an orchestrator that lists them counts them.
func TestWhatIsNotListedIsNotCounted(t *testing.T) {
	t.Parallel()
	o := &outcome.Outcome{Stats: outcome.Stats{Steps: 9, Succeeded: 5, NotTaken: 4}, NotTaken: []string{"x"}}
	require.Equal(t, outcome.Stats{Steps: 6, Succeeded: 5, NotTaken: 1}, Counted(o))
	o.NotTaken = []string{"x", "y", "a/=2/=summary", "a/=3/=summary"}
	require.Equal(t, o.Stats, Counted(o))
}
