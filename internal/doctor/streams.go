package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
)

// streams looks at every stream and bucket: whether it is there, and whether it has the settings that Stepjet's
// promises rest on. The ledger's first stream is mended last, as setup makes it last.
func (d *doctor) streams(ctx context.Context) error {
	if err := d.plan(ctx); err != nil {
		return err
	}
	absent := 0
	for i := range d.assets {
		if d.assets[i].info == nil {
			absent++
		}
	}
	for i := range d.assets {
		a := &d.assets[i]
		if a.info == nil {
			d.absent(ctx, a, absent == len(d.assets))
		} else {
			d.drifted(ctx, a)
		}
	}
	d.fine(fmt.Sprintf("%d, each with the settings it needs", len(d.assets)))
	return d.settled(ctx)
}

// settled looks again at what was mended, and binds to the ledger.
func (d *doctor) settled(ctx context.Context) (err error) {
	for i := range d.assets {
		a := &d.assets[i]
		if a.info, err = d.look(ctx, a.want.Name); err != nil {
			return err
		}
	}
	d.shards = 0
	if ledger := d.info(subjects.LedgerStream(0)); ledger != nil && d.in.CheckLedger(ledger.Config) == nil {
		if d.shards = d.in.LedgerShards(ledger.Config); d.shards > 0 {
			d.in.Bind(d.shards)
		}
	}
	return nil
}

// info returns what is there of a stream; nil for nothing.
func (d *doctor) info(stream string) *jetstream.StreamInfo {
	for i := range d.assets {
		if d.assets[i].want.Name == stream {
			return d.assets[i].info
		}
	}
	return nil
}

// absent reports a stream that is not there; nothing says that none is, so that this account was never set up.
func (d *doctor) absent(ctx context.Context, a *asset, nothing bool) {
	f := Finding{
		About: a.want.Name, Health: Broken, Expected: "a stream for " + a.role, Found: "no such stream", Means: a.lost,
		Fix: "creates it",
	}
	if nothing {
		f.Means = "Stepjet is not set up in this account"
	}
	d.add(f, func() error { return d.make(ctx, a.want.Name) })
}

// make creates a stream and what belongs into it.
func (d *doctor) make(ctx context.Context, stream string) error {
	for i := range d.assets {
		if d.assets[i].want.Name == stream {
			return d.in.MakeStream(ctx, d.assets[i].want)
		}
	}
	return nil
}

func stepShard(stream string) (int, bool) { return subjects.ParseStepsStream(stream) }

// drifted reports settings that are not what they should be.
func (d *doctor) drifted(ctx context.Context, a *asset) {
	have := a.info.Config
	all := differences(a.want, have)
	_, own := subjects.TenantOfBlobs(a.want.Name)
	needed := have.AllowRollup && (own || a.want.Name == subjects.BlobsStream("")) // by versions of before
	if needed && d.o.SetUp {
		all = slices.DeleteFunc(all, func(x difference) bool { return x.name == allowRollup })
		d.add(Finding{
			About: a.want.Name, Health: Notable, Expected: allowRollup + " false", Found: allowRollup + " true", Means: rollupMeans,
			Fix: "stepjet doctor --fix, once every worker and orchestrator is of this version",
		}, nil)
	}
	if f := elsewhere(a); f != nil {
		d.add(*f, nil)
	}
	if len(all) == 0 {
		return
	}
	var expected, found, means, firm []string
	update := have
	for _, x := range all {
		expected = append(expected, x.name+" "+x.want)
		found = append(found, x.name+" "+x.have)
		if x.means != "" {
			means = append(means, x.means)
		}
		if x.set == nil {
			firm = append(firm, x.name)
		} else {
			x.set(&update)
		}
	}
	f := Finding{
		About: a.want.Name, Health: Broken, Expected: strings.Join(expected, ", "), Found: strings.Join(found, ", "),
		Means: strings.Join(dedupe(means), "; "), Fix: "sets it as expected, without touching what the stream holds",
	}
	if needed && !d.o.SetUp {
		f.Fix += "; upgrade every worker and orchestrator first: those of before can store nothing over 256 KiB then (error 10111)"
	}
	if len(firm) > 0 {
		f.Fix = fmt.Sprintf("the server can't change %s of a stream that exists: %s", strings.Join(firm, " and "),
			remake(a.want.Name))
		d.add(f, nil)
		return
	}
	d.add(f, func() error {
		_, err := d.js.UpdateStream(ctx, update)
		return err
	})
}

// elsewhere reports a stream that lies in another cluster than the one that was named. It is a person's to move: for as
// long as that takes, it is in both.
func elsewhere(a *asset) *Finding {
	want, in := a.want.Placement, a.info.Cluster
	if want == nil || in == nil || in.Name == want.Cluster {
		return nil
	}
	return &Finding{
		About: a.want.Name, Health: Broken, Expected: "a stream in the cluster " + want.Cluster, Found: "it is in " + in.Name,
		Means: "all that needs it stands still while that cluster can't be reached",
		Fix:   "nats stream edit " + a.want.Name + " --cluster " + want.Cluster + ", which moves what it holds",
	}
}

// remake says how a person replaces a stream.
func remake(name string) string {
	if _, steps := stepShard(name); steps {
		return "nats stream rm " + name + ", then stepjet doctor --fix; the sweep sends again what was on its way"
	}
	return "let all runs end, stop the orchestrators, nats stream rm " + name +
		", then stepjet doctor --fix; what it holds goes with it"
}

func dedupe(list []string) (once []string) {
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			once = append(once, s)
		}
	}
	return once
}
