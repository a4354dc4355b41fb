package kv_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestSetupByManyAtOnceMakesOneOfEach(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var wg sync.WaitGroup
	for i := range 8 {
		nc := natstest.Connect(t, srv)
		wg.Go(func() {
			// Their settings differ; whoever is first decides.
			s, err := kv.Setup(within(t, 2*time.Minute), nc, kv.Config{Retention: time.Duration(i+1) * time.Hour})
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
	nc := natstest.Connect(t, srv)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	before := streams(t, js)
	require.Len(t, before, 11)
	s := setupOn(t, srv, kv.Config{Retention: 99 * time.Hour, AckWait: time.Second})
	require.Equal(t, before, streams(t, js), "what exists is not changed")
	require.Equal(t, 1, s.Ledger.Shards())

	opened, err := kv.Open(within(t, 2*time.Minute), nc)
	require.NoError(t, err)
	defer opened.Close()
	require.Equal(t, 1, opened.Ledger.Shards())
	require.Equal(t, nc, opened.Conn())
	require.EqualValues(t, 1<<20, opened.MaxPayload())
}

// streams returns the settings of all streams.
func streams(t *testing.T, js jetstream.JetStream) map[string]jetstream.StreamConfig {
	t.Helper()
	all := map[string]jetstream.StreamConfig{}
	lister := js.ListStreams(within(t, 2*time.Minute))
	for info := range lister.Info() {
		all[info.Config.Name] = info.Config
	}
	require.NoError(t, lister.Err())
	return all
}

func TestTheLedgerIsABucketThatTakesEachPlanOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	ctx := within(t, 2*time.Minute)

	ack, err := js.Publish(ctx, "plan.submit.acme.order-42", []byte(`{"steps":[]}`)) // any NATS client
	require.NoError(t, err)
	_, err = js.Publish(ctx, "plan.submit.acme.order-42", []byte(`{"steps":[]}`))
	require.Equal(t, fault.StoreFull, kv.Fault(err).Code) // 10077: it is there already
	bucket, err := js.KeyValue(ctx, subjects.LedgerBucket(0))
	require.NoError(t, err)
	r := subjects.NewRun("acme", "order-42")
	entry, err := bucket.Get(ctx, fmt.Sprintf("%d.acme.order-42.plan", r.Partition()))
	require.NoError(t, err)
	require.Equal(t, ack.Sequence, entry.Revision())

	for what, err := range map[string]error{
		"put":    second(bucket.Put(ctx, entry.Key(), []byte("x"))),
		"delete": bucket.Delete(ctx, entry.Key()),
		"purge":  bucket.Purge(ctx, entry.Key()),
		"expiring message": second(js.PublishMsg(ctx, &nats.Msg{Subject: "$KV.runs_0.x", Header: nats.Header{
			"Nats-TTL": {"1s"}}})),
		"schedule": second(js.PublishMsg(ctx, &nats.Msg{Subject: "$KV.runs_0.y", Header: nats.Header{
			"Nats-Schedule": {"@at " + time.Now().Add(time.Hour).Format(time.RFC3339)}, "Nats-Schedule-Target": {"$KV.runs_0.z"}}})),
		"rollup": second(js.PublishMsg(ctx, &nats.Msg{Subject: entryKey(entry), Header: nats.Header{"Nats-Rollup": {"sub"}}})),
	} {
		require.Error(t, err, what)
	}
	ledger, err := js.Stream(ctx, subjects.LedgerStream(0))
	require.NoError(t, err)
	require.Error(t, ledger.DeleteMsg(ctx, ack.Sequence))
	again, err := bucket.Get(ctx, entry.Key())
	require.NoError(t, err)
	require.Equal(t, entry.Value(), again.Value())
	runs, err := s.Ledger.ActiveRuns(ctx, "acme")
	require.NoError(t, err)
	require.Equal(t, []subjects.Run{r}, runs)
	runs, err = s.Ledger.ActiveRuns(ctx, "other")
	require.NoError(t, err)
	require.Empty(t, runs)
}

func second[T any](_ T, err error) error { return err }

func entryKey(e jetstream.KeyValueEntry) string { return "$KV." + e.Bucket() + "." + e.Key() }

func TestSeveralShards(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{Shards: 4})
	require.Equal(t, 4, s.Ledger.Shards())
	for i := range 40 {
		r := subjects.NewRun("t", fmt.Sprint(i))
		g := submit(t, s, r, "{}")
		e, err := s.Ledger.Read(within(t, 2*time.Minute), subjects.PlanRecord(r, 4))
		require.NoError(t, err)
		require.Equal(t, g, e.Seq)
		d, _ := create(t, s, subjects.StartRecord(r, g, 4), "{}", &kv.Fence{Subject: subjects.PlanRecord(r, 4), Seq: g})
		require.Equal(t, kv.Written, d)
	}
	runs, err := s.Ledger.ActiveRuns(within(t, 2*time.Minute), "t")
	require.NoError(t, err)
	require.Len(t, runs, 40)
	total := uint64(0)
	for shard := range 4 {
		last, err := s.Ledger.LastSequence(within(t, 2*time.Minute), shard)
		require.NoError(t, err)
		require.NotZero(t, last)
		total += last
		caughtUp := make(chan uint64, 1)
		_, err = s.Ledger.Follow(within(t, 2*time.Minute), shard, []int{shard, shard + 4}, kv.Since{}, func(kv.Entry) {}, func(last uint64) { caughtUp <- last }, nil)
		require.NoError(t, err)
		require.Equal(t, last, receive(t, caughtUp, "caughtUp"))
	}
	require.EqualValues(t, 80, total)
	require.Equal(t, 4, setupOn(t, srv, kv.Config{}).Ledger.Shards(), "adopted")
	_, err = kv.Setup(within(t, 2*time.Minute), natstest.Connect(t, srv), kv.Config{Shards: 2})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

func TestSetupRefusesWhatIsNotALedger(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	_, err = js.CreateKeyValue(within(t, 2*time.Minute), jetstream.KeyValueConfig{Bucket: subjects.LedgerBucket(0)})
	require.NoError(t, err)
	_, err = kv.Setup(within(t, 2*time.Minute), natstest.Connect(t, srv), kv.Config{})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	_, err = kv.Open(within(t, 2*time.Minute), natstest.Connect(t, srv))
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	stream, err := js.Stream(within(t, 2*time.Minute), subjects.LedgerStream(0))
	require.NoError(t, err)
	cfg := stream.CachedInfo().Config
	cfg.Metadata = map[string]string{"stepjet-shards": "1"}
	_, err = js.UpdateStream(within(t, 2*time.Minute), cfg)
	require.NoError(t, err)
	_, err = kv.Open(within(t, 2*time.Minute), natstest.Connect(t, srv))
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	require.ErrorContains(t, err, "KV_runs_0")
}

func TestSetupRefusesBadSettings(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	for _, cfg := range []kv.Config{
		{Replicas: 9}, {Replicas: -1}, {Shards: 3}, {Shards: -1}, {Shards: 128}, {Retention: time.Millisecond},
		{AckWait: time.Millisecond}, {LedgerMaxBytes: -5},
	} {
		_, err := kv.Setup(within(t, 2*time.Minute), nc, cfg)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), "%+v", cfg)
	}
}

