package kv

import (
	"log/slog"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Config says how JetStream's assets are created where they are absent. What exists already is taken as it is: a change
// of these fields changes nothing that was set up before.
type Config struct {
	// Replicas of every stream: 1 (default), 3 or 5.
	Replicas int
	// Shards is the number of ledger streams; it divides 64 and can't be changed later. 0: as many as exist, or 1.
	Shards int
	// Retention is how long finished runs are kept; 0: 7 days. At least 1 s.
	Retention time.Duration
	// LedgerMaxBytes bounds each ledger stream; 0: only the account's and the disk's limits count. A full ledger takes no
	// plans and no results until runs have been purged or the bound is raised; nothing is lost by it.
	LedgerMaxBytes int64
	// AckWait is the lease of a step: so long after the last sign of life it goes to another worker. 0: 30 s. At least
	// 200 ms.
	AckWait time.Duration
	// StepsAsync lets step streams of one replica acknowledge before they write (PersistMode async). What they hold is
	// derived and repaired by the sweep, so nothing is lost with it; with sync_interval always it saves two flushes a step.
	StepsAsync bool
	// Logger takes warnings, such as a store that is full; nil: none.
	Logger *slog.Logger
}

// Defaults of Config.
const (
	DefaultRetention = 7 * 24 * time.Hour
	DefaultAckWait   = 30 * time.Second
)

// LongestRun is the longest time that a run may take (design: plan language, "timeout").
const LongestRun = 168 * time.Hour

func (c Config) withDefaults() Config {
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.Retention == 0 {
		c.Retention = DefaultRetention
	}
	if c.AckWait == 0 {
		c.AckWait = DefaultAckWait
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Replicas < 1 || c.Replicas > 5:
		return fault.New(fault.InvalidConfig, "%d replicas: JetStream has 1 to 5", c.Replicas)
	case c.Shards < 0 || c.Shards > 0 && subjects.Partitions%c.Shards != 0:
		return fault.New(fault.InvalidConfig, "%d ledger shards: the number must divide %d", c.Shards, subjects.Partitions)
	case c.Retention < time.Second:
		return fault.New(fault.InvalidConfig, "a retention of %v: at least 1s", c.Retention)
	case c.AckWait < 200*time.Millisecond:
		return fault.New(fault.InvalidConfig, "an ack wait of %v: at least 200ms", c.AckWait)
	case c.LedgerMaxBytes < 0:
		return fault.New(fault.InvalidConfig, "a ledger of %d bytes", c.LedgerMaxBytes)
	}
	return nil
}
