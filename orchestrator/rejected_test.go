package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

const (
	lateTool = `{"steps":[{"id":"a","tool":"late","arguments":{"x":1}}]}`
	mended   = `{"steps":[{"id":"a","tool":"echo","arguments":{"x":1}}]}`
)

func TestARejectedRunLeavesItsIDFree(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.orchestrator()
	o := s.run(lateTool, "pay-1")
	require.Equal(t, outcome.Rejected, o.Status)
	require.Equal(t, []fault.Code{fault.UnknownTool}, codes(o.Problems))
	require.Positive(t, o.Generation)

	_, err := s.store.Registry.Register(ctx(t), []byte(`{"name":"late"}`)) // as a program does that was slow to start
	require.NoError(t, err)
	again := s.run(lateTool, "pay-1") // the same bytes, a moment later: what somebody sends who missed the answer
	require.Equal(t, outcome.Rejected, again.Status)
	require.Equal(t, o.Problems, again.Problems)
	require.Greater(t, again.Generation, o.Generation)
	require.Equal(t, again.Generation, s.history("default", "pay-1").Generation)

	second := s.run(mended, "pay-1") // other bytes are judged at once
	require.Equal(t, outcome.Succeeded, second.Status, "%v", second.Problems)
	require.Greater(t, second.Generation, again.Generation)
	require.Equal(t, second.Generation, s.history("default", "pay-1").Generation)
	require.Equal(t, string(second.JSON()), string(s.run(mended, "pay-1").JSON()))
	_, err = s.client.Submit(ctx(t), []byte(lateTool), client.SubmitOptions{Run: "pay-1"})
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "now it is used: %v", err)
	require.Equal(t, 1, s.tools.total())
}

// TestTheSameBytesAreJudgedAnewLater: the rejection is 10 s old, by the ledger's times.
func TestTheSameBytesAreJudgedAnewLater(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i, c := range []struct {
		age  time.Duration
		want outcome.RunStatus
	}{{11 * time.Second, outcome.Succeeded}, {time.Second, outcome.Rejected}} {
		id := subjects.NewRun("default", fmt.Sprintf("old-%d", i))
		require.Equal(t, outcome.Succeeded, s.run(mended, fmt.Sprintf("before-%d", i)).Status) // so that it has a higher place
		rejected := time.Now().Add(-c.age).UTC()
		doc := &outcome.Run{
			Version: 1, Run: id.Plain(), Tenant: "default", Generation: 1, Digest: plan.Digest([]byte(mended)), Status: outcome.Rejected,
			Submitted: rejected.Add(-time.Minute), Finished: rejected, Plan: json.RawMessage(mended),
			Outcome: &outcome.Outcome{Run: id.Plain(), Status: outcome.Rejected, Problems: []fault.Problem{{Code: fault.UnknownTool, Message: "not yet"}}},
		}
		_, err := s.store.Archive.CreateHistory(ctx(t), id, "", doc)
		require.NoError(t, err)
		o := s.run(mended, id.Plain())
		require.Equal(t, c.want, o.Status, "%v old", c.age)
		if c.want == outcome.Rejected {
			require.True(t, rejected.Equal(s.history("default", id.Plain()).Finished), "asking again makes no rejection younger")
		}
	}
}