func TestWithoutSetupOrJetStream(t *testing.T) {
	t.Parallel()
	_, err := kv.Open(within(t, 2*time.Minute), natstest.Connect(t, natstest.Start(t)))
	require.Equal(t, fault.NotReady, fault.CodeOf(err))

	bare := natstest.Connect(t, natstest.Start(t, func(o *embedded.Options) { o.NoJetStream = true }))
	began := time.Now()
	_, err = kv.Open(within(t, 2*time.Minute), bare)
	require.Equal(t, fault.NoJetStream, fault.CodeOf(err))
	_, err = kv.Setup(within(t, 2*time.Minute), bare, kv.Config{})
	require.Equal(t, fault.NoJetStream, fault.CodeOf(err))
	require.Less(t, time.Since(began), time.Minute, "not as long as it might")
}

func TestAMissingPermissionNamesTheSubjectAtOnce(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) {
		o.ConfigFile = writeFile(t, "nats.conf", `authorization {
			users: [
				{user: admin, password: a}
				{user: agent, password: b, permissions: {publish: {deny: ["plan.submit.>", "$KV.history.>"]}}}
				{user: nobody, password: c, permissions: {publish: {deny: ["$JS.API.STREAM.>"]}}}
			]
		}
		no_auth_user: admin`)
	})
	setupOn(t, srv, kv.Config{})
	began := time.Now()
	agent := natstest.Connect(t, srv, nats.UserInfo("agent", "b"))
	s, err := kv.Open(within(t, 2*time.Minute), agent)
	require.NoError(t, err)
	defer s.Close()
	r := subjects.NewRun("acme", "x")
	_, _, err = s.Ledger.Create(within(t, 2*time.Minute), s.Ledger.SubmitSubject(r), nil, nil, nil)
	require.Equal(t, fault.Permission, fault.CodeOf(err))
	require.ErrorContains(t, err, "publish to plan.submit.acme.x")

	_, err = kv.Open(within(t, 2*time.Minute), natstest.Connect(t, srv, nats.UserInfo("nobody", "c")))
	require.Equal(t, fault.Permission, fault.CodeOf(err))
	require.ErrorContains(t, err, "$JS.API.STREAM.INFO.KV_runs_0")
	require.Less(t, time.Since(began), time.Minute, "not as long as it might")
}

