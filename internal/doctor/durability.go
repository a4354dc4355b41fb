package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// replicas looks whether every copy of every stream is up and has what its leader has.
func (d *doctor) replicas(context.Context) error {
	copies := 0
	for _, a := range d.assets {
		if a.info == nil || a.info.Cluster == nil || a.info.Config.Replicas < 2 {
			continue
		}
		if a.info.Cluster.Leader == "" {
			d.add(Finding{
				About: a.want.Name, Health: Broken, Expected: "a leader", Found: "none",
				Means: "the stream takes and gives nothing until a majority of its nodes is up",
				Fix:   "start the nodes that are down",
			}, nil)
		}
		for _, p := range a.info.Cluster.Replicas {
			copies++
			f := Finding{About: a.want.Name, Expected: "a copy on " + p.Name + " that is up to date",
				Means: "the loss of another node may stop the stream"}
			switch {
			case p.Offline:
				f.Health, f.Found, f.Fix = Broken, "the node is offline",
					"start it; if it will not come back: nats server cluster peer-remove "+p.Name
				d.add(f, nil)
			case !p.Current:
				f.Health, f.Found = Notable, fmt.Sprintf("it lags behind by %d messages", p.Lag)
				d.add(f, nil)
			}
		}
	}
	if copies == 0 {
		d.fine("every stream lies on one node")
	} else {
		d.fine(fmt.Sprintf("%d copies beside the leaders', each up and up to date", copies))
	}
	return nil
}

// durability says what is in force and what that can lose, and compares it with what is asked for.
func (d *doctor) durability(context.Context) error {
	ledger := d.info(subjects.LedgerStream(0))
	if ledger == nil || d.shards == 0 {
		return nil
	}
	async := false
	if steps := d.info(subjects.StepsStream(0)); steps != nil {
		async = steps.Config.PersistMode == jetstream.AsyncPersistMode
	}
	d.syncAsked()
	d.copies(ledger.Config.Replicas)
	if d.o.Sync == SyncAlways && d.shards == 1 {
		d.add(Finding{
			About: "ledger shards", Health: Notable, Expected: "several, which flush side by side", Found: "1",
			Means: "records are flushed one after another, which bounds all runs together to some thousand steps a second",
			Fix:   "--shards 8 where the ledger is created; one that exists can't be split, so that is another account",
		}, nil)
	}
	if d.o.Want.StepsAsync && d.o.Sync == SyncAlways && !async {
		d.add(Finding{
			About: "steps", Health: Notable, Expected: "step streams that acknowledge before they write",
			Found: "they write first",
			Means: "nothing is lost by it; with sync_interval: always a step costs two more flushes",
			Fix:   "the server can't change it: " + remake(subjects.StepsStream(0)),
		}, nil)
	}
	steps := "written before they are acknowledged"
	if async {
		steps = "acknowledged before they are written (derived: the sweep sends lost ones again)"
	}
	seen := d.o.Seen
	if seen == SyncUnknown {
		seen = "not known (--monitor shows it)"
	}
	d.add(Finding{
		About: "in force", Health: Healthy,
		Found: fmt.Sprintf("%s, %s, server flushes: %s, steps %s", text.Count(ledger.Config.Replicas, "replica"),
			text.Count(d.shards, "ledger shard"), seen, steps),
		Means: strings.Join(CanLose(ledger.Config.Replicas, d.o.Seen), "; "),
	}, nil)
	return nil
}

// syncAsked compares how the server flushes with what is asked of it.
func (d *doctor) syncAsked() {
	const line = "in nats-server.conf of every node: jetstream { sync_interval: always }"
	f := Finding{About: "sync_interval", Expected: string(d.o.Sync), Found: string(d.o.Seen)}
	switch {
	case d.o.Sync != SyncAlways:
	case d.o.Seen == SyncUnknown:
		f.Health, f.Found = Notable, "JetStream does not tell it"
		f.Means, f.Fix = "if it is not set, a power loss loses what was accepted in the last two minutes",
			"stepjet doctor --monitor http://HOST:8222 reads it; the line is, "+line
		d.add(f, nil)
	case d.o.Seen != SyncAlways:
		f.Health, f.Means, f.Fix = Broken, "a power loss loses what was accepted since the last flush", line
		d.add(f, nil)
	}
}

// copies says where a cluster has room for copies and nobody has asked for any.
func (d *doctor) copies(replicas int) {
	nodes := d.nodes()
	if d.nc.ConnectedClusterName() == "" || nodes < 3 || replicas > 1 || d.o.Want.Replicas > 0 {
		return
	}
	d.add(Finding{
		About: "replicas", Health: Notable, Expected: fmt.Sprintf("3 in a cluster of %d", nodes), Found: "1",
		Means: "while the node that holds a stream is away nothing of it goes on; if its disk is lost, so are its runs",
		Fix:   "stepjet doctor --durability replicated --fix",
	}, nil)
}

// nodes counts the servers of the cluster that this connection has heard of.
func (d *doctor) nodes() int {
	known := map[string]bool{}
	for _, s := range append(d.nc.Servers(), d.nc.DiscoveredServers()...) {
		known[s] = true
	}
	return len(known)
}

// CanLose says what each kind of mishap can lose of what was accepted, with so many replicas and such flushing.
func CanLose(replicas int, sync Sync) []string {
	window := "what was accepted since the last flush (two minutes unless set otherwise)"
	all := []string{"a killed process, of NATS or Stepjet: nothing"}
	power := "power loss of a machine: "
	if replicas > 1 {
		power += "nothing while a majority stays up; of all at once: "
	}
	switch sync {
	case SyncAlways:
		power += "nothing"
	case SyncInterval:
		power += window
	default:
		power += window + ", unless sync_interval is always"
	}
	disk := "loss of a node's disk: all that it holds"
	if replicas > 1 {
		disk = "loss of up to " + text.Count((replicas-1)/2, "node") + " and its disk: nothing"
	}
	return append(all, power, disk)
}
