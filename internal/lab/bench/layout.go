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

// Layouts are those that "stepjet bench" measures, in their order.
var Layouts = []Layout{
	{Part: "embedded", Title: "One process"},
	{Part: "separate", Title: "Three processes over TCP", Separate: true},
	{Part: "cluster", Title: "Cluster of three nodes, three replicas", Separate: true, Nodes: 3},
	{Part: "always", Title: "Three processes, flush before each acknowledgement, one ledger shard", Separate: true, Always: true},
	{Part: "always-8", Title: "Three processes, flush before each acknowledgement, eight ledger shards", Separate: true, Always: true, Shards: 8},
}

func (l Layout) shards() int { return max(l.Shards, 1) }

func (l Layout) nodes() int { return max(l.Nodes, 1) }

func (l Layout) replicas() int { return l.nodes() }

// store is what the durability dial makes of the layout.
func (l Layout) store() kv.Config {
	dial := config.Store{Durability: config.DurabilityDefault, Shards: l.shards()}
	switch {
	case l.Always:
		dial.Durability = config.DurabilityAlways
	case l.nodes() > 1:
		dial.Durability = config.DurabilityReplicated
	}
	return dial.Config()
}
