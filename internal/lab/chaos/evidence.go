package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Evidence is all that Check looks at.
type Evidence struct {
	Events []journal.Event
	Faults []Fault
	// Ledger has the records that stand at the end, in the ledger's order. Kept says that no run has been purged yet.
	Ledger []kv.Entry
	Kept   bool
	// Expires says that finished runs are forgotten after a while, and their ids used again.
	Expires bool
	// Seen has every record as it was seen while the system ran, also those that are gone. Purged has those of them
	// that went with their runs, where these stayed for long enough to be seen.
	Seen   []Sighting
	Purged []kv.Entry
	// Sent are the steps of living runs as they were sent, as far as the harness was connected.
	Sent    []journal.Event
	History []*outcome.Run
	Dead    []*outcome.DeadLetter
	// Pending are the subjects of step messages that are still there, AckPending the leases.
	Pending    []string
	AckPending int
	// Stuck are the agents that did not finish in time.
	Stuck []string
	// Broken are processes that had to be started again, where none should.
	Broken []string
	// Lost is what was lost and then left out, where a scenario allows for it.
	Lost *Loss
	// Texts are what was said and stored, by the place where it was found: no secret may be in it.
	Texts map[string]string
	// Later is what became of a newer version's fields in the registry.
	Later *laterWatch
	// Memory is what a scenario found out about it.
	Memory string
	// Found are violations that a scenario finds by itself.
	Found []Violation
	// Counts are of what a scenario counts by itself.
	Counts map[string]int
	// Limits are the fan-out limits of the tools.
	Limits map[string]int
}

// Fault is something that the harness did.
type Fault struct {
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	// Workers are those whose leases may have run out by it, though they still execute; "*" for all.
	Workers []string `json:"workers,omitempty"`
}

// Sighting is a record as it was seen.
type Sighting struct {
	Subject string
	Seq     uint64
	Digest  string
}

// watch sees every record of the ledger as it is written.
type watch struct {
	mu   sync.Mutex
	seen map[Sighting]kv.Entry
}

func sighting(e kv.Entry) Sighting {
	return Sighting{Subject: e.Subject, Seq: e.Seq, Digest: digest(fmt.Append(nil, e.Header, "\n", string(e.Data)))}
}

// follow watches all shards until ctx ends, reading again where the cursor is lost.
func (w *watch) follow(ctx context.Context, store *kv.Store, shard int) {
	var partitions []int
	for p := range subjects.Partitions {
		if subjects.LedgerShard(p, store.Ledger.Shards()) == shard {
			partitions = append(partitions, p)
		}
	}
	for ctx.Err() == nil {
		lost := make(chan struct{})
		reading, err := store.Ledger.Follow(ctx, shard, partitions, kv.Since{}, func(e kv.Entry) {
			s := sighting(e)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen[s] = e
		}, func(uint64) {}, func(error) { close(lost) })
		if err != nil {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		select {
		case <-lost:
		case <-ctx.Done():
		}
		reading.Stop()
	}
}

// reading is longer than it takes to read it all.
const reading = 15 * time.Second

// collect reads everything that the streams and the logs hold.
func (w *World) collect(ctx context.Context) (*Evidence, error) {
	e := &Evidence{Faults: w.faults, Kept: time.Since(w.began)+reading < w.opts.Grace, Expires: w.opts.Retention > 0,
		Texts: map[string]string{}, Limits: limits(), Later: w.later, Memory: w.memory}
	if err := w.collectFiles(e); err != nil {
		return nil, err
	}
	for shard := range w.store.Ledger.Shards() {
		if err := w.collectLedger(ctx, shard, e); err != nil {
			return nil, err
		}
	}
	w.collectSeen(e)
	e.Sent = w.sent.All()
	if w.opts.Grace >= time.Minute && !e.Kept {
		if err := w.purging(ctx, e); err != nil {
			return nil, err
		}
	}
	for _, tenant := range w.tenants() {
		runs, err := w.store.Archive.HistoryRuns(ctx, tenant)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			doc, err := w.store.Archive.History(ctx, r)
			if err != nil {
				return nil, err
			}
			e.History = append(e.History, doc)
			e.Texts["history of "+r.Plain()] = string(doc.JSON())
		}
		err = w.store.Archive.DeadLetters(ctx, subjects.Run{Tenant: tenant}, func(d *outcome.DeadLetter) {
			e.Dead = append(e.Dead, d)
			e.Texts["dead letter of "+d.Run] = string(d.JSON())
		})
		if err != nil {
			return nil, err
		}
	}
	var err error
	e.Pending, e.AckPending, err = w.outstanding(ctx)
	return e, err
}

