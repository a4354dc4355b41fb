package dryrun

import (
	"fmt"
	"time"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Foreseen is a question that a plan asks when it gets there, as its text and the contracts of its tools say, without
// any result.
type Foreseen struct {
	Step string               `json:"step"` // "=" for the plan as a whole
	Kind outcome.QuestionKind `json:"kind"`
	// Tool is the one whose contract asks, If its condition; empty where the plan does, or the contract asks always.
	Tool string `json:"tool,omitempty"`
	If   string `json:"if,omitempty"`
	// Each is "item" or "iteration" where each one of the step's is asked for by itself.
	Each      string `json:"each,omitempty"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
	OnTimeout string `json:"on_timeout,omitempty"` // approve, reject or fail; empty without a timeout
}

// Rules are what contracts ask people for, by tool.
type Rules map[string]tool.Approval

// Questions returns what a plan asks people, in the order of its steps.
func (r Rules) Questions(p *plan.Plan) (all []Foreseen) {
	if a := p.Approval; a != nil {
		all = append(all, Foreseen{Step: subjects.RootScope, Kind: outcome.Approval}.within(a.Timeout, a.ApproveOnTimeout))
	}
	return append(all, r.within(p, "")...)
}

// within returns what the steps of a plan ask. at stands before their ids.
func (r Rules) within(p *plan.Plan, at string) (all []Foreseen) {
	for i := range p.Steps {
		all = append(all, r.ofStep(&p.Steps[i], at+p.Steps[i].ID)...)
	}
	return all
}

// ofStep returns what a step asks, and those of its plan. Of a loop each iteration asks for itself, but for the
// approval that is given once for all of them.
func (r Rules) ofStep(s *plan.Step, id string) (all []Foreseen) {
	if s.Repeat != nil {
		if a := s.Approval; a != nil && a.All {
			all = append(all, Foreseen{Step: id, Kind: outcome.Approval}.within(a.Timeout, a.ApproveOnTimeout))
		}
		each := r.ofStep(s.Does(), id)
		for i := range each {
			if each[i].Step == id {
				each[i].Each = "iteration"
			}
		}
		return append(all, each...)
	}
	if q := r.ofCall(s); q.Kind != "" {
		q.Step = id
		all = append(all, q)
	}
	if s.Plan != nil {
		all = append(all, r.within(s.Plan, id+"/")...)
	}
	return all
}

// ofCall returns what a step asks before it begins; its kind is empty where it asks nothing.
func (r Rules) ofCall(s *plan.Step) (q Foreseen) {
	rule := r[s.Tool]
	if s.ForEach != nil && (s.Approval == nil || !s.Approval.All) {
		q.Each = "item"
	}
	switch {
	case s.Ask:
		q.Kind = outcome.Ask
		if q = q.within(s.Timeout, false); q.OnTimeout != "" {
			q.OnTimeout = "fail"
		}
	case s.Approval != nil:
		q.Kind = outcome.Approval
		q = q.within(s.Approval.Timeout, s.Approval.ApproveOnTimeout && rule == "")
	case rule != "":
		q.Kind, q.Tool = outcome.Approval, s.Tool
		if rule != tool.AlwaysApprove {
			q.If = string(rule)
		}
	}
	return q
}

// within says what becomes of a question that nobody answers in time.
func (q Foreseen) within(timeout time.Duration, approves bool) Foreseen {
	if timeout > 0 {
		q.TimeoutMS, q.OnTimeout = timeout.Milliseconds(), "reject"
		if approves {
			q.OnTimeout = "approve"
		}
	}
	return q
}

// String says it in one line.
func (q Foreseen) String() string {
	what := "waits for a person's approval"
	if q.Kind == outcome.Ask {
		what = "asks a person for a value"
	}
	if q.Step == subjects.RootScope {
		what = "nothing begins before a person approves of the plan"
	}
	if q.Each != "" {
		what += fmt.Sprintf(", each %s by itself", q.Each)
	}
	switch {
	case q.If != "":
		what += fmt.Sprintf(", where %s: the contract of %s says so", q.If, q.Tool)
	case q.Tool != "":
		what += fmt.Sprintf(": the contract of %s says so", q.Tool)
	}
	if q.OnTimeout != "" {
		then := map[string]string{"approve": "is taken as approved", "reject": "is rejected", "fail": "fails"}[q.OnTimeout]
		what += fmt.Sprintf("; %s after %s without an answer", then, time.Duration(q.TimeoutMS)*time.Millisecond)
	}
	return what
}
