package orchestrator

import (
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// What Config says where it is zero.
const (
	DefaultGrace      = time.Minute
	DefaultSweepEvery = 10 * time.Second
	DefaultMaxLoops   = 8
)

// purgeAtLast is how long past their grace runs may be held up by a longer one. Then they go one by one.
const purgeAtLast = 15 * time.Second

// Config is what an orchestrator may be told. The zero value is a good one.
type Config struct {
	// Name is shown in logs and in the records that this orchestrator writes; default: the host's name.
	Name string
	// Store says how streams and buckets are created where they are absent.
	Store kv.Config
	// Weights are the shares of tenants where a tool has more to do than fits: 1 for a tenant that isn't named.
	Weights map[string]int
	// Loops is how many goroutines share the partitions of this process, 1 to 64, and so how many cores it uses for
	// what is no I/O; each has runs of its own. Default: GOMAXPROCS, but no more than there are ledger shards, nor than
	// DefaultMaxLoops: each shard is read once then. More loops than shards cost the server a cursor each, and keep a
	// huge run from sharing a goroutine with as many others.
	Loops int
	// Grace is how long the records of a finished run stay in the ledger, so that late records meet them; default 60 s.
	Grace time.Duration
	// SweepEvery is how often what should be out is compared with what is; default 10 s.
	SweepEvery time.Duration
	// SecretsKey are the keys that the secrets of runs are sealed to. The newest is published for submitters; all of
	// them serve to take secrets out of errors. nil: secrets are not sealed, and those that are stay unknown here.
	SecretsKey *seal.Keyring
	// Logger takes what an operator should know; default: nothing is logged.
	Logger *slog.Logger
	// Observer is told of runs that begin and end, and of attempts that are sent and decided; package observe says what
	// it may do. nil: nobody is told, which costs nothing.
	Observer observe.Observer
	// TraceShare is how many of the runs that come without a traceparent are traced all the same, from 0 (none) to 1
	// (all): their steps have one then. Which of them is decided by their names, so set it alike everywhere.
	TraceShare float64
}

func (c Config) withDefaults() Config {
	if c.Store.Knows == nil {
		c.Store.Knows = wire.Ours()
	}
	if c.Name == "" {
		c.Name, _ = os.Hostname()
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = DefaultSweepEvery
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Store.Logger == nil {
		c.Store.Logger = c.Logger
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Loops < 0 || c.Loops > subjects.Partitions:
		return fault.New(fault.InvalidConfig, "%d loops: the number must be from 1 to %d", c.Loops, subjects.Partitions)
	case c.Grace < 0 || c.Grace > 24*time.Hour:
		return fault.New(fault.InvalidConfig, "grace %s is not between 0 and 24h", c.Grace)
	case c.Store.Retention > 0 && c.Store.Retention < c.Grace+purgeAtLast:
		// A plan that is sent again while its records are still there would wait for a history that is gone.
		return fault.New(fault.InvalidConfig, "finished runs are kept for %s, which is shorter than their records may stay: grace %s and %s", c.Store.Retention, c.Grace, purgeAtLast).
			WithHint("keep finished runs for longer, or make the grace shorter")
	case slices.Min(append(slices.Collect(maps.Values(c.Weights)), 1)) < 1:
		return fault.New(fault.InvalidConfig, "a tenant's weight is less than 1")
	case !(c.TraceShare >= 0 && c.TraceShare <= 1): // NaN is neither
		return fault.New(fault.InvalidConfig, "a share of %v of the runs can't be traced: it is from 0 to 1", c.TraceShare)
	case c.SweepEvery < 100*time.Millisecond:
		return fault.New(fault.InvalidConfig, "sweep interval %s is shorter than 100ms", c.SweepEvery)
	}
	return nil
}

// loops is how many there are where the ledger has so many shards.
func (c Config) loops(shards int) int {
	if c.Loops > 0 {
		return c.Loops
	}
	return min(runtime.GOMAXPROCS(0), DefaultMaxLoops, shards)
}

// memberID is unique for each process life, so that a restarted orchestrator is another member.
func (c Config) memberID() string { return nuid.Next() }
