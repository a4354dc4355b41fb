package wire_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestPlanForm: a plan is never written again. What a newer client says in a header is there for who knows it.
func TestPlanForm(t *testing.T) {
	t.Parallel()
	p := wire.Plan{
		Client: "agent-1", Retry: wire.Retry{Of: "order-41", From: "tokyo"},
		Context: wire.RunContext{
			All:   contextOf(t, map[string]string{"user": "ann", "token": "t"}, "token"),
			Steps: map[string]wire.Context{"tokyo": contextOf(t, map[string]string{"locale": "fr"})},
		},
		Trace: wire.Trace{Parent: parent, State: "vendor=1"},
	}
	h := nats.Header{}
	p.Set(h)
	golden(t, "plan", h, []byte(`{"steps": [{"id":"tokyo","tool":"get_weather","arguments":{"location":"Tokyo"}}]}`), wiretest.Opaque, func(m nats.Msg) nats.Msg {
		read, err := wire.ParsePlan(m.Header)
		require.NoError(t, err)
		require.Equal(t, p, read)
		h := nats.Header{}
		read.Set(h)
		return nats.Msg{Header: h, Data: m.Data}
	})
}

// permitted returns a plan that may use some things.
func permitted(m nats.Msg) nats.Msg {
	m.Header = nats.Header{}
	wire.Plan{Client: "agent-1", Permissions: []string{"files", "internet"}}.Set(m.Header)
	return m
}

// A plan with permissions has a version that who does not know of them leaves alone. No list and an empty one differ.
func TestPermissionsOfAPlan(t *testing.T) {
	t.Parallel()
	for _, list := range [][]string{{"internet"}, {"files", "internet"}, {}} {
		h := nats.Header{}
		wire.Plan{Permissions: list}.Set(h)
		require.Equal(t, []string{subjects.PermittedVersion}, h[subjects.HeaderVersion])
		require.True(t, wire.KindPlan.Known(h))
		p, err := wire.ParsePlan(h)
		require.NoError(t, err)
		require.Equal(t, list, p.Permissions)
	}
	h := nats.Header{}
	wire.Plan{Permissions: []string{"group:web", "internet"}}.Set(h)
	require.Equal(t, []string{subjects.GroupedVersion}, h[subjects.HeaderVersion], "who knows of no groups among them leaves it alone")
	require.True(t, wire.KindPlan.Known(h))
	wiretest.Golden(t, *update, "plan_groups", nats.Msg{Header: h, Data: []byte(`{"steps": []}`)})
	p, err := wire.ParsePlan(h)
	require.NoError(t, err)
	require.Equal(t, []string{"group:web", "internet"}, p.Permissions)
	wiretest.Golden(t, *update, "plan_permissions", permitted(nats.Msg{Data: []byte(`{"steps": []}`)}))
	h = nats.Header{}
	wire.Plan{}.Set(h)
	require.Equal(t, nats.Header{subjects.HeaderVersion: {"1"}}, h)
	p, err = wire.ParsePlan(nats.Header{subjects.HeaderPermissions: {"b, a,b"}})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, p.Permissions)
	for _, bad := range []string{",", "a b", "a,", "group:", "group:a b", "role:a", strings.Repeat("a,", 64) + "a"} {
		p, err := wire.ParsePlan(nats.Header{subjects.HeaderPermissions: {bad}})
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err), bad)
		require.NotNil(t, p.Permissions, "what can't be read permits no more than it says")
	}
}

// What is wrong with a plan's headers is what it is rejected with; a token that could be part of no subject is none.
func TestForeignPlans(t *testing.T) {
	t.Parallel()
	p, err := wire.ParsePlan(nil)
	require.NoError(t, err)
	require.Equal(t, wire.Plan{}, p)
	h := nats.Header{subjects.HeaderVersion: {"junk"}, subjects.HeaderContext: {"{"}, subjects.HeaderClient: {"a.b"}, subjects.HeaderRetryOf: {"order #41"}}
	p, err = wire.ParsePlan(h)
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
	require.Contains(t, err.Error(), subjects.HeaderVersion)
	require.Equal(t, wire.Plan{Retry: wire.Retry{Of: "order #41"}}, p)
	h[subjects.HeaderVersion] = nil
	_, err = wire.ParsePlan(h)
	require.ErrorContains(t, err, subjects.HeaderContext)
}
