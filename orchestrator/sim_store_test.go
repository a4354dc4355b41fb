package orchestrator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	groups "github.com/stepjet/stepjet/tool/group"
	"github.com/stepjet/stepjet/wire"
)

// simStore is kv.Store as one process sees it, over the simulated servers. What kv does with answers that say nothing
// is done here in the same way: publish again, and read back.
type simStore struct {
	p *process
	w *world
}

var _ storage = (*simStore)(nil)

func (s *simStore) Shards() int { return len(s.w.shards) }

// do makes a request and waits for its answer.
func (s *simStore) do(what string, land func()) (err error) {
	s.p.await(func(wake func()) {
		s.p.ask(what, func() func() { land(); return wake }, func() {
			err = fault.New(fault.Timeout, "no answer")
			wake()
		})
	})
	return err
}

// creating is one create under way.
type creating struct {
	s       *simStore
	subject string
	header  nats.Header
	body    []byte
	fence   *kv.Fence
	unsure  bool
	done    func(kv.Decision, uint64, error)
}

func (s *simStore) CreateAsync(_ context.Context, subject string, h nats.Header, body []byte, fence *kv.Fence, done func(kv.Decision, uint64, error)) {
	c := &creating{s: s, subject: subject, header: h, body: body, fence: fence, done: done}
	if strings.HasSuffix(subject, ".start") {
		if s.w.bug == startWithoutFence {
			c.fence = nil
		}
		if s.w.doze(s.p) {
			s.p.after(0, c.publish) // when it is awake again
			return
		}
	}
	if s.w.bug == claimWithoutFence && strings.HasSuffix(subject, ".claim") {
		c.fence = nil
	}
	rec, ok := subjects.ParseRecord(subject)
	if ok && (rec.Kind == subjects.StepKind || rec.Kind == subjects.ToldKind) { // a cancel may come before the start was read
		s.w.entitled(s.p, rec.Run, rec.Generation)
	}
	if ok && rec.Kind == subjects.RoundKind {
		s.w.truths.roundOffered(subject, body)
	}
	if (rec.Kind == subjects.ToldKind || rec.Kind == subjects.RoundKind) && s.w.diesUntold(s.p) {
		return
	}
	if ok && s.w.bug == withdrawFirst && bytes.Contains(body, []byte("its timeout of")) {
		s.p.ask("withdraw", func() func() {
			s.w.steps.withdraw(subjects.Step(rec.Attempt, 0))
			return func() { s.p.after(time.Second, c.publish) }
		}, c.publish)
		return
	}
	c.publish()
}

func (s *simStore) Create(ctx context.Context, subject string, h nats.Header, body []byte, fence *kv.Fence) (d kv.Decision, seq uint64, err error) {
	s.p.await(func(wake func()) {
		s.CreateAsync(ctx, subject, h, body, fence, func(x kv.Decision, n uint64, e error) {
			d, seq, err = x, n, e
			wake()
		})
	})
	return d, seq, err
}

func (c *creating) publish() {
	c.s.p.ask("create "+c.subject, func() func() {
		a, seq := c.s.w.streamOf(c.subject).create(c.subject, c.header, c.body, c.fence)
		return func() { c.acked(a, seq) }
	}, func() { c.acked(unknown, 0) })
}

func (c *creating) acked(a answer, seq uint64) {
	switch {
	case a == stored:
		c.done(kv.Written, seq, nil)
	case a == wrongLast && c.fence != nil:
		c.done(kv.Gone, 0, nil)
	case a == wrongLast && !c.unsure:
		c.done(kv.Decided, seq, nil)
	case a == unknown && c.s.w.bug == unknownIsDecided, a == noRoom && c.s.w.bug == fullIsDecided:
		c.done(kv.Decided, 0, nil)
	case a == unknown:
		c.unsure = true
		c.again()
	default:
		c.lookup(a)
	}
}

func (c *creating) again() {
	c.s.p.after(2*time.Millisecond+c.s.w.upTo(time.Second), c.publish)
}

// lookup reads the record back from the leader.
func (c *creating) lookup(a answer) {
	c.s.p.ask("read back "+c.subject, func() func() {
		e := c.s.w.streamOf(c.subject).bySubj[c.subject]
		return func() {
			switch {
			case e != nil && bytes.Equal(e.Data, c.body) && maps.EqualFunc(e.Header, c.header, slices.Equal):
				c.s.w.stats["own record found after a lost answer"]++
				c.done(kv.Written, e.Seq, nil)
			case e != nil:
				c.done(kv.Decided, e.Seq, nil)
			case a == wrongLast: // it was there, and has been removed since
				c.done(kv.Decided, 0, nil)
			default:
				c.again()
			}
		}
	}, c.again)
}

