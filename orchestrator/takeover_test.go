package orchestrator_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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
)

// takeovers is a log that keeps what was read of partitions.
type takeovers struct {
	slog.Handler
	mu   sync.Mutex
	read []reading
}

type reading struct{ partitions, since, records int64 }

func (h *takeovers) Enabled(context.Context, slog.Level) bool { return true }

func (h *takeovers) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "partitions were read" {
		var x reading
		r.Attrs(func(a slog.Attr) bool {
			switch a.Key {
			case "partitions":
				x.partitions = a.Value.Int64()
			case "since":
				x.since = int64(a.Value.Uint64())
			case "records":
				x.records = a.Value.Int64()
			}
			return true
		})
		h.mu.Lock()
		h.read = append(h.read, x)
		h.mu.Unlock()
	}
	return nil
}

func (h *takeovers) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *takeovers) WithGroup(string) slog.Handler      { return h }

// all returns how many partitions and records were read since the log was forgotten.
func (h *takeovers) all() (partitions, records int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.read {
		partitions, records = partitions+x.partitions, records+x.records
	}
	return partitions, records
}

func (h *takeovers) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read = nil
}

// Who takes over what an owner that was killed had reads what goes on, and not what ended within the grace. Of that all is
// known as it is after its purge, though it lies there for a grace.
func TestATakeoverSkipsWhatIsOver(t *testing.T) {
	t.Parallel()
	log := &takeovers{}
	s := start(t, func(c *orchestrator.Config) { c.Loops, c.Grace, c.Logger = 1, 10*time.Minute, slog.New(log) })
	own := s.config
	own.Logger = logger(t)
	nc := natstest.Connect(t, s.srv)
	victim, err := orchestrator.New(nc, own)
	require.NoError(t, err)
	stop := s.background(victim.Run, victim.Ready())
	s.sharedBy(2)

	var done []string
	for i := range 120 {
		id := fmt.Sprint("done", i)
		require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"a","tool":"echo"},{"id":"b","tool":"echo","depends_on":["a"]}]}`, id).Status)
		done = append(done, id)
	}
	long := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"h","tool":"echo","arguments":{"x":"$ref:g"}}]}`, "long")
	<-s.tools.begun
	last, err := s.store.Ledger.LastSequence(ctx(t), 0)
	require.NoError(t, err)
	told := func() bool { // all that is over is told of
		said, err := s.store.Members.Said(ctx(t))
		require.NoError(t, err)
		var told uint64
		for _, m := range said {
			for _, x := range m.Marks {
				if x.Over+4 > last {
					told |= x.Partitions
				}
			}
		}
		return told == ^uint64(0)
	}
	for partitions := int64(1); partitions > 0; partitions, _ = log.all() { // a busy machine may let one take the other for gone
		log.forget()
		s.sharedBy(2)
		require.Eventually(t, told, patience, 50*time.Millisecond)
		time.Sleep(time.Second) // the next renewal of the other's key was heard, too
	}

	log.forget()
	nc.Close() // as a kill does: it is not there any more, and says nothing
	require.Eventually(t, func() bool { partitions, _ := log.all(); return partitions > 20 }, patience, 10*time.Millisecond, "who is left takes over")
	_, records := log.all()
	lay, err := s.store.Ledger.Stored(ctx(t), 0, subjects.LedgerFilter(0))
	require.NoError(t, err)
	require.Less(t, records, int64(20), "of %d", len(lay))
	require.Greater(t, len(lay), 200)

	for _, id := range done {
		doc, err := s.client.Get(ctx(t), id)
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, doc.Status)
		require.Equal(t, fault.AlreadyFinished, fault.CodeOf(cancelled(s.client.Cancel(ctx(t), id, "ann"))))
		_, amended := s.client.Amend(ctx(t), id, client.Amendment{Discard: []string{"b"}})
		_, said := client.Say(ctx(t), s.client, id, client.Word{Step: "a", Text: "Hurry."})
		for _, err := range []error{amended, said} { // of what was skipped the owner knows as much as once it is purged
			require.Contains(t, []fault.Code{fault.AlreadyFinished, fault.NotFound}, fault.CodeOf(err), "%s: %v", id, err)
		}
		_, err = s.client.Approve(ctx(t), &outcome.Question{Run: id, Step: "a", Kind: outcome.Approval, Digest: strings.Repeat("0", 64)}, client.Answer{})
		require.Equal(t, fault.NotFound, fault.CodeOf(err), "nobody was asked: %s: %v", id, err)
	}
	again, err := s.client.Submit(ctx(t), []byte(`{"steps":[{"id":"a","tool":"echo"},{"id":"b","tool":"echo","depends_on":["a"]}]}`), client.SubmitOptions{Run: done[7]})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, s.wait(again).Status)
	require.Equal(t, 241, s.tools.total(), "nothing was executed again")
	for _, id := range done[:40] {
		s.conflicts(id)
	}
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(long).Status)
	retried, err := s.client.Retry(ctx(t), done[3], client.RetryOptions{})
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "nothing of it failed: %v", retried)
	stop()
}

// conflicts submits another plan under an id as any NATS client may, and waits until that is told.
func (s *system) conflicts(id string) {
	s.t.Helper()
	run := subjects.NewRun("default", id)
	heard := make(chan *nats.Msg, 10)
	sub, err := s.nc.ChanSubscribe(subjects.Event(run, subjects.EventConflict), heard)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, sub.Unsubscribe()) }()
	decision, _, err := s.store.Ledger.Create(ctx(s.t), s.store.Ledger.SubmitSubject(run), nil, []byte(`{"steps":[]}`), nil)
	require.NoError(s.t, err)
	require.Equal(s.t, kv.Decided, decision)
	select {
	case <-heard:
	case <-time.After(patience):
		require.Fail(s.t, "nobody was told of the conflict", id)
	}
}