// TestAStockClientReusesAnID: what a client does that has read only docs/protocol.md.
func TestAStockClientReusesAnID(t *testing.T) {
	t.Parallel()
	s := start(t)
	js, err := jetstream.New(s.nc)
	require.NoError(t, err)
	history, err := js.KeyValue(ctx(t), subjects.HistoryBucket)
	require.NoError(t, err)
	ends, err := s.nc.SubscribeSync("event.acme.order-9.end")
	require.NoError(t, err)
	type head struct {
		Status     string
		Generation uint64
	}
	submit := func(body string) head {
		ack, err := js.Publish(ctx(t), "plan.submit.acme.order-9", []byte(body))
		require.NoError(t, err)
		for {
			m, err := ends.NextMsg(2 * time.Minute)
			require.NoError(t, err)
			var h head
			require.NoError(t, json.Unmarshal(m.Data, &h))
			if h.Status == "rejected" && h.Generation < ack.Sequence {
				continue
			}
			require.Equal(t, ack.Sequence, h.Generation)
			e, err := history.Get(ctx(t), "acme.order-9")
			require.NoError(t, err)
			var kept head
			require.NoError(t, json.Unmarshal(e.Value(), &kept))
			require.Equal(t, h, kept)
			return h
		}
	}
	require.Equal(t, "rejected", submit(`{"steps":[`).Status)
	require.Equal(t, "rejected", submit(lateTool).Status)
	require.Equal(t, "rejected", submit(lateTool).Status)
	require.Equal(t, "succeeded", submit(mended).Status)

	_, err = js.Publish(ctx(t), "plan.submit.acme.order-9", []byte(lateTool))
	require.ErrorContains(t, err, "maximum messages per subject")
}

// TestARunAfterARejectionIsForNewOrchestrators: an older one would take the rejection for its outcome, so it is to
// leave it alone.
func TestARunAfterARejectionIsForNewOrchestrators(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.Equal(t, outcome.Rejected, s.run(lateTool, "r").Status)
	r := s.submit(`{"steps":[{"id":"g","tool":"gate"}]}`, "r")
	<-s.tools.begun
	id := subjects.NewRun("default", "r")
	e, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(id, r.Generation(), 1))
	require.NoError(t, err)
	require.Equal(t, subjects.StartVersion, e.Header.Get(subjects.HeaderVersion))
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)

	plain := s.submit(mended, "plain")
	s.wait(plain)
	e, err = s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "plain"), plain.Generation(), 1))
	require.NoError(t, err)
	require.Equal(t, subjects.Version, e.Header.Get(subjects.HeaderVersion), "of an id that is new")
}

// TestManySubmittersOfOneID: two orchestrators, several clients, good plans and bad ones, all under one id. Whoever's
// plan was accepted gets what became of that very plan or is told of a conflict; of the good one, only one is ever
// executed.
func TestManySubmittersOfOneID(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.orchestrator()
	var all sync.WaitGroup
	statuses := make(chan outcome.RunStatus, 100)
	for i := range 6 {
		c, err := client.New(ctx(t), natstest.Connect(t, s.srv), client.Config{})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		all.Go(func() {
			for n := range 5 {
				body := fmt.Sprintf(`{"steps":[{"id":"a","tool":"none-%d-%d"}]}`, i, n)
				if i == 0 && n == 3 {
					body = mended
				}
				r, err := c.Submit(ctx(t), []byte(body), client.SubmitOptions{Run: "shared"})
				if fault.CodeOf(err) == fault.Conflict {
					continue
				}
				if !assert.NoError(t, err) {
					return
				}
				out, err := r.Wait(ctx(t))
				if fault.CodeOf(err) == fault.Conflict { // missed among the others'
					continue
				}
				if !assert.NoError(t, err) {
					return
				}
				if out.Status == outcome.Rejected && out.Generation < r.Generation() {
					t.Errorf("plan %d got the rejection of %d", r.Generation(), out.Generation)
				}
				if (out.Status == outcome.Succeeded) != (body == mended) {
					t.Errorf("%s is %s", body, out.Status)
				}
				statuses <- out.Status
			}
		})
	}
	all.Wait()
	require.NotEmpty(t, statuses)
	require.LessOrEqual(t, s.tools.total(), 1)
	require.Equal(t, outcome.Succeeded, s.run(mended, "shared").Status)
	require.Equal(t, 1, s.tools.total())
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := js.StreamInfo(subjects.LedgerStream(0), &nats.StreamInfoRequest{SubjectsFilter: subjects.RunFilter(subjects.NewRun("default", "shared"), 1)})
		return err == nil && len(info.State.Subjects) == 3 // plan, start and record of the one that ran
	}, patience, 50*time.Millisecond, "rejected plans leave nothing")
}
