package acl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// A worker of a planner reads parts of requests by their names under its printed role; of a declared tenant that it does
// not serve nothing.
func TestAWorkerReadsParts(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]shape{"accounts": {}, "declared": {declared: true}}, func(t *testing.T, s *system) {
		s.staff()
		owner, err := kv.Open(s.ctx(), s.connect("orchestrator"))
		require.NoError(t, err)
		t.Cleanup(owner.Close)
		nc := s.connect("worker-search")
		if s.shape.declared {
			nc = s.trespass("worker-search") // it is going to try what it may not
		}
		worker, err := kv.Open(s.ctx(), nc)
		require.NoError(t, err)
		t.Cleanup(worker.Close)
		bucket := func(tenant string) string {
			if s.shape.declared {
				return subjects.BlobsOf(tenant)
			}
			return ""
		}
		for _, tenant := range []string{"acme", "other"} {
			name := subjects.PartName(subjects.NewRun(tenant, "r"), 7, "a", 0)
			_, err = owner.Archive.PutBlob(s.ctx(), bucket(tenant), name, []byte("a part"))
			require.NoError(t, err)
			part, err := worker.Archive.BlobNamed(s.ctx(), bucket(tenant), name, 6)
			if s.shape.declared && tenant == "other" {
				require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, "a part", string(part))
			_, err = worker.Archive.BlobNamed(s.ctx(), bucket(tenant), name, 5)
			require.Equal(t, fault.TooLarge, fault.CodeOf(err))
		}
	})
}
