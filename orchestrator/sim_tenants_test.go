package orchestrator

import (
	"time"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// declares is whether the tenant of a world is declared at some time.
func (w *world) declares() bool { return w.seed%2 == 0 }

// declaredAt is when, in half of those worlds, from the beginning; in the rest while runs are submitted.
func (w *world) declaredAt() time.Duration {
	if w.seed%4 == 0 {
		return 0
	}
	return time.Duration(1+w.seed/4%9) * 50 * time.Millisecond
}

// bucketNow is the bucket of the tenant's large values, for a run that starts now.
func (w *world) bucketNow(tenant string) string {
	if !w.declares() || w.now < w.declaredAt() || w.bug == oldTenants && w.declaredAt() > 0 {
		return ""
	}
	return subjects.BlobsOf(tenant)
}

// checkBucket: a run has the bucket of its tenant, if its plan was submitted after that was declared; and none before
// there is one.
func (t *truths) checkBucket(x *truth, s *wire.Start) {
	declared := epoch.Add(t.w.declaredAt())
	switch own := s.Bucket != ""; {
	case own && (!t.w.declares() || t.w.now < t.w.declaredAt()):
		t.w.violate("tenants", "%s started with the bucket %s, which is not there", x.id.ID, s.Bucket)
	case !own && t.w.declares() && !x.submitted.Before(declared):
		t.w.violate("tenants", "%s started with the bucket of all tenants, %v after its own was declared", x.id.ID, x.submitted.Sub(declared))
	case own && x.submitted.Before(declared):
		t.w.stats["a tenant was declared before the start of a run that was submitted before"]++
	case t.w.declares() && !own:
		t.w.stats["a run that started before its tenant was declared"]++
	}
}
