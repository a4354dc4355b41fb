package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func TestADiamondRuns(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[
		{"id":"a","tool":"echo","arguments":{"n":12345678901234567890,"s":"x"}},
		{"id":"b","tool":"echo","arguments":{"v":"$ref:a.n"}},
		{"id":"c","tool":"echo","arguments":"{\"v\": \"got ${ref:a.s}!\"}"},
		{"id":"d","tool":"echo","arguments":{"b":"$ref:b","c":"$ref:c.v","none":"$ref:a.nope || 7"}}],"output_steps":["d","b"]}`, "order #42")
	require.Equal(t, outcome.Succeeded, o.Status)
	require.Equal(t, "order #42", o.Run)
	require.Equal(t, "d", o.Results[0].Step)
	require.Equal(t, `{"b":{"v":12345678901234567890},"c":"got x!","none":7}`, string(o.Results[0].JSON))
	require.Equal(t, `{"v":12345678901234567890}`, string(o.Results[1].JSON))
	require.Equal(t, 4, o.Stats.Succeeded)
	require.Positive(t, o.Stats.BytesKeptOut)

	doc, err := s.client.Get(ctx(t), "order #42")
	require.NoError(t, err)
	require.Len(t, doc.Steps, 4)
	require.JSONEq(t, `{"v":"got x!"}`, string(doc.Steps[2].Arguments))
	for _, step := range doc.Steps {
		require.Equal(t, outcome.StepSucceeded, step.Status)
		require.Equal(t, 1, step.Attempts)
		require.Equal(t, "w", step.Worker)
		require.False(t, step.Decided.Before(step.Ready))
	}
}

func TestARejectedPlanRunsNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"a","tool":"echoo"},{"id":"b","tool":"echo","arguments":{"x":"$ref:zz"}},{"id":"c","tool":"length","arguments":{"text":5}}]}`, "bad")
	require.Equal(t, outcome.Rejected, o.Status)
	require.ElementsMatch(t, []fault.Code{fault.UnknownTool, fault.UnknownRef, fault.InvalidArguments}, codes(o.Problems))
	require.Empty(t, o.Results)
	require.Zero(t, s.tools.total())
	require.Equal(t, outcome.Rejected, s.history("default", "bad").Status)
	malformed := s.run(`{"steps":[`, "worse")
	require.Equal(t, []fault.Code{fault.MalformedJSON}, codes(malformed.Problems))
}

func TestFailuresSkipAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"s1","tool":"fail"},{"id":"s2","tool":"echo"},{"id":"s3","tool":"echo","arguments":{"x":"$ref:s1"}},{"id":"s4","tool":"echo","depends_on":["s3"]}]}`, "")
	require.Equal(t, outcome.Partial, o.Status)
	require.Equal(t, []outcome.StepError{
		{Step: "s1", Code: fault.ToolTerminal, Message: "no luck", Attempts: 1},
		{Step: "s3", Code: fault.Skipped, Message: "Skipped because dependency 's1' failed"},
		{Step: "s4", Code: fault.Skipped, Message: "Skipped because dependency 's3' failed"},
	}, o.Errors)
}

func TestRetriesByScheduleAndRunTimeErrors(t *testing.T) {
	t.Parallel()
	s := start(t)
	began := time.Now()
	o := s.run(`{"on_missing":"error","steps":[{"id":"a","tool":"flaky"},{"id":"b","tool":"length","arguments":{"text":"$ref:e.x"}},
		{"id":"c","tool":"echo","arguments":{"x":"$ref:e.nope"}},{"id":"d","tool":"echo","arguments":{"x":"$ref:e.x.y"}},{"id":"e","tool":"echo","arguments":{"x":5}}]}`, "")
	require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond)
	require.Equal(t, outcome.Partial, o.Status)
	at, _ := o.Results.Get("a")
	require.Equal(t, `"at last"`, string(at))
	require.Len(t, o.Errors, 3)
	require.Equal(t, fault.InvalidArguments, o.Errors[0].Code)
	require.Contains(t, o.Errors[0].Message, "/text")
	require.Equal(t, fault.UnresolvedRef, o.Errors[1].Code)
	require.Equal(t, fault.UnresolvedRef, o.Errors[2].Code)
	require.Zero(t, o.Errors[2].Attempts)
	require.Equal(t, 3+1, s.tools.total(), "three attempts of a and one of e")
}

func TestAnyClientCanSubmit(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, s.nc.Publish("plan.submit.acme.order-1", []byte(`{"steps":[{"id":"a","tool":"echo","arguments":{"x":1}}]}`)))
	doc := s.history("acme", "order-1")
	require.Equal(t, outcome.Succeeded, doc.Status)
	got, _ := doc.Outcome.Results.Get("a")
	require.Equal(t, `{"x":1}`, string(got))

	// A token that isn't canonical is answered in history, under the very token.
	require.NoError(t, s.nc.Publish("plan.submit.acme.order=41", []byte(`{"steps":[{"id":"a","tool":"echo"}]}`)))
	var bad *outcome.Run
	require.Eventually(t, func() bool {
		d, err := s.store.Archive.History(ctx(t), subjects.Run{Tenant: "acme", ID: "order=41"})
		bad = d
		return err == nil
	}, patience, 10*time.Millisecond)
	require.Equal(t, outcome.Rejected, bad.Status)
	require.Equal(t, []fault.Code{fault.InvalidID}, codes(bad.Outcome.Problems))
}

func TestAConflictLeavesTheOutcome(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.Grace = time.Second })
	const first, second = `{"steps":[{"id":"a","tool":"echo","arguments":{"x":1}}]}`, `{"steps":[{"id":"a","tool":"echo","arguments":{"x":2}}]}`
	o := s.run(first, "r")
	conflicts, err := s.nc.SubscribeSync(subjects.Event(subjects.NewRun("default", "r"), subjects.EventConflict))
	require.NoError(t, err)
	conflict := func() {
		t.Helper()
		require.NoError(t, s.nc.Publish("plan.submit.default.r", []byte(second)))
		m, err := conflicts.NextMsg(2 * time.Minute)
		require.NoError(t, err)
		require.Contains(t, string(m.Data), `"code":"conflict"`)
	}
	conflict() // while its records are still there
	s.emptyLedger()
	conflict() // known from history only
	require.Equal(t, string(o.JSON()), string(s.history("default", "r").Outcome.JSON()))
	again := s.run(first, "r")
	require.Equal(t, string(o.JSON()), string(again.JSON()))
	require.Equal(t, 1, s.tools.total())
	s.emptyLedger()
}

// emptyLedger waits until finished runs are purged.
func (s *system) emptyLedger() {
	s.t.Helper()
	js, err := s.nc.JetStream()
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		info, err := js.StreamInfo(subjects.LedgerStream(0))
		return err == nil && info.State.Msgs == 0
	}, patience, 50*time.Millisecond, "the ledger still has records")
}

func TestPurgeKeepsActiveRuns(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.Grace = time.Second })
	long := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"h","tool":"echo","arguments":{"x":"$ref:g"}}]}`, "long")
	<-s.tools.begun
	for i := range 50 {
		s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, fmt.Sprint("short", i))
	}
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := js.StreamInfo(subjects.LedgerStream(0))
		require.NoError(t, err)
		return info.State.Msgs == 2 // plan and start of the long one
	}, patience, 50*time.Millisecond)
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(long).Status)
	s.emptyLedger()
}

