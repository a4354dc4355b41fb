package kv

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Inspector looks at what lies in an account as it lies there, whether Stepjet is set up in it or not, and makes
// single parts of it. It is for package doctor: everybody else takes Setup or Open, which rely on what an Inspector
// only checks.
type Inspector struct{ s *Store }

// Inspect makes an Inspector, without asking the server anything. Zero fields of cfg have their defaults. Error:
// InvalidConfig.
func Inspect(nc *nats.Conn, cfg Config) (*Inspector, error) {
	s, err := newStore(nc, cfg)
	if err != nil {
		return nil, err
	}
	return &Inspector{s}, nil
}

// Close ends what the Inspector has running. The connection stays open.
func (i *Inspector) Close() { i.s.Close() }

// Store returns a store for what any program may do. It knows the number of ledger shards once Bind has said it.
func (i *Inspector) Store() *Store { return i.s }

// Config returns the settings that streams are compared with and made with.
func (i *Inspector) Config() Config { return i.s.cfg }

// Configure replaces them.
func (i *Inspector) Configure(cfg Config) { i.s.cfg = cfg }

// Bind says how many shards the ledger has.
func (i *Inspector) Bind(shards int) { i.s.shards = shards }

// Account asks for the account's limits and what it uses of them. Errors: NoJetStream, NoConnection, Permission.
func (i *Inspector) Account(ctx context.Context) (info *jetstream.AccountInfo, err error) {
	err = i.s.retry(ctx, func(ctx context.Context) error {
		return i.s.withJetStream(ctx, func(ctx context.Context) error {
			info, err = patiently(ctx, i.s.js.AccountInfo) // whoever leads may just have died, with the request
			return err
		})
	})
	return info, err
}

// Try runs a look that ends as soon as the server refuses a request to JetStream's API. The error is a *fault.Error.
func (i *Inspector) Try(ctx context.Context, look func(context.Context) error) error {
	if err := i.s.guarded(ctx, apiPrefix, look); err != nil {
		return i.s.explain(ctx, err)
	}
	return nil
}

// LedgerShards returns how many shards the ledger has, as one of its streams says; 0 where it says no number that can
// be.
func (i *Inspector) LedgerShards(cfg jetstream.StreamConfig) int {
	n, err := strconv.Atoi(cfg.Metadata[metaShards])
	if err != nil || n < 1 || subjects.Partitions%n != 0 {
		return 0
	}
	return n
}

// CheckLedger says what in a stream's settings breaks the promise that a record is written once; nil for nothing.
func (i *Inspector) CheckLedger(cfg jetstream.StreamConfig) error { return checkLedger(cfg) }

// Wanted returns the settings that a stream of Stepjet's should have, by its name, beside a ledger of so many shards.
func (i *Inspector) Wanted(stream string, shards int) jetstream.StreamConfig {
	return i.s.cfg.placed(i.s.cfg.streamConfig(stream, shards))
}

// WantedConsumer returns the settings that a tool's consumer should have.
func (i *Inspector) WantedConsumer(t tool.Registered) jetstream.ConsumerConfig {
	return consumerConfig(t)
}

// StreamNames returns the names of all streams that these credentials may list.
func (i *Inspector) StreamNames(ctx context.Context) (map[string]bool, error) {
	return i.s.names(ctx, subjects.StreamNames, "streams")
}

// Stream returns a stream's settings and state; nil where there is no such stream.
func (i *Inspector) Stream(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	stream, err := i.s.stream(ctx, name)
	if isNoStream(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo(), nil
}

// Subjects returns the subjects in a stream that match a filter, with the number of messages on each.
func (i *Inspector) Subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	info, err := i.s.streamInfo(ctx, stream, filter)
	return info.State.Subjects, err
}

// ReadAll hands on the last message of each subject of a stream that matches a filter. lost says that the reading broke
// off: what was handed on may not be what is stored, and is to be read again.
func (i *Inspector) ReadAll(ctx context.Context, stream, filter string, each func(Entry)) (lost bool, err error) {
	return i.s.readAll(ctx, stream, filter, each)
}

// Consumers returns the durable consumers of a step stream; none where there is no such stream. In a cluster it may
// lack one whose leader did not answer.
func (i *Inspector) Consumers(ctx context.Context, shard int) (all []*jetstream.ConsumerInfo, err error) {
	stream, err := i.s.stream(ctx, subjects.StepsStream(shard))
	if isNoStream(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		if info.Config.Durable != "" {
			all = append(all, info)
		}
	}
	return all, list.Err()
}

