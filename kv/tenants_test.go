package kv

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestADeclaredTenantHasABucketOfItsOwn with the settings of the one that all others share, known to every live
// orchestrator when Declare returns.
func TestADeclaredTenantHasABucketOfItsOwn(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	var owners []*Store
	for _, id := range []string{"one", "two"} {
		s, err := Setup(t.Context(), nc, Config{Retention: 30 * time.Hour})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		joined := make(chan struct{})
		own := sync.OnceFunc(func() { close(joined) })
		m, err := s.Members.Join(t.Context(), id, func([]Member) { own() })
		require.NoError(t, err)
		t.Cleanup(m.Leave)
		<-joined
		require.NoError(t, s.Archive.learnTenants(t.Context()), "and it need not ask again while its key stands")
		owners = append(owners, s)
	}
	s, err := Open(t.Context(), nc)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	made, err := s.Archive.Declare(t.Context(), "acme")
	require.NoError(t, err)
	require.True(t, made)
	over, end := context.WithCancel(t.Context())
	end()
	for _, o := range owners {
		bucket, err := o.Archive.BucketOf(over, "acme", time.Now())
		require.True(t, err != nil || bucket == "blobs-acme", "it says %q without asking", bucket)
	}
	bucketOf := func(o *Store, tenant string) string {
		bucket, err := o.Archive.BucketOf(t.Context(), tenant, time.Now())
		require.NoError(t, err)
		return bucket
	}
	for _, o := range owners {
		require.Equal(t, "blobs-acme", bucketOf(o, "acme"))
		require.Empty(t, bucketOf(o, "acm"))
		require.Empty(t, bucketOf(o, "other"))
	}
	made, err = s.Archive.Declare(t.Context(), "acme")
	require.NoError(t, err)
	require.False(t, made, "it was declared before")
	all, err := s.Archive.Tenants(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"acme"}, all)

	js, err := jetstream.New(nc)
	require.NoError(t, err)
	config := func(stream string) jetstream.StreamConfig {
		st, err := js.Stream(t.Context(), stream)
		require.NoError(t, err)
		return st.CachedInfo().Config
	}
	own, shared := config("OBJ_blobs-acme"), config("OBJ_blobs")
	require.Equal(t, []string{"$O.blobs-acme.C.>", "$O.blobs-acme.M.>"}, own.Subjects)
	require.False(t, own.AllowRollup)
	own.Name, own.Subjects = shared.Name, shared.Subjects
	require.Equal(t, shared, own)

	h, err := owners[0].Archive.PutBlob(t.Context(), "blobs-acme", "acme/r/1/s/1/x", []byte("hers"))
	require.NoError(t, err)
	b, err := s.Archive.TenantBucket(t.Context(), "acme")
	require.NoError(t, err)
	require.EqualValues(t, 2, b.Messages)
	got, err := s.Archive.Blob(t.Context(), h)
	require.NoError(t, err)
	require.Equal(t, "hers", string(got))

	require.NoError(t, s.Archive.Undeclare(t.Context(), "acme"))
	require.Equal(t, fault.NotFound, fault.CodeOf(s.Archive.Undeclare(t.Context(), "acme")))
	require.Eventually(t, func() bool { return bucketOf(owners[0], "acme") == "" }, 2*time.Minute, 20*time.Millisecond)
	_, err = s.Archive.Declare(t.Context(), "a.b")
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

