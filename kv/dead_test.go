package kv_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// letterOf returns a dead letter whose arguments encoding/json would write in another way.
func letterOf(r subjects.Run, step string) *outcome.DeadLetter {
	return &outcome.DeadLetter{
		Run: r.Plain(), Tenant: r.Tenant, Generation: 7, Step: step, Tool: "get weather", Attempts: 3,
		Error: fault.New(fault.Timeout, "it took <too> long"), Key: r.Tenant + "/" + r.ID + "/7/" + step,
		Worker: "w-1", Failed: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Arguments: json.RawMessage(`{"b" : 1.50, "a":"<&>\u0041", "b2":1e400}`),
	}
}

func dead(t *testing.T, s *kv.Store, of subjects.Run) (steps []string) {
	t.Helper()
	require.NoError(t, s.Archive.DeadLetters(within(t, 2*time.Minute), of, func(d *outcome.DeadLetter) { steps = append(steps, d.Run+" "+d.Step) }))
	return steps
}

func TestADeadLetterIsKeptOnceAndExactly(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := subjects.NewRun("acme", "order 42")
	_, err := s.Archive.Dead(within(t, 2*time.Minute), r, 7, "pay=3")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	first := letterOf(r, "pay=3")
	created, err := s.Archive.CreateDead(within(t, 2*time.Minute), r, "", first)
	require.NoError(t, err)
	require.True(t, created)
	again := letterOf(r, "pay=3")
	again.Attempts = 9
	created, err = s.Archive.CreateDead(within(t, 2*time.Minute), r, "", again)
	require.NoError(t, err)
	require.False(t, created)
	for _, generation := range []uint64{7, 0} {
		got, err := s.Archive.Dead(within(t, 2*time.Minute), r, generation, "pay=3")
		require.NoError(t, err)
		require.Equal(t, first, got)
		require.Equal(t, string(first.JSON()), string(got.JSON()))
	}
	_, err = s.Archive.Dead(within(t, 2*time.Minute), r, 8, "pay=3")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))

	js, err := jetstream.New(s.Conn()) // any NATS client can read it
	require.NoError(t, err)
	bucket, err := js.KeyValue(within(t, 2*time.Minute), subjects.DeadBucket)
	require.NoError(t, err)
	entry, err := bucket.Get(within(t, 2*time.Minute), subjects.DeadKey(r, 7, "pay=3"))
	require.NoError(t, err)
	require.Equal(t, `{"run":"order 42","tenant":"acme","generation":7,"step":"pay=3","tool":"get weather","attempts":3,`+
		`"error":{"code":"timeout","message":"it took \u003ctoo\u003e long","retryable":true},"key":"acme/order=2042/7/pay=3","worker":"w-1",`+
		`"failed":"2026-01-02T03:04:05.000000006Z","arguments":{"b" : 1.50, "a":"<&>\u0041", "b2":1e400}}`, string(entry.Value()))
}

func TestARemovedDeadLetterStaysAway(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := subjects.NewRun("acme", "r")
	require.Equal(t, fault.NotFound, fault.CodeOf(s.Archive.RemoveDead(within(t, 2*time.Minute), r, 7, "a")))
	_, err := s.Archive.CreateDead(within(t, 2*time.Minute), r, "", letterOf(r, "a"))
	require.NoError(t, err)
	require.NoError(t, s.Archive.RemoveDead(within(t, 2*time.Minute), r, 7, "a"))
	require.Equal(t, fault.NotFound, fault.CodeOf(s.Archive.RemoveDead(within(t, 2*time.Minute), r, 7, "a")))
	_, err = s.Archive.Dead(within(t, 2*time.Minute), r, 0, "a")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	// An orchestrator that took the run over does it once more.
	created, err := s.Archive.CreateDead(within(t, 2*time.Minute), r, "", letterOf(r, "a"))
	require.NoError(t, err)
	require.False(t, created)
	require.Empty(t, dead(t, s, subjects.Run{Tenant: "acme"}))
}

func TestDeadLettersOfATenantAndOfARun(t *testing.T) {
	t.Parallel()
	s, brief := setup(t, kv.Config{}), setup(t, kv.Config{Retention: 2 * time.Second})
	all, a, b := subjects.Run{Tenant: "acme"}, subjects.NewRun("acme", "a/1"), subjects.NewRun("acme", "b")
	require.Empty(t, dead(t, s, all))
	for _, l := range []*outcome.DeadLetter{letterOf(a, "x"), letterOf(b, "y=0"), letterOf(a, "z"), letterOf(subjects.NewRun("other", "a/1"), "x")} {
		for _, s := range []*kv.Store{s, brief} {
			_, err := s.Archive.CreateDead(within(t, 2*time.Minute), subjects.NewRun(l.Tenant, l.Run), "", l)
			require.NoError(t, err)
		}
	}
	require.Equal(t, []string{"a/1 x", "b y=0", "a/1 z"}, dead(t, s, all))
	require.Equal(t, []string{"a/1 x", "a/1 z"}, dead(t, s, a))
	require.Empty(t, dead(t, s, subjects.NewRun("acme", "a")))
	require.Eventually(t, func() bool { return len(dead(t, brief, all)) == 0 }, 2*time.Minute, 200*time.Millisecond, "they expire")
}

