package chaos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/subjects"
)

// checkExecutions is I3, I7 and, for what the tools could see, I10.
func (c *checker) checkExecutions(r *runView) {
	var p *reference.Plan
	if r.work != nil && r.work.nested == nil && r.work.living == nil && r.work.state == nil {
		p, _ = reference.Parse(r.work.Plan)
	}
	began := map[string]map[string]int{} // by key: how often each attempt began
	for _, e := range r.executions {
		if e.Kind == journal.Begin {
			c.report.Executions++
			if began[e.Key] == nil {
				began[e.Key] = map[string]int{}
			}
			began[e.Key][fmt.Sprint(e.Attempt)]++
			c.checkDependencies(r, p, e)
			if e.Delivery > 1 {
				c.count(sometimesRedelivered)
			}
		}
		c.checkKnown(r, e)
		if e.Secret != r.key.tenant+"/"+r.key.id {
			c.violation("I10", r, "step %s was given the context of %q", e.Step, e.Secret)
		}
	}
	c.checkRepeated(r, began)
	c.countZombies(r)
}

// countZombies counts executions that ended when a later run of the same id had begun to execute.
func (c *checker) countZombies(r *runView) {
	first := map[uint64]int64{}
	for _, e := range r.executions {
		if at, ok := first[e.Generation]; !ok || e.At < at {
			first[e.Generation] = e.At
		}
	}
	for _, e := range r.executions {
		for gen, at := range first {
			if e.Kind == journal.End && gen > e.Generation && at < e.At {
				c.count(sometimesZombie)
				break
			}
		}
	}
}

// checkRepeated is the rule of at_most_once tools: one execution for each key.
func (c *checker) checkRepeated(r *runView, began map[string]map[string]int) {
	for key, attempts := range began {
		total := 0
		for _, n := range attempts {
			total += n
			if n > 1 {
				c.count(sometimesRepeated)
			}
		}
		if total > 1 && r.work != nil && r.work.Kind == kindOnce {
			c.violation("I7", r, "an at_most_once step was executed %d times: %s", total, key)
		}
	}
}

// checkKnown is I7: whatever had an effect belongs to an attempt that is decided, of a generation that existed.
func (c *checker) checkKnown(r *runView, e journal.Event) {
	if e.Key != fmt.Sprintf("%s/%s/%d/%s", e.Tenant, subjects.Encode(e.Run), e.Generation, e.Step) {
		c.violation("I7", r, "step %s was given the key %s", e.Step, e.Key)
	}
	_, planned := r.plans[e.Generation]
	if !planned && c.ev.Kept {
		c.violation("I7", r, "step %s was executed for generation %d, which is not there", e.Step, e.Generation)
		return
	}
	if !planned || r.doc == nil || e.Kind == journal.Begin {
		return
	}
	x, decided := r.decided[attemptKey{e.Generation, e.Step, e.Attempt}]
	switch {
	case !decided:
		c.violation("I7", r, "attempt %d of step %s had an effect, and no record decides it", e.Attempt, e.Step)
	case e.Kind == journal.End && !strings.HasPrefix(e.Code, "given up") && x.result.Worker != e.Who:
		c.count(sometimesLate)
	}
}

// checkDependencies is I3: when a step begins, all that it depends on is recorded, and what isn't optional is a
// success.
func (c *checker) checkDependencies(r *runView, p *reference.Plan, e journal.Event) {
	if p == nil || r.plans[e.Generation] == "" {
		return
	}
	id, _, _ := subjects.SplitItem(e.Step)
	i := slices.IndexFunc(p.Steps, func(s reference.PlanStep) bool { return s.ID == id })
	if i < 0 {
		c.violation("I8", r, "the plan has no step %s, and it was executed", e.Step)
		return
	}
	if p.Second {
		c.checkBegun(r, id, e)
		return
	}
	for _, d := range p.Steps[i].Deps {
		dep := p.Steps[d]
		succeeded := dep.ForEach || dep.Optional // items that failed may be a success of the whole
		for key, x := range r.decided {
			if key.gen != e.Generation || key.step != dep.ID {
				continue
			}
			succeeded = succeeded || x.result.Error == nil && x.at.UnixNano() <= e.At
		}
		if !succeeded {
			c.violation("I3", r, "step %s began before its dependency %s had succeeded", e.Step, dep.ID)
		}
		c.checkItems(r, dep, e)
	}
}

