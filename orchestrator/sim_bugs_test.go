package orchestrator

import (
	"encoding/json"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// bug is one that is seeded into a world. The code that is tested has no switch for it: what stands around it does
// wrong what it would do wrong.
type bug int

const (
	none bug = iota
	unknownIsDecided
	fullIsDecided
	overwrite
	startWithoutFence
	claimWithoutFence
	ignoreGeneration
	followLiveRegistry
	skipRecords
	dispatchEarly
	dispatchTwice
	sweepBlindly
	withdrawFirst
	leakSlots
	noDeadLetters
	purgeNewerToo
	purgeTooFar
	markUnread
	noClaim
	ackFirst
	leaseMore
	ownClock
	refusedIsStored
	replaceNewerToo
	repeatItems
	ignoreNeeds
	oldTenants
	keepQuestions
	approveUnasked
	sendUnapproved
	ignoreDigests
	expireEarly
	amendUntold
	loseAmendments
	approveUntold
	approveInnerUntold
	takeInnerForApproved
	takeForApproved
	askEarlier
	loseRounds
	otherRounds
	otherResults
	roundsWithoutBlobs
	loseObjects
	lastBug = loseObjects
)

var bugs = map[bug]string{
	unknownIsDecided:   "take a write without an answer for decided",
	fullIsDecided:      "take the refusal of a full store for decided",
	overwrite:          "let records be written twice",
	startWithoutFence:  "start a run without looking whether its plan still stands",
	claimWithoutFence:  "claim without looking whether the plan still stands",
	ignoreGeneration:   "read the records of an earlier run of the same id as this one's",
	followLiveRegistry: "follow the registry of now, not the frozen contracts",
	skipRecords:        "lose a record on the way from the ledger",
	dispatchEarly:      "dispatch a step before its dependencies are over",
	dispatchTwice:      "dispatch the next attempt before the last one is decided",
	sweepBlindly:       "sweep without reading back",
	withdrawFirst:      "take a step back before it is decided",
	leakSlots:          "don't give back the room of a step that is over",
	noDeadLetters:      "write no dead letters",
	purgeNewerToo:      "purge a newer plan together with the old one",
	purgeTooFar:        "purge more than what is over",
	markUnread:         "tell the others that what was not read is over",
	noClaim:            "execute an at_most_once tool without a claim",
	ackFirst:           "acknowledge before recording",
	leaseMore:          "lease more than the limit",
	ownClock:           "go by a clock that may jump",
	refusedIsStored:    "take an outcome for stored that was refused",
	replaceNewerToo:    "remove a later outcome together with the rejection in its way",
	repeatItems:        "execute items again whose results were taken over",
	ignoreNeeds:        "go on with a run without knowing what it needs",
	oldTenants:         "start a run by what was known of tenants before",
	keepQuestions:      "leave questions that nobody is asked any more",
	approveUnasked:     "approve without a record",
	sendUnapproved:     "send what waits for an approval",
	ignoreDigests:      "take an answer to something else for one to what is asked",
	expireEarly:        "take a question's time for over before it is",
	amendUntold:        "follow an amendment that is in no ledger",
	loseAmendments:     "lose an amendment on the way from the ledger",
	approveUntold:      "follow an amendment that nobody approved of",
	loseRounds:         "lose the record of a round on the way from the ledger",
	otherResults:       "take another result than the one that stands for what was let go of",
	roundsWithoutBlobs: "record a round whose blob is not stored",
	loseObjects:        "send no objects",
	otherRounds:        "follow another record of a round than the one that stands",
	takeForApproved:    "take an amendment that waits for one that was approved",
	askEarlier:         "take the entry of an earlier question for that of a later one",

	approveInnerUntold:   "follow an amendment of a plan within an approved one that nobody approved of",
	takeInnerForApproved: "take an amendment of a plan within an approved one for one that needs no approval",
}

// sabotage does wrong, after a turn of a loop, what no answer of the world can make it do wrong.
func (o *orch) sabotage(l *loop) {
	o.sabotageQuestions(l)
	switch o.w.bug {
	case dispatchEarly, dispatchTwice:
	case amendUntold:
		o.amendUntold(l)
		return
	case approveUntold, approveInnerUntold:
		o.approveUntold(l)
		return
	case leakSlots:
		for _, w := range l.dispatcher.windows {
			if w.out > 0 && o.w.chance(10) {
				w.add(1)
			}
		}
		return
	default:
		return
	}
	for _, r := range l.runs.oldestFirst(func(r *run) bool { return r.phase == running && !r.busy }) {
		for i := range r.plan.Steps {
			status := r.machine.StepStatus(i)
			d := machine.Dispatch{Call: machine.Call{Step: i}, Attempt: 1}
			if o.w.bug == dispatchTwice {
				d.Attempt = 2
			}
			early := o.w.bug == dispatchEarly && status == outcome.StepWaiting
			twice := o.w.bug == dispatchTwice && status == outcome.StepReady
			if (early || twice) && r.plan.Steps[i].ForEach == nil && !r.plan.Steps[i].Value && o.w.chance(10) {
				l.dispatcher.dispatch(r, d, 0, nil)
			}
		}
	}
}

// spoil does wrong to a record on its way from the ledger; nil for one that is lost.
func (w *world) spoil(e kv.Entry) *kv.Entry {
	rec, _ := subjects.ParseRecord(e.Subject)
	switch {
	case rec.Kind == subjects.AnswerKind:
		e = w.spoilAnswer(e, rec)
	case rec.Kind == subjects.RoundKind:
		return w.spoilRound(e)
	case w.bug == takeForApproved && rec.Kind == subjects.AmendKind:
		e = takenForApproved(e)
	case w.bug == takeInnerForApproved && rec.Kind == subjects.AmendKind && rec.Step == innerScope:
		e = takenForApproved(e)
	case w.bug == loseAmendments && rec.Kind == subjects.AmendKind && w.chance(20):
		return nil
	case w.bug == skipRecords && rec.Kind == subjects.StepKind && w.chance(20):
		return nil
	case w.bug == ignoreGeneration && rec.Kind == subjects.StepKind:
		if plan := w.streamOf(e.Subject).bySubj[subjects.PlanRecord(rec.Run, len(w.shards))]; plan != nil {
			a := rec.Attempt
			a.Generation = plan.Seq
			e.Subject = subjects.StepRecord(a, len(w.shards))
		}
	case w.bug == repeatItems && rec.Kind == subjects.StartKind:
		var start wire.Start
		if json.Unmarshal(e.Data, &start) == nil && start.Reuse != nil {
			for _, x := range start.Reuse.Items {
				x.Results = nil
			}
			e.Data, _ = json.Marshal(start)
		}
	case w.bug == followLiveRegistry && rec.Kind == subjects.StartKind:
		var start wire.Start
		if json.Unmarshal(e.Data, &start) == nil && !start.Rejected() {
			for name, frozen := range start.Tools {
				frozen.Contract = w.knobs.tools[name].Contract
			}
			e.Data, _ = json.Marshal(start)
		}
	}
	return &e
}
