package dryrun_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// guards are tools that ask, always and on a condition, and one that returns what a condition reads.
const guards = `[
	{"name": "order", "annotations": {"readOnlyHint": true}, "outputSchema": {"type": "object", "examples": [{"total": 120, "name": "ann", "lines": [1, 2, 3]}]}},
	{"name": "charge", "x-orchestration": {"approval": "$args.amount > 100"}},
	{"name": "wipe", "x-orchestration": {"approval": "always"}},
	{"name": "say"}]`

// Whoever looks at a dry run sees each question that the run will ask: in the name of the plan, of a step, of each item, of a
// contract whose condition holds for what the tools return.
func TestADryRunSaysWhatIsAsked(t *testing.T) {
	t.Parallel()
	d := of(t, `{"approval": {"timeout": "1h"}, "steps": [
		{"id": "o", "tool": "order"},
		{"id": "small", "tool": "charge", "arguments": {"amount": 1}},
		{"id": "large", "tool": "charge", "arguments": {"amount": "$ref:o.total"}},
		{"id": "gone", "tool": "wipe", "arguments": {"x": "$ref:o"}},
		{"id": "each", "tool": "say", "approval": true, "for_each": {"in": "$ref:o.lines"}, "arguments": {"n": "$ref:item"}},
		{"id": "all", "tool": "say", "approval": {"all": true, "timeout": "2h", "on_timeout": "approve"}, "for_each": {"in": "$ref:o.lines"}, "arguments": {"n": "$ref:item"}},
		{"id": "who", "tool": "ask", "timeout": "3h", "arguments": {"question": "For ${ref:o.name}?", "choices": ["yes", "no"]}},
		{"id": "age", "tool": "ask", "arguments": {"question": "How old?", "schema": {"type": "integer", "minimum": 18}}},
		{"id": "end", "tool": "say", "arguments": {"who": "$ref:who", "age": "$ref:age"}}], "output_steps": ["end"]}`, guards)
	require.Empty(t, d.Problems)
	require.Equal(t, outcome.Succeeded, d.Status, "%v", d.Errors)
	require.JSONEq(t, `{"who":"yes","age":18}`, string(stepOf(t, d, "end").Arguments))
	require.JSONEq(t, `{"question":"For ann?","choices":["yes","no"]}`, string(stepOf(t, d, "who").Arguments))
	var asked []string
	for _, n := range d.Notices {
		if n.Kind == outcome.NoticeQuestion {
			asked = append(asked, n.Step+": "+n.Message)
		}
	}
	require.Equal(t, []string{
		": nothing begins before a person approves of the plan, and is rejected after 1h0m0s without one",
		"large: waits for a person's approval, which the contract of charge asks for",
		"gone: waits for a person's approval, which the contract of wipe asks for",
		"each: waits for a person's approval, 3 times",
		"all: waits for a person's approval, and is taken as approved after 2h0m0s without one",
		"who: waits for a person's answer, and fails after 3h0m0s without one",
		"age: waits for a person's answer",
	}, asked)
	for _, n := range d.Notices {
		require.False(t, n.Kind == outcome.NoticeTimeout && n.Step == "who", "it is said with the question: %s", n.Message)
	}
	require.Equal(t, 11, d.Calls, "what asks a person calls no tool")
}

// What can't be shown fails the step, as it does in a run; where that rests on made-up values it is a doubt.
func TestWhatCantBeShownFails(t *testing.T) {
	t.Parallel()
	body := `{"steps": [{"id": "o", "tool": "FROM"}, {"id": "pay", "tool": "say", "approval": {"ask": "Pay ${ref:o.name.first}?"}},
		{"id": "who", "tool": "ask", "arguments": {"question": "See ${ref:o.name.first}?"}}], "output_steps": ["o"]}`
	d := of(t, strings.Replace(body, "FROM", "order", 1), guards)
	require.Len(t, d.Errors, 2)
	for _, e := range d.Errors {
		require.Equal(t, fault.UnresolvedRef, e.Code)
	}
	d = of(t, strings.Replace(body, "FROM", "say", 1), guards)
	require.Equal(t, outcome.Succeeded, d.Status, "%v", d.Errors)
}

// A tool that may ask in the middle of a call is named: made up, it asks nothing.
func TestADryRunNamesToolsThatAsk(t *testing.T) {
	t.Parallel()
	d := of(t, `{"steps": [{"id": "a", "tool": "book"}]}`, `[{"name": "book", "x-orchestration": {"asks": true}}]`)
	require.Equal(t, outcome.Succeeded, d.Status)
	require.Len(t, d.Notices, 1)
	require.Equal(t, outcome.NoticeQuestion, d.Notices[0].Kind)
	require.Equal(t, "book", d.Notices[0].Tool)
	require.Contains(t, d.Notices[0].Message, "may ask a person")
}
