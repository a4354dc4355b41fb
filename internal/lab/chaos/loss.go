package chaos

import (
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// sometimesPowerLoss counts what was acknowledged and is gone.
const sometimesPowerLoss = "acknowledged and lost"

// Loss is what was acknowledged and is not there any more, though nobody removed it.
type Loss struct {
	Plans    []runKey // accepted, and the ledger's plan is none or a later one
	Records  []string // subjects of records that were seen
	Outcomes []runKey // an agent was told another one than the history holds
	Accepted int
	Seen     int
	Told     int
}

// rejections are the generations of plans that were rejected.
type rejections map[runKey]map[uint64]bool

// rejected returns those that the history tells of, and those that somebody was told of before a later plan's end took
// their place in it. Their plans and starts leave the ledger at once; nothing else of them was ever there.
func (e *Evidence) rejected() rejections {
	all, last := rejections{}, map[runKey]uint64{}
	add := func(k runKey, generation uint64) {
		if all[k] == nil {
			all[k] = map[uint64]bool{}
		}
		all[k][generation] = true
	}
	for _, d := range e.History {
		k := runKey{d.Tenant, d.Run}
		last[k] = d.Generation
		if d.Status == outcome.Rejected {
			add(k, d.Generation)
		}
	}
	for _, x := range e.Events {
		if k := (runKey{x.Tenant, x.Run}); rejects(&x) && x.Generation < last[k] {
			add(k, x.Generation)
		}
	}
	return all
}

// rejects reports whether an agent was told that its plan was rejected.
func rejects(x *journal.Event) bool {
	return x.Kind == journal.Outcome && x.Status == string(outcome.Rejected)
}

// ofRejected reports whether a record is the plan or the start of a plan that was rejected.
func (all rejections) ofRejected(s Sighting) bool {
	switch rec, _ := subjects.ParseRecord(s.Subject); rec.Kind {
	case subjects.PlanKind:
		return all[recordRun(s.Subject)][s.Seq]
	case subjects.StartKind:
		return all[recordRun(s.Subject)][rec.Generation]
	default: // what only belongs to a plan or a start
	}
	return false
}

// loss compares what was acknowledged with what is there. It means something only while nothing is purged.
func (e *Evidence) loss() (l Loss) {
	rejected := e.rejected()
	planned := map[runKey]int64{} // when the plan that stands was stored
	stands := map[Sighting]bool{}
	for _, r := range e.Ledger {
		stands[sighting(r)] = true
		if rec, _ := subjects.ParseRecord(r.Subject); rec.Kind == subjects.PlanKind {
			planned[recordRun(r.Subject)] = r.Time.UnixNano()
		}
	}
	for _, s := range e.Seen {
		if l.Seen++; !stands[s] && !rejected.ofRejected(s) {
			l.Records = append(l.Records, s.Subject)
		}
	}
	told, last := map[runKey]string{}, map[runKey]uint64{} // the outcome in the history, and its generation
	for _, d := range e.History {
		if k := (runKey{d.Tenant, d.Run}); d.Outcome != nil {
			told[k], last[k] = digest(d.Outcome.JSON()), d.Generation
		}
	}
	for _, x := range e.Events {
		k := runKey{x.Tenant, x.Run}
		switch at, ok := planned[k]; {
		case x.Kind == journal.Accept:
			if l.Accepted++; (!ok || at > x.At) && !rejected[k][x.Generation] {
				l.Plans = append(l.Plans, k)
			}
		case x.Kind == journal.Outcome && x.Code == "":
			if l.Told++; told[k] != x.Digest && !(rejects(&x) && x.Generation < last[k]) {
				l.Outcomes = append(l.Outcomes, k)
			}
		}
	}
	return l
}

func (l Loss) total() int { return len(l.Plans) + len(l.Records) + len(l.Outcomes) }

// runs returns the runs that lost something.
func (l Loss) runs() map[runKey]bool {
	all := map[runKey]bool{}
	for _, k := range slices.Concat(l.Plans, l.Outcomes) {
		all[k] = true
	}
	for _, subject := range l.Records {
		all[recordRun(subject)] = true
	}
	return all
}

// checkLoss is the part of I1 and I2 that is about durability.
func (c *checker) checkLoss() {
	if !c.ev.Kept {
		return
	}
	l := c.ev.loss()
	c.report.Lost = l
	if c.ev.Lost != nil { // what a scenario allows for was counted before it was left out
		c.report.Lost = *c.ev.Lost
	}
	c.report.Counts[sometimesPowerLoss] = c.report.Lost.total()
	for _, k := range l.Plans {
		c.violation("I1", c.run(k.tenant, k.id), "its plan was accepted, and is gone")
	}
	for _, subject := range l.Records {
		c.violation("I2", nil, "the record %s was seen, and is gone", subject)
	}
}

// losses says what was lost.
func losses(_ *Evidence, r *Report) string {
	l := r.Lost
	return fmt.Sprintf("lost: %d of %d accepted plans, %d of %d records seen, %d of %d outcomes told", len(l.Plans),
		l.Accepted,
		len(l.Records), l.Seen, len(l.Outcomes), l.Told)
}

// forgive leaves out the runs that lost something in a power cut, and those that were under way in one: what is left
// has to be whole, and every agent has to get its outcomes in the end.
func forgive(e *Evidence) {
	l := e.loss()
	e.Lost = &l
	touched := l.runs()
	active(e, touched)
	e.forget(touched)
}
