package doctor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func TestAnEmptyAccountIsSetUp(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	r, err := doctor.Examine(ctx(t), nc, doctor.Options{})
	require.NoError(t, err)
	require.Equal(t, "Stepjet is not set up in this account", finding(t, r, "stream", "KV_runs_0").Means)
	_, err = kv.Open(ctx(t), nc)
	require.Equal(t, fault.NotReady, fault.CodeOf(err), "looking changes nothing")

	r, err = doctor.Examine(ctx(t), nc, doctor.Options{Mend: true, Want: kv.Config{Shards: 4, Retention: time.Hour, StepsAsync: true}})
	require.NoError(t, err)
	for _, f := range r.Problems() {
		require.Contains(t, []string{"orchestrator", "intake"}, f.Check, "%+v", f)
	}
	s, err := kv.Open(ctx(t), nc)
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, 4, s.Ledger.Shards())
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	made := streams(t, js)
	other := natstest.Start(t)
	theirs, err := jetstream.New(setupOn(t, other, kv.Config{Shards: 4, Retention: time.Hour, StepsAsync: true}).Conn())
	require.NoError(t, err)
	require.Equal(t, streams(t, theirs), made, "as an orchestrator makes it")
}

func TestAHalfCreatedSetupIsFinished(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{Shards: 4, Retention: time.Hour})
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	whole := streams(t, js)
	for _, name := range []string{"KV_runs_0", "KV_runs_2", "STEPS_0", "OBJ_blobs", "KV_members"} {
		require.NoError(t, js.DeleteStream(ctx(t), name))
	}
	r, err := doctor.Examine(ctx(t), s.Conn(), doctor.Options{Mend: true})
	require.NoError(t, err)
	require.True(t, finding(t, r, "stream", "KV_runs_2").Mended)
	now := streams(t, js)
	require.Len(t, now, len(whole))
	for name, cfg := range whole {
		require.Equal(t, cfg, now[name], name)
	}
}

func TestWhatAServerCantChangeIsExplained(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	_, err = js.CreateStream(ctx(t), jetstream.StreamConfig{Name: "STEPS_0", Subjects: subjects.StepsSubjects(0), Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	r, err := doctor.Examine(ctx(t), natstest.Connect(t, srv), doctor.Options{Mend: true})
	require.NoError(t, err)
	f := finding(t, r, "stream", "STEPS_0")
	require.False(t, f.Fixable)
	require.Contains(t, f.Fix, "nats stream rm STEPS_0")
	require.Contains(t, f.Found, "storage Memory")
	require.Contains(t, f.Expected, "retention WorkQueue")
}

func TestALedgerOfAnotherShardCount(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{Shards: 2})
	f := finding(t, p.examine(doctor.Options{Want: kv.Config{Shards: 8}, Mend: true}), "stream", "ledger")
	require.Equal(t, "8 ledger shards", f.Expected)
	require.Equal(t, "2 ledger shards", f.Found)
	require.Contains(t, f.Fix, "--shards 2")
}

func TestTheIntakeMappingIsPrintedAndChecked(t *testing.T) {
	t.Parallel()
	source, destination := subjects.IntakeMapping(4)
	conf := fmt.Sprintf("accounts { A: { jetstream: enabled, users: [{user: a, password: a}], mappings: { %q: %q } }, B: { jetstream: enabled, users: [{user: b, password: b}] } }", source, destination)
	srv := natstest.Start(t, func(o *embedded.Options) { o.ConfigFile = writeFile(t, "nats.conf", conf) })
	for user, mapped := range map[string]bool{"a": true, "b": false} {
		nc := natstest.Connect(t, srv, nats.UserInfo(user, user))
		s, err := kv.Setup(ctx(t), nc, kv.Config{Shards: 4})
		require.NoError(t, err)
		r, err := doctor.Examine(ctx(t), nc, doctor.Options{})
		require.NoError(t, err)
		if mapped {
			require.NotContains(t, strings.Join(unwell(r), "\n"), "intake")
		} else {
			require.Contains(t, finding(t, r, "intake", "").Fix, fmt.Sprintf("%q: %q", source, destination))
		}
		for shard := range 4 {
			last, err := s.Ledger.LastSequence(ctx(t), shard)
			require.NoError(t, err)
			require.Zero(t, last, "the probe is stored nowhere")
		}
		s.Close()
	}
	// A mapping left over from another setup is as bad.
	lone := natstest.Start(t, func(o *embedded.Options) {
		o.ConfigFile = writeFile(t, "one.conf", fmt.Sprintf("mappings: { %q: %q }", source, destination))
	})
	r, err := doctor.Examine(ctx(t), setupOn(t, lone, kv.Config{}).Conn(), doctor.Options{})
	require.NoError(t, err)
	require.Contains(t, finding(t, r, "intake", "").Fix, "take the mapping")
}

func TestAServerWithoutJetStreamCantBeExamined(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t, func(o *embedded.Options) { o.NoJetStream = true }))
	_, err := doctor.Examine(ctx(t), nc, doctor.Options{})
	require.Equal(t, fault.NoJetStream, fault.CodeOf(err))
	_, err = doctor.Examine(ctx(t), nc, doctor.Options{Want: kv.Config{Shards: 3}})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

