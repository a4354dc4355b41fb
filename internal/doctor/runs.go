package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// maxLook is how many runs are looked at closely, and maxNamed how many a finding names.
const maxLook, maxNamed = 1000, 5

// frozenTools looks whether every tool that an active run froze is registered, in the same shard and with its
// definition.
func (d *doctor) frozenTools(ctx context.Context) error {
	if err := d.readStarts(ctx); err != nil {
		return err
	}
	byName := map[string]tool.Registered{}
	for _, t := range slices.Concat(d.tools, d.templates) {
		byName[t.Name] = t
	}
	told := map[string]bool{}
	for _, r := range d.active {
		for name, frozen := range r.tools {
			t, registered := byName[name]
			key := fmt.Sprint(name, frozen.Shard, frozen.Digest)
			if registered && t.Shard == frozen.Shard && t.Digest == frozen.Digest || told[key] {
				continue
			}
			over, err := d.over(ctx, r.run, r.generation)
			if err != nil {
				return err
			}
			if !over {
				told[key] = true
				d.frozen(ctx, name, frozen, t, registered, r.run)
			}
		}
	}
	d.fine(fmt.Sprintf("%s in the ledger; all tools that they need are there", text.Count(len(d.active), "started run")))
	return nil
}

func (d *doctor) frozen(
	ctx context.Context, name string, f *wire.FrozenTool, t tool.Registered, registered bool, r subjects.Run,
) {
	needed := "run " + r.Plain() + " of tenant " + r.Tenant + " needs it"
	def, err := d.s.Registry.Definition(ctx, f.Digest) // any error but absence is another check's matter
	_, removed := d.removed[name]
	if f.Plan && fault.CodeOf(err) != fault.NotFound {
		return // its plan is in the run's hands, whatever became of the name
	}
	x := Finding{About: name, Health: Broken, Expected: "the tool as its runs froze it, in " +
		subjects.StepsStream(f.Shard)}
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		x.Found, x.Means = "its definition "+f.Digest+" is kept no more; "+needed,
			"an orchestrator that takes the run over can't go on with it"
		x.Fix = "stepjet tools apply FILE with that very definition, or stepjet cancel " + r.Plain() + " --tenant " + r.Tenant
		d.add(x, nil)
	case registered && t.Shard != f.Shard:
		x.Found, x.Means = "it is in "+subjects.StepsStream(t.Shard)+" now; "+needed,
			"its workers do not look where the steps of these runs lie"
		x.Fix = "stepjet cancel " + r.Plain() + " --tenant " + r.Tenant + ", then stepjet retry it"
		d.add(x, nil)
	case !registered && removed:
		x.Health, x.Found, x.Means = Notable, "the tool was removed; "+needed,
			"steps of it wait until it is registered again, or their time is over"
		x.Fix = "start a worker of it, or stepjet cancel " + r.Plain() + " --tenant " + r.Tenant
		d.add(x, nil)
	case !registered && def != nil:
		x.Found, x.Means = "no such tool is registered; "+needed, "steps of it wait for a worker that is not known"
		x.Fix = "registers the definition that the run froze"
		d.add(x, func() error { return d.restore(ctx, def, f.Shard, time.Duration(f.AckWait)*time.Millisecond) })
	}
}

// readStarts reads the start record of every run in the ledger.
func (d *doctor) readStarts(ctx context.Context) error {
	for shard := range d.shards {
		lost := true
		for lost {
			var err error
			all := d.active
			lost, err = d.in.ReadAll(ctx, subjects.LedgerStream(shard), subjects.StartFilter(shard), func(e kv.Entry) {
				if r, ok := d.started(ctx, e); ok {
					all = append(all, r)
				}
			})
			if err != nil {
				return err
			}
			if !lost {
				d.active = all
			}
		}
	}
	return nil
}

func (d *doctor) started(ctx context.Context, e kv.Entry) (r activeRun, ok bool) {
	rec, ok := subjects.ParseRecord(e.Subject)
	if !ok || rec.Kind != subjects.StartKind || !wire.KindStart.Known(e.Header) {
		return r, false
	}
	start, blob, err := wire.ParseStart(e.Header, e.Data)
	if blob != nil {
		if stream := subjects.BlobsStream(blob.Bucket); !d.names[stream] && d.info(stream) == nil {
			return r, false
		}
		var body []byte
		if body, err = d.s.Archive.Blob(ctx, blob); err != nil {
			return r, false
		}
		start, _, err = wire.ParseStart(nil, body)
	}
	if err != nil {
		return r, false
	}
	return activeRun{rec.Run, rec.Generation, start.Tools, start.Bucket}, true
}

// over reports whether a run has its outcome; its records then only wait to be removed. An earlier run of the id that
// was rejected is none of it.
func (d *doctor) over(ctx context.Context, r subjects.Run, generation uint64) (bool, error) {
	head, err := d.s.Archive.HistoryHead(ctx, r)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil && (head.Status != outcome.Rejected || head.Generation >= generation), err
}
