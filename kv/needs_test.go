package kv_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
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

// guardedTool is one each call of which waits for an approval.
const guardedTool = `{"name":"guarded","inputSchema":{"type":"object"},"x-orchestration":{"approval":"always"}}`

// An approval is refused while an orchestrator is alive that would start runs without it. Then it is recorded, so that none
// that comes later owns anything.
func TestAnApprovalWaitsForAllOrchestrators(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	ctx := within(t, 2*time.Minute)
	knows := setupOn(t, srv, knowing(wire.LanguageTwo))
	_, told := members(t, knows, "a")
	js, err := jetstream.New(knows.Conn())
	require.NoError(t, err)
	old := subjects.BucketSubject(subjects.MembersBucket, "old")
	_, err = js.PublishMsg(ctx, &nats.Msg{Subject: old, Header: nats.Header{"Nats-TTL": {"60s"}}, Data: []byte(`{"serves":"0","knows":["later"]}`)})
	require.NoError(t, err)
	awaitMembers(t, told, kv.Member{ID: "a"}, kv.Member{ID: "old"})
	_, err = knows.Registry.Register(ctx, []byte(`{"name":"plain","inputSchema":{"type":"object"}}`))
	require.NoError(t, err)

	always := []byte(`{"x-orchestration":{"approval":"always"}}`)
	for _, err := range []error{
		second(knows.Registry.Register(ctx, []byte(guardedTool))), second(knows.Registry.Override(ctx, "plain", always)),
		second(knows.Registry.Override(ctx, "absent", always)),
	} {
		require.Equal(t, fault.NotReady, fault.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, "the orchestrator old does not know")
	}
	_, err = knows.Registry.Tool(ctx, "guarded")
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "nothing was written")
	for _, name := range []string{"plain", "absent"} {
		o, err := knows.Registry.OverrideOf(ctx, name)
		require.NoError(t, err)
		require.Nil(t, o)
	}
	needs, err := knows.Registry.Needs(ctx)
	require.NoError(t, err)
	require.Empty(t, needs)

	bucket, err := js.KeyValue(ctx, subjects.MembersBucket)
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(ctx, "old"))
	registered, err := knows.Registry.Register(ctx, []byte(guardedTool))
	require.NoError(t, err)
	require.Equal(t, []string{wire.LanguageTwo}, registered.Needs)
	_, err = knows.Registry.Override(ctx, "plain", always)
	require.NoError(t, err)
	needs, err = knows.Registry.Needs(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{wire.LanguageTwo}, needs)
	plain, err := knows.Registry.Tool(ctx, "plain")
	require.NoError(t, err)
	require.EqualValues(t, "always", plain.Contract.Approval)
	require.Empty(t, plain.Override.Extra, "what it needs is no field of an operator's")
}

