package doctor

import (
	"context"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// plan finds out what should be there: as many ledger shards as the ledger says, a step stream for every tool shard,
// and copies and retention as they are, unless something else is asked for.
func (d *doctor) plan(ctx context.Context) error {
	found := map[string]*jetstream.StreamInfo{}
	if names, err := d.in.StreamNames(ctx); err == nil {
		d.names = names
	}
	shards, err := d.findLedger(ctx, found)
	if err != nil {
		return err
	}
	d.in.Configure(d.adoptSettings(ctx, found))
	add := func(stream, role, lost string) {
		if err == nil {
			var info *jetstream.StreamInfo
			info, err = d.look(ctx, stream)
			d.assets = append(d.assets, asset{d.in.Wanted(stream, shards), role, lost, info})
		}
	}
	add(subjects.BucketStream(subjects.HistoryBucket), "finished runs", "outcomes can't be stored: no run ends")
	add(subjects.BucketStream(subjects.DeadBucket), "dead letters",
		"steps that used up their attempts leave no trace to try again from")
	add(subjects.BucketStream(subjects.ToolsBucket), "tool registry", "no tool is known: every plan is rejected")
	add(subjects.BucketStream(subjects.MembersBucket), "live orchestrators",
		"no orchestrator can take partitions: no run goes on")
	add(subjects.BucketStream(subjects.GatherBucket), "gathering workers",
		"every worker gathers batches for itself, so they are smaller")
	add(subjects.BucketStream(subjects.QuestionsBucket), "questions to people",
		"what runs wait for people to say can be answered, but not listed")
	add(subjects.BucketStream(subjects.RatesBucket), "rates of language models",
		"every model worker asks as fast as it can, so that providers refuse more")
	add(subjects.BucketStream(subjects.GroupsBucket), "groups of tools",
		"no plan with permissions can be judged, and agents find no groups")
	add(subjects.BlobsStream(""), "large values", "results and arguments over 256 KiB can't be stored")
	if d.stepShards, err = d.countSteps(ctx); err != nil {
		return err
	}
	for i := range d.stepShards {
		add(subjects.StepsStream(i), "steps on their way", "no step of its tools reaches a worker")
	}
	for i := shards - 1; i >= 0; i-- {
		add(subjects.LedgerStream(i), "ledger", "no plan of its partitions is taken")
	}
	return err
}

// findLedger tells the number of ledger shards by those that are there, else by what is asked for.
func (d *doctor) findLedger(ctx context.Context, found map[string]*jetstream.StreamInfo) (shards int, err error) {
	for i := range subjects.Partitions {
		info, err := d.probe(ctx, subjects.LedgerStream(i))
		if err != nil {
			return 0, err
		}
		if info == nil {
			if i > 0 { // shard 0 is made last, so it may be absent beside others
				break
			}
			continue
		}
		found[info.Config.Name] = info
		if shards == 0 {
			shards = d.in.LedgerShards(info.Config)
		}
	}
	if shards > 0 && d.o.Want.Shards > 0 && shards != d.o.Want.Shards {
		d.add(Finding{
			About: "ledger", Health: Broken, Expected: text.Count(d.o.Want.Shards, "ledger shard"),
			Found: text.Count(shards, "ledger shard"),
			Means: "an orchestrator that is told " + strconv.Itoa(d.o.Want.Shards) + " refuses to start",
			Fix: "--shards " + strconv.Itoa(shards) +
				", or leave it out; a ledger can't be split, so more shards need another account",
		}, nil)
	}
	if shards == 0 {
		shards = max(d.in.Config().Shards, 1)
	}
	return shards, nil
}

// probe looks at a stream that may be beyond the last. Permissions name those that are to be there; so it asks about
// none that the list of all streams lacks, which would be refused.
func (d *doctor) probe(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	if d.names != nil && !d.names[stream] {
		return nil, nil
	}
	return d.look(ctx, stream)
}

// adoptSettings returns the settings that were asked for, with what nobody asked for taken from what is there.
func (d *doctor) adoptSettings(ctx context.Context, found map[string]*jetstream.StreamInfo) kv.Config {
	cfg := d.in.Config()
	if info, err := d.look(ctx, subjects.BucketStream(subjects.HistoryBucket)); err == nil && info != nil {
		found[info.Config.Name] = info
		if d.o.Want.Retention == 0 && info.Config.MaxAge > 0 {
			cfg.Retention = info.Config.MaxAge
		}
	}
	if d.o.Want.Replicas == 0 {
		for _, info := range found {
			cfg.Replicas = max(cfg.Replicas, info.Config.Replicas)
		}
	}
	return cfg
}

// countSteps counts step streams, at least the first. A hole below one that is there counts.
func (d *doctor) countSteps(ctx context.Context) (n int, err error) {
	n = 1
	for i, holes := 0, 0; holes < 2; i++ {
		info, err := d.probe(ctx, subjects.StepsStream(i))
		if err != nil {
			return n, err
		}
		if info != nil {
			n, holes = i+1, 0
		} else {
			holes++
		}
	}
	// A tool that is registered in a shard whose stream was deleted.
	tools, err := d.registeredShards(ctx)
	if err != nil {
		return n, err
	}
	return max(n, tools), nil
}
