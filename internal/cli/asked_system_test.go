package cli

import (
	"encoding/json"
	"slices"
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

// byHand is a person at the command line, with runs whose plans were submitted for an approval.
type byHand struct {
	*testing.T
	data string
}

func (h *byHand) said(stdin string, args ...string) (stdout, stderr string, code int) {
	h.Helper()
	return execute(h.T, h.data, stdin, args...)
}

// does runs a command that succeeds, and returns what it printed.
func (h *byHand) does(stdin string, args ...string) string {
	h.Helper()
	stdout, stderr, code := h.said(stdin, args...)
	require.Zero(h, code, "%v: %s", args, stderr)
	return stdout
}

// fails runs a command that is refused with each of some words.
func (h *byHand) fails(words []string, args ...string) {
	h.Helper()
	stdout, stderr, code := h.said("", args...)
	require.NotZero(h, code, "%v: %s", args, stdout)
	for _, word := range words {
		require.Contains(h, stderr, word, "%v", args)
	}
}

// asked waits until somebody is asked about a revision of a plan, and returns the digest of that.
func (h *byHand) asked(run, step string, revision int) string {
	h.Helper()
	var q outcome.Question
	require.Eventually(h, func() bool {
		stdout, _, code := h.said("", "questions", "show", run, step, "-o", "json")
		return code == 0 && json.Unmarshal([]byte(stdout), &q) == nil && q.Revision == revision
	}, patience, 50e6)
	return q.Digest
}

// answers gives an answer, and waits until nobody is asked any more: the entry of a question goes a moment later. Where something was
// asked under the step before, who does not say by its digest what was looked at answers nothing.
func (h *byHand) answers(run, step string, args ...string) {
	h.Helper()
	var q outcome.Question
	require.NoError(h, json.Unmarshal([]byte(h.does("", "questions", "show", run, step, "-o", "json")), &q))
	if q.Revision > 0 && args[0] != "cancel" && !slices.Contains(args, "--digest") {
		h.fails([]string{"was asked about before", "--digest"}, args...)
		args = append(args, "--digest", q.Digest)
		require.Contains(h, h.does("", "questions", "show", run, step), "stepjet "+args[0]+" "+run+" "+step+" --digest "+q.Digest)
	}
	h.does("", args...)
	require.Eventually(h, func() bool {
		_, _, code := h.said("", "questions", "show", run, step)
		return code == 1
	}, patience, 50e6)
}

const (
	openApproved = `{"approval":true,"open":true,"steps":[{"id":"a","tool":"echo"}]}`
	stepB        = `{"id":"b","tool":"echo"}`
)

// TestWhatStandsOfAnAmendmentByHand: who answers after somebody else is told what became of that amendment, and not of the
// plan, with its digest or without.
func TestWhatStandsOfAnAmendmentByHand(t *testing.T) {
	t.Parallel()
	h := &byHand{t, folder(t)}
	developing(t, h.data)
	h.does(openApproved, "submit", "--run", "r", "-")
	whole := h.asked("r", "=", 0)
	h.answers("r", "=", "approve", "r", "=", "--by", "root")
	h.does(stepB, "amend", "r", "--add", "-")
	first := h.asked("r", "=", 1)
	h.answers("r", "=", "reject", "r", "=", "--by", "alice", "--digest", first)

	rejected := []string{"conflict:", "rejected already by alice"}
	stands := func() {
		t.Helper()
		h.fails(rejected, "approve", "r", "=", "--by", "bob", "--digest", first)
		require.Contains(t, h.does("", "reject", "r", "=", "--by", "bob", "--digest", first), "rejected by alice")
		require.Contains(t, h.does("", "approve", "r", "=", "--by", "bob", "--digest", whole), "approved by root")
		h.fails([]string{"conflict:", "something else"}, "approve", "r", "=", "--digest", strings.Repeat("0", 64))
	}
	stands()
	h.fails(rejected, "approve", "r", "=", "--by", "bob")
	h.fails([]string{"already_finished:", "Rejected by alice"}, "questions", "show", "r", "=")

	_, odd, code := h.said(`{"id":"c","tool":"echo","mood":"good"}`, "amend", "r", "--add", "-")
	require.Zero(t, code, odd)
	require.Contains(t, odd, `warning c, /add/0/mood: "mood" is not a field of a step; it is ignored`)
	h.asked("r", "=", 2)
	h.answers("r", "=", "approve", "r", "=", "--by", "carol")
	require.Contains(t, h.does("", "approve", "r", "=", "--by", "carol"), "approved by carol")

	h.does(`{"id":"d","tool":"echo"}`, "amend", "r", "--add", "-")
	void := h.asked("r", "=", 3)
	h.answers("r", "=", "cancel", "r")
	for _, digest := range []string{"", void} {
		h.fails([]string{"already_finished:"}, "approve", "r", "=", "--digest", digest)
	}
	h.does("", "get", "r", "--wait", "1m")
	stands()
	h.fails([]string{"already_finished:"}, "approve", "r", "=", "--digest", void)

	h.does(`{"approval":true,"steps":[{"id":"p","plan":{"open":true,"steps":[{"id":"x","tool":"echo"}]}}]}`, "submit", "--run", "n", "-")
	h.asked("n", "=", 0)
	h.answers("n", "=", "approve", "n", "=", "--by", "root")
	require.Eventually(t, func() bool { // the plan of the step is entered
		_, _, code := h.said(stepB, "amend", "n", "--scope", "p", "--add", "-")
		return code == 0
	}, patience, 50e6)
	h.asked("n", "p", 1)
	h.answers("n", "p", "approve", "n", "p", "--by", "carol")
	require.Contains(t, h.does("", "approve", "n", "p", "--by", "bob"), "approved by carol")
}

// TestAmendmentsByHand: a change that was refused may be asked for again, to the plan as it is now; the last that is in
// force or waits is asked for once. A revision that there is none of is called so.
func TestAmendmentsByHand(t *testing.T) {
	t.Parallel()
	h := &byHand{t, folder(t)}
	developing(t, h.data)
	h.does(openApproved, "submit", "--run", "r", "-")
	h.asked("r", "=", 0)
	h.answers("r", "=", "approve", "r", "=")
	h.does(stepB, "amend", "r", "--add", "-")
	h.asked("r", "=", 1)
	h.answers("r", "=", "reject", "r", "=")

	for range 2 {
		require.Contains(t, h.does(stepB, "amend", "r", "--add", "-"), "revision 2 waits for an approval")
	}
	h.asked("r", "=", 2)
	h.answers("r", "=", "approve", "r", "=")
	require.Contains(t, h.does(stepB, "amend", "r", "--add", "-"), "revision 2, 2 steps")
	h.does("", "amend", "r", "--output", `"one"`, "--approved")
	h.does("", "amend", "r", "--output", `"two"`, "--approved")
	require.Contains(t, h.does("", "amend", "r", "--output", `"one"`, "--approved"), "revision 5", "it is another plan by now")

	h.fails([]string{"--revision -5 is none"}, "amend", "r", "--close", "--revision", "-5")
	h.fails([]string{"conflict:", "was not amended so often: it is at revision 5"}, "amend", "r", "--close", "--revision", "9")
	h.fails([]string{"conflict:", "was amended meanwhile: it is at revision 5"}, "amend", "r", "--close", "--revision", "1")

	h.does(`{"approval":{"timeout":"100ms","on_timeout":"approve"},"open":true,"steps":[{"id":"a","tool":"echo"}]}`, "submit", "--run", "t", "-")
	require.Eventually(t, func() bool { // the plan itself is approved of by nobody
		_, _, code := h.said(stepB, "amend", "t", "--add", "-")
		return code == 0
	}, patience, 50e6)
	require.Eventually(t, func() bool { return strings.Contains(h.does("", "get", "t"), "in force, as nobody answered") }, patience, 50e6)
	h.fails([]string{"conflict:", "expired already"}, "approve", "t", "=")
}

// All rounds of an agent are asked about under its step. Who has looked at one must not approve of the next, which they have not seen,
// by the same words: those name the round's digest.
func TestRoundsByHand(t *testing.T) {
	t.Parallel()
	h := &byHand{t, folder(t)}
	_, url := developing(t, h.data)
	planning(t, url, holding{answers: []string{`{"steps":[{"id":"a","tool":"add","arguments":{"a":%s,"b":1}}]}`,
		`{"steps":[{"id":"b","tool":"add","arguments":{"a":1000000,"b":1}}]}`, `{"output":"done"}`}})
	require.Eventually(t, func() bool {
		_, _, code := h.said(`{"name":"asker","description":"Asks.","inputSchema":{"type":"object"},
			"agent":{"planner":{"tool":"planner"},"tools":["add"],"approval":"plan"}}`, "agents", "apply", "-")
		return code == 0
	}, patience, 50e6)
	h.does(`{"steps":[{"id":"agent","tool":"asker","arguments":{"by":1}}]}`, "submit", "--run", "r", "-")
	var q outcome.Question
	round := func(n int) {
		require.Eventually(t, func() bool {
			stdout, _, code := h.said("", "questions", "show", "r", "agent", "-o", "json")
			return code == 0 && json.Unmarshal([]byte(stdout), &q) == nil && *q.Round == n
		}, patience, 50e6)
	}
	round(0)
	require.NotContains(t, h.does("", "questions", "show", "r", "agent"), "--digest")
	h.does("", "approve", "r", "agent")
	round(1)
	for _, does := range []string{"approve", "reject"} {
		h.fails([]string{"was asked about before", "--digest"}, does, "r", "agent")
	}
	require.Contains(t, h.does("", "questions", "show", "r", "agent"), "stepjet approve r agent --digest "+q.Digest)
	h.does("", "approve", "r", "agent", "--digest", q.Digest)
	require.Contains(t, h.does("", "get", "r", "--wait", "1m"), "succeeded")
}