// purging moves those records that are gone by now from what stands to what was purged, until no record is left whose
// plan is gone: a purge takes first what lies lowest, and that is a plan. What is left after a grace and some time is
// left for good.
func (w *World) purging(ctx context.Context, e *Evidence) error {
	for until := time.Now().Add(w.opts.Grace + purgePatience); time.Now().Before(until); {
		plans, left := map[runKey]map[uint64]bool{}, map[int]bool{}
		for _, r := range e.Ledger {
			if rec, _ := subjects.ParseRecord(r.Subject); rec.Kind == subjects.PlanKind {
				if plans[recordRun(r.Subject)] == nil {
					plans[recordRun(r.Subject)] = map[uint64]bool{}
				}
				plans[recordRun(r.Subject)][r.Seq] = true
			}
		}
		for _, r := range e.Ledger {
			if rec, ok := subjects.ParseRecord(r.Subject); ok && rec.Kind != subjects.PlanKind &&
				!plans[recordRun(r.Subject)][rec.Generation] {
				left[subjects.LedgerShard(rec.Run.Partition(), w.store.Ledger.Shards())] = true
			}
		}
		if len(left) == 0 {
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		for shard := range left {
			there, err := w.store.Ledger.Stored(ctx, shard, subjects.LedgerFilter(shard))
			if err != nil {
				return err
			}
			e.Ledger = slices.DeleteFunc(e.Ledger, func(r kv.Entry) bool {
				rec, ok := subjects.ParseRecord(r.Subject)
				gone := ok && subjects.LedgerShard(rec.Run.Partition(), w.store.Ledger.Shards()) == shard && there[r.Subject] == 0
				if gone {
					e.Purged = append(e.Purged, r)
				}
				return gone
			})
		}
	}
	return nil
}

// purgePatience is how long a purge may take beyond the grace.
const purgePatience = 45 * time.Second

// collectSeen gives what was seen while the system ran, and what of it was purged since.
func (w *World) collectSeen(e *Evidence) {
	w.seen.mu.Lock()
	defer w.seen.mu.Unlock()
	stands := map[Sighting]bool{}
	for _, r := range e.Ledger {
		stands[sighting(r)] = true
	}
	for s, r := range w.seen.seen {
		e.Seen = append(e.Seen, s)
		if !stands[s] && !e.Kept && w.opts.Grace >= time.Minute {
			e.Purged = append(e.Purged, r)
		}
	}
}

func (w *World) collectFiles(e *Evidence) error {
	logs, err := filepath.Glob(filepath.Join(w.dir, "*.jsonl"))
	if err != nil {
		return err
	}
	for _, path := range logs {
		events, err := journal.Read(path)
		if err != nil {
			return err
		}
		e.Events = append(e.Events, events...)
	}
	said, err := filepath.Glob(filepath.Join(w.dir, "*.log"))
	for _, path := range said {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		e.Texts[filepath.Base(path)] = string(text)
	}
	return err
}

func (w *World) collectLedger(ctx context.Context, shard int, e *Evidence) error {
	var partitions []int
	for p := range subjects.Partitions {
		if subjects.LedgerShard(p, w.store.Ledger.Shards()) == shard {
			partitions = append(partitions, p)
		}
	}
	done, lost := make(chan struct{}), make(chan error, 1)
	reading, err := w.store.Ledger.Follow(ctx, shard, partitions, kv.Since{}, func(r kv.Entry) { e.Ledger = append(e.Ledger, r) },
		func(uint64) { close(done) }, func(err error) { lost <- err })
	if err != nil {
		return err
	}
	select {
	case <-done:
	case err = <-lost:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	reading.Stop()
	return err
}

// outstanding returns what lies in the step streams, but for the sentinels, and how many leases there are.
func (w *World) outstanding(ctx context.Context) (pending []string, leases int, err error) {
	js, err := jetstream.New(w.nc)
	if err != nil {
		return nil, 0, err
	}
	stream, err := js.Stream(ctx, subjects.StepsStream(0))
	if err != nil {
		return nil, 0, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, 0, err
	}
	for subject := range info.State.Subjects {
		if subject != subjects.Sentinel(0) && !strings.HasPrefix(subject, subjects.Sentinel(0)+".") {
			pending = append(pending, subject)
		}
	}
	consumers := stream.ListConsumers(ctx)
	for c := range consumers.Info() {
		leases += c.NumAckPending
	}
	return pending, leases, consumers.Err()
}

// forget leaves out everything about some runs.
func (e *Evidence) forget(runs map[runKey]bool) {
	e.Events = slices.DeleteFunc(e.Events, func(x journal.Event) bool { return runs[runKey{x.Tenant, x.Run}] })
	e.dropRecords(runs)
}

// recordRun returns the run that a record is of.
func recordRun(subject string) runKey {
	rec, _ := subjects.ParseRecord(subject)
	return runKey{rec.Run.Tenant, rec.Run.Plain()}
}

// dropRecords leaves out what streams and buckets hold of some runs.
func (e *Evidence) dropRecords(runs map[runKey]bool) {
	of := func(subject string) bool { return runs[recordRun(subject)] }
	e.Ledger = slices.DeleteFunc(e.Ledger, func(r kv.Entry) bool { return of(r.Subject) })
	e.Purged = slices.DeleteFunc(e.Purged, func(r kv.Entry) bool { return of(r.Subject) })
	e.Seen = slices.DeleteFunc(e.Seen, func(s Sighting) bool { return of(s.Subject) })
	e.History = slices.DeleteFunc(e.History, func(d *outcome.Run) bool { return runs[runKey{d.Tenant, d.Run}] })
	e.Sent = slices.DeleteFunc(e.Sent, func(x journal.Event) bool { return runs[runKey{x.Tenant, x.Run}] })
	e.Dead = slices.DeleteFunc(e.Dead, func(d *outcome.DeadLetter) bool { return runs[runKey{d.Tenant, d.Run}] })
}
