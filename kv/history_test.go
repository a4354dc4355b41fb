package kv_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// finished gives the document of a run whose one result has about size bytes.
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
	_, err := s.History(within(t, time.Second), r)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	doc := finished(r, 100)
	created, err := s.CreateHistory(within(t, 5*time.Second), r, doc)
	require.NoError(t, err)
	require.True(t, created)
	other := finished(r, 50)
	other.Status = outcome.Failed
	created, err = s.CreateHistory(within(t, 5*time.Second), r, other)
	require.NoError(t, err)
	require.False(t, created)
	got, err := s.History(within(t, time.Second), r)
	require.NoError(t, err)
	require.Equal(t, string(doc.JSON()), string(got.JSON()))

	js, err := jetstream.New(s.Conn()) // any NATS client can read it, none can change it
	require.NoError(t, err)
	bucket, err := js.KeyValue(within(t, 5*time.Second), subjects.HistoryBucket)
	require.NoError(t, err)
	entry, err := bucket.Get(within(t, 5*time.Second), r.Key())
	require.NoError(t, err)
	require.Equal(t, string(doc.JSON()), string(entry.Value()))
	require.Error(t, second(bucket.PutString(within(t, 5*time.Second), r.Key(), "x")))
	require.Error(t, bucket.Delete(within(t, 5*time.Second), r.Key()))
}

func TestALargeRunGoesToABlob(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := subjects.NewRun("acme", "large")
	doc := finished(r, 3<<20)
	created, err := s.CreateHistory(within(t, 10*time.Second), r, doc)
	require.NoError(t, err)
	require.True(t, created)
	head, err := s.HistoryHead(within(t, time.Second), r)
	require.NoError(t, err)
	require.NotNil(t, head.Blob)
	require.Nil(t, head.Outcome)
	require.Equal(t, doc.Digest, head.Digest)
	got, err := s.History(within(t, 10*time.Second), r)
	require.NoError(t, err)
	require.Equal(t, string(doc.JSON()), string(got.JSON()))

	created, err = s.CreateHistory(within(t, 10*time.Second), r, finished(r, 2<<20))
	require.NoError(t, err)
	require.False(t, created)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	blobs, err := js.ObjectStore(within(t, 5*time.Second), subjects.BlobsBucket)
	require.NoError(t, err)
	list, err := blobs.List(within(t, 5*time.Second))
	require.NoError(t, err)
	require.Len(t, list, 1, "the blob of the refused document is gone")

	require.NoError(t, blobs.Delete(within(t, 5*time.Second), head.Blob.Name))
	_, err = s.History(within(t, 5*time.Second), r)
	require.Equal(t, fault.Internal, fault.CodeOf(err), "the run is known, its document lost")
}

func TestASmallServerKeepsLargeDocumentsInBlobs(t *testing.T) {
	t.Parallel()
	s := setupOn(t, natstest.Start(t, func(o *embedded.Options) { o.MaxPayload = 200 << 10 }), kv.Config{})
	r := subjects.NewRun("acme", "x")
	_, err := s.CreateHistory(within(t, 10*time.Second), r, finished(r, 300<<10))
	require.NoError(t, err)
	head, err := s.HistoryHead(within(t, time.Second), r)
	require.NoError(t, err)
	require.NotNil(t, head.Blob)
}

func TestHistoryListsATenantsRunsUntilTheyExpire(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{Retention: 2 * time.Second})
	a, b, other := subjects.NewRun("acme", "a/b"), subjects.NewRun("acme", "b"), subjects.NewRun("other", "a")
	for _, r := range []subjects.Run{a, b, other} {
		_, err := s.CreateHistory(within(t, 5*time.Second), r, finished(r, 1))
		require.NoError(t, err)
	}
	runs, err := s.HistoryRuns(within(t, 5*time.Second), "acme")
	require.NoError(t, err)
	require.ElementsMatch(t, []subjects.Run{a, b}, runs)
	require.Eventually(t, func() bool {
		runs, err := s.HistoryRuns(within(t, 5*time.Second), "acme")
		return err == nil && len(runs) == 0
	}, 15*time.Second, 100*time.Millisecond)
	_, err = s.History(within(t, 5*time.Second), a)
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
		h, err := s.PutBlob(within(t, 10*time.Second), "t/r/1/s/1/"+name, data)
		require.NoError(t, err, name)
		require.EqualValues(t, len(data), h.Size)
		got, err := s.Blob(within(t, 10*time.Second), h)
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(data, got), name)
	}
}

func TestAHandleIsNotBelieved(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	good, err := s.PutBlob(within(t, 10*time.Second), "t/r/1/s/1/x", []byte("hello"))
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
		"none":           {nil, fault.NotFound},
		"no name":        {&outcome.Handle{}, fault.NotFound},
		"absent":         {with(func(h *outcome.Handle) { h.Name = "t/r/1/s/1/y" }), fault.NotFound},
		"size too small": {with(func(h *outcome.Handle) { h.Size = 4 }), fault.Internal},
		"size negative":  {with(func(h *outcome.Handle) { h.Size = -5 }), fault.Internal},
		"size huge":      {with(func(h *outcome.Handle) { h.Size = 1 << 40 }), fault.TooLarge},
		"other bytes":    {with(func(h *outcome.Handle) { h.SHA256 = strings.Repeat("0", 64) }), fault.Internal},
		"no digest":      {with(func(h *outcome.Handle) { h.SHA256 = "" }), fault.Internal},
	} {
		_, err := s.Blob(within(t, 10*time.Second), c.h)
		require.Equal(t, c.code, fault.CodeOf(err), "%s: %v", what, err)
	}
	_, err = s.PutBlob(context.Background(), "t/r/1/s/1/z", make([]byte, kv.MaxBlob+1))
	require.Equal(t, fault.TooLarge, fault.CodeOf(err))
}
