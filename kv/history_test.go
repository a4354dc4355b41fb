package kv_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
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
)

// finished returns the document of a run whose one result has about size bytes.
func finished(r subjects.Run, size int) *outcome.Run {
	result, _ := json.Marshal(strings.Repeat("x", size))
	return &outcome.Run{
		Version: 1, Run: r.Plain(), Tenant: r.Tenant, Generation: 7, Digest: "d", Status: outcome.Succeeded,
		Submitted: time.Now().UTC(), Finished: time.Now().UTC(),
		Outcome: &outcome.Outcome{
			Run: r.Plain(), Status: outcome.Succeeded, Errors: []outcome.StepError{},
			Results: outcome.Results{{Step: "a", JSON: result}},
		},
		Plan: json.RawMessage(`{"steps":[]}`),
	}
}

func TestAFinishedRunIsKeptOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := subjects.NewRun("acme", "order 42")
	_, err := s.Archive.History(within(t, 2*time.Minute), r)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	doc := finished(r, 100)
	broken := finished(r, 1)
	broken.Outcome.Results[0].JSON = nil
	_, err = s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", broken)
	require.Equal(t, fault.InvalidRecord, fault.CodeOf(err), "what nobody could read is not stored")
	created, err := s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", doc)
	require.NoError(t, err)
	require.True(t, created)
	other := finished(r, 50)
	other.Status = outcome.Failed
	created, err = s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", other)
	require.NoError(t, err)
	require.False(t, created)
	got, err := s.Archive.History(within(t, 2*time.Minute), r)
	require.NoError(t, err)
	require.Equal(t, string(doc.JSON()), string(got.JSON()))

	js, err := jetstream.New(s.Conn()) // any NATS client can read it, none can change it
	require.NoError(t, err)
	bucket, err := js.KeyValue(within(t, 2*time.Minute), subjects.HistoryBucket)
	require.NoError(t, err)
	entry, err := bucket.Get(within(t, 2*time.Minute), r.Key())
	require.NoError(t, err)
	require.Equal(t, string(doc.JSON()), string(entry.Value()))
	require.Error(t, second(bucket.PutString(within(t, 2*time.Minute), r.Key(), "x")))
	require.Error(t, bucket.Delete(within(t, 2*time.Minute), r.Key()))
}

func TestALargeRunGoesToABlob(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := subjects.NewRun("acme", "large")
	doc := finished(r, 3<<20)
	created, err := s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", doc)
	require.NoError(t, err)
	require.True(t, created)
	head, err := s.Archive.HistoryHead(within(t, 2*time.Minute), r)
	require.NoError(t, err)
	require.NotNil(t, head.Blob)
	require.Nil(t, head.Outcome)
	require.Equal(t, doc.Digest, head.Digest)
	got, err := s.Archive.History(within(t, 2*time.Minute), r)
	require.NoError(t, err)
	require.Equal(t, string(doc.JSON()), string(got.JSON()))

	created, err = s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", finished(r, 2<<20))
	require.NoError(t, err)
	require.False(t, created)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	blobs, err := js.ObjectStore(within(t, 2*time.Minute), subjects.BlobsBucket)
	require.NoError(t, err)
	list, err := blobs.List(within(t, 2*time.Minute))
	require.NoError(t, err)
	require.Len(t, list, 1, "the blob of the refused document is gone")

	objects, err := js.Stream(within(t, 2*time.Minute), subjects.BlobsStream(""))
	require.NoError(t, err)
	require.EqualValues(t, head.Blob.Chunks+1, objects.CachedInfo().State.Msgs, "with its chunks")
	require.NoError(t, objects.Purge(within(t, 2*time.Minute), jetstream.WithPurgeSubject(subjects.BlobChunksOf("", head.Blob.NUID))))
	_, err = s.Archive.History(within(t, 2*time.Minute), r)
	require.Equal(t, fault.Internal, fault.CodeOf(err), "the run is known, its document lost")
}