func (s *simStore) DispatchAsync(_ context.Context, d kv.Dispatch, done func(error)) {
	s.w.entitled(s.p, d.Attempt.Run, d.Attempt.Generation)
	s.p.ask("dispatch "+d.Attempt.MessageID(), func() func() {
		a, seq := s.w.steps.dispatch(&d, s.p)
		return func() {
			if a == noRoom {
				s.p.after(50*time.Millisecond, func() { s.DispatchAsync(context.Background(), d, done) })
				return
			}
			if seq > 0 && d.Seq != nil {
				d.Seq.Store(seq)
			}
			done(nil)
		}
	}, func() { s.DispatchAsync(context.Background(), d, done) })
}

func (s *simStore) Follow(_ context.Context, shard int, partitions []int, since kv.Since, each func(kv.Entry), caughtUp func(uint64), lost func(error)) (kv.Following, error) {
	var c *simCursor
	err := s.do("follow", func() {
		st := s.w.ledger(shard)
		c = &simCursor{p: s.p, s: st, next: s.w.begins(s.p, st, partitions, since), target: st.seq, each: each, caughtUp: caughtUp, lost: lost}
		if len(partitions) < subjects.Partitions/len(s.w.shards) {
			c.filter(partitions)
		}
		st.cursors = append(st.cursors, c)
		s.w.seeks(s.p, partitions)
		c.kick()
	})
	if err != nil {
		if c != nil {
			c.stop()
		}
		return nil, err
	}
	return simFollowing{c}, nil
}

func (s *simStore) Read(_ context.Context, subject string) (*kv.Entry, error) {
	var found *kv.Entry
	err := s.do("read "+subject, func() {
		if strings.HasPrefix(subject, "step.") {
			for _, m := range s.w.steps.all {
				if m.subject == subject {
					found = &kv.Entry{Subject: subject, Seq: m.seq}
				}
			}
			return
		}
		if e := s.w.streamOf(subject).bySubj[subject]; e != nil {
			entry := *e
			if found = &entry; s.w.bug == otherResults && strings.HasPrefix(s.p.name, "owner") && strings.Contains(subject, ".step.") {
				found = otherValue(&entry)
			}
		}
		s.w.truths.readBack(s.p, subject, found != nil)
	})
	if err == nil && (found == nil || s.w.bug == sweepBlindly && strings.Contains(subject, ".step.")) {
		err = fault.New(fault.NotFound, "nothing lies at %s", subject)
	}
	return found, err
}

func (s *simStore) Stored(_ context.Context, shard int, filter string) (there map[string]uint64, err error) {
	err = s.do("list "+filter, func() {
		there = map[string]uint64{}
		prefix, plans := strings.CutSuffix(filter, "*.*.plan")
		prefix = strings.TrimSuffix(prefix, ">")
		for subject := range s.w.ledger(shard).bySubj {
			if strings.HasPrefix(subject, prefix) && (!plans || strings.HasSuffix(subject, ".plan")) && s.w.bug != sweepBlindly {
				there[subject] = 1
			}
		}
		s.w.truths.listed(s.p, prefix, there)
	})
	return there, err
}

func (s *simStore) PurgeRun(_ context.Context, r subjects.Run, generation uint64) error {
	st := s.w.ledger(subjects.LedgerShard(r.Partition(), s.Shards()))
	plan, rest := subjects.PlanRecord(r, s.Shards()), strings.TrimSuffix(subjects.GenerationFilter(r, generation, s.Shards()), ">")
	below := generation + 1
	if s.w.bug == purgeNewerToo {
		below = 0
	}
	if err := s.do("purge the plan of "+r.ID, func() { st.purge(below, func(subject string) bool { return subject == plan }) }); err != nil {
		return err
	}
	return s.do("purge the records of "+r.ID, func() { st.purge(0, func(subject string) bool { return strings.HasPrefix(subject, rest) }) })
}

func (s *simStore) PurgeRecord(_ context.Context, subject string, seq uint64) error {
	return s.do("purge "+subject, func() {
		s.w.streamOf(subject).purgeOne(seq+1, subject)
	})
}

// purgesAtOnce is how many runs are purged by their names side by side, as kv has so many requests on their way.
const purgesAtOnce = 128

