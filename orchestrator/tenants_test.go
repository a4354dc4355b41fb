package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// holds counts the messages of a bucket of large values.
func (s *system) holds(bucket string) uint64 {
	s.t.Helper()
	js, err := s.nc.JetStream()
	require.NoError(s.t, err)
	info, err := js.StreamInfo(subjects.BlobsStream(bucket))
	require.NoError(s.t, err)
	return info.State.Msgs
}

func (s *system) declare(tenants ...string) {
	s.t.Helper()
	for _, tenant := range tenants {
		_, err := s.store.Archive.Declare(ctx(s.t), tenant)
		require.NoError(s.t, err)
	}
}

// TestAllThatADeclaredTenantsRunStoresLiesInItsBucket: results, arguments, documents, dead letters, starts, and what a
// retry takes over; also where another orchestrator goes on with the run.
func TestAllThatADeclaredTenantsRunStoresLiesInItsBucket(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.declare("default")
	stop := s.orchestrator() // beside the first one: whoever goes on reads the bucket from the run's start
	run, err := s.client.Submit(ctx(t), []byte(`{"steps":[
		{"id":"open","tool":"gate"},
		{"id":"big","tool":"big","arguments":{"bytes":700000},"depends_on":["open"]},
		{"id":"one","tool":"big","arguments":{"bytes":200000}},{"id":"two","tool":"big","arguments":{"bytes":200000}},
		{"id":"passed","tool":"length","arguments":{"text":"$ref:big.text"}},
		{"id":"fails","tool":"fail","arguments":{"text":"$ref:big.text"}}],"output_steps":["big","passed"]}`), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	require.Equal(t, "open", <-s.tools.begun)
	stop()
	s.orchestrator()
	close(s.tools.gate)
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Partial, o.Status, "%.2000s", o.JSON())
	passed, _ := o.Results.Get("passed")
	require.Equal(t, "700000", string(passed))
	head, err := s.store.Archive.HistoryHead(ctx(t), subjects.NewRun("default", "r"))
	require.NoError(t, err)
	require.Equal(t, "blobs-default", head.Blob.Bucket)
	letter, err := s.client.DeadLetter(ctx(t), "r", "fails")
	require.NoError(t, err)
	require.Equal(t, "blobs-default", letter.Blob.Bucket)
	require.Greater(t, len(letter.Arguments), 700000)
	e, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "r"), head.Generation, 1))
	require.NoError(t, err)
	require.Equal(t, subjects.BucketVersion, e.Header.Get(subjects.HeaderVersion), "an older orchestrator would look for its results elsewhere")

	again, err := s.client.Retry(ctx(t), "r", client.RetryOptions{})
	require.NoError(t, err)
	o, err = again.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Partial, o.Status)
	doc, err := s.client.Get(ctx(t), again.ID())
	require.NoError(t, err)
	require.True(t, doc.Steps[1].Reused)
	e, err = s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", again.ID()), doc.Generation, 1))
	require.NoError(t, err)
	require.Contains(t, e.Header.Get(subjects.HeaderHandle), `"bucket":"blobs-default"`)
	require.Zero(t, s.holds(""), "nothing lies where all tenants may read")
	require.NotZero(t, s.holds("blobs-default"))
}

// TestARunKeepsToTheBucketThatItStartedWith: what was stored before the tenant was declared stays readable.
func TestARunKeepsToTheBucketThatItStartedWith(t *testing.T) {
	t.Parallel()
	s := start(t)
	plan := `{"steps":[{"id":"open","tool":"gate"},{"id":"big","tool":"big","arguments":{"bytes":700000},"depends_on":["open"]},
		{"id":"passed","tool":"length","arguments":{"text":"$ref:big.text"}}],"output_steps":["passed"]}`
	run, err := s.client.Submit(ctx(t), []byte(plan), client.SubmitOptions{Run: "before"})
	require.NoError(t, err)
	require.Equal(t, "open", <-s.tools.begun)
	s.declare("default")
	close(s.tools.gate)
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%.2000s", o.JSON())
	require.NotZero(t, s.holds(""))
	require.Zero(t, s.holds("blobs-default"))
	there := s.holds("")
	require.Equal(t, outcome.Succeeded, s.run(plan, "after").Status)
	require.Equal(t, there, s.holds(""))
	require.NotZero(t, s.holds("blobs-default"))
	for _, id := range []string{"before", "after"} {
		doc, err := s.client.Get(ctx(t), id)
		require.NoError(t, err)
		require.Greater(t, len(doc.Steps[2].Arguments), 700000, "computed from the result that lies in its bucket")
	}
}