// checkBegun is I3 in language 2: when a step begins, the records of then let it begin, as the reference reads them.
func (c *checker) checkBegun(r *runView, step string, e journal.Event) {
	contracts := r.work.Contracts
	if r.frozen != nil {
		contracts = r.frozen
	}
	decided, ok := r.decisions(e.Generation, e.At)
	if !ok {
		return // what lies in blobs is not read for this
	}
	begun, err := reference.Begun(r.work.Plan, contracts, decided)
	if err != nil || !begun[step] {
		c.violation("I3", r, "step %s began, which the records of then don't say: %v", e.Step, err)
	}
}

// checkItems is I3 for a dependency with a for_each: none of its items is decided after what needs it has begun.
func (c *checker) checkItems(r *runView, dep reference.PlanStep, e journal.Event) {
	if !dep.ForEach {
		return
	}
	for key, x := range r.decided {
		if id, _, isItem := subjects.SplitItem(key.step); isItem && id == dep.ID && key.gen == e.Generation &&
			x.at.UnixNano() > e.At {
			c.violation("I3", r, "step %s began before the item %s was decided", e.Step, key.step)
		}
	}
}

// checkSightings is I2 over time: a record that was seen never changes. Once its run was purged, a zombie may write the
// record of a generation that is gone; it is removed again (checkOrphans).
func (c *checker) checkSightings() {
	type place struct {
		subject string
		seq     uint64
	}
	bySubject := map[string]uint64{}
	seen := map[place]string{}
	for _, s := range c.ev.Seen {
		if old, ok := seen[place{s.Subject, s.Seq}]; ok && old != s.Digest {
			c.violation("I2", nil, "the record %s changed", s.Subject)
		}
		seen[place{s.Subject, s.Seq}] = s.Digest
		rec, _ := subjects.ParseRecord(s.Subject)
		if old, ok := bySubject[s.Subject]; ok && old != s.Seq && rec.Kind != subjects.PlanKind && c.ev.Kept {
			c.violation("I2", nil, "the record %s was written twice, at %d and %d", s.Subject, old, s.Seq)
		}
		bySubject[s.Subject] = s.Seq
	}
	for _, e := range c.ev.Ledger {
		s := sighting(e)
		if old, ok := seen[place{e.Subject, e.Seq}]; ok && old != s.Digest {
			c.violation("I2", nil, "the record %s is not the one that was seen", e.Subject)
		}
	}
}

// cameBack reports whether a message is of a decided attempt, and a server went and came back: it may keep a consumer's
// acknowledgement and forget that it removed the message. Nobody is given it; the doctor finds it.
func (c *checker) cameBack(subject string) bool {
	a, _, ok := subjects.ParseStep(subject)
	if !ok || !slices.ContainsFunc(c.ev.Faults, func(f Fault) bool {
		return slices.Contains([]string{natsKilled + isBack, leaderKilled + isBack, natsRestarted + isBack, everythingKilled + isBack}, f.Kind)
	}) {
		return false
	}
	_, decided := c.run(a.Tenant, a.Plain()).decided[attemptKey{a.Generation, a.Step, a.Number}]
	if decided && c.ev.AckPending == 0 {
		c.count(sometimesBack)
		return true
	}
	return false
}

// checkQuiet is I9.
func (c *checker) checkQuiet() {
	for _, a := range c.ev.Stuck {
		c.violation("I9", nil, "the agent %s did not get all its outcomes in time", a)
	}
	for _, n := range c.ev.Broken {
		c.violation("I9", nil, "the process %s had to be started again", n)
	}
	left := slices.DeleteFunc(slices.Clone(c.ev.Pending), c.cameBack)
	for i, p := range left {
		if i < 5 {
			c.violation("I9", nil, "a step message is left over: %s (of %d)", p, len(left))
		}
	}
	if c.ev.AckPending > 0 {
		c.violation("I9", nil, "%d leases are left over", c.ev.AckPending)
	}
}