// TestAnOrchestratorThatJoinsKnowsEveryTenant: one that was declared between its setup and its key, for which nobody
// waited.
func TestAnOrchestratorThatJoinsKnowsEveryTenant(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s, err := Setup(t.Context(), nc, Config{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	other, err := Open(t.Context(), nc)
	require.NoError(t, err)
	t.Cleanup(other.Close)
	_, err = other.Archive.Declare(t.Context(), "acme")
	require.NoError(t, err)
	m, err := s.Members.Join(t.Context(), "one", func([]Member) {})
	require.NoError(t, err)
	t.Cleanup(m.Leave)
	bucket, err := s.Archive.BucketOf(t.Context(), "acme", time.Now())
	require.NoError(t, err)
	require.Equal(t, "blobs-acme", bucket)
}

// TestAHandleIsReadFromItsTenantsBucketAlone: whatever bucket a handle names, its name says whose it is.
func TestAHandleIsReadFromItsTenantsBucketAlone(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, tenant := range []string{"acme", "other"} {
		_, err := s.Archive.Declare(t.Context(), tenant)
		require.NoError(t, err)
	}
	theirs, err := s.Archive.PutBlob(t.Context(), "blobs-other", "other/r/1/s/1/x", []byte("theirs"))
	require.NoError(t, err)
	require.Equal(t, "blobs-other", theirs.Bucket)
	require.Zero(t, s.counted(">"), "nothing lies where all may read")
	before := s.put("acme/old/1/s/1/x", []byte("before she was declared"))
	require.Empty(t, before.Bucket)
	got, err := s.Archive.Blob(t.Context(), before)
	require.NoError(t, err)
	require.Equal(t, "before she was declared", string(got))
	for _, bucket := range []string{"blobs-other", "blobs", "blobs-", "other", "blobs-acme.>", "*", "blobs-acme2", "KV_history"} {
		lying := *theirs
		lying.Name, lying.Bucket = "acme/r/1/s/1/x", bucket
		_, err := s.Archive.Blob(t.Context(), &lying)
		require.Equal(t, fault.Internal, fault.CodeOf(err), "%s: %v", bucket, err)
		require.ErrorContains(t, err, "not its tenant's")
		_, err = s.Archive.PutBlob(t.Context(), bucket, "acme/r/1/s/1/y", []byte("x"))
		require.Equal(t, fault.Internal, fault.CodeOf(err), bucket)
	}
	lost := *theirs
	lost.Bucket = "" // it is in her bucket, and a reader of before looks elsewhere
	_, err = s.Archive.Blob(t.Context(), &lost)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}

// TestDocumentsOfADeclaredTenantLieInItsBucket: outcomes and dead letters that are large, whose versions say so to
// readers of before.
func TestDocumentsOfADeclaredTenantLieInItsBucket(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	_, err := s.Archive.Declare(t.Context(), "acme")
	require.NoError(t, err)
	r, large := subjects.NewRun("acme", "r"), bytes.Repeat([]byte("x"), 600<<10)
	doc := &outcome.Run{Version: 1, Run: "r", Tenant: "acme", Generation: 7, Plan: []byte(`{"steps":"` + string(large) + `"}`)}
	created, err := s.Archive.CreateHistory(t.Context(), r, "blobs-acme", doc)
	require.NoError(t, err)
	require.True(t, created)
	head, err := s.Archive.HistoryHead(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "blobs-acme", head.Blob.Bucket)
	read, err := s.Archive.History(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, string(doc.Plan), string(read.Plan))
	letter := &outcome.DeadLetter{
		Run: "r", Tenant: "acme", Generation: 7, Step: "s", Error: fault.New(fault.ToolFailed, "no"), Arguments: []byte(`"` + strings.Repeat("x", wire.InlineLimit) + `"`),
	}
	created, err = s.Archive.CreateDead(t.Context(), r, "blobs-acme", letter)
	require.NoError(t, err)
	require.True(t, created)
	d, err := s.Archive.Dead(t.Context(), r, 7, "s")
	require.NoError(t, err)
	require.Equal(t, "blobs-acme", d.Blob.Bucket)
	for _, subject := range []string{historySubject(r), deadSubject(r, letter)} {
		e, err := s.Ledger.Read(t.Context(), subject)
		require.NoError(t, err)
		require.False(t, wire.KindEvent.Known(e.Header), "a reader of before says that it is too old, and looks nowhere else")
	}
	require.Zero(t, s.counted(">"))

	// Where one is there already, what was stored for another is taken back.
	created, err = s.Archive.CreateHistory(t.Context(), r, "blobs-acme", doc)
	require.NoError(t, err)
	require.False(t, created)
	b, err := s.Archive.TenantBucket(t.Context(), "acme")
	require.NoError(t, err)
	require.Less(t, b.Bytes, uint64(1300<<10), "one document of 600 KiB and arguments of 256 KiB")
}
