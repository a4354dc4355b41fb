package orchestrator

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/internal/observer"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	groups "github.com/stepjet/stepjet/tool/group"
	"github.com/stepjet/stepjet/wire"
)

// Everything that the loop and its jobs touch outside of memory goes through the interfaces of this file, so that tests
// can run the very same logic in one goroutine, in virtual time, against a world that fails wherever it can.

// self is what an orchestrator knows of itself; its loops and who answers requests have it in common.
type self struct {
	nc       *nats.Conn
	cfg      Config
	member   string          // its id among the orchestrators
	ready    chan struct{}   // closed once partitions are owned and requests are answered
	observer *observer.Queue // nil where nobody observes
}

// env is where a loop and its components live: all that they touch outside of memory, and the way back onto the loop.
type env struct {
	cfg   Config
	log   *slog.Logger
	store storage
	bus   bus
	clock clock
	jobs  runner
	mail  *mailbox
	ctx   context.Context // of jobs and publishes; ends after the loop
	tell  teller
}

func newEnv(ctx context.Context, p *self, store storage) *env {
	return &env{
		cfg: p.cfg, log: p.cfg.Logger, store: store, bus: connBus{p.nc}, clock: wall{}, mail: newMailbox(), ctx: ctx,
		jobs: newJobs(ctx, p.cfg.loops(store.Shards())), tell: teller{p.observer},
	}
}

// post lets do run on the loop. It never blocks.
func (e *env) post(do func()) { e.mail.post(do) }

// job runs do beside the loop; it may block, and posts what it found.
func (e *env) job(do func(ctx context.Context)) { e.jobs.add(do) }

// later posts do after a pause: for what failed and is tried again.
func (e *env) later(d time.Duration, do func()) {
	e.clock.AfterFunc(d, func() { e.post(do) })
}

// storage is what the loop needs of a kv.Store's facets; what each method promises stands there.
type storage interface {
	Shards() int
	Follow(ctx context.Context, shard int, partitions []int, since kv.Since, each func(kv.Entry), caughtUp func(last uint64), lost func(error)) (kv.Following, error)
	Read(ctx context.Context, subject string) (*kv.Entry, error)
	Stored(ctx context.Context, shard int, filter string) (map[string]uint64, error)
	Create(ctx context.Context, subject string, h nats.Header, body []byte, fence *kv.Fence) (kv.Decision, uint64, error)
	CreateAsync(ctx context.Context, subject string, h nats.Header, body []byte, fence *kv.Fence, done func(kv.Decision, uint64, error))
	PurgeRun(ctx context.Context, r subjects.Run, generation uint64) error
	PurgeRecord(ctx context.Context, subject string, seq uint64) error
	PurgeRuns(ctx context.Context, shard int, runs []kv.Generation, life string) error
	PurgeUpTo(ctx context.Context, shard int, sequence uint64, life string) error

	DispatchAsync(ctx context.Context, d kv.Dispatch, done func(error))
	Pending(ctx context.Context, toolShard, partition int) (map[string]bool, error)
	PurgeAttempt(ctx context.Context, a subjects.Attempt, shard int) error
	PurgeSteps(ctx context.Context, r subjects.Run, generation uint64, tool string, shard int) error
	Lag(ctx context.Context, tool string, shard int) (kv.Lag, error)

	History(ctx context.Context, r subjects.Run) (*outcome.Run, error)
	HistoryAt(ctx context.Context, r subjects.Run) (*outcome.Run, uint64, error)
	CreateHistory(ctx context.Context, r subjects.Run, bucket string, doc *outcome.Run) (created bool, err error)
	PurgeHistory(ctx context.Context, r subjects.Run, upTo uint64) error
	CreateDead(ctx context.Context, r subjects.Run, bucket string, d *outcome.DeadLetter) (created bool, err error)
	BucketOf(ctx context.Context, tenant string, submitted time.Time) (string, error)
	PutQuestion(ctx context.Context, r subjects.Run, bucket string, q *outcome.Question) error
	QuestionKeys(ctx context.Context) (keys map[string]bool, last uint64, err error)
	Question(ctx context.Context, r subjects.Run, generation uint64, step string) (*outcome.Question, error)
	PurgeQuestion(ctx context.Context, key string, upTo uint64) error
	PutBlob(ctx context.Context, bucket, name string, data []byte) (*outcome.Handle, error)
	PutNamed(ctx context.Context, bucket, name string, data []byte, fresh bool) (same bool, err error)
	PutOnce(ctx context.Context, bucket, name string, data []byte) (*outcome.Handle, error)
	Blob(ctx context.Context, h *outcome.Handle) ([]byte, error)
	Send(ctx context.Context, subject string, h nats.Header, body []byte) (kept bool, err error)

	toolStorage
}

