package client

import (
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
)

// Amendment changes the plan of a run that goes on: steps are taken out of it and added, in this order.
type Amendment struct {
	// Scope is the token of the step whose plan is meant; empty for the plan of the run.
	Scope string
	// Revision is the last one of that plan that the caller knows: 0 for the plan as it was submitted.
	Revision int
	// Add are steps, as they stand in a plan.
	Add []json.RawMessage
	// Discard are the ids of steps that are no part of the plan any more: what waits is gone, what is out is cancelled,
	// what is over keeps its account. One that waits may be discarded and added, which writes it again.
	Discard []string
	// Rest discards all steps that are not over.
	Rest bool
	// Output and OutputSteps take the place of what the plan returns; nil leaves that.
	Output      json.RawMessage
	OutputSteps []string
	// Close says that an open plan is over with its steps.
	Close bool
	// KeepOpen lets an open plan wait for the next amendment anew, as every amendment does, and changes nothing.
	KeepOpen bool
	// Plan is the whole plan as it should be, in the place of Add, Discard, Output and OutputSteps; nil for none.
	Plan json.RawMessage
	// Reason is for who reads what became of the run; at most 4 KiB of it are kept.
	Reason string
	// By names who amends. It is kept as unverified, unless the server says who asks, and then it is the server's word.
	By string
	// Approved says that the caller may approve, so that nobody else is asked where the plan was submitted for an approval.
	// It takes the right of an approver.
	Approved bool
	// Generation says which run of the id is meant, such as Run.Generation: another is left as it is. 0: whichever has it.
	Generation uint64
	// Approves is the digest of the question about a plan that waits for its approval (client.Question of "="): with the
	// amendment it has that, and begins as it is then. With Approved alone; empty for any other amendment.
	Approves string
}

// Amended is an amendment that is in force, or waits for an approval.
type Amended struct {
	// Revision is that of the plan with it, Steps how many steps it has then, with those that were discarded.
	Revision, Steps int
	// Already says that it stood before this request.
	Already bool
	// Waits says that it does nothing yet: its run's plan was submitted for an approval, and a person is asked about the
	// amendment too (Questions), under the token of its scope. The same request again says what became of it.
	Waits bool
	// Warnings are what is odd about the added steps but harmless, such as fields that nobody knows. Their paths lead into
	// the request: "/add/0/thought". They are told once, not where it stood before.
	Warnings []fault.Problem
}
