package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// lookAtNeeds reports live orchestrators that do not know what the runs of the ledger were said to need. One that
// doesn't owns no partition as long as there is another that does. said is what they say, by id.
func lookAtNeeds(ctx context.Context, d *doctor, said map[string]wire.Member) error {
	if d.info(subjects.BucketStream(subjects.ToolsBucket)) == nil {
		return nil // said already
	}
	needs, err := d.s.Registry.Needs(ctx)
	if err != nil {
		return err
	}
	lacking := map[string]string{}
	for id, m := range said {
		if lacks := wire.Lacking(needs, m.Knows); lacks != "" {
			lacking[id] = lacks
		}
	}
	if len(lacking) > 0 && len(lacking) == len(said) {
		var remove []string
		for _, need := range needs {
			remove = append(remove, fmt.Sprintf("nats kv del %s '%s'", subjects.ToolsBucket, subjects.NeedKey(need)))
		}
		d.add(Finding{
			Health: Broken, Expected: "an orchestrator that knows " + strings.Join(needs, ", "),
			Found: fmt.Sprintf("none of %d does", len(said)),
			Means: "runs that need it stand still, and all others go on",
			Fix: "start orchestrators of a newer version; or, if there never will be such runs again: " +
				strings.Join(remove, "; "),
		}, nil)
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(lacking)) {
		d.add(Finding{
			About: "orchestrator " + id, Health: Notable, Expected: "that it knows what runs of the ledger need",
			Found: "it does not know " + lacking[id],
			Means: "it owns no partition and takes no part in the work", Fix: "upgrade it",
		}, nil)
	}
	return nil
}
