package orchestrator

import (
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// checkI14: an iteration begins only after the one before. All that was sent of that is decided for good; and of one that is
// a call itself there is a success.
func (t *truths) checkI14(x *truth, a subjects.Attempt) {
	if x.early {
		return
	}
	for at := strings.Index(a.Step, "/="); at > 0; {
		number, _, _ := strings.Cut(a.Step[at+len("/="):], "/")
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			t.w.stats["an iteration after another"]++
			before := subjects.Iteration(a.Step[:at], n-1)
			if x.out[before] != nil && !x.succeeded[before] {
				t.w.violate("I14", "%s was dispatched before %s succeeded", a.MessageID(), before)
			}
			for call := range x.out {
				if strings.HasPrefix(call, before+"/") && !x.final[call] && !x.leftAt(call) {
					t.w.violate("I14", "%s was dispatched before %s was over", a.MessageID(), call)
				}
			}
		}
		next := strings.Index(a.Step[at+1:], "/=")
		if next < 0 {
			return
		}
		at += 1 + next
	}
}

// untilRecorded checks that whether a loop is over is told once of an iteration, of one that there may be.
func (t *truths) untilRecorded(x *truth, rec subjects.Record) {
	key := rec.Step + " " + rec.What
	known := false
	if x.plan != nil && subjects.IsIteration(rec.Step) {
		_, _, known = x.plan.Find(rec.Step)
	}
	switch {
	case !known || x.start == nil || x.start.Rejected():
		t.w.violate("I8", "a record of an iteration that the plan doesn't have, or before it was started: %s", key)
	case x.told[key]:
		t.w.violate("I2", "a second record of whether %s is the last", rec.Step)
	}
	x.told[key] = true
	t.w.stats["told by a record: "+rec.What]++
}

// leftAt reports whether all that was sent of a call has failed, and it may be left at that, since another has failed of
// which the tool says that nothing goes on.
func (x *truth) leftAt(call string) bool {
	if len(x.records[call]) < len(x.out[call]) {
		return false
	}
	for _, used := range x.start.Tools {
		if used.Contract.ErrorPropagation == tool.FailFast {
			return true
		}
	}
	return false
}
