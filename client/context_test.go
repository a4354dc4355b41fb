package client_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func bag(t *testing.T, values map[string]string, secrets ...string) wire.Context {
	t.Helper()
	c, err := wire.NewContext(values, secrets...)
	require.NoError(t, err)
	return c
}

func TestContextTravelsInHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	given := wire.RunContext{
		All:   bag(t, map[string]string{"user": "ada", "token": "line\nbreak, é"}, "token"),
		Steps: map[string]wire.Context{"a": bag(t, map[string]string{"user": "bob"})},
	}
	_, err := w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "r", Context: given, Header: nats.Header{
		"Stepjet-Context": {`{"user":"mallory"}`}, "Stepjet-Retry-Of": {"other"},
	}})
	require.NoError(t, err)
	e := w.record("r")
	require.Equal(t, planA, string(e.Data))
	require.Empty(t, e.Header.Get(subjects.HeaderRetryOf), "only Retry writes that")
	read, err := wire.ParsePlan(e.Header)
	require.NoError(t, err)
	got := read.Context
	user, _ := got.Of("a").Get("user")
	require.Equal(t, "bob", user)
	user, _ = got.Of("b").Get("user")
	require.Equal(t, "ada", user)
	token, _ := got.Of("a").Get("token")
	require.Equal(t, "line\nbreak, é", token)
	require.True(t, got.Of("a").Secret("token"))
	require.False(t, got.Of("a").Secret("user"))
}

func TestTooMuchContextIsRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *embedded.Options) { o.MaxPayload = 8 << 10 })
	half := bag(t, map[string]string{"x": strings.Repeat("x", 5<<10)})
	_, err := w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "r", Context: wire.RunContext{All: half, Steps: map[string]wire.Context{"a": half}}})
	require.Equal(t, fault.LimitExceeded, fault.CodeOf(err), "%v", err)
	// It counts as a part of the message.
	plan := planA + strings.Repeat(" ", 5<<10)
	_, err = w.client.Submit(w.ctx(), []byte(plan), client.SubmitOptions{Run: "r", Context: wire.RunContext{All: half}})
	require.Equal(t, fault.MessageTooLarge, fault.CodeOf(err), "%v", err)
	_, err = w.client.Submit(w.ctx(), []byte(plan), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
}
