package chaos

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// decisions returns the records of a generation, until a time in nanoseconds, as the reference wants them. ok is false
// where a result lies in a blob, which is not read for this.
//
// The reference holds no result against the schema of a state. So a success of which a record says whether it fits is
// decided by that record, and is not over before it.
func (r *runView) decisions(generation uint64, until int64) (list []reference.Decided, ok bool) {
	judged, held := r.judgedByState(generation), map[string]reference.Decided{}
	for _, x := range r.records {
		if x.rec.Generation != generation || x.at.UnixNano() > until {
			continue
		}
		switch {
		case x.rec.Kind == subjects.StopKind:
			list = append(list, reference.Decided{Stop: x.stop})
			continue
		case x.result.Handle != nil:
			return nil, false
		case x.rec.Kind == subjects.ToldKind && x.rec.What == subjects.ToldState:
			if d, ok := held[x.rec.Step]; ok {
				if err := x.told.Told.Err; err != nil {
					d.Reply = reference.Reply{Err: err}
				}
				list = append(list, d)
				delete(held, x.rec.Step)
			}
			continue
		case x.rec.Kind == subjects.ToldKind:
			if x.told != nil {
				list = append(list, *x.told)
			}
			continue
		}
		d := x.decided()
		if d.Reply.Err == nil && judged[d.Step] {
			held[d.Step] = d
			continue
		}
		list = append(list, d)
	}
	return list, true
}

// judgedByState are the calls of which a record says whether what they returned fits the schema of the state.
func (r *runView) judgedByState(generation uint64) map[string]bool {
	judged := map[string]bool{}
	for _, x := range r.records {
		if x.rec.Kind == subjects.ToldKind && x.rec.What == subjects.ToldState && x.rec.Generation == generation {
			judged[x.rec.Step] = true
		}
	}
	return judged
}

// decided is the record of an attempt as the reference wants it.
func (x record) decided() reference.Decided {
	d := reference.Decided{Step: x.rec.Attempt.Step, ByOwner: x.byOwner(),
		Reply: reference.Reply{Body: x.result.Body, Text: x.result.Text}}
	if f := x.result.Error; f != nil {
		d.Reply.Err = &reference.Err{Code: string(f.Code), Message: f.Message, Retryable: f.Retryable}
	}
	return d
}

// toldBy is a record of what an evaluation came to, as the reference wants it, and where a large value lies. It is nil
// for what decides nothing that the reference can't make by itself: of outputs and loops.
func toldBy(rec subjects.Record, body []byte) (*reference.Decided, *outcome.Handle) {
	failure := func(f *fault.Error) *reference.Err {
		if f == nil {
			return nil
		}
		return &reference.Err{Code: string(f.Code), Message: f.Message}
	}
	switch rec.What {
	case subjects.ToldOutput, subjects.ToldUntil:
		return nil, nil
	case subjects.ToldValue:
		told := wire.ParseToldValue(body, rec.Run, rec.Generation, "", plan.MaxValues)
		says := &reference.ToldValue{JSON: told.Value, Err: failure(told.Error)}
		return &reference.Decided{Step: rec.Step, Value: says}, told.Handle
	}
	told := wire.ParseTold(body)
	says := &reference.Told{Holds: told.Holds, Err: failure(told.Error)}
	if rec.What == subjects.ToldApproval {
		return &reference.Decided{Step: rec.Step, Weighed: says}, nil
	}
	return &reference.Decided{Step: rec.Step, Told: says}, nil
}

// tells reports whether the plan has what a told record is about: a step, an iteration, or for an output a scope.
func (r *runView) tells(rec subjects.Record) bool {
	return rec.What == subjects.ToldOutput && rec.Step == subjects.RootScope || r.has(rec.Step)
}

// checkNestedTold holds what records say of values in plans within steps against the reference.
func (c *checker) checkNestedTold(r *runView, all map[string]*reference.Result) {
	for _, x := range r.records {
		if x.rec.Kind != subjects.ToldKind || x.rec.What != subjects.ToldValue || x.told == nil || x.result.Handle != nil {
			continue
		}
		want, ok := nestedStep(all, x.rec.Step)
		told := x.told.Value
		switch {
		case !ok: // the reference did not come to it, which is said of the step
		case told.Err != nil:
			if want.Code != told.Err.Code {
				c.violation("I6", r, "a record says that the value of step %s failed with %s, and in the reference it is %s",
					x.rec.Step, told.Err.Code, want.Status)
			}
		case want.Result == nil || valueDigest(want.Result) != valueDigest(told.JSON):
			c.violation("I6", r, "a record says that the value of step %s is %.200q, and in the reference it is %.200q",
				x.rec.Step, told.JSON, want.Result)
		}
	}
}

// nestedStep returns what the reference has of the step of a token.
func nestedStep(all map[string]*reference.Result, token string) (s reference.Step, ok bool) {
	within := strings.LastIndexByte(token, '/') + 1
	if res := all[token[:within]]; res != nil {
		s, ok = res.Steps[token[within:]]
	}
	return s, ok
}
