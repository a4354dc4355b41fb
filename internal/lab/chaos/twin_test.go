package chaos

import (
	"github.com/stepjet/stepjet/internal/lab/journal"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestARunInBothCellsIsFound: by whatever each knows of it.
func TestARunInBothCellsIsFound(t *testing.T) {
	t.Parallel()
	record := subjects.PlanRecord(subjects.NewRun("acme", "single-1"), 1)
	knows := []*Evidence{
		{Ledger: []kv.Entry{{Subject: record}}},
		{Events: []journal.Event{{Kind: journal.Begin, Tenant: "acme", Run: "single-1"}}},
		{Events: []journal.Event{{Kind: journal.Accept, Tenant: "acme", Run: "single-1"}}},
		{History: []*outcome.Run{{Tenant: "acme", Run: "single-1"}}},
	}
	for _, a := range knows {
		for _, b := range knows {
			require.Len(t, inBoth(a, b), 1, "%+v %+v", *a, *b)
		}
		require.Empty(t, inBoth(a, &Evidence{}))
		require.Empty(t, inBoth(a, &Evidence{Events: []journal.Event{{Kind: journal.Begin, Tenant: "beta", Run: "single-1"}, {Kind: journal.Refuse, Tenant: "acme", Run: "single-1"}}}))
	}
}
