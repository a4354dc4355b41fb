package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/living"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// readLedger reads what stands and what was purged with its run, in the order of the ledger.
func (c *checker) readLedger() {
	type entry struct {
		kv.Entry
		purged bool
	}
	var all []entry
	for _, e := range c.ev.Ledger {
		all = append(all, entry{e, false})
	}
	for _, e := range c.ev.Purged {
		all = append(all, entry{e, true})
	}
	if len(c.ev.Purged) > 0 {
		slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	for _, e := range all {
		rec, ok := subjects.ParseRecord(e.Subject)
		if !ok || rec.Kind == subjects.UnknownRecord {
			c.violation("I8", nil, "a record that is none: %s", e.Subject)
			continue
		}
		r := c.run(rec.Run.Tenant, rec.Run.Plain())
		c.readRecord(r, rec, e.Entry, e.purged)
	}
}

func (c *checker) readRecord(r *runView, rec subjects.Record, e kv.Entry, purged bool) {
	one := record{rec: rec, at: e.Time, purged: purged}
	if r.work != nil && (r.work.living != nil || r.work.state != nil) {
		r.story = append(r.story, living.Record{Record: rec, Time: e.Time, Header: e.Header, Data: e.Data})
	}
	switch rec.Kind {
	case subjects.PlanKind:
		r.plans[e.Seq] = plan.Digest(e.Data)
		r.standing[e.Seq] = !purged
		if header := e.Header[subjects.HeaderVersion]; len(header) == 0 || header[0] != subjects.SealedVersion {
			return // its headers hold the secret, and must
		}
		c.count(sometimesSealed)
	case subjects.StepKind:
		one.result = wire.ParseResult(e.Header, e.Data)
		key := attemptKey{rec.Generation, rec.Attempt.Step, rec.Attempt.Number}
		if _, twice := r.decided[key]; twice && len(c.ev.Purged) > 0 {
			return // a zombie's, written once its run was purged: it was removed again
		} else if twice {
			c.violation("I2", r, "attempt %d of step %s has two records", key.attempt, key.step)
		}
		r.decided[key] = one
		r.records = append(r.records, one)
		if one.result.Handle != nil {
			c.count(sometimesLarge)
		}
	case subjects.StopKind:
		one.stop = gjson.GetBytes(e.Data, "reason").Str
		r.records = append(r.records, one)
	case subjects.ToldKind:
		one.told, one.result.Handle = toldBy(rec, e.Data)
		r.records = append(r.records, one)
	case subjects.StartKind:
		r.freeze(e.Data)
	default: // claims and strangers hold nothing that is promised; what people say and change checkLiving reads
	}
	c.noSecret("the record "+e.Subject, fmt.Sprint(e.Header)+string(e.Data))
}

// freeze reads the contracts that a run started with.
func (r *runView) freeze(start []byte) {
	var body struct {
		Tools map[string]struct {
			Contract tool.Contract `json:"contract"`
		} `json:"tools"`
	}
	if json.Unmarshal(start, &body) != nil || len(body.Tools) == 0 {
		return
	}
	r.frozen = map[string]reference.Contract{}
	for name, t := range body.Tools {
		r.frozen[name] = reference.Contract{MaxAttempts: t.Contract.MaxAttempts,
			PartialSuccess: t.Contract.ErrorPropagation == tool.PartialSuccess}
	}
}

// stands reports whether the run's records are still there as far as its document's generation goes.
func (r *runView) stands() bool {
	if r.doc == nil {
		return false
	}
	_, ok := r.plans[r.doc.Generation]
	return ok
}

// byOwner reports whether a record was written by an orchestrator.
func (x record) byOwner() bool { return strings.HasPrefix(x.result.Worker, "=") }

// overdue reports whether a record says that a step was not done by its deadline.
func (x record) overdue() bool {
	return x.result.Error != nil && x.result.Error.Code == fault.Timeout && x.byOwner()
}

// disturbed reports whether some record says what no tool said: then the run need not be what the reference makes of
// it.
func (r *runView) disturbed() bool {
	return slices.ContainsFunc(r.records, func(x record) bool {
		if x.result.Error == nil {
			return false
		}
		code := x.result.Error.Code
		return code == fault.WorkerLost || code == fault.OutcomeUnknown || x.overdue()
	})
}