func TestASmallServerKeepsLargeDocumentsInBlobs(t *testing.T) {
	t.Parallel()
	s := setupOn(t, natstest.Start(t, func(o *embedded.Options) { o.MaxPayload = 200 << 10 }), kv.Config{})
	r := subjects.NewRun("acme", "x")
	_, err := s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", finished(r, 300<<10))
	require.NoError(t, err)
	head, err := s.Archive.HistoryHead(within(t, 2*time.Minute), r)
	require.NoError(t, err)
	require.NotNil(t, head.Blob)
}

func TestHistoryListsATenantsRunsUntilTheyExpire(t *testing.T) {
	t.Parallel()
	s, brief := setup(t, kv.Config{}), setup(t, kv.Config{Retention: 2 * time.Second})
	a, b, other := subjects.NewRun("acme", "a/b"), subjects.NewRun("acme", "b"), subjects.NewRun("other", "a")
	for _, r := range []subjects.Run{a, b, other} {
		for _, s := range []*kv.Store{s, brief} {
			_, err := s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", finished(r, 1))
			require.NoError(t, err)
		}
	}
	runs, err := s.Archive.HistoryRuns(within(t, 2*time.Minute), "acme")
	require.NoError(t, err)
	require.ElementsMatch(t, []subjects.Run{a, b}, runs)
	require.Eventually(t, func() bool {
		runs, err := brief.Archive.HistoryRuns(within(t, 2*time.Minute), "acme")
		return err == nil && len(runs) == 0
	}, 2*time.Minute, 100*time.Millisecond)
	_, err = brief.Archive.History(within(t, 2*time.Minute), a)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	data := make([]byte, 2<<20)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	for name, data := range map[string][]byte{"large": data, "small": []byte("x"), "empty": {}} {
		h, err := s.Archive.PutBlob(within(t, 2*time.Minute), "", "t/r/1/s/1/"+name, data)
		require.NoError(t, err, name)
		require.EqualValues(t, len(data), h.Size)
		got, err := s.Archive.Blob(within(t, 2*time.Minute), h)
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(data, got), name)
	}
}

func TestAHandleIsNotBelieved(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	good, err := s.Archive.PutBlob(within(t, 2*time.Minute), "", "t/r/1/s/1/x", []byte("hello"))
	require.NoError(t, err)
	with := func(change func(*outcome.Handle)) *outcome.Handle {
		h := *good
		change(&h)
		return &h
	}
	for what, c := range map[string]struct {
		h    *outcome.Handle
		code fault.Code
	}{
		"none":            {nil, fault.NotFound},
		"no name":         {&outcome.Handle{}, fault.NotFound},
		"absent":          {with(func(h *outcome.Handle) { h.NUID = "absent" }), fault.NotFound},
		"absent, before":  {with(func(h *outcome.Handle) { h.Name, h.NUID, h.Chunks = "t/r/1/s/1/y", "", 0 }), fault.NotFound},
		"too many":        {with(func(h *outcome.Handle) { h.Chunks = 2 }), fault.NotFound},
		"more than bytes": {with(func(h *outcome.Handle) { h.Chunks = 6 }), fault.Internal},
		"negative":        {with(func(h *outcome.Handle) { h.Chunks = -1 }), fault.Internal},
		"all chunks":      {with(func(h *outcome.Handle) { h.NUID = "*" }), fault.Internal},
		"size too small":  {with(func(h *outcome.Handle) { h.Size = 4 }), fault.Internal},
		"size negative":   {with(func(h *outcome.Handle) { h.Size = -5 }), fault.Internal},
		"size huge":       {with(func(h *outcome.Handle) { h.Size = 1 << 40 }), fault.TooLarge},
		"other bytes":     {with(func(h *outcome.Handle) { h.SHA256 = strings.Repeat("0", 64) }), fault.Internal},
		"no digest":       {with(func(h *outcome.Handle) { h.SHA256 = "" }), fault.Internal},
	} {
		_, err := s.Archive.Blob(within(t, 2*time.Minute), c.h)
		require.Equal(t, c.code, fault.CodeOf(err), "%s: %v", what, err)
	}
	_, err = s.Archive.PutBlob(context.Background(), "", "t/r/1/s/1/z", make([]byte, kv.MaxBlob+1))
	require.Equal(t, fault.TooLarge, fault.CodeOf(err))
}

