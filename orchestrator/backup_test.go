package orchestrator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// gated has a step that waits, and one after it whose result is too large for a message.
const gated = `{"steps":[{"id":"a","tool":"echo","arguments":{"v":1}},{"id":"g","tool":"gate","arguments":{"v":"$ref:a.v"}},
	{"id":"big","tool":"big","arguments":{"bytes":280000},"depends_on":["g"]}]}`

// copied are the streams that docs/operations.md says to copy, in its order; tenants are those that are declared.
func copied(shards int, tenants ...string) (streams []string) {
	for i := range shards {
		streams = append(streams, subjects.LedgerStream(i))
	}
	for _, bucket := range []string{subjects.HistoryBucket, subjects.DeadBucket, subjects.ToolsBucket} {
		streams = append(streams, subjects.BucketStream(bucket))
	}
	streams = append(streams, subjects.BlobsStream(""))
	for _, tenant := range tenants {
		streams = append(streams, subjects.BlobsStream(subjects.BlobsOf(tenant)))
	}
	return streams
}

// Runs go on while the streams are copied one after another, in the order of docs/operations.md. What is restored from
// the copies comes to its end: what had one keeps it, what was under way gets one, and what is sent again is answered.
func TestABackupMadeWhileRunsGoOnIsWhole(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			t.Parallel()
			old := &past{system: startOn(t, natstest.Start(t), func(c *orchestrator.Config) { c.Store.Shards = shards }), plans: map[string]string{}, ended: map[string]*outcome.Outcome{}}
			copies := old.backUp(shards)

			srv := natstest.Start(t)
			nc := natstest.Connect(t, srv)
			for _, b := range copies {
				natstest.Restore(t, nc, b)
			}
			_, err := doctor.Examine(ctx(t), nc, doctor.Options{Mend: true}) // stepjet doctor --fix
			require.NoError(t, err)
			s := startOn(t, srv)
			close(s.tools.gate)
			for id := range old.plans {
				if strings.HasPrefix(id, "late") {
					continue // no copy has it
				}
				doc := s.history("default", id) // without being sent again
				if told := old.ended[id]; told != nil {
					require.Equal(t, string(told.JSON()), string(doc.Outcome.JSON()), "%s keeps its outcome", id)
				}
			}
			for id, plan := range old.plans {
				o := s.run(plan, id)
				require.Equal(t, statusOf(id), o.Status, "%s, sent again: %v", id, o.Errors)
				if told := old.ended[id]; told != nil {
					require.Equal(t, string(told.JSON()), string(o.JSON()), "%s is answered as before", id)
				}
			}
			letters := 0
			require.NoError(t, s.store.Archive.DeadLetters(ctx(t), subjects.Run{Tenant: "default"}, func(*outcome.DeadLetter) { letters++ }))
			require.Equal(t, 3, letters)
			s.quiet()
		})
	}
}

// past is the system that copies are made of.
type past struct {
	*system
	plans map[string]string           // by run
	ended map[string]*outcome.Outcome // of the runs that had one before the history was copied
}

func statusOf(id string) outcome.RunStatus {
	if strings.HasPrefix(id, "dead") {
		return outcome.Failed
	}
	return outcome.Succeeded
}

// backUp copies the streams. Of the runs, some end before, six are under way, three of these end between the copies of
// ledger and history, as do some that begin there, and some begin after all.
func (p *past) backUp(shards int) (copies []natstest.Backup) {
	p.t.Helper()
	var tenants []string
	if shards > 1 { // its large values lie in a bucket of its own
		tenants = []string{"default"}
		p.declare(tenants...)
	}
	whole := strings.Replace(gated, `"tool":"gate"`, `"tool":"echo"`, 1)
	p.whole("done", whole)
	p.whole("dead", `{"steps":[{"id":"a","tool":"fail"}]}`)
	told := make(chan string, 6)
	outcomes := make([]*outcome.Outcome, 6)
	for i := range outcomes {
		id := fmt.Sprint("gated-", i)
		p.plans[id] = gated
		r := p.submit(gated, id)
		go func() {
			o, err := r.Wait(context.Background())
			if err == nil {
				outcomes[i] = o
			}
			told <- id
		}()
		<-p.tools.begun
	}
	for _, stream := range copied(shards, tenants...) {
		if stream == subjects.BucketStream(subjects.HistoryBucket) {
			p.whole("between", whole)
			for range 3 {
				p.tools.gate <- struct{}{}
				id := <-told
				var i int
				_, err := fmt.Sscanf(id, "gated-%d", &i)
				require.NoError(p.t, err)
				p.ended[id] = outcomes[i]
			}
		}
		copies = append(copies, natstest.BackUp(p.t, p.nc, stream))
	}
	p.whole("late", `{"steps":[{"id":"a","tool":"echo"}]}`)
	for id := range p.plans {
		if strings.HasPrefix(id, "late") {
			delete(p.ended, id)
		}
	}
	close(p.tools.gate)
	for range 3 {
		<-told
	}
	return copies
}

// whole runs three runs to their ends.
func (p *past) whole(kind, plan string) {
	p.t.Helper()
	for i := range 3 {
		id := fmt.Sprintf("%s-%d", kind, i)
		p.plans[id], p.ended[id] = plan, p.run(plan, id)
	}
}

// quiet waits until no step is left in the queue.
func (s *system) quiet() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		for p := range subjects.Partitions {
			left, err := s.store.Queue.Pending(context.Background(), 0, p)
			if err != nil || len(left) > 0 {
				return false
			}
		}
		return true
	}, patience, 50*time.Millisecond)
}
