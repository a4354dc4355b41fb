// Package kv is the ledger, the step queues, the tool registry, history, members and blobs on JetStream.
package kv

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Config says how the assets are created where they are absent. What exists already is taken as it is.
type Config struct {
	// Replicas of every stream, 1 (default), 3 or 5.
	Replicas int
	// Shards of the ledger; it divides 64. 0: what exists, or 1.
	Shards int
	// Retention of finished runs; 0: 7 days.
	Retention time.Duration
	// LedgerMaxBytes bounds each ledger stream; 0: no bound of its own.
	LedgerMaxBytes int64
	// AckWait is the lease of a step that is not kept alive; 0: 30 s.
	AckWait time.Duration
	// StepsAsync lets step streams with one replica acknowledge before they flush (PersistMode async).
	StepsAsync bool
	// Logger; nil: none.
	Logger *slog.Logger
}

// Store is Stepjet's data in one JetStream account.
type Store struct{}

// Setup creates what is absent and binds. Several may run at once.
func Setup(ctx context.Context, nc *nats.Conn, cfg Config) (*Store, error) { return nil, nil }

// Open binds to what an orchestrator has set up.
func Open(ctx context.Context, nc *nats.Conn) (*Store, error) { return nil, nil }

// Conn gives the connection; Shards the number of ledger shards; MaxPayload the server's limit in bytes, headers
// included; Inflight the number of publishes not yet acknowledged.
func (s *Store) Conn() *nats.Conn  { return nil }
func (s *Store) Shards() int       { return 1 }
func (s *Store) MaxPayload() int64 { return 0 }
func (s *Store) Inflight() int     { return 0 }

// SubmitSubject gives the subject a Go client publishes (or Creates) a plan to.
func (s *Store) SubmitSubject(r subjects.Run) string { return "" }

// Close ends what the store has running; the connection stays open.
func (s *Store) Close() {}

// Decision is what a create came to.
type Decision int

// The decisions.
const (
	Written Decision = iota + 1 // by this very call
	Decided                     // a record was there already; it stands
	Gone                        // the fence: the plan record no longer stands
)

// Fence makes a create depend on the plan record still standing at a sequence.
type Fence struct {
	Subject string
	Seq     uint64
}

// Create writes a record once. The store owns h from now on and adds headers to it.
func (s *Store) Create(ctx context.Context, subject string, h nats.Header, body []byte, fence *Fence) (Decision, uint64, error) {
	return 0, 0, nil
}

// CreateAsync is Create without waiting; done is called exactly once, from another goroutine.
func (s *Store) CreateAsync(ctx context.Context, subject string, h nats.Header, body []byte, fence *Fence, done func(Decision, uint64, error)) {
}

// Entry is one message of a stream.
type Entry struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Header  nats.Header
	Data    []byte
}

// Read gives the last message on a ledger subject, from the stream's leader.
func (s *Store) Read(ctx context.Context, subject string) (*Entry, error) { return nil, nil }

// Follow reads partitions of a ledger shard: what is there, then what comes.
func (s *Store) Follow(ctx context.Context, shard int, partitions []int, each func(Entry), caughtUp func(last uint64), lost func(error)) (stop func(), err error) {
	return nil, nil
}

// LastSequence gives the ledger shard's last sequence, from its leader.
func (s *Store) LastSequence(ctx context.Context, shard int) (uint64, error) { return 0, nil }

// PurgeRun removes one generation of a run: the plan first, then the rest.
func (s *Store) PurgeRun(ctx context.Context, r subjects.Run, generation uint64) error { return nil }

// PurgeSubject removes what lies on one subject (or filter) of the ledger.
func (s *Store) PurgeSubject(ctx context.Context, subject string) error { return nil }

// Dispatch is one attempt to be sent to the workers.
type Dispatch struct {
	Attempt subjects.Attempt
	Shard   int
	Header  nats.Header
	Body    []byte
	At      time.Time
	Repair  int
}

