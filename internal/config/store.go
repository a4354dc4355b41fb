package config

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// The positions of the durability dial. What each can lose is told by doctor.CanLose and in docs/operations.md.
const (
	// DurabilityDefault survives the end of any process. It is what counts where nothing is said.
	DurabilityDefault = "default"
	// DurabilityAlways survives a power loss of the machine. It needs sync_interval: always in the NATS server.
	DurabilityAlways = "always"
	// DurabilityReplicated survives the loss of a node. It needs a cluster of three or more.
	DurabilityReplicated = "replicated"
)

// The ways in which steps are stored.
const (
	StepsSync  = "sync"
	StepsAsync = "async"
)

// Store says how Stepjet's streams are set up: the one place where an operator decides what may be lost. Empty fields
// leave what exists as it is; the defaults count for what is created.
type Store struct {
	// Durability is a position of the dial; the fields below it say more precisely what it means, and override it.
	Durability string
	// Replicas are copies of every stream: 1, 3 or 5.
	Replicas int
	// Shards are ledger shards, a divisor of 64.
	Shards int
	// Steps is StepsSync or StepsAsync.
	Steps string

	// Retention, AckWait and LedgerMaxBytes are those of kv.Config.
	Retention, AckWait time.Duration
	LedgerMaxBytes     int64
	// Cluster is the NATS cluster that streams are made in.
	Cluster string
}

var (
	durabilitySetting = Setting{"durability", "STEPJET_DURABILITY"}
	storeSettings     = []Setting{
		durabilitySetting, {"replicas", "STEPJET_REPLICAS"}, {"shards", "STEPJET_SHARDS"}, {"steps", "STEPJET_STEPS"},
		{"retention", "STEPJET_RETENTION"}, {"ack-wait", "STEPJET_ACK_WAIT"},
		{"ledger-max-bytes", "STEPJET_LEDGER_MAX_BYTES"}, {"nats-cluster", "STEPJET_NATS_CLUSTER"},
	}
)

// Flags declares the flags of the store.
func (s *Store) Flags(fs *pflag.FlagSet) {
	s.DurabilityFlag(fs)
	fs.IntVar(&s.Replicas, "replicas", 0,
		"copies of every new stream: 1, 3 or 5 (env STEPJET_REPLICAS; default: by --durability)")
	fs.IntVar(&s.Shards, "shards", 0,
		"ledger shards where none exist yet; a divisor of 64 (env STEPJET_SHARDS; default 1)")
	fs.StringVar(&s.Steps, "steps", "", "store steps `sync|async`: before or after the ack (env STEPJET_STEPS)")
	fs.DurationVar(&s.Retention, "retention", 0, "how long finished runs are kept (env STEPJET_RETENTION; default 168h)")
	fs.DurationVar(&s.AckWait, "ack-wait", 0, "lease of a step whose worker is silent (env STEPJET_ACK_WAIT; default 30s)")
	fs.Int64Var(&s.LedgerMaxBytes, "ledger-max-bytes", 0,
		"most bytes of a new ledger shard; 0: no bound (env STEPJET_LEDGER_MAX_BYTES)")
	fs.StringVar(&s.Cluster, "nats-cluster", "",
		"`name` of the NATS cluster to make streams in (env STEPJET_NATS_CLUSTER)")
}

// DurabilityFlag declares the dial alone, for a program that brings its own server.
func (s *Store) DurabilityFlag(fs *pflag.FlagSet) {
	fs.StringVar(&s.Durability, "durability", "",
		"`level` of what may be lost: default, always or replicated (env STEPJET_DURABILITY)")
}

// FromEnvironment fills in what the flags left open, and checks the whole. Errors have code invalid_config.
func (s *Store) FromEnvironment(fs *pflag.FlagSet, env Lookup) error {
	var declared []Setting
	for _, x := range storeSettings {
		if fs.Lookup(x.Flag) != nil {
			declared = append(declared, x)
		}
	}
	if err := FromEnvironment(fs, env, declared...); err != nil {
		return err
	}
	return s.validate()
}

func (s *Store) validate() error {
	if s.Durability != "" {
		if err := oneOf("durability", s.Durability, DurabilityDefault, DurabilityAlways, DurabilityReplicated); err != nil {
			return err
		}
	}
	if s.Steps != "" {
		if err := oneOf("steps", s.Steps, StepsSync, StepsAsync); err != nil {
			return err
		}
	}
	switch s.Replicas {
	case 0, 1, 3, 5:
	default:
		return fault.New(fault.InvalidConfig, "--replicas is %d", s.Replicas).
			WithHint("1, 3 or 5: an even number survives no more than the odd one below it")
	}
	if s.Shards < 0 || s.Shards > 0 && subjects.Partitions%s.Shards != 0 {
		return fault.New(fault.InvalidConfig, "--shards is %d", s.Shards).
			WithHint("a divisor of %d: 1, 2, 4, 8, 16, 32 or 64", subjects.Partitions)
	}
	return s.agree()
}

// agree checks the settings against each other.
func (s *Store) agree() error {
	switch {
	case s.Durability == DurabilityReplicated && s.Replicas == 1:
		return fault.New(fault.InvalidConfig, "--durability replicated and --replicas 1 contradict each other").
			WithHint("leave one of them out: replicated means 3")
	case s.Steps == StepsAsync && s.replicas() > 1:
		return fault.New(fault.InvalidConfig,
			"--steps async and %d replicas: the server takes async streams with one replica only", s.replicas()).
			WithHint("leave --steps out")
	}
	return nil
}

func (s *Store) replicas() int {
	if s.Replicas == 0 && s.Durability == DurabilityReplicated {
		return 3
	}
	if s.Replicas == 0 && s.Durability != "" {
		return 1
	}
	return s.Replicas
}

// Config returns what kv is told. Steps are derived from the ledger, and sent again where a killed server loses some,
// so without copies they are stored after the acknowledgement.
func (s *Store) Config() kv.Config {
	async := s.Steps == StepsAsync || s.Steps == "" && s.replicas() <= 1
	return kv.Config{
		Replicas: s.replicas(), Shards: s.Shards, StepsAsync: async,
		Retention: s.Retention, AckWait: s.AckWait, LedgerMaxBytes: s.LedgerMaxBytes, Cluster: s.Cluster,
	}
}

// Sync returns what the dial asks of the NATS server's flushing, which only its own configuration can set.
func (s *Store) Sync() doctor.Sync {
	if s.Durability == DurabilityAlways {
		return doctor.SyncAlways
	}
	return doctor.SyncUnknown
}
