package kv

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Setup creates what is absent of Stepjet's streams and buckets and binds to them. Several orchestrators may do so at
// once: each asset is made by one of them, with its settings, and adopted by the others. Nothing that exists is changed.
// While a cluster has no leader yet it waits, until ctx ends. Errors: InvalidConfig (also where cfg.Shards is not the
// number that exists), NoJetStream, Permission naming the subject, StoreFull, Timeout, NoConnection.
func Setup(ctx context.Context, nc *nats.Conn, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s, err := newStore(nc, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.retry(ctx, func(ctx context.Context) error { return s.withJetStream(ctx, s.setup) }); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.learnTenants(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.spawn(s.followTenants)
	s.setupGather(ctx)
	return s, nil
}

// Open binds to what an orchestrator has set up, for workers and clients. Errors: NotReady where Stepjet is not set up
// in this account, NoJetStream, Permission naming the subject, Timeout, NoConnection.
func Open(ctx context.Context, nc *nats.Conn) (*Store, error) {
	s, err := newStore(nc, Config{}.withDefaults())
	if err != nil {
		return nil, err
	}
	if err := s.retry(ctx, func(ctx context.Context) error { return s.withJetStream(ctx, s.open) }); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// withJetStream makes the first requests. Where nobody answers on JetStream's API and the server itself says that it has
// none, waiting for a leader would be in vain.
func (s *Store) withJetStream(ctx context.Context, request func(context.Context) error) error {
	err := s.guarded(ctx, apiPrefix, request)
	if errors.Is(err, nats.ErrNoResponders) && s.nc.IsConnected() {
		if there, _ := s.nc.ConnectedServerJetStream(); !there {
			return Fault(jetstream.ErrJetStreamNotEnabled)
		}
	}
	return err
}

func (s *Store) open(ctx context.Context) error {
	s.askLimits(ctx)
	stream, err := s.stream(ctx, subjects.LedgerStream(0))
	if isNoStream(err) {
		return fault.New(fault.NotReady, "Stepjet is not set up in this NATS account").WithHint("start an orchestrator")
	}
	if err != nil {
		return err
	}
	return s.bind(stream)
}

// bind reads how the ledger was set up, and checks that it keeps its promise.
func (s *Store) bind(ledger jetstream.Stream) (err error) {
	cfg := ledger.CachedInfo().Config
	if s.shards, err = s.adopt(cfg); err != nil {
		return err
	}
	s.cfg.Replicas = cfg.Replicas
	return nil
}

// setup makes the ledger's first stream last: once it is there, so is all else.
func (s *Store) setup(ctx context.Context) error {
	shards := max(s.cfg.Shards, 1)
	ledger, err := s.stream(ctx, subjects.LedgerStream(0))
	if err != nil && !isNoStream(err) {
		return err
	}
	if err == nil {
		if shards, err = s.adopt(ledger.CachedInfo().Config); err != nil {
			return err
		}
	}
	streams := []jetstream.StreamConfig{s.cfg.historyConfig(), s.cfg.deadConfig(), s.cfg.toolsConfig(), s.cfg.membersConfig(), s.cfg.blobsConfig("")}
	for i := 1; i < shards; i++ {
		streams = append(streams, s.cfg.ledgerConfig(i, shards))
	}
	for _, cfg := range streams {
		if _, err := s.ensureStream(ctx, cfg); err != nil {
			return err
		}
	}
	if err := s.ensureSteps(ctx, 0); err != nil {
		return err
	}
	if ledger, err = s.ensureStream(ctx, s.cfg.ledgerConfig(0, shards)); err != nil {
		return err
	}
	if _, err := s.adopt(ledger.CachedInfo().Config); err != nil {
		return err // another process was faster, with another number of shards
	}
	return s.bind(ledger)
}

// setupGather makes the bucket without which batches are smaller, and nothing else. It may be refused by permissions that are
// older than it.
func (s *Store) setupGather(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	cfg := s.cfg.gatherConfig()
	err := s.guarded(ctx, apiPrefix+"STREAM.", func(ctx context.Context) error {
		_, err := s.ensureStream(ctx, cfg)
		return err
	})
	if err != nil {
		s.cfg.Logger.Warn("there is no bucket for the workers that gather batches; every worker gathers for itself", "stream", cfg.Name, "error", Fault(err))
	}
}

// adopt reads how many shards an existing ledger has, and compares that with what was asked for.
func (s *Store) adopt(cfg jetstream.StreamConfig) (shards int, err error) {
	shards, err = strconv.Atoi(cfg.Metadata[metaShards])
	if err != nil || shards < 1 || subjects.Partitions%shards != 0 {
		return 0, fault.New(fault.InvalidConfig, "the stream %s says %q ledger shards", cfg.Name, cfg.Metadata[metaShards]).
			WithHint("it was not made by Stepjet; delete it, or use another account")
	}
	if s.cfg.Shards > 0 && shards != s.cfg.Shards {
		return 0, fault.New(fault.InvalidConfig, "%d ledger shards were asked for, but there are %d", s.cfg.Shards, shards).
			WithHint("the number can't be changed; leave it out to take what is there")
	}
	return shards, checkLedger(cfg)
}

// ensureStream gives the stream of that name, as it is, or creates it. Whoever creates it first decides its settings. Of
// several that create one stream of a cluster at once, some get no answer: they look again.
func (s *Store) ensureStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := s.stream(ctx, cfg.Name)
	if !isNoStream(err) {
		return stream, err
	}
	one, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	stream, err = s.js.CreateStream(one, cfg)
	if apiCode(err) == codeStreamExists || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) || errors.Is(err, context.DeadlineExceeded) {
		return s.stream(ctx, cfg.Name)
	}
	return stream, err
}

// createTimeout is how long the creation of a stream may take before it is looked for.
const createTimeout = 2 * time.Second

func (s *Store) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	return patiently(ctx, func(ctx context.Context) (jetstream.Stream, error) { return s.js.Stream(ctx, name) })
}

func isNoStream(err error) bool { return errors.Is(err, jetstream.ErrStreamNotFound) }

// ensureKeeper makes sure of the consumer that keeps what no tool's consumer takes.
func (s *Store) ensureKeeper(ctx context.Context, shard int) error {
	one, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := s.js.CreateOrUpdateConsumer(one, subjects.StepsStream(shard), keeperConfig(shard))
	return err
}

// ensureSteps makes sure of a tool shard's step stream and of its sentinel: a work queue that empties makes the server
// remove its file and create another, which doubles the time of a step.
func (s *Store) ensureSteps(ctx context.Context, shard int) error {
	if _, err := s.ensureStream(ctx, s.cfg.stepsConfig(shard)); err != nil {
		return err
	}
	if err := s.ensureKeeper(ctx, shard); err != nil {
		return err
	}
	return s.ensureSentinel(ctx, shard)
}
