package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/internal/lab/living"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Violation is a promise that was broken.
type Violation struct {
	Invariant string `json:"invariant"` // I1 to I15
	Run       string `json:"run,omitempty"`
	Text      string `json:"text"`
}

func (v Violation) String() string { return v.Invariant + " " + v.Run + ": " + v.Text }

// Report is what Check found.
type Report struct {
	Violations []Violation
	Runs       int            // accepted
	Executions int            // of tools
	Counts     map[string]int // how often something happened that need not
	Lost       Loss           // where nothing is purged
}

// What Report.Counts counts.
const (
	sometimesRedelivered = "redelivered"      // an attempt was handed out again
	sometimesRetried     = "retried"          // an attempt followed a failed one
	sometimesRepeated    = "executed twice"   // the same attempt ran more than once
	sometimesLate        = "late result"      // a worker came to a result that does not count
	sometimesUnknown     = "outcome_unknown"  // an at_most_once step was lost with its worker
	sometimesLost        = "worker_lost"      // a step was given up after too many deliveries
	sometimesConflict    = "conflict"         // another plan under the same id was refused
	sometimesAsked       = "asked again"      // an outcome was told more than once
	sometimesCancelled   = "cancelled"        // a run
	sometimesExpired     = "expired"          // a run, by its deadline
	sometimesOverdue     = "overdue"          // a step, by its own
	sometimesInTime      = "in time"          // a run with a deadline came to its end before
	sometimesSkipped     = "skipped"          // a step
	sometimesItems       = "items"            // of a for_each
	sometimesNotTaken    = "not taken"        // a step
	sometimesNested      = "nested"           // a run with plans within steps, compared with the sequential reference
	sometimesTold        = "told"             // what a condition or a value came to that had to be read
	sometimesStrict      = "strict"           // a run compared with the sequential reference
	sometimesReplayed    = "replayed"         // a run derived again from its records
	sometimesBack        = "message back"     // an acknowledged step came back with a killed server
	sometimesZombie      = "zombie"           // an execution ended when a later run of the same id had begun
	sometimesLarge       = "large"            // a result kept apart
	sometimesFrozen      = "frozen"           // a run with another contract than its tools' workers declare
	sometimesBarrier     = "unknown to agent" // a submit that ended without an answer
)

type runKey struct{ tenant, id string }

// runView is all that is known of one run.
type runView struct {
	key        runKey
	work       *Work
	submits    map[string]bool // digests of the plans sent
	accepted   bool
	outcomes   []journal.Event
	executions []journal.Event // begin, effect and end
	doc        *outcome.Run
	plans      map[uint64]string // digests of the plan records, by generation
	standing   map[uint64]bool   // of them, those that are there at the end
	records    []record          // of steps, told records and stops, of the last generation, in the ledger's order
	decided    map[attemptKey]record
	frozen     map[string]reference.Contract // what its start record says of its tools
	// What clients of a living run say, what was sent, and all its records in the ledger's order.
	story        []living.Record // of runs whose records living reads
	livers, sent []journal.Event
}

type attemptKey struct {
	gen     uint64
	step    string
	attempt int
}

type record struct {
	rec    subjects.Record
	at     time.Time
	result wire.Result
	stop   string             // of a stop record: the status that it gives the run
	told   *reference.Decided // of what a condition or a value came to
	purged bool               // with its run
}

type checker struct {
	ev     *Evidence
	report *Report
	runs   map[runKey]*runView

	rejected rejections
}

// Check verifies I1 to I15.
func Check(ev *Evidence) *Report {
	c := &checker{ev: ev, report: &Report{Counts: map[string]int{}}, runs: map[runKey]*runView{}, rejected: ev.rejected()}
	c.readEvents()
	c.readLedger()
	for _, doc := range ev.History {
		r := c.run(doc.Tenant, doc.Run)
		if r.doc != nil {
			c.violation("I1", r, "two documents in the history")
		}
		r.doc = doc
	}
	for _, r := range c.sorted() {
		c.checkOutcome(r)
		c.checkOrphans(r)
		c.checkRecords(r)
		c.checkTold(r)
		c.checkExecutions(r)
		c.checkDocument(r)
		c.checkLiving(r)
	}
	c.checkSightings()
	c.checkLoss()
	c.checkLimits()
	c.checkQuiet()
	c.checkSecrets()
	return c.report
}

