package reference

// A plan that was submitted for an approval is amended only by what somebody approved of. What becomes of an amendment
// follows from the order of its record, the answers and the end of its plan: nobody asks for another while one waits.

// What became of an amendment of an approved plan.
const (
	AmendmentWaits    = "waits"
	AmendmentInForce  = "in force"
	AmendmentRejected = "rejected"
	AmendmentConflict = "conflict"         // it came while something else was asked about
	AmendmentTooLate  = "already_finished" // its plan was over before anybody answered
)

// Proposals are the amendments of an approved plan, as far as they depend on people. What they change is not known here.
type Proposals struct {
	// Approves is whether no answer in time is an approval.
	Approves bool
	// States are what became of them, the first revision first.
	States []string

	begun  bool // the plan itself was approved of
	over   bool
	number int // of the question that is open; 0 for none
	used   int // the highest number that no question can have any more
	of     int // the revision that it is about; 0 for the plan
}

// NewProposals returns those of a plan about which somebody is asked.
func NewProposals(approves bool) *Proposals { return &Proposals{Approves: approves, number: 1} }

// NewProposalsWithin returns those of a plan within one that was approved of: of itself nobody is asked.
func NewProposalsWithin(approves bool) *Proposals { return &Proposals{Approves: approves, begun: true} }

// Amend takes the record of the next amendment. approved is whether nobody is to be asked about it.
func (p *Proposals) Amend(approved bool) {
	state := AmendmentWaits
	switch {
	case p.over:
		state = AmendmentTooLate
	case p.number > 0:
		state = AmendmentConflict
	case approved:
		state = AmendmentInForce
	}
	p.States = append(p.States, state)
	if state != AmendmentWaits {
		return
	}
	p.of = len(p.States)
	p.number = max(p.used, p.of) + 1
}

// Answer takes the record of an answer under the token of the plan.
func (p *Proposals) Answer(a *Answer) {
	fits := a.Value == nil && a.Arguments == nil && a.Err == nil && a.Decision != ""
	if p.number == 0 || a.Number != p.number || a.Other || !fits {
		p.used = max(p.used, a.Number)
		if p.number > 0 && a.Number >= p.number {
			p.number = a.Number + 1
		}
		return
	}
	p.used, p.number = max(p.used, p.number), 0
	yes := a.Decision == approve || a.Decision == expire && p.Approves
	switch {
	case !p.begun:
		p.begun, p.over = yes, !yes
	case yes:
		p.States[p.of-1] = AmendmentInForce
	default:
		p.States[p.of-1] = AmendmentRejected
	}
}

// End says that the plan is over.
func (p *Proposals) End() {
	if p.over = true; p.number > 0 && p.begun {
		p.States[p.of-1] = AmendmentTooLate
	}
	p.number = 0
}

// Begun reports whether the plan was approved of, Refused whether it was not.
func (p *Proposals) Begun() bool { return p.begun }

// Refused is described at Begun.
func (p *Proposals) Refused() bool { return p.over && !p.begun }

// Asked returns the number of the question that is open, 0 for none.
func (p *Proposals) Asked() int { return p.number }