// Consumer returns a durable consumer of a step stream; nil where there is none of this name.
func (i *Inspector) Consumer(ctx context.Context, shard int, durable string) (*jetstream.ConsumerInfo, error) {
	c, err := patiently(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return i.s.js.Consumer(ctx, subjects.StepsStream(shard), durable)
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) || isNoStream(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c.CachedInfo(), nil
}

// MakeStream creates a stream of Stepjet's where it is absent, with all that belongs into it before it is used.
func (i *Inspector) MakeStream(ctx context.Context, cfg jetstream.StreamConfig) error {
	if shard, ok := subjects.ParseStepsStream(cfg.Name); ok {
		return i.s.Queue.ensureSteps(ctx, shard)
	}
	_, err := i.s.ensureStream(ctx, cfg)
	return err
}

// MakeConsumer creates a tool's consumer where it is absent.
func (i *Inspector) MakeConsumer(ctx context.Context, t tool.Registered) error {
	return i.s.Queue.ensureConsumer(ctx, t)
}

// MakeKeeper creates a step stream's keeper where it is absent.
func (i *Inspector) MakeKeeper(ctx context.Context, shard int) error {
	return i.s.Queue.ensureKeeper(ctx, shard)
}

// RegistryEntry is one key of the registry, as it lies there. Which of the fields are set tells what it is.
type RegistryEntry struct {
	Key string
	Seq uint64
	// Name is the tool whose entry it is; Digest the one that a definition is kept under; OverrideOf whose override
	// it is.
	Name, Digest, OverrideOf string
	// Tool is a registered tool, Definition one that is kept.
	Tool       *tool.Registered
	Definition *tool.Definition
	// Newer says that a newer version wrote it, and Removed that the tool was removed, which left its Shard.
	Newer, Removed bool
	Shard          int
	// Unreadable says why nobody can read it.
	Unreadable error
}

// Registry hands on every entry of the registry but the key that secrets are sealed to, what runs need, and those
// that were deleted without a trace. lost is that of ReadAll.
func (i *Inspector) Registry(ctx context.Context, each func(RegistryEntry)) (lost bool, err error) {
	return i.s.readAll(ctx, subjects.BucketStream(subjects.ToolsBucket), toolPrefix+">", func(e Entry) {
		key := strings.TrimPrefix(e.Subject, toolPrefix)
		if _, need := subjects.ParseNeedKey(key); key != subjects.SealingKey && !need {
			each(registryEntry(i.s.cfg.Knows, key, e))
		}
	})
}

func registryEntry(knows wire.Knowledge, key string, e Entry) RegistryEntry {
	name, digest, override, ok := subjects.ParseToolsKey(key)
	r := RegistryEntry{Key: key, Seq: e.Seq, Name: name, Digest: digest, OverrideOf: override}
	switch {
	case !knows.KnownEntry(e.Header, e.Data):
		r.Newer = true
	case operation(e.Header) != "":
		if t := tombstone(e); ok && name != "" && t.removed {
			r.Removed, r.Shard = true, t.Shard
		}
	case !ok:
		r.Unreadable = errors.New("it is no name of Stepjet's")
	case digest != "":
		r.Definition, r.Unreadable = tool.ParseDefinition(e.Data)
	case override != "":
		_, r.Unreadable = tool.ReadOverride(e.Data)
	default:
		t, err := parseTool(knows, e, name)
		if err != nil {
			r.Unreadable = err
		} else {
			r.Tool = &t
		}
	}
	return r
}

// KeepDefinition keeps a tool's definition under its digest, where that is not kept.
func (i *Inspector) KeepDefinition(ctx context.Context, t tool.Registered) error {
	return i.s.Registry.keepDefinition(ctx, t)
}

// ToolShard returns the step stream that holds a tool's consumer; found is false where none does.
func (i *Inspector) ToolShard(ctx context.Context, name string) (shard int, found bool, err error) {
	return i.s.Queue.shardOf(ctx, name)
}

// StepsUpTo returns a tool's messages up to a sequence, at one request each.
func (i *Inspector) StepsUpTo(ctx context.Context, t tool.Registered, last uint64) iter.Seq2[*Entry, error] {
	return i.s.Queue.stepsUpTo(ctx, t, last)
}

// DropAttempt removes an attempt that no worker will ever be handed, wherever it lies.
func (i *Inspector) DropAttempt(ctx context.Context, a subjects.Attempt, shard int) error {
	return i.s.Queue.dropAttempt(ctx, a, shard)
}

// Ask asks an orchestrator something once and reads its answer; the error that it sent is returned as it is.
func (i *Inspector) Ask(ctx context.Context, subject string, out any) error {
	answer, err := i.s.Requests.Request(ctx, subject, nil)
	if err != nil {
		return err
	}
	return readAnswer(answer, out)
}

// Deleted reports whether an entry of a bucket is the mark of a key that was deleted, or that expired.
func (e Entry) Deleted() bool { return operation(e.Header) != "" }