// A template waits for all orchestrators, too: one of before would take it for a tool whose workers are away.
func TestATemplateWaitsForAllOrchestrators(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	ctx := within(t, 2*time.Minute)
	knows := setupOn(t, srv, knowing(wire.LanguageTwo))
	_, told := members(t, knows, "a")
	js, err := jetstream.New(knows.Conn())
	require.NoError(t, err)
	old := subjects.BucketSubject(subjects.MembersBucket, "old")
	_, err = js.PublishMsg(ctx, &nats.Msg{Subject: old, Header: nats.Header{"Nats-TTL": {"60s"}}, Data: []byte(`{"serves":"0","knows":["later"]}`)})
	require.NoError(t, err)
	awaitMembers(t, told, kv.Member{ID: "a"}, kv.Member{ID: "old"})
	def, err := tool.ParseDefinition([]byte(`{"name":"refund","plan":{"steps":[{"id":"a","tool":"pay","if":"1 < 2"}]}}`))
	require.NoError(t, err)
	_, err = knows.Registry.ApplyTemplate(ctx, def)
	require.Equal(t, fault.NotReady, fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "the orchestrator old does not know")
	_, err = knows.Registry.Tool(ctx, "refund")
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "nothing was written")

	bucket, err := js.KeyValue(ctx, subjects.MembersBucket)
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(ctx, "old"))
	put, err := knows.Registry.ApplyTemplate(ctx, def)
	require.NoError(t, err)
	require.Equal(t, []string{wire.LanguageTwo}, put.Needs)
	kept, err := knows.Registry.Definition(ctx, put.Digest)
	require.NoError(t, err)
	require.Equal(t, string(def.Plan), string(kept.Plan), "byte by byte: results have the order of its keys")
	require.Equal(t, put.Digest, kept.Digest())
	_, err = js.Consumer(ctx, subjects.StepsStream(0), subjects.Durable("refund"))
	require.ErrorIs(t, err, jetstream.ErrConsumerNotFound, "nobody takes steps of it")
	lacks := setupOn(t, srv, knowing())
	tools, err := lacks.Registry.Tools(ctx)
	require.NoError(t, err)
	require.Empty(t, tools, "who does not know of templates leaves it alone")
	removed, err := knows.Registry.RemoveTool(ctx, "refund", false)
	require.NoError(t, err)
	require.Zero(t, removed.Pending)
}

// Whoever does not know of approvals registers no tool whose override asks for one, be it there, removed, or not there yet; and
// what it has registered before it could know better is guarded for all who do.
func TestAnOldOrchestratorDropsNoApproval(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	ctx := within(t, 2*time.Minute)
	knows, lacks := setupOn(t, srv, knowing(wire.LanguageTwo)), setupOn(t, srv, knowing())
	const plain = `{"name":"plain","inputSchema":{"type":"object"}}`
	refused := func(when string) {
		t.Helper()
		_, err := lacks.Registry.Register(ctx, []byte(plain))
		require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "%s: %v", when, err)
	}
	_, err := knows.Registry.Override(ctx, "plain", []byte(`{"x-orchestration":{"approval":"$args.amount > 100"},"by":"ann"}`))
	require.NoError(t, err)
	refused("before it is registered")
	_, err = knows.Registry.Register(ctx, []byte(plain))
	require.NoError(t, err)
	refused("when it is")
	_, err = knows.Registry.RemoveTool(ctx, "plain", true)
	require.NoError(t, err)
	refused("after it was removed")
	_, err = lacks.Registry.Override(ctx, "plain", []byte(`{"by":"eve"}`))
	require.NoError(t, err, "an operator may clear it, by whatever orchestrator")

	// One of before approvals keeps the field, as it keeps all that it doesn't know, and writes a contract without.
	_, err = knows.Registry.Register(ctx, []byte(guardedTool))
	require.NoError(t, err)
	subject := subjects.BucketSubject(subjects.ToolsBucket, subjects.ToolKey("guarded"))
	e, err := knows.Ledger.Read(ctx, subject)
	require.NoError(t, err)
	var entry map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(e.Data, &entry))
	delete(entry, "needs")
	entry["contract"] = bytes.Replace(entry["contract"], []byte(`,"approval":"always"`), nil, 1)
	require.NotContains(t, string(entry["contract"]), "approval")
	body, err := json.Marshal(entry)
	require.NoError(t, err)
	js, err := jetstream.New(knows.Conn())
	require.NoError(t, err)
	_, err = js.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: nats.Header{subjects.HeaderVersion: {subjects.Version}}, Data: body})
	require.NoError(t, err)
	read, err := knows.Registry.Tool(ctx, "guarded")
	require.NoError(t, err)
	require.EqualValues(t, "always", read.Contract.Approval)
	again, err := knows.Registry.Register(ctx, []byte(guardedTool))
	require.NoError(t, err)
	require.Greater(t, again.Revision, read.Revision, "and it is written anew, with what it needs")
	require.Equal(t, []string{wire.LanguageTwo}, again.Needs)
}
