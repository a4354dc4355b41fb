package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// tenantBuckets looks at the buckets of declared tenants: whether each has the settings of the one that all others
// share, and whether runs need one that is gone. What is declared is told by nothing but the buckets, so one that no
// run needs and that somebody deleted is not missed.
func (d *doctor) tenantBuckets(ctx context.Context) error {
	var all []string
	for name := range d.names {
		if tenant, ok := subjects.TenantOfBlobs(name); ok {
			all = append(all, tenant)
		}
	}
	slices.Sort(all)
	for _, tenant := range all {
		want := d.in.Wanted(subjects.BlobsStream(subjects.BlobsOf(tenant)), d.shards)
		info, err := d.look(ctx, want.Name) // refused where the doctor's permissions are older than the declaration
		if err != nil {
			return err
		}
		if info != nil {
			a := asset{want, "large values of the tenant " + tenant, "", info}
			d.drifted(ctx, &a)
			if a.info, err = d.look(ctx, want.Name); err != nil { // what was mended
				return err
			}
			d.assets = append(d.assets, a)
		}
	}
	told := map[string]bool{}
	for _, r := range d.active {
		if r.bucket == "" || told[r.bucket] || d.names == nil || d.names[subjects.BlobsStream(r.bucket)] {
			continue
		}
		over, err := d.over(ctx, r.run, r.generation)
		if err != nil {
			return err
		}
		if over {
			continue
		}
		told[r.bucket] = true
		d.add(Finding{
			About: r.run.Tenant, Health: Broken, Expected: "the bucket " + r.bucket,
			Found: "no such bucket; run " + r.run.Plain() + " of the tenant started with it",
			Means: "what the run had stored over 256 KiB is gone, and more of it waits",
			Fix:   "stepjet tenant add " + r.run.Tenant,
		}, nil)
	}
	d.fine(fmt.Sprintf("%s with a bucket of its own", text.Count(len(all), "tenant")))
	return nil
}