// toolStorage is what the registry needs of kv.Registry.
type toolStorage interface {
	WatchTools(ctx context.Context, changed func(t tool.Registered, deleted bool), ready func()) error
	WatchTenantOverrides(ctx context.Context, each func(tenant, name string, o *tool.Override, revision uint64), ready func()) error
	Tool(ctx context.Context, name string) (tool.Registered, error)
	RegistryEmptied(ctx context.Context) (bool, error)
	Definition(ctx context.Context, digest string) (*tool.Definition, error)
	RecordNeeds(ctx context.Context, names []string) error
	AllGroups(ctx context.Context) (*groups.Set, error)
}

// facets are the parts of a store that storage is made of.
type facets struct {
	*kv.Ledger
	*kv.Queue
	*kv.Archive
	*kv.Registry
	*kv.Groups
}

func facetsOf(s *kv.Store) facets { return facets{s.Ledger, s.Queue, s.Archive, s.Registry, s.Groups} }

// bus is core NATS: events, cancels and answers, each at most once. Publish says the version of the message's form.
type bus interface {
	Publish(subject string, body []byte) error
	PublishMsg(m *nats.Msg) error
	// PublishRequest publishes with a reply subject, on which the server says where nobody listens.
	PublishRequest(subject, reply string, body []byte) error
}

// connBus is a connection as a bus.
type connBus struct{ *nats.Conn }

var eventHeader = wire.Versioned() // read only

func (b connBus) Publish(subject string, body []byte) error {
	return b.PublishMsg(&nats.Msg{Subject: subject, Header: eventHeader, Data: body})
}

func (b connBus) PublishRequest(subject, reply string, body []byte) error {
	return b.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Header: eventHeader, Data: body})
}

// hearing tells of the workers that live, as a kv.Ear does.
type hearing interface {
	Holder(ctx context.Context, name string) (*tool.Worker, *tool.WorkerTool, error)
	Stop()
}

// runner runs jobs beside the loop.
type runner interface {
	add(do func(ctx context.Context))
	// together lets a job wait until done was called n times, from anywhere.
	together(n int) (done, wait func())
	close(patience time.Duration)
}

// clock is the time of this process.
type clock interface {
	// Now is for durations in this process alone: as a time of day it may be wrong by any amount.
	Now() time.Time
	// Mono counts from some moment on, and nobody sets it. It may stand still while the machine is suspended.
	Mono() time.Duration
	// AfterFunc calls do after a pause, from anywhere.
	AfterFunc(d time.Duration, do func())
	// Pause waits on a job, until ctx ends at the latest.
	Pause(ctx context.Context, d time.Duration)
	// Unique returns a name that nobody has given or will give.
	Unique() string
}

// wall is the clock of the machine.
type wall struct{}

var began = time.Now() // of which only the monotonic part counts

func (wall) Now() time.Time { return time.Now() }

func (wall) Mono() time.Duration { return time.Since(began) }

func (wall) AfterFunc(d time.Duration, do func()) { time.AfterFunc(d, do) }

func (wall) Unique() string { return nuid.Next() }

func (wall) Pause(ctx context.Context, d time.Duration) { backoff.Pause(ctx, d) }

// followPause keeps a ledger that can't be read from being asked in a tight loop.
const followPause = 500 * time.Millisecond