func TestAClusterGetsItsCopies(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, 3)
	nc := natstest.Connect(t, servers[0])
	s, err := kv.Setup(within(t, 2*time.Minute), nc, kv.Config{})
	require.NoError(t, err)
	defer s.Close()
	r, err := doctor.Examine(within(t, 2*time.Minute), nc, doctor.Options{})
	require.NoError(t, err)
	require.Contains(t, finding(t, r, "durability", "replicas").Fix, "--durability replicated")

	want := kv.Config{Replicas: 3, Cluster: "test"}
	r, err = doctor.Examine(within(t, 2*time.Minute), nc, doctor.Options{Want: want, Mend: true})
	require.NoError(t, err)
	f := finding(t, r, "stream", "KV_runs_0")
	require.Contains(t, f.Expected, "replicas 3")
	require.True(t, f.Mended, "%+v", f)
	require.Eventually(t, func() bool {
		r, err = doctor.Examine(within(t, 2*time.Minute), nc, doctor.Options{Want: want})
		return err == nil && !strings.Contains(strings.Join(unwell(r), " "), "stream: ") && !strings.Contains(strings.Join(unwell(r), " "), "replica: ")
	}, 2*time.Minute, 100*time.Millisecond, "%v", unwell(r))

	r, err = doctor.Examine(within(t, 2*time.Minute), nc, doctor.Options{Want: kv.Config{Replicas: 3, Cluster: "elsewhere"}})
	require.NoError(t, err)
	f = finding(t, r, "stream", "KV_history")
	require.Equal(t, "it is in test", f.Found)
	require.Contains(t, f.Fix, "nats stream edit KV_history --cluster elsewhere")

	servers[2].Shutdown()
	require.Eventually(t, func() bool {
		r, err = doctor.Examine(within(t, 2*time.Minute), nc, doctor.Options{Want: want})
		return err == nil && strings.Contains(strings.Join(unwell(r), " "), "replica: ")
	}, 2*time.Minute, 100*time.Millisecond)
}

// What credentials do not allow is told as that, and not as a sickness.
func TestMissingPermissionsAreNoSickness(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) {
		o.ConfigFile = writeFile(t, "nats.conf", `authorization { users: [
			{user: admin, password: a}
			{user: viewer, password: v, permissions: {publish: {deny: ["plan.>", "api.>", "$JS.API.CONSUMER.LIST.>"]}}}
		] }
		no_auth_user: admin`)
	})
	s := setupOn(t, srv, kv.Config{})
	told, _ := join(t, s, "one")
	until(t, told, "one")
	answer(t, s.Conn())
	r, err := doctor.Examine(ctx(t), natstest.Connect(t, srv, nats.UserInfo("viewer", "v")), doctor.Options{})
	require.NoError(t, err)
	require.Empty(t, r.Problems())
	for check, subject := range map[string]string{"intake": "plan.submit.default", "orchestrator": "api.ping", "consumer": "$JS.API.CONSUMER.LIST.STEPS_0"} {
		f := finding(t, r, check, "")
		require.Contains(t, f.Found, subject)
		require.Equal(t, doctor.Notable, f.Health)
	}
}

func TestWhatIsAskedForIsSet(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{StepsAsync: true})
	want := kv.Config{Retention: time.Hour, LedgerMaxBytes: 1 << 30}
	r := p.examine(doctor.Options{Want: want, Mend: true})
	require.Contains(t, finding(t, r, "stream", "KV_history").Expected, "max_age 1h0m0s")
	require.Empty(t, unwell(p.examine(doctor.Options{Want: want})))
	made := streams(t, p.js)
	require.Equal(t, time.Hour, made["KV_dead"].MaxAge)
	require.EqualValues(t, 1<<30, made["KV_runs_0"].MaxBytes)
	require.Equal(t, 170*time.Hour, made["OBJ_blobs"].MaxAge, "the retention, the longest run and an hour")
	require.Empty(t, unwell(p.examine(doctor.Options{})), "what was set stays, where nothing else is asked for")

	r = p.examine(doctor.Options{Want: kv.Config{Replicas: 3}})
	f := finding(t, r, "stream", "STEPS_0")
	require.False(t, f.Fixable)
	require.Contains(t, f.Fix, "persist_mode")
	require.Contains(t, f.Fix, "nats stream rm STEPS_0")
	f = finding(t, p.examine(doctor.Options{Want: kv.Config{Replicas: 3}, Mend: true}), "stream", "KV_history")
	require.False(t, f.Mended, "one server has no room for copies")
	require.NotEmpty(t, f.Failure)
}

func TestFlushingIsComparedWithWhatIsAsked(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{Shards: 1})
	for seen, want := range map[doctor.Sync]doctor.Health{doctor.SyncUnknown: doctor.Notable, doctor.SyncInterval: doctor.Broken} {
		f := finding(t, p.examine(doctor.Options{Sync: doctor.SyncAlways, Seen: seen}), "durability", "sync_interval")
		require.Equal(t, want, f.Health, seen)
		require.Contains(t, f.Fix, "sync_interval: always")
	}
	r := p.examine(doctor.Options{Sync: doctor.SyncAlways, Seen: doctor.SyncAlways})
	require.Equal(t, []string{"durability: ledger shards note"}, unwell(r))
}

func ExampleCanLose() {
	for _, what := range doctor.CanLose(3, doctor.SyncAlways) {
		fmt.Println(what)
	}
	// Output:
	// a killed process, of NATS or Stepjet: nothing
	// power loss of a machine: nothing while a majority stays up; of all at once: nothing
	// loss of up to 1 node and its disk: nothing
}
