package bench

import "github.com/stepjet/stepjet/internal/bench"

// Layouts are those whose ratios are measured, in their order.
var Layouts = []bench.Layout{
	bench.Embedded,
	bench.Separate,
	{Part: "cluster", Title: "Cluster of three nodes, three replicas", Separate: true, Nodes: 3},
	{Part: "always", Title: "Three processes, flush before each acknowledgement, one ledger shard", Separate: true,
		Always: true},
	{Part: "always-8", Title: "Three processes, flush before each acknowledgement, eight ledger shards", Separate: true,
		Always: true, Shards: 8},
}