// What is too large for the key leaves there what most readers want: the outcome, or of a rejection at least its first
// problems.
func TestTheHeadOfALargeDocumentTellsTheOutcome(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	plan, err := json.Marshal(strings.Repeat("x", 1<<20))
	require.NoError(t, err)
	problems := func(n int) (all []fault.Problem) {
		for range n {
			all = append(all, fault.Problem{Code: fault.UnknownRef, Path: "/steps/0", Message: strings.Repeat("m", 1000)})
		}
		return all
	}
	rejected := func(n int) *outcome.Run {
		return &outcome.Run{
			Version: 1, Status: outcome.Rejected, Generation: 7, Plan: plan,
			Outcome: &outcome.Outcome{Status: outcome.Rejected, Problems: problems(n), Warnings: problems(1)},
		}
	}
	head := func(id string, doc *outcome.Run) *outcome.Run {
		r := subjects.NewRun("acme", id)
		doc.Run = id
		_, err := s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", doc)
		require.NoError(t, err)
		head, err := s.Archive.HistoryHead(within(t, 2*time.Minute), r)
		require.NoError(t, err)
		require.NotNil(t, head.Blob)
		require.Empty(t, head.Plan)
		whole, err := s.Archive.History(within(t, 2*time.Minute), r)
		require.NoError(t, err)
		require.Equal(t, doc.Outcome.Problems, whole.Outcome.Problems)
		return head
	}
	one := rejected(1)
	require.Equal(t, one.Outcome.Problems, head("one", one).Outcome.Problems)
	many := head("many", rejected(400)).Outcome.Problems
	require.Greater(t, len(many), 200)
	require.Less(t, len(many), 260)
	require.Equal(t, problems(1)[0], many[0])
	require.Contains(t, many[len(many)-1].Message, "more problems")

	good := finished(subjects.NewRun("acme", "good"), 100)
	good.Plan = plan
	require.Equal(t, good.Outcome.JSON(), head("good", good).Outcome.JSON())
	require.Nil(t, head("large", finished(subjects.NewRun("acme", "large"), 600<<10)).Outcome)
}

// TestARejectionGivesWay: what is written after the sequence that was read stays, however late the request comes.
func TestARejectionGivesWay(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := subjects.NewRun("acme", "order 42")
	rejected := finished(r, 10)
	rejected.Status = outcome.Rejected
	_, err := s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", rejected)
	require.NoError(t, err)
	_, err = s.Archive.CreateHistory(within(t, 2*time.Minute), subjects.NewRun("acme", "other"), "", finished(r, 10))
	require.NoError(t, err)
	head, seq, err := s.Archive.HistoryAt(within(t, 2*time.Minute), r)
	require.NoError(t, err)
	require.Equal(t, outcome.Rejected, head.Status)
	require.NoError(t, s.Archive.PurgeHistory(within(t, 2*time.Minute), r, seq))
	_, err = s.Archive.HistoryHead(within(t, 2*time.Minute), r)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))

	later := finished(r, 20)
	created, err := s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", later)
	require.NoError(t, err)
	require.True(t, created)
	require.NoError(t, s.Archive.PurgeHistory(within(t, 2*time.Minute), r, seq), "once more, too late")
	got, err := s.Archive.History(within(t, 2*time.Minute), r)
	require.NoError(t, err)
	require.Equal(t, string(later.JSON()), string(got.JSON()))
	require.NoError(t, second(s.Archive.History(within(t, 2*time.Minute), subjects.NewRun("acme", "other"))), "no other key is touched")
}

