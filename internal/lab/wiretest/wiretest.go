// Package wiretest freezes the forms of messages for the tests of the packages that write them: one golden file for
// each kind, in wire/testdata, written anew by go test -update. A change of such a file is a change of the protocol.
package wiretest

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

// Kinds are the golden files: every kind of message there is, some of them in more than one shape.
var Kinds = []string{
	"amend", "amend_approved", "amend_approves", "amend_by_owner", "amend_close", "amend_conflict", "amend_event", "amend_keep", "amend_problems", "amend_reply", "amend_reply_waits", "amend_reply_warnings", "amend_request", "amend_round", "amend_streamed",
	"answer", "answer_approve", "answer_error", "answer_expire", "answer_reply", "answer_request", "answer_value", "beat", "beat_full", "beat_gone",
	"blob", "claim", "cleared_override", "conflict_event", "dead_letter", "definition", "demand_answer", "demand_request", "end_event", "gathering",
	"get_answer", "group", "hand_over", "handed_over", "head_answer", "history", "history_calls", "history_head", "member", "member_full", "message_event", "note", "notice", "override", "override_answer",
	"ping_answer", "plan", "plan_groups", "plan_permissions", "progress", "progress_event", "question", "question_amendment", "question_amendment_event", "question_asks",
	"question_event", "question_guard", "question_plan", "question_round", "question_round_event", "queues_answer", "queues_request", "refusal", "registration", "removed_tool", "request", "result_asks", "result_error",
	"result_handle", "result_handle_checked", "result_ok", "result_redelivered", "result_text", "result_typed", "retry_event", "round", "round_begun", "round_blob", "round_end",
	"round_invalid", "say", "say_reply", "say_request", "sealing_key",
	"start", "start_accepted", "start_event", "start_groups", "start_handle", "start_inline",
	"start_needs", "start_permits", "start_rejected",
	"start_template", "step", "step_answer", "step_bucket", "step_event", "step_full", "step_streams", "stop", "stream_details", "sunk", "sunk_large", "token", "token_event", "token_reply", "told_if", "told_value", "told_value_handle", "tool", "waiting_answer", "waiting_request",
}

func path(name string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "..", "wire", "testdata", name+".golden")
}

// Golden compares a message with its golden file, or writes that.
func Golden(t testing.TB, update bool, name string, m nats.Msg) {
	t.Helper()
	require.Contains(t, Kinds, name)
	text := format(m)
	if update {
		require.NoError(t, os.WriteFile(path(name), []byte(text), 0o644))
	}
	want, err := os.ReadFile(path(name))
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func format(m nats.Msg) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m.Header)) {
		b.WriteString(k + ": " + strings.Join(m.Header[k], ", ") + "\n")
	}
	return b.String() + "\n" + string(m.Data) + "\n"
}

// Load reads a golden file.
func Load(t testing.TB, name string) nats.Msg {
	t.Helper()
	text, err := os.ReadFile(path(name))
	require.NoError(t, err)
	head, body, ok := bytes.Cut(text, []byte("\n\n"))
	if !ok { // no headers
		head, body = nil, text[1:]
	}
	m := nats.Msg{Header: nats.Header{}, Data: bytes.TrimSuffix(body, []byte("\n"))}
	for line := range strings.Lines(string(head)) {
		k, v, found := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		require.True(t, found, line)
		m.Header[k] = []string{v}
	}
	return m
}

// Later is what a newer version adds to a message that is an object, as it stands there.
const Later = `"later_field":{"x":[1.0]}`

// Fate is what becomes of a field that the reader of a message doesn't know.
type Fate int

// The fates of a message that is frozen.
const (
	Ignored Fate = iota // nothing is written again that was read from there
	Kept                // it is written again
	Opaque              // the body is the users' own bytes
)

// RoundTrip freezes a message, and decodes and encodes what the file holds: the same must come out. Then it does so
// with a field and a header more, as a newer version would send it.
func RoundTrip(t testing.TB, update bool, name string, m nats.Msg, fate Fate, recode func(m nats.Msg) nats.Msg) {
	t.Helper()
	Golden(t, update, name, m)
	require.Equal(t, "1", m.Header.Get(subjects.HeaderVersion), name)
	before := format(Load(t, name))
	require.Equal(t, before, format(recode(Load(t, name))), name)
	more := Load(t, name)
	more.Header["Later"] = []string{"x"}
	if fate != Opaque && bytes.HasPrefix(more.Data, []byte(`{"`)) {
		more.Data = slices.Concat([]byte("{"), []byte(Later), []byte(","), more.Data[1:])
	}
	after := recode(more)
	if fate == Kept {
		require.Contains(t, string(after.Data), Later, name)
		require.JSONEq(t, string(more.Data), string(after.Data), name)
		after.Data = Load(t, name).Data
	}
	require.Equal(t, before, format(after), name)
}
