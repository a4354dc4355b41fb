package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
)

// waitsTwice waits for an approval and for a value, and then for nothing.
const waitsTwice = `{"steps":[
	{"id":"pay","tool":"echo","arguments":{"n":1},"approval":{"ask":"Pay?"}},
	{"id":"gift","tool":"echo","arguments":{"n":2},"approval":true},
	{"id":"who","tool":"ask","arguments":{"question":"Who?","choices":["Ada","Bob"]}},
	{"id":"end","tool":"echo","arguments":{"to":"$ref:who"},"depends_on":["pay"]}],"output_steps":["end"]}`

// Whoever looks for what was answered before is told what stands, and by whom, and so is who answers it again.
func TestQuestionsByHand(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	_, stderr, code := execute(t, data, waitsTwice, "submit", "--run", "order-42", "-")
	require.Zero(t, code, stderr)
	var asked []outcome.Question
	require.Eventually(t, func() bool {
		stdout, _, code := execute(t, data, "", "questions", "list", "order-42", "-o", "json")
		return code == 0 && json.Unmarshal([]byte(stdout), &asked) == nil && len(asked) == 3
	}, patience, 50e6)

	said := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		return execute(t, data, "", args...)
	}
	stdout, stderr, code := said("approve", "order-42", "pay", "--by", "ann", "--reason", "as agreed")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "approved")
	_, stderr, code = said("reject", "order-42", "gift", "--by", "bob", "--reason", "too much")
	require.Zero(t, code, stderr)

	shown := func(part string, args ...string) {
		t.Helper()
		require.Eventually(t, func() bool { // the entry of the question goes a moment after the answer
			_, stderr, code = said(append([]string{"questions", "show", "order-42"}, args...)...)
			return code == 1 && strings.Contains(stderr, "already_finished:")
		}, patience, 50e6, "%s", &stderr)
		require.Contains(t, stderr, part)
		require.Contains(t, stderr, "stepjet get order-42")
	}
	shown("the step pay was approved by ann (unverified)", "pay")
	shown("the step gift was rejected by bob (unverified)", "gift")
	stdout, stderr, code = said("approve", "order-42", "pay", "--by", "bob")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "approved by ann (unverified)", "what stands")

	_, stderr, code = said("questions", "answer", "order-42", "who", "Eve")
	require.NotZero(t, code)
	require.Contains(t, stderr, "choose one of")
	_, stderr, code = said("questions", "answer", "order-42", "who", "Ada", "--by", "ann")
	require.Zero(t, code, stderr)
	stdout, stderr, code = said("get", "order-42", "--wait", "1m")
	require.Zero(t, code, stderr)
	for _, part := range []string{"approved by ann (unverified)", "as agreed", "rejected by bob (unverified)", "answered by ann"} {
		require.Contains(t, stdout, part)
	}
	shown("the step who was answered by ann", "who")
	shown("the step end is succeeded, and waits for no answer", "end")
	_, stderr, code = said("questions", "show", "order-42", "nobody")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "not_found:")
}