func TestCancelAndDeadlines(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"a","tool":"echo"},{"id":"h","tool":"echo","depends_on":["g"]}]}`, "c")
	<-s.tools.begun
	require.Eventually(t, func() bool {
		doc, err := s.client.Get(ctx(t), "c")
		return err == nil && doc.Steps[1].Status == outcome.StepSucceeded && doc.Steps[2].Waiting == "g"
	}, patience, 20*time.Millisecond)
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "c", "ann")))
	o := s.wait(r)
	require.Equal(t, outcome.Cancelled, o.Status)
	require.Len(t, o.Results, 1, "what had succeeded is still returned")
	require.Equal(t, fault.Cancelled, o.Errors[0].Code)
	require.Contains(t, o.Errors[0].Message, "ann")
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(cancelled(s.client.Cancel(ctx(t), "c", "ann"))))

	expired := s.run(`{"timeout":"300ms","steps":[{"id":"g","tool":"gate"}]}`, "e")
	require.Equal(t, outcome.Expired, expired.Status)
	slow := s.run(`{"steps":[{"id":"g","tool":"gate","timeout":"300ms"},{"id":"h","tool":"echo","arguments":{"x":"$ref:g"}}]}`, "t")
	require.Equal(t, outcome.Failed, slow.Status)
	require.Equal(t, fault.Timeout, slow.Errors[0].Code)
	require.Equal(t, fault.Skipped, slow.Errors[1].Code)
}

func TestFailFastCancelsTheRest(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"on_failure":"stop","steps":[{"id":"g","tool":"gate"},{"id":"a","tool":"fail"},{"id":"b","tool":"echo","depends_on":["a"]},{"id":"c","tool":"echo","depends_on":["g"]}]}`, "")
	o := s.wait(r)
	require.Equal(t, outcome.Failed, o.Status)
	got := map[string]fault.Code{}
	for _, e := range o.Errors {
		got[e.Step] = e.Code
	}
	require.Equal(t, map[string]fault.Code{"g": fault.Cancelled, "a": fault.ToolTerminal, "b": fault.Skipped, "c": fault.Cancelled}, got)
}

func TestLargeResultsPassThrough(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"big","tool":"big","arguments":{"bytes":700000}},{"id":"len","tool":"length","arguments":{"text":"$ref:big.text"}},{"id":"copy","tool":"echo","arguments":{"all":"$ref:big"}}]}`, "large")
	require.Equal(t, outcome.Succeeded, o.Status, "%v", o.Errors)
	n, _ := o.Results.Get("len")
	require.Equal(t, "700000", string(n))
	big, _ := o.Results.Get("big")
	copied, _ := o.Results.Get("copy")
	require.Equal(t, `{"all":`+string(big)+`}`, string(copied))

	// A stock client finds head and handle in the bucket and the rest in the object store.
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	bucket, err := js.KeyValue(subjects.HistoryBucket)
	require.NoError(t, err)
	entry, err := bucket.Get("default.large")
	require.NoError(t, err)
	var head outcome.Run
	require.NoError(t, json.Unmarshal(entry.Value(), &head))
	require.NotNil(t, head.Blob)
	objects, err := js.ObjectStore(subjects.BlobsBucket)
	require.NoError(t, err)
	whole, err := objects.GetBytes(head.Blob.Name)
	require.NoError(t, err)
	var doc outcome.Run
	require.NoError(t, json.Unmarshal(whole, &doc))
	require.Equal(t, outcome.Succeeded, doc.Status)
	got, _ := doc.Outcome.Results.Get("len")
	require.Equal(t, "700000", string(got))
}

func TestANewerVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	_, err = js.PublishMsg(&nats.Msg{Subject: "plan.submit.default.later", Header: nats.Header{subjects.HeaderVersion: {"99"}}, Data: []byte(`{"steps":[{"id":"a","tool":"echo"}]}`)})
	require.NoError(t, err)
	s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, "now") // read after it
	_, err = s.store.Archive.History(ctx(t), subjects.NewRun("default", "later"))
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	require.Equal(t, 1, s.tools.total())
}

func TestLostStepsAreDispatchedAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, err := s.store.Registry.Register(ctx(t), []byte(`{"name":"late","x-orchestration":{"retry":{"max_attempts":2}}}`)) // nobody works for it yet
	require.NoError(t, err)
	r := s.submit(`{"steps":[{"id":"l","tool":"late"},{"id":"f","tool":"flaky"}]}`, "lost")
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	waiting := func() bool {
		ids, err := s.store.Queue.Pending(ctx(t), 0, subjects.Partition("lost"))
		require.NoError(t, err)
		for id := range ids {
			if strings.Contains(id, "/l/") {
				return true
			}
		}
		return false
	}
	for range 3 {
		require.Eventually(t, waiting, patience, 10*time.Millisecond, "the step is not there")
		require.NoError(t, js.PurgeStream(subjects.StepsStream(0))) // with it goes, twice, the scheduled attempt of f
	}
	nc := natstest.Connect(t, s.srv)
	w, err := worker.New(nc, worker.Config{Name: "late", Logger: logger(t)})
	require.NoError(t, err)
	worker.Handle(w, "late", func(context.Context, struct{}) (string, error) { return "done", nil }, worker.Contract(tool.Orchestration{Retry: &tool.Retry{MaxAttempts: 2}}))
	s.background(w.Run, w.Ready())
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
}

func TestAFullLedgerDropsNothing(t *testing.T) {
	t.Parallel()
	const room = 600 << 10
	s := start(t, func(c *orchestrator.Config) {
		c.Grace = time.Second
		c.Store = kv.Config{AckWait: lease, LedgerMaxBytes: room}
	})
	r := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"b","tool":"big","arguments":{"bytes":200000}},{"id":"c","tool":"length","arguments":{"text":"$ref:b.text"}}]}`, "full")
	<-s.tools.begun
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	// Something else fills the ledger up: records of a subject that nobody reads.
	n := 0
	for _, size := range []int{50 << 10, 100} { // to the brim: b may be recorded already, and then only a small record is left
		for err = nil; err == nil; n++ {
			_, err = js.Publish(fmt.Sprintf("%s99.x.y%d.1.filler", subjects.LedgerPrefix(0), n), make([]byte, size))
		}
	}
	require.Greater(t, n, 2)
	close(s.tools.gate)
	_, err = s.store.Archive.History(ctx(t), subjects.NewRun("default", "full"))
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	require.NoError(t, js.PurgeStream(subjects.LedgerStream(0), &nats.StreamPurgeRequest{Subject: subjects.LedgerPrefix(0) + "99.>"}))
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status)
	require.Equal(t, 3, s.tools.total(), "nothing was executed twice")
}

func TestARegistryThatChangesInMidRunChangesNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	const plan = `{"steps":[{"id":"g","tool":"gate"},{"id":"f","tool":"flaky","depends_on":["g"]}],"output_steps":["f"]}`
	r := s.submit(plan, "frozen")
	<-s.tools.begun
	_, err := s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"flaky","description":"now without retries"}`)) // its owner knows
	require.NoError(t, err)
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status, "three attempts, as the contract said when the run began")
	after := s.run(plan, "after")
	require.Equal(t, outcome.Failed, after.Status, "one attempt, as the contract says now")
	require.Equal(t, 1, after.Errors[0].Attempts)
}

// TestWhoReadsARunHearsOfAllThatFollows: nobody listens at first, so no events are sent. Reading the run changes that.
func TestWhoReadsARunHearsOfAllThatFollows(t *testing.T) {
	t.Parallel()
	s := start(t)
	const width = 40
	steps := `{"id":"hold","tool":"gate"}`
	for i := range width {
		steps += fmt.Sprintf(`,{"id":"s%d","tool":"echo","arguments":{},"depends_on":["hold"]}`, i)
	}
	_, err := s.client.Submit(ctx(t), []byte(`{"steps":[`+steps+`]}`), client.SubmitOptions{Run: "watched"})
	require.NoError(t, err)
	require.Equal(t, "hold", <-s.tools.begun)
	sub, err := s.nc.SubscribeSync(subjects.Event(subjects.NewRun("default", "watched"), subjects.EventStep))
	require.NoError(t, err)
	require.NoError(t, s.nc.Flush())
	_, err = s.client.Get(ctx(t), "watched")
	require.NoError(t, err)
	close(s.tools.gate)
	for range width + 1 {
		_, err := sub.NextMsgWithContext(ctx(t))
		require.NoError(t, err)
	}
}
