package bench

import (
	"time"

	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/kv"
)

// Grace is the grace of finished runs in the benchmarks, short enough that purging is in its steady state.
const Grace = time.Second

// Slots are the worker's concurrent executions.
const Slots = 256

// Layout is how server, orchestrators and workers stand to each other.
type Layout struct {
	// Part is its name on the command line and of its file of figures, Title in the report.
	Part, Title string
	// Separate runs each program as a process of its own, over TCP on the loopback; otherwise all are in this one.
	Separate bool
	// Nodes is the number of NATS servers; more than one are a cluster, with as many replicas of each stream.
	Nodes int
	// Always flushes to disk before each acknowledgement.
	Always bool
	// Shards of the ledger.
	Shards int
}

// The layouts that "stepjet bench" measures.
var (
	Embedded = Layout{Part: "embedded", Title: "One process"}
	Separate = Layout{Part: "separate", Title: "Three processes over TCP", Separate: true}
)

// ShardCount returns the number of the ledger's shards, at least 1.
func (l Layout) ShardCount() int { return max(l.Shards, 1) }

// Replicas returns the number of servers, and with it of each stream's replicas, at least 1.
func (l Layout) Replicas() int { return max(l.Nodes, 1) }

// Store returns what the durability dial makes of the layout.
func (l Layout) Store() kv.Config {
	dial := config.Store{Durability: config.DurabilityDefault, Shards: l.ShardCount()}
	switch {
	case l.Always:
		dial.Durability = config.DurabilityAlways
	case l.Replicas() > 1:
		dial.Durability = config.DurabilityReplicated
	}
	return dial.Config()
}
