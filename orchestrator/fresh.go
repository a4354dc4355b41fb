package orchestrator

import (
	"time"

	"github.com/stepjet/stepjet/subjects"
)

// A plan whose id was used before, and whose first run is purged, is answered from the history. To find that out costs a
// request for each plan, and nearly always the answer is no. An id that tells when it was made spares it: while it is
// younger than freshFor nothing of it can have been purged, because a run of such an id stays in the ledger until the id
// is older than three times that, by the same clock (the ledger's). So a second plan of the id is refused by the ledger
// while the first is there, and looked up afterwards. The margin is for servers whose clocks differ.
//
// Plans that lay in the ledger already when this process began to follow it are always looked up: they say nothing of
// the time since.
const freshFor = time.Second

// isNew reports whether no run of its id can have been purged before this one's plan was stored.
func (r *run) isNew() bool {
	made, dated := subjects.MadeAt(r.id.ID)
	return r.live && dated && r.submitted.Sub(made).Abs() < freshFor
}

// maxAhead bounds how long an id from the future keeps its run: the clock of whoever made it may be wrong by years. If
// such a plan comes once more in the very seconds that its id names, its steps are executed again; its outcome stays.
const maxAhead = 24 * time.Hour

// stays is how long after its end a run's records must stay for isNew's sake.
func (r *run) stays() time.Duration {
	made, dated := subjects.MadeAt(r.id.ID)
	if !dated {
		return 0
	}
	return min(made.Add(3*freshFor).Sub(r.submitted), maxAhead)
}
