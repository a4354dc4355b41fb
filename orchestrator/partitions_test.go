package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
)

// TestWhoSharesThePartitions: those that stay and know what the runs of the ledger need; all that stay, where nobody knows
// all of it.
func TestWhoSharesThePartitions(t *testing.T) {
	knows, lacks, other := kv.Member{ID: "knows"}, kv.Member{ID: "lacks", Lacks: "later"}, kv.Member{ID: "other", Lacks: "later"}
	leaves := kv.Member{ID: "leaves", Leaving: true}
	for name, x := range map[string]struct{ members, share []kv.Member }{
		"alone":              {[]kv.Member{knows}, []kv.Member{knows}},
		"beside who knows":   {[]kv.Member{lacks, knows, other}, []kv.Member{knows}},
		"nobody knows":       {[]kv.Member{lacks, other}, []kv.Member{lacks, other}},
		"who knows leaves":   {[]kv.Member{leaves, lacks}, []kv.Member{lacks}},
		"all of them leave":  {[]kv.Member{leaves}, []kv.Member{}},
		"nobody is a member": {nil, nil},
	} {
		require.Equal(t, x.share, sharers(x.members), name)
	}
}
