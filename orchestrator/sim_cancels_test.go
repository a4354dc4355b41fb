package orchestrator

import (
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// cancelledInbox begins where those who cancel a run are answered; its tenant and id follow.
const cancelledInbox = "_CANCELLED."

// cancelAnswered takes note of what somebody who cancels a run is told.
func (t *truths) cancelAnswered(m *nats.Msg) (is bool) {
	run, is := strings.CutPrefix(m.Subject, cancelledInbox)
	if !is {
		return false
	}
	tenant, name, _ := strings.Cut(run, ".")
	id := subjects.Run{Tenant: tenant, ID: name}
	var told wire.Cancelled
	switch {
	case wire.ParseRefusal(m.Header, m.Data) != nil:
		t.w.stats["cancel that came too late"]++
	case json.Unmarshal(m.Data, &told) != nil || told.Status == "":
		t.w.violate("I17", "who cancelled %s was told %s", name, m.Data)
	case told.Already:
		t.w.stats["a cancel was told that another stands"]++
	default:
		t.w.stats["a cancel was told that it counts"]++
		t.cancels[id]++
		t.checkCancels(id)
	}
	return true
}

// checkCancels checks that no more cancels of a run id were told that they count than runs of it were cancelled: one of
// each, and none of one that came to another end.
func (t *truths) checkCancels(id subjects.Run) {
	counted := t.cancels[id]
	if counted == 0 {
		return
	}
	for _, x := range t.order {
		if x.id != id || !x.stopped {
			continue
		}
		var doc struct{ Status outcome.RunStatus }
		if x.document != nil && json.Unmarshal(x.document, &doc) == nil && doc.Status != outcome.Cancelled {
			continue
		}
		counted--
	}
	if counted > 0 {
		t.w.violate("I17", "%d cancels of %s were told that they count, and so many runs of it were not cancelled", t.cancels[id], id.ID)
	}
}