// TestAHandleBringsNoOtherTenantsBytes: a worker may write any record of its own tool. Whatever bucket its handle
// names, only that of the run counts.
func TestAHandleBringsNoOtherTenantsBytes(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.declare("default", "other")
	_, err := s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"raw"}`))
	require.NoError(t, err)
	secret, err := s.store.Archive.PutBlob(ctx(t), "blobs-other", "other/r/1/a/1/x", []byte(`{"password":"hunter2"}`))
	require.NoError(t, err)
	own, err := s.store.Archive.PutBlob(ctx(t), "blobs-default", "default/raw/1/own/1/x", []byte(`{"v":1}`))
	require.NoError(t, err)
	before, err := s.store.Archive.PutBlob(ctx(t), "", "default/raw/1/before/1/x", []byte(`{"v":2}`))
	require.NoError(t, err)
	handle := func(h *outcome.Handle, step, bucket string) string {
		return fmt.Sprintf(`{"name":"default/raw/1/%s/1/x","size":%d,"sha256":%q,"nuid":%q,"chunks":1,"bucket":%q,"checked":true}`, step, h.Size, h.SHA256, h.NUID, bucket)
	}
	records := map[string]string{
		"theirs": handle(secret, "theirs", "blobs-other"), "wild": handle(secret, "wild", "blobs-other.>"), "named": handle(own, "named", "blobs"),
		"moved": handle(secret, "moved", "blobs-default"), "own": handle(own, "own", "blobs-default"), "before": handle(before, "before", ""),
	}
	var steps []string
	for id := range records {
		steps = append(steps, fmt.Sprintf(`{"id":%q,"tool":"raw"}`, id))
	}
	run, err := s.client.Submit(ctx(t), []byte(`{"steps":[`+strings.Join(steps, ",")+`]}`), client.SubmitOptions{Run: "raw"})
	require.NoError(t, err)
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	queue, err := js.PullSubscribe(subjects.ToolFilter("raw", 0), "raw", nats.Bind(subjects.StepsStream(0), "raw"))
	require.NoError(t, err)
	for range records {
		one, err := queue.Fetch(1, nats.MaxWait(time.Minute))
		require.NoError(t, err)
		m := one[0]
		require.Equal(t, "blobs-default", m.Header.Get(subjects.HeaderBucket))
		a, _, ok := subjects.ParseStep(m.Subject)
		require.True(t, ok)
		text := strings.Replace(records[a.Step], "/raw/1/", fmt.Sprintf("/raw/%d/", a.Generation), 1)
		_, err = js.PublishMsg(&nats.Msg{Subject: m.Header.Get(subjects.HeaderResult), Header: nats.Header{subjects.HeaderHandle: {text}}})
		require.NoError(t, err)
		require.NoError(t, m.Ack())
	}
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.NotContains(t, string(o.JSON()), "hunter2")
	said := map[string]string{}
	for _, e := range o.Errors {
		said[e.Step] = e.Message
	}
	for _, id := range []string{"theirs", "wild", "named"} {
		require.Contains(t, said[id], "which is not its run's", "%s: %s", id, o.JSON())
	}
	require.NotEmpty(t, said["moved"], "it is not there: %s", o.JSON())
	for id, want := range map[string]string{"own": `{"v":1}`, "before": `{"v":2}`} {
		got, _ := o.Results.Get(id)
		require.Equal(t, want, string(got), "%s", o.JSON())
	}
}