func (c *checker) violation(invariant string, r *runView, format string, args ...any) {
	v := Violation{Invariant: invariant, Text: fmt.Sprintf(format, args...)}
	if r != nil {
		v.Run = r.key.tenant + "/" + r.key.id
	}
	c.report.Violations = append(c.report.Violations, v)
}

func (c *checker) count(what string) { c.report.Counts[what]++ }

func (c *checker) run(tenant, id string) *runView {
	key := runKey{tenant, id}
	r := c.runs[key]
	if r == nil {
		r = &runView{key: key, work: WorkOf(id), submits: map[string]bool{}, plans: map[uint64]string{},
			standing: map[uint64]bool{}, decided: map[attemptKey]record{}}
		c.runs[key] = r
	}
	return r
}

func (c *checker) sorted() []*runView {
	return slices.SortedFunc(maps.Values(c.runs), func(a, b *runView) int {
		return strings.Compare(a.key.tenant+"/"+a.key.id, b.key.tenant+"/"+b.key.id)
	})
}

func (c *checker) readEvents() {
	for _, e := range c.ev.Events {
		if e.Kind == journal.Bare {
			continue
		}
		r := c.run(e.Tenant, e.Run)
		switch e.Kind {
		case journal.Submit:
			r.submits[e.Digest] = true
		case journal.Accept:
			c.accept(r, e)
		case journal.Refuse:
			c.refuse(r, e)
		case journal.Outcome:
			r.outcomes = append(r.outcomes, e)
		case journal.Begin, journal.Effect, journal.End:
			r.executions = append(r.executions, e)
		case journal.Join, journal.Ask, journal.Amended, journal.Question, journal.Answered, journal.Forged:
			r.livers = append(r.livers, e)
		}
	}
	for _, e := range c.ev.Sent {
		r := c.run(e.Tenant, e.Run)
		r.sent = append(r.sent, e)
	}
}

func (c *checker) accept(r *runView, e journal.Event) {
	if r.work == nil || e.Digest != plan.Digest(r.work.Plan) {
		c.violation("I1", r, "another plan was accepted under the same id")
		return
	}
	if !r.accepted {
		c.report.Runs++
	}
	r.accepted = true
}

func (c *checker) refuse(r *runView, e journal.Event) {
	switch {
	case e.Code == string(fault.Conflict) && r.work != nil && e.Digest != plan.Digest(r.work.Plan):
		c.count(sometimesConflict)
	case e.Code == string(fault.Conflict):
		c.violation("I1", r, "its own plan was refused as a conflict")
	default:
		c.count(sometimesBarrier)
	}
}

// judge lets what checks living runs say what it finds of one.
type judge struct {
	*checker
	r *runView
}

// Violation notes one.
func (j judge) Violation(invariant, format string, args ...any) {
	j.violation(invariant, j.r, format, args...)
}

// Count counts what was looked at.
func (j judge) Count(what string) { j.count(what) }

// checkLiving is I11 to I15 of runs that are changed while they go on, and what is promised of states with a schema.
func (c *checker) checkLiving(r *runView) {
	if r.doc == nil || r.work == nil || r.doc.Outcome == nil || r.work.living == nil && r.work.state == nil {
		return
	}
	known := &living.Run{Plan: r.work.living, Doc: r.doc, Story: r.story, Clients: r.livers, Calls: slices.Clone(r.sent), Disturbed: r.disturbed()}
	for _, e := range r.executions {
		if e.Kind == journal.Begin {
			known.Calls = append(known.Calls, e)
		}
	}
	if r.work.state != nil {
		r.work.state.Check(known, judge{c, r})
		return
	}
	known.Check(judge{c, r})
}