// DispatchAsync stores the attempt in its step stream; retried until stored or ctx ends.
func (s *Store) DispatchAsync(ctx context.Context, d Dispatch, done func(error)) {}

// PurgeSteps removes what one generation of a run has waiting for one tool.
func (s *Store) PurgeSteps(ctx context.Context, r subjects.Run, generation uint64, tool string, shard int) error {
	return nil
}

// Pending gives the message ids of all attempts of a partition that are dispatched, leased or scheduled.
func (s *Store) Pending(ctx context.Context, toolShard, partition int) (map[string]bool, error) {
	return nil, nil
}

// Tool is one entry of the registry.
type Tool struct {
	Name       string
	Definition *tool.Definition
	Contract   tool.Contract
	Digest     string
	Shard      int
	Tenants    []string
	AckWait    time.Duration
	Revision   uint64
}

// Register validates and stores a tool's definition.
func (s *Store) Register(ctx context.Context, raw []byte) (Tool, error) { return Tool{}, nil }

// RequestRegister asks an orchestrator to register a tool.
func (s *Store) RequestRegister(ctx context.Context, raw []byte) (Tool, error) { return Tool{}, nil }

// Tools gives all registered tools, by name.
func (s *Store) Tools(ctx context.Context) ([]Tool, error) { return nil, nil }

// Tool gives one tool; NotFound.
func (s *Store) Tool(ctx context.Context, name string) (Tool, error) { return Tool{}, nil }

// WatchTools reports every tool and every change until ctx ends.
func (s *Store) WatchTools(ctx context.Context, each func(t Tool, deleted bool), ready func()) error {
	return nil
}

// Definition gives a definition by its digest; NotFound.
func (s *Store) Definition(ctx context.Context, digest string) (*tool.Definition, error) {
	return nil, nil
}

// CreateHistory writes the finished run once.
func (s *Store) CreateHistory(ctx context.Context, r subjects.Run, doc, head []byte) (stored []byte, created bool, err error) {
	return nil, false, nil
}

// History gives the finished run, read from the leader, its blob read; NotFound.
func (s *Store) History(ctx context.Context, r subjects.Run) (*outcome.Run, error) { return nil, nil }

// HistoryHead is History without reading the blob.
func (s *Store) HistoryHead(ctx context.Context, r subjects.Run) (*outcome.Run, error) {
	return nil, nil
}

// HistoryRuns lists the finished runs of a tenant, ActiveRuns those with a plan record.
func (s *Store) HistoryRuns(ctx context.Context, tenant string) ([]subjects.Run, error) {
	return nil, nil
}
func (s *Store) ActiveRuns(ctx context.Context, tenant string) ([]subjects.Run, error) {
	return nil, nil
}

// PutBlob stores data under name; Blob reads it back and checks size and digest.
func (s *Store) PutBlob(ctx context.Context, name string, data []byte) (*outcome.Handle, error) {
	return nil, nil
}
func (s *Store) Blob(ctx context.Context, h *outcome.Handle) ([]byte, error) { return nil, nil }

// Join keeps a member key alive and reports the live members.
func (s *Store) Join(ctx context.Context, id string, changed func(members []string)) (leave func(), err error) {
	return nil, nil
}

// Delivery is one step handed to a worker.
type Delivery struct {
	Subject   string
	Header    nats.Header
	Data      []byte
	Delivered int
	StreamSeq uint64
}

// Ack says that the step is recorded; InProgress keeps its lease.
func (d *Delivery) Ack() error        { return nil }
func (d *Delivery) InProgress() error { return nil }

// Puller takes a tool's steps, never more than its free slots.
type Puller struct{}

// Pull starts taking steps of t.
func (s *Store) Pull(ctx context.Context, t Tool, slots int, each func(*Delivery)) (*Puller, error) {
	return nil, nil
}

// Release says that one slot is free again.
func (p *Puller) Release() {}

// Drain stops asking; what was sent before is still handed to each.
func (p *Puller) Drain(ctx context.Context) {}
