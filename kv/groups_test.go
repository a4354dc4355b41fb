package kv

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/subjects"
)

// A group is kept as it was applied, with its provider. What can't be read is not left out: it may be what keeps runs from
// a tool.
func TestGroupForms(t *testing.T) {
	w := newForms(t)
	_, err := w.s.Groups.Apply(w.ctx(), "web", "default", []byte(`{"role":"web","description":"Searches.","tools":["fetch"],"match":["web_*"],"exclude":["hint:destructive"],"permissions":["internet"],"priority":3}`))
	require.NoError(t, err)
	at := func(role, provider string) string {
		return subjects.BucketSubject(subjects.GroupsBucket, subjects.GroupKey(role, provider))
	}
	wiretest.Golden(t, *update, "group", w.stored(at("web", "default")))
	set, err := w.s.Groups.AllGroups(w.ctx())
	require.NoError(t, err)
	require.Equal(t, []string{"internet"}, set.Permissions("web_search", nil))
	_, err = w.s.Groups.Apply(w.ctx(), "web", "other", []byte(`{"role":"web","tools":["fetch"]}`))
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err), "the definition of another")

	for bad, code := range map[string]fault.Code{`{"role":"x","tools":["a"],"later":1}`: fault.Internal, `{"role":"y","tools":["a"]}`: fault.Internal} {
		w.put(at("x", "default"), nats.Msg{Data: []byte(bad)})
		_, err = w.s.Groups.AllGroups(w.ctx())
		require.Equal(t, code, fault.CodeOf(err), bad)
	}
	w.put(at("x", "default"), nats.Msg{Header: nats.Header{subjects.HeaderVersion: {"2"}}, Data: []byte(`{}`)})
	_, err = w.s.Groups.AllGroups(w.ctx())
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err))
	require.NoError(t, w.s.Groups.Remove(w.ctx(), "x", "default"))
	set, err = w.s.Groups.AllGroups(w.ctx())
	require.NoError(t, err)
	require.Equal(t, []string{"web"}, set.Roles())
}