func TestAnEntryOfStrangersIsLeftOut(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	bucket, err := js.KeyValue(within(t, 2*time.Minute), subjects.DeadBucket)
	require.NoError(t, err)
	require.NoError(t, second(bucket.PutString(within(t, 2*time.Minute), "acme.r.1.a", "not json")))
	require.NoError(t, second(bucket.PutString(within(t, 2*time.Minute), "acme.r.1.b", `{"run":"r","step":"b"}`)))
	require.Equal(t, []string{"r b"}, dead(t, s, subjects.Run{Tenant: "acme"}))
	_, err = s.Archive.Dead(within(t, 2*time.Minute), subjects.NewRun("acme", "r"), 1, "a")
	require.Equal(t, fault.Internal, fault.CodeOf(err))
	d, err := s.Archive.Dead(within(t, 2*time.Minute), subjects.NewRun("acme", "r"), 1, "b")
	require.NoError(t, err)
	require.Equal(t, fault.Internal, d.Error.Code, "nobody has to ask whether there is one")
}

// What the server takes in no message still becomes a letter, with every byte of the arguments.
func TestALargeDeadLetterGoesToABlob(t *testing.T) {
	t.Parallel()
	usual := setup(t, kv.Config{})
	large := letterOf(subjects.NewRun("acme", "r"), "a")
	large.Arguments = json.RawMessage(`{"x": "` + strings.Repeat("x", 300<<10) + `"}`)
	_, err := usual.Archive.CreateDead(within(t, 2*time.Minute), subjects.NewRun("acme", "r"), "", large)
	require.NoError(t, err)
	kept, err := usual.Archive.Dead(within(t, 2*time.Minute), subjects.NewRun("acme", "r"), 7, "a")
	require.NoError(t, err)
	require.Empty(t, kept.Arguments, "lists stay cheap")
	require.EqualValues(t, len(large.Arguments), kept.Blob.Size)

	s := setupOn(t, natstest.Start(t, func(o *embedded.Options) { o.MaxPayload = 64 << 10 }), kv.Config{})
	r := subjects.NewRun("acme", "r")
	arguments := `{"x": "` + strings.Repeat("x", 60<<10) + `"}`
	l := letterOf(r, "a")
	l.Arguments = json.RawMessage(arguments)
	l.Error.Details = json.RawMessage(strconv.Quote(strings.Repeat("d", 50<<10)))
	created, err := s.Archive.CreateDead(within(t, 2*time.Minute), r, "", l)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, arguments, string(l.Arguments), "the caller's letter is the caller's")
	got, err := s.Archive.Dead(within(t, 2*time.Minute), r, 7, "a")
	require.NoError(t, err)
	require.Empty(t, got.Arguments)
	require.Equal(t, l.Error.Message, got.Error.Message)
	require.Empty(t, got.Error.Details)
	data, err := s.Archive.Blob(within(t, 2*time.Minute), got.Blob)
	require.NoError(t, err)
	require.Equal(t, arguments, string(data))

	created, err = s.Archive.CreateDead(within(t, 2*time.Minute), r, "", l)
	require.NoError(t, err)
	require.False(t, created)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	blobs, err := js.ObjectStore(within(t, 2*time.Minute), subjects.BlobsBucket)
	require.NoError(t, err)
	list, err := blobs.List(within(t, 2*time.Minute))
	require.NoError(t, err)
	require.Len(t, list, 1, "the blob of the second is gone")

	known := letterOf(r, "b") // the step's own arguments were a blob already
	known.Arguments, known.Blob = nil, &outcome.Handle{Name: "acme/r/7/b/1/x", Size: 9, SHA256: "s"}
	_, err = s.Archive.CreateDead(within(t, 2*time.Minute), r, "", known)
	require.NoError(t, err)
	got, err = s.Archive.Dead(within(t, 2*time.Minute), r, 7, "b")
	require.NoError(t, err)
	require.Equal(t, known, got)
}

func TestDetailsThatAreNoJSONAreGivenUp(t *testing.T) {
	t.Parallel()
	l := letterOf(subjects.NewRun("acme", "r"), "a")
	l.Error.Details = json.RawMessage(`{broken`)
	require.True(t, json.Valid(l.JSON()))
	require.True(t, bytes.Contains(l.JSON(), []byte(`"message":"it took`)))
	require.True(t, bytes.Contains(l.JSON(), l.Arguments))
}