// PurgeRuns removes records by their names, those of a run one after the other.
func (s *simStore) PurgeRuns(_ context.Context, shard int, runs []kv.Generation, _ string) (err error) {
	for some := range slices.Chunk(runs, purgesAtOnce) {
		s.p.await(func(wake func()) {
			left := len(some)
			for _, g := range some {
				s.p.spawn(func() {
					if failed := s.purgeByName(shard, g); failed != nil {
						err = failed
					}
					if left--; left == 0 {
						s.p.after(0, wake)
					}
				})
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *simStore) purgeByName(shard int, g kv.Generation) error {
	st := s.w.ledger(shard)
	var records []string
	prefix := strings.TrimSuffix(subjects.GenerationFilter(g.Run, g.Number, s.Shards()), ">")
	if err := s.do("look at "+g.Run.ID, func() {
		records = []string{subjects.PlanRecord(g.Run, s.Shards())}
		for _, e := range st.ofRun[prefix] {
			records = append(records, e.Subject)
		}
	}); err != nil {
		return err
	}
	below := g.Number + 1
	if s.w.bug == purgeNewerToo {
		below = 0
	}
	for _, record := range records {
		if err := s.do("purge "+record, func() { st.purgeOne(below, record) }); err != nil {
			return err
		}
		below = 0
	}
	s.w.stats["a run was purged by its name"]++
	return nil
}

func (s *simStore) PurgeUpTo(_ context.Context, shard int, sequence uint64, _ string) error {
	if s.w.shared() {
		s.w.stats["a shared shard was purged"]++
	}
	if s.w.bug == purgeTooFar {
		sequence += 2
	}
	return s.do("purge up to "+strconv.FormatUint(sequence, 10), func() {
		s.w.log("%s purges shard %d below %d", s.p.name, shard, sequence)
		s.w.ledger(shard).purge(sequence, func(string) bool { return true })
	})
}

func (s *simStore) Pending(_ context.Context, _, partition int) (ids map[string]bool, err error) {
	err = s.do("pending", func() { ids = s.w.steps.pending(partition) })
	return ids, err
}

func (s *simStore) PurgeAttempt(_ context.Context, a subjects.Attempt, shard int) error {
	for _, subject := range []string{subjects.Scheduled(a, shard), subjects.Step(a, shard)} {
		if err := s.do("withdraw "+a.MessageID(), func() { s.w.steps.withdraw(subject) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *simStore) PurgeSteps(_ context.Context, r subjects.Run, generation uint64, tool string, shard int) error {
	for _, kind := range []string{"sched", "step"} {
		filter := subjects.RunToolFilter(kind, r, generation, tool, shard)
		if err := s.do("withdraw "+filter, func() { s.w.steps.withdraw(filter) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *simStore) Lag(_ context.Context, tool string, _ int) (lag kv.Lag, err error) {
	err = s.do("lag", func() {
		c := s.w.steps.consumers[tool]
		lag = kv.Lag{Limit: c.limit, Leased: len(c.leases), Given: c.given}
	})
	return lag, err
}

func historyKey(r subjects.Run) string {
	return subjects.BucketSubject(subjects.HistoryBucket, r.Key())
}

func (s *simStore) History(ctx context.Context, r subjects.Run) (*outcome.Run, error) {
	doc, _, err := s.HistoryAt(ctx, r)
	return doc, err
}

func (s *simStore) HistoryAt(ctx context.Context, r subjects.Run) (*outcome.Run, uint64, error) {
	e, err := s.Read(ctx, historyKey(r))
	if err != nil {
		return nil, 0, err
	}
	var doc outcome.Run
	if err := json.Unmarshal(e.Data, &doc); err != nil {
		panic(err)
	}
	return &doc, e.Seq, nil
}

func (s *simStore) PurgeHistory(_ context.Context, r subjects.Run, upTo uint64) error {
	if s.w.bug == replaceNewerToo {
		upTo = math.MaxInt64
	}
	history := s.w.streamOf(historyKey(r))
	if s.w.doze(s.p) {
		s.p.await(func(wake func()) { s.p.after(0, wake) }) // when it is awake again
	}
	return s.do("make room for a later outcome of "+r.ID, func() {
		history.purge(upTo+1, func(subject string) bool { return subject == historyKey(r) })
	})
}

func (s *simStore) CreateHistory(ctx context.Context, r subjects.Run, _ string, doc *outcome.Run) (bool, error) {
	body := doc.JSON()
	s.w.entitled(s.p, r, doc.Generation)
	s.w.truths.offered(r, doc, body, s.p)
	d, _, err := s.Create(ctx, historyKey(r), wire.Versioned(), body, nil)
	return d == kv.Written || d == kv.Decided && s.w.bug == refusedIsStored, err
}

func (s *simStore) CreateDead(ctx context.Context, r subjects.Run, _ string, d *outcome.DeadLetter) (bool, error) {
	if s.w.bug == noDeadLetters {
		return true, s.do("write no dead letter", func() {})
	}
	key := subjects.BucketSubject(subjects.DeadBucket, subjects.DeadKey(r, d.Generation, d.Step))
	decision, _, err := s.Create(ctx, key, wire.Versioned(), d.JSON(), nil)
	return decision == kv.Written, err
}

// RecordNeeds is heard of by all orchestrators some time later.
func (s *simStore) RecordNeeds(_ context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if i := slices.IndexFunc(s.w.owners, func(o *orch) bool { return o.process == s.p }); i >= 0 && !s.w.owners[i].knows.All(names) {
		s.w.stats["a run left alone for what it needs"]++
		if slices.Contains(names, wire.LanguageTwo) {
			s.w.stats["a run left alone for its conditions"]++
		}
	}
	return s.do("record needs", func() { s.w.recorded(names) })
}

// BucketOf asks, where the tenant is declared at some time.
func (s *simStore) BucketOf(_ context.Context, tenant string, _ time.Time) (bucket string, err error) {
	if !s.w.declares() {
		return "", nil
	}
	err = s.do("ask which tenants are declared", func() { bucket = s.w.bucketNow(tenant) })
	return bucket, err
}

func (s *simStore) PutBlob(_ context.Context, bucket, name string, data []byte) (*outcome.Handle, error) {
	if err := s.do("store the blob "+name, func() { s.w.blobs[name] = data }); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return &outcome.Handle{Name: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Bucket: bucket}, nil
}

// PutOnce stores what goes by its digest: who comes second writes nothing.
func (s *simStore) PutOnce(ctx context.Context, bucket, name string, data []byte) (*outcome.Handle, error) {
	if s.w.bug == roundsWithoutBlobs { // it says that it has stored what it has not
		sum := sha256.Sum256(data)
		return &outcome.Handle{Name: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Bucket: bucket}, nil
	}
	if _, there := s.w.blobs[name]; there {
		s.w.stats["the blob of a round was there already"]++
	}
	return s.PutBlob(ctx, bucket, name, data)
}

// PutNamed stores what others would make of the same records: all owners make the same.
func (s *simStore) PutNamed(_ context.Context, bucket, name string, data []byte, _ bool) (same bool, err error) {
	s.w.truths.partOffered(name, data)
	err = s.do("store the part "+name, func() {
		if s.w.blobs[name] == nil {
			s.w.blobs[name] = data
			s.w.stats["a part was stored"]++
		} else {
			s.w.stats["a part was there already"]++
		}
		same = bytes.Equal(s.w.blobs[name], data)
	})
	return same, err
}

// Send publishes to a sink as often as it must: as kv does, but without an end.
func (s *simStore) Send(_ context.Context, subject string, h nats.Header, body []byte) (kept bool, err error) {
	if s.w.bug == loseObjects {
		return true, nil
	}
	for {
		if err := s.do("send to "+subject, func() { s.w.truths.sunk(subject, h, body) }); err == nil {
			return true, nil
		}
		s.p.sleep(2*time.Millisecond + s.w.upTo(time.Second))
	}
}

func (s *simStore) Blob(_ context.Context, h *outcome.Handle) (data []byte, err error) {
	if tenant, _, _ := strings.Cut(h.Name, "/"); !subjects.OwnBlobs(h.Bucket, tenant) {
		panic("a handle of " + h.Name + " names the bucket " + h.Bucket)
	}
	there := false
	err = s.do("read the blob "+h.Name, func() { data, there = s.w.blobs[h.Name] })
	if err == nil && !there {
		err = fault.New(fault.NotFound, "no blob %s", h.Name)
	}
	return data, err
}

func (s *simStore) WatchTools(context.Context, func(tool.Registered, bool), func()) error {
	panic("the world tells its owners of tools")
}

// AllGroups are none in these worlds.
func (s *simStore) AllGroups(context.Context) (*groups.Set, error) { return groups.NewSet(nil), nil }

func (s *simStore) RegistryEmptied(context.Context) (bool, error) { return false, nil }

func (s *simStore) WatchTenantOverrides(context.Context, func(string, string, *tool.Override, uint64), func()) error {
	panic("the world tells its owners of tools")
}

func (s *simStore) Tool(_ context.Context, name string) (t tool.Registered, err error) {
	there := false
	err = s.do("read the tool "+name, func() { t, there = s.w.tool(name) })
	if err == nil && !there {
		err = fault.New(fault.NotFound, "no tool %s", name)
	}
	return t, err
}

func (s *simStore) Definition(_ context.Context, digest string) (d *tool.Definition, err error) {
	err = s.do("read a definition", func() { d = s.w.templates.kept[digest] })
	if d == nil {
		d = &tool.Definition{Name: "any"}
	}
	return d, err
}
