package kv_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// knowing is the configuration of an orchestrator that knows some needs.
func knowing(needs ...string) kv.Config {
	k := wire.Knowledge{}
	for _, name := range needs {
		k[name] = wire.Need{}
	}
	return kv.Config{Knows: k}
}

// What runs need is recorded once, and every member hears who lacks it: one that says nothing of what it knows is of
// before.
func TestMembersHearWhoLacksWhatRunsNeed(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	a, b := setupOn(t, srv, knowing("later", "latest")), setupOn(t, srv, knowing("latest"))
	_, told := members(t, a, "a")
	_, toldB := members(t, b, "b")
	js, err := jetstream.New(a.Conn())
	require.NoError(t, err)
	old := &nats.Msg{Subject: subjects.BucketSubject(subjects.MembersBucket, "old"), Header: nats.Header{"Nats-TTL": {"60s"}}, Data: []byte(`{"serves":"0"}`)}
	_, err = js.PublishMsg(within(t, 2*time.Minute), old)
	require.NoError(t, err)
	awaitMembers(t, told, kv.Member{ID: "a"}, kv.Member{ID: "b"}, kv.Member{ID: "old"})

	ctx := within(t, 2*time.Minute)
	require.NoError(t, b.Registry.RecordNeeds(ctx, []string{"later"}), "also by who does not know it")
	require.NoError(t, a.Registry.RecordNeeds(ctx, []string{"later", "not a name"}))
	for _, told := range []<-chan []kv.Member{told, toldB} {
		awaitMembers(t, told, kv.Member{ID: "a"}, kv.Member{ID: "b", Lacks: "later"}, kv.Member{ID: "old", Lacks: "later"})
	}
	needs, err := a.Registry.Needs(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"later"}, needs)

	// Whoever comes later is told so from the first.
	c := setupOn(t, srv, knowing())
	_, toldC := members(t, c, "c")
	awaitMembers(t, toldC, kv.Member{ID: "a"}, kv.Member{ID: "b", Lacks: "later"}, kv.Member{ID: "c", Lacks: "later"}, kv.Member{ID: "old", Lacks: "later"})

	bucket, err := js.KeyValue(ctx, subjects.ToolsBucket)
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(ctx, subjects.NeedKey("later")))
	awaitMembers(t, told, kv.Member{ID: "a"}, kv.Member{ID: "b"}, kv.Member{ID: "c"}, kv.Member{ID: "old"})
	require.NoError(t, a.Registry.RecordNeeds(ctx, []string{"later"}), "in the place of its mark")
	awaitMembers(t, told, kv.Member{ID: "a"}, kv.Member{ID: "b", Lacks: "later"}, kv.Member{ID: "c", Lacks: "later"}, kv.Member{ID: "old", Lacks: "later"})
}

// An entry of the registry that needs something is for who knows it, and is written again as one that does.
func TestEntriesWithNeeds(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	ctx := within(t, 2*time.Minute)
	knows, lacks := setupOn(t, srv, knowing("later")), setupOn(t, srv, knowing())
	const definition = `{"name":"plan-tool","inputSchema":{"type":"object"},"needs":["later"]}`
	_, err := knows.Registry.Register(ctx, []byte(definition))
	require.NoError(t, err)
	put := func(subject string) {
		e, err := knows.Ledger.Read(ctx, subject)
		require.NoError(t, err)
		m := &nats.Msg{Subject: subject, Header: nats.Header{subjects.HeaderVersion: {subjects.NeedsVersion}}, Data: append([]byte(`{"needs":["later"],`), e.Data[1:]...)}
		js, err := jetstream.New(knows.Conn())
		require.NoError(t, err)
		_, err = js.PublishMsg(ctx, m)
		require.NoError(t, err)
	}
	subject := subjects.BucketSubject(subjects.ToolsBucket, subjects.ToolKey("plan-tool"))
	put(subject)
	_, err = knows.Registry.Tool(ctx, "plan-tool")
	require.NoError(t, err)
	for _, err := range []error{second(lacks.Registry.Tool(ctx, "plan-tool")), second(lacks.Registry.Register(ctx, []byte(definition))), second(lacks.Registry.Override(ctx, "plan-tool", []byte(`{"by":"ann"}`)))} {
		require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "%v", err)
	}
	_, err = knows.Registry.Override(ctx, "plan-tool", []byte(`{"by":"ann"}`))
	require.NoError(t, err)
	e, err := knows.Ledger.Read(ctx, subject)
	require.NoError(t, err)
	require.Equal(t, subjects.NeedsVersion, e.Header.Get(subjects.HeaderVersion))
	require.Contains(t, string(e.Data), `"needs":["later"]`)
	require.Contains(t, string(e.Data), `"by":"ann"`)
}