// Who follows the headers is told of each run that is there and that comes, once, and of no body.
func TestHeadersAreFollowedAlone(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	ctx := within(t, 2*time.Minute)
	seen, caughtUp := make(chan kv.Entry, 10), make(chan string, 2)
	each := func(r subjects.Run, e kv.Entry) {
		require.Equal(t, "acme", r.Tenant)
		seen <- e
	}
	put := func(id string) {
		_, err := s.Archive.CreateHistory(ctx, subjects.NewRun("acme", id), "", finished(subjects.NewRun("acme", id), 1000))
		require.NoError(t, err)
		_, _, err = s.Ledger.Create(ctx, s.Ledger.SubmitSubject(subjects.NewRun("acme", id)), nil, []byte(`{"steps":[]}`), nil)
		require.NoError(t, err)
	}
	put("a/b")
	_, err := s.Archive.FollowHeads(ctx, each, func(uint64) { caughtUp <- "history" }, func(err error) { t.Error(err) })
	require.NoError(t, err)
	require.Equal(t, "history", <-caughtUp)
	first := <-seen
	require.Equal(t, subjects.BucketSubject(subjects.HistoryBucket, "acme.a=2Fb"), first.Subject)
	_, err = s.Ledger.FollowPlans(ctx, 0, each, func(uint64) { caughtUp <- "plans" }, func(err error) { t.Error(err) })
	require.NoError(t, err)
	require.Equal(t, "plans", <-caughtUp)
	plan := <-seen
	require.Equal(t, subjects.PlanRecord(subjects.NewRun("acme", "a/b"), 1), plan.Subject)
	put("c")
	for _, e := range []kv.Entry{first, plan, <-seen, <-seen} {
		require.Empty(t, e.Data)
		require.NotZero(t, e.Seq)
		require.NotEmpty(t, e.Header)
	}
	require.Empty(t, seen)
}

// TestAListReadsHeaders: what a list shows of a run stands beside its document, which may be large or be no document;
// that of an older orchestrator is read.
func TestAListReadsHeaders(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	stored := func(id string, size int) (subjects.Run, outcome.Head) {
		r := subjects.NewRun("acme", id)
		doc := finished(r, size)
		doc.Stats = outcome.Stats{Steps: 3, Succeeded: 2, Failed: 1}
		doc.Steps = []outcome.Step{{ID: "a", Tool: "search"}, {ID: "b"}, {ID: "c", Tool: "fetch", Steps: []outcome.Step{{ID: "c/d", Tool: "search"}, {ID: "c/e", Tool: "send"}}}}
		_, err := s.Archive.CreateHistory(within(t, 2*time.Minute), r, "", doc)
		require.NoError(t, err)
		return r, outcome.HeadOf(doc)
	}
	small, want := stored("small", 100)
	large, wantLarge := stored("large", 600<<10)
	require.Equal(t, []string{"search", "fetch", "send"}, want.Tools)
	for r, want := range map[subjects.Run]outcome.Head{small: want, large: wantLarge} {
		got, err := s.Archive.HistorySummary(within(t, 2*time.Minute), r)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}

	key := subjects.BucketSubject(subjects.HistoryBucket, small.Key())
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	bucket, err := js.Stream(within(t, 2*time.Minute), subjects.BucketStream(subjects.HistoryBucket))
	require.NoError(t, err)
	m, err := bucket.GetLastMsgForSubject(within(t, 2*time.Minute), key)
	require.NoError(t, err)
	again := func(id string, header nats.Header, body []byte) subjects.Run {
		r := subjects.NewRun("acme", id)
		_, err := js.PublishMsg(within(t, 2*time.Minute), &nats.Msg{Subject: subjects.BucketSubject(subjects.HistoryBucket, r.Key()), Header: header, Data: body})
		require.NoError(t, err)
		return r
	}
	got, err := s.Archive.HistorySummary(within(t, 2*time.Minute), again("body", nats.Header(m.Header), []byte("no document")))
	require.NoError(t, err, "it is not read")
	require.Equal(t, want, got)
	for _, broken := range []string{"", "no JSON", "{}"} {
		older := nats.Header{subjects.HeaderVersion: {subjects.Version}}
		if broken != "" {
			older[subjects.HeaderHead] = []string{broken}
		}
		got, err = s.Archive.HistorySummary(within(t, 2*time.Minute), again("older"+strconv.Itoa(len(broken)), older, m.Data))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = s.Archive.HistorySummary(within(t, 2*time.Minute), again("newer", nats.Header{subjects.HeaderVersion: {"99"}, subjects.HeaderHead: m.Header[subjects.HeaderHead]}, m.Data))
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err))
}
