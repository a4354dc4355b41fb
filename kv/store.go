package kv

import (
	"context"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Store is Stepjet's data in one JetStream account, by what it is for. It is opened by Setup or Open, and closed as
// one. Its methods, and those of its facets, are safe for concurrent use.
//
// The connection stays the caller's. A store puts itself before the connection's error handler, which goes on being
// called; it sets no other. A handler that is set while the store is open takes its place: then what the server
// refuses looks like a timeout, so set handlers before.
type Store struct {
	*account

	Ledger   *Ledger
	Queue    *Queue
	Registry *Registry
	Archive  *Archive
	Members  *Members
	Requests *Requests
	Groups   *Groups
}

// newStore needs no server's answer: Setup and Open find out what is there. Zero fields of cfg have their defaults.
// Error: InvalidConfig.
func newStore(nc *nats.Conn, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	a, err := newAccount(nc, cfg)
	if err != nil {
		return nil, err
	}
	s := &Store{account: a, Ledger: &Ledger{account: a}, Queue: &Queue{account: a}, Archive: &Archive{account: a, tenants: tenants{turn: make(chan struct{}, 1)}}}
	s.Registry = &Registry{account: a, queue: s.Queue, needs: needs{account: a}}
	s.Members = &Members{account: a, archive: s.Archive, registry: s.Registry}
	s.Requests, s.Groups = &Requests{account: a}, &Groups{account: a}
	return s, nil
}

// Conn returns the connection that the store works on.
func (s *Store) Conn() *nats.Conn { return s.nc }

// MaxPayload returns the largest message that the server takes, in bytes, headers included.
func (s *Store) MaxPayload() int64 { return s.nc.MaxPayload() }

// Inflight returns how many creates and dispatches wait for their first answer. Beyond some thousands, a caller that
// can wait should: they are kept in memory.
func (s *Store) Inflight() int { return s.pub.inflight() }

// Close ends what the store has running, and waits for it; creates and dispatches under way end with NoConnection. The
// connection stays open. It must not be called from within a callback of the store.
func (s *Store) Close() {
	s.account.close()
	s.Ledger.purges.close()
}

// Setup creates what is absent of Stepjet's streams and buckets and binds to them. Several orchestrators may do so at
// once: each asset is made by one of them, with its settings, and adopted by the others. Nothing that exists is
// changed. While a cluster has no leader yet it waits, until ctx ends. Errors: InvalidConfig (also where cfg.Shards
// is not the number that exists), NoJetStream, Permission naming the subject, StoreFull, Timeout, NoConnection.
func Setup(ctx context.Context, nc *nats.Conn, cfg Config) (*Store, error) {
	s, err := newStore(nc, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.retry(ctx, func(ctx context.Context) error { return s.withJetStream(ctx, s.setup) }); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.Archive.learnTenants(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.spawn(s.Archive.followTenants)
	s.setupLate(ctx, s.cfg.gatherConfig(), "there is no bucket for the workers that gather batches; every worker gathers for itself")
	s.setupLate(ctx, s.cfg.questionsConfig(), "there is no bucket for what runs wait for people to say; questions are answered, but can't be listed")
	s.setupLate(ctx, s.cfg.groupsConfig(), "there is no bucket for groups of tools; plans that are submitted with permissions wait")
	s.setupLate(ctx, s.cfg.ratesConfig(), "there is no bucket for the rates of language models; each model worker asks as fast as it can")
	return s, nil
}

// Open binds to what an orchestrator has set up, for workers and clients. Errors: NotReady where Stepjet is not set up
// in this account, NoJetStream, Permission naming the subject, Timeout, NoConnection.
func Open(ctx context.Context, nc *nats.Conn) (*Store, error) {
	s, err := newStore(nc, Config{})
	if err != nil {
		return nil, err
	}
	if err := s.retry(ctx, func(ctx context.Context) error { return s.withJetStream(ctx, s.open) }); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
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
	if err := s.Queue.ensureSteps(ctx, 0); err != nil {
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

// setupLate makes a bucket that one can do without, which may be refused by permissions that are older than it.
func (s *Store) setupLate(ctx context.Context, cfg jetstream.StreamConfig, without string) {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	err := s.guarded(ctx, apiPrefix+"STREAM.", func(ctx context.Context) error {
		_, err := s.ensureStream(ctx, cfg)
		return err
	})
	if err != nil {
		s.cfg.Logger.Warn(without, "stream", cfg.Name, "error", Fault(err))
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

// Heard returns once the server knows of all subscriptions that were made before, also one that the connection went on to
// meanwhile. Errors: Permission naming a subject among those given that it refused; Timeout or Cancelled after ctx;
// NoConnection where the connection was closed.
func (s *Store) Heard(ctx context.Context, filters ...string) error {
	return heard(ctx, s.account, filters)
}
