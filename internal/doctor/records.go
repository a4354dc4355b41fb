package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// orphanRecords looks for generations whose plan record is gone. An orchestrator removes them when it reads the
// ledger anew, so some are left by one that died in the middle of a purge. It also looks for what lies where no run
// has records: workers may write below any run, and in partitions that no orchestrator reads nobody removes it.
func (d *doctor) orphanRecords(ctx context.Context) error {
	looked := 0
	for shard := range d.shards {
		info, err := d.in.Subjects(ctx, subjects.LedgerStream(shard), subjects.LedgerFilter(shard))
		if err != nil {
			return err
		}
		plans, generations := map[subjects.Run]bool{}, map[subjects.Run]map[uint64]bool{}
		var misplaced, unnamed []string
		for subject := range info {
			rec, ok := subjects.ParseRecord(subject)
			switch {
			case rec.Kind == subjects.MisplacedRecord && !subjects.Literal(subject):
				unnamed = append(unnamed, subject)
			case rec.Kind == subjects.MisplacedRecord, ok && subjects.LedgerShard(rec.Run.Partition(), d.shards) != shard:
				misplaced = append(misplaced, subject)
			case !ok:
			case rec.Kind == subjects.PlanKind:
				plans[rec.Run] = true
			case rec.Generation > 0:
				if generations[rec.Run] == nil {
					generations[rec.Run] = map[uint64]bool{}
				}
				generations[rec.Run][rec.Generation] = true
			}
		}
		d.misplaced(ctx, shard, misplaced)
		d.unnamed(shard, unnamed)
		for r, all := range generations {
			if plans[r] && len(all) == 1 { // it may be another's, so it is looked at, but not for thousands
				if looked++; looked > maxLook {
					continue
				}
			}
			if err := d.orphansOf(ctx, r, all); err != nil {
				return err
			}
		}
	}
	d.fine("none")
	return nil
}

func (d *doctor) orphansOf(ctx context.Context, r subjects.Run, generations map[uint64]bool) error {
	plan, err := d.s.Ledger.Read(ctx, subjects.PlanRecord(r, d.shards))
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	for _, g := range slices.Sorted(maps.Keys(generations)) {
		if plan != nil && g == plan.Seq {
			continue
		}
		// It may have been in the middle of being purged.
		filter := subjects.GenerationFilter(r, g, d.shards)
		stream := subjects.LedgerStream(subjects.LedgerShard(r.Partition(), d.shards))
		still, err := d.in.Subjects(ctx, stream, filter)
		if err != nil {
			return err
		}
		if len(still) == 0 {
			continue
		}
		f := Finding{
			About: "run " + r.Plain() + " of tenant " + r.Tenant, Health: Notable,
			Expected: "records of runs whose plan is there",
			Found:    fmt.Sprintf("%s of generation %d, whose plan is gone", text.Count(len(still), "record"), g),
			Means:    "they take room; no run uses them", Fix: "removes them",
		}
		if plan == nil || g < plan.Seq {
			d.add(f, func() error { return d.s.Ledger.PurgeSubject(ctx, filter) })
			continue
		}
		f.Found = fmt.Sprintf("%s of generation %d, which no plan has", text.Count(len(still), "record"), g)
		d.add(f, func() error { return d.removeForeign(ctx, still, g) })
	}
	return nil
}

// removeForeign removes records of a generation that no plan has, one by one: should a plan have it later, its own
// come after it.
func (d *doctor) removeForeign(ctx context.Context, all map[string]uint64, generation uint64) error {
	for _, subject := range slices.Sorted(maps.Keys(all)) {
		e, err := d.s.Ledger.Read(ctx, subject)
		if fault.CodeOf(err) == fault.NotFound || err == nil && e.Seq > generation {
			continue
		}
		if err != nil {
			return err
		}
		if err := d.s.Ledger.PurgeRecord(ctx, subject, e.Seq); err != nil {
			return err
		}
	}
	return nil
}

// misplaced are records of one shard that are in the wrong one, or where no run has any.
func (d *doctor) misplaced(ctx context.Context, shard int, all []string) {
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	d.add(Finding{
		About: subjects.LedgerStream(shard), Health: Notable, Expected: "records in the shard and the partition of their run",
		Found: fmt.Sprintf("%s where no run has any, such as %s", text.Count(len(all), "record"), text.Clip(all[0], 200)),
		Means: "they take room; no run uses them. Some worker wrote them, which only one that is wrong or means harm does",
		Fix:   "removes them",
	}, func() error {
		for _, subject := range all {
			if err := d.s.Ledger.PurgeSubject(ctx, subject); err != nil {
				return err
			}
		}
		return nil
	})
}

// unnamed are records of one shard that can't be named alone: their subject stands for others too.
func (d *doctor) unnamed(shard int, all []string) {
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	d.add(Finding{
		About: subjects.LedgerStream(shard), Health: Notable, Expected: "records with a name of their own",
		Found: fmt.Sprintf("%s with a wildcard or an empty token in the name, such as %s", text.Count(len(all), "record"),
			text.Clip(all[0], 200)),
		Means: "they take room; no run uses them. Some worker wrote them, which only one that is wrong or means harm does",
		Fix:   "nothing: they go with what lies below them, once all runs that began before are over",
	}, nil)
}