// Whatever is written, a refusal is said as one, and not after a patience as an answer that did not come.
func TestAWriteThatIsRefusedIsNoTimeout(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) {
		o.ConfigFile = writeFile(t, "nats.conf", `authorization {
			users: [{user: admin, password: a}, {user: reader, password: b, permissions: {publish: {deny: ["$KV.>", "$O.>"]}}}]
		}
		no_auth_user: admin`)
	})
	admin := setupOn(t, srv, kv.Config{})
	_, err := admin.Registry.Register(within(t, 2*time.Minute), []byte(`{"name":"echo","inputSchema":{"type":"object"}}`))
	require.NoError(t, err)
	r := subjects.NewRun("acme", "x")
	_, err = admin.Archive.CreateDead(within(t, 2*time.Minute), r, "", &outcome.DeadLetter{Run: "x", Tenant: "acme", Generation: 1, Step: "s", Tool: "echo", Error: fault.New(fault.ToolFailed, "503")})
	require.NoError(t, err)

	reader, err := kv.Open(within(t, 2*time.Minute), natstest.Connect(t, srv, nats.UserInfo("reader", "b")))
	require.NoError(t, err)
	defer reader.Close()
	ctx := within(t, 2*time.Minute)
	for subject, write := range map[string]func() error{
		"$KV.dead.acme.x.1.s": func() error { return reader.Archive.RemoveDead(ctx, r, 1, "s") },
		"$KV.tools.echo":      func() error { _, err := reader.Registry.RemoveTool(ctx, "echo", true); return err },
		"$KV.tools.override.echo": func() error {
			_, err := reader.Registry.Override(ctx, "echo", []byte(`{"x-orchestration":{"timeout_ms":700}}`))
			return err
		},
		"$KV.tools.override.acme.echo": func() error { _, err := reader.Registry.TenantOverride(ctx, "acme", "echo", nil); return err },
		"$KV.tools.=secrets":           func() error { _, err := reader.Registry.PublishSealingKey(ctx, wire.SealingKey{ID: "k"}); return err },
		subjects.Gather("echo"):        func() error { _, _, err := reader.Queue.Gather(ctx, "echo", wire.Gathering{}, 0); return err },
		"$O.blobs.":                    func() error { _, err := reader.Archive.PutBlob(ctx, "", "acme/x/1/s/1/x", []byte("x")); return err },
		"$KV.tools.": func() error {
			_, err := reader.Registry.Register(ctx, []byte(`{"name":"sum","inputSchema":{"type":"object"}}`))
			return err
		},
	} {
		err := write()
		require.Equal(t, fault.Permission, fault.CodeOf(err), "%s: %v", subject, err)
		require.ErrorContains(t, err, "publish to "+subject)
	}
}

func TestThreeReplicasAreSetUpByAllAtOnce(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, 3)
	var wg sync.WaitGroup
	for _, srv := range servers {
		nc := natstest.Connect(t, srv)
		wg.Go(func() {
			s, err := kv.Setup(within(t, 2*time.Minute), nc, kv.Config{Replicas: 3})
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
	s, err := kv.Open(within(t, 2*time.Minute), natstest.Connect(t, servers[1]))
	require.NoError(t, err)
	defer s.Close()
	h, err := s.Archive.PutBlob(within(t, 2*time.Minute), "", "t/r/1/s/1/x", []byte("on three"))
	require.NoError(t, err)
	for _, srv := range servers { // whichever replica answers
		reader, err := kv.Open(within(t, 2*time.Minute), natstest.Connect(t, srv))
		require.NoError(t, err)
		got, err := reader.Archive.Blob(within(t, 2*time.Minute), h)
		require.NoError(t, err)
		require.Equal(t, "on three", string(got))
		reader.Close()
	}
}

func TestACloseEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{LedgerMaxBytes: 1 << 10})
	results := make(chan error, 2)
	s.Ledger.CreateAsync(context.Background(), "$KV.runs_0.full", nil, make([]byte, 5000), nil, func(_ kv.Decision, _ uint64, err error) { results <- err })
	reading, err := s.Ledger.Follow(context.Background(), 0, allPartitions(), kv.Since{}, func(kv.Entry) {}, nil, nil)
	require.NoError(t, err)
	s.Close()
	s.Close() // does nothing
	require.Equal(t, fault.NoConnection, fault.CodeOf(receive(t, results, "the end of a create")))
	s.Ledger.CreateAsync(context.Background(), "$KV.runs_0.x", nil, nil, nil, func(_ kv.Decision, _ uint64, err error) { results <- err })
	require.Equal(t, fault.NoConnection, fault.CodeOf(receive(t, results, "a create after the end")))
	reading.Stop()
	_, err = s.Ledger.Follow(context.Background(), 0, allPartitions(), kv.Since{}, func(kv.Entry) {}, nil, nil)
	require.Error(t, err)
	require.False(t, s.Conn().IsClosed())
}
