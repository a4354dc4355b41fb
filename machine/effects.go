package machine

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Record is what the machine reads of the ledger: a stop, the record that decided one attempt, that of an evaluation, or
// that of an answer, an amendment, a round or a word to an agent, or the claim of a planner. Exactly one of these is set.
type Record struct {
	Seq       uint64    // in the ledger; gives the records of a run one order
	Time      time.Time // of the ledger
	Stop      *Stop
	Result    *Result
	Told      *Told
	Answer    *Answer
	Amendment *Amendment
	Round     *Round
	Say       *Say
	Claim     *Claim
}

// Stop says that the run ends early.
type Stop struct {
	Reason outcome.RunStatus // Cancelled or Expired
	By     string            // who asked, or "deadline"
}

// Call is what is handed to a tool and decided: a step, or one item of a for_each step.
type Call struct {
	// Step is the number of the step in its run. Those of the plan have their place in it; those of a scope below have
	// theirs from some number on, which is another in each process, and stays the same within it.
	Step int
	// Item is that of a for_each step, counted from 1; 0 for the step itself.
	Item int
}

// Result decides one attempt of one call.
type Result struct {
	Call
	// Token names the call where its scope may not be entered yet; its Step is NotYet then. Nearly all results have none,
	// and there is one for each step of each run.
	Token   *string
	Attempt int // from 1
	// Error is nil for a success.
	Error *fault.Error
	// Body is the tool's output as it came, Text whether it is text/plain. Apply turns it into Value.
	Body []byte
	Text bool
	// ByOwner is whether the orchestrator decided, so that it counts as no execution.
	ByOwner bool
	// Deliveries is how often it was handed out, where that was more than once. Here it takes no room of its own.
	Deliveries int32
	// Handle says where the output lies, where it is not kept inline. Unless that was checked by who stored it, Body is
	// its content all the same; Value is dropped.
	Handle *outcome.Handle
	// Asks is what its worker asks a person in the place of a result: the attempt is neither a success nor a failure then.
	// nil for all else.
	Asks *Asks
	// Parts are what it is made of where it stands for an earlier round of an agent; nil for all else. It has no Value then.
	Parts []Part
	// Value is the JSON value that the output stands for, Size its length in bytes. Where it is Away, the machine has let go
	// of it (LetGo): it stands in the record of the attempt, or is Derived from what else the records say, and can be again.
	Value   []byte
	Size    int64
	Away    bool
	Derived bool
	// Seq is the sequence of the record with which the call was over; 0 as long as it is not, and for values.
	Seq uint64
	// Worker and its clock's times.
	Worker         string
	Started, Ended time.Time
}

// Round is the record of what the answer of an agent's planner came to. It decides the round: what runs in it, and
// whether the loop is over with it. What it says is for others to find out; here it is followed.
type Round struct {
	// Scope is the token of the round.
	Scope string
	// Digest is that of the record, and Approval says that a person is asked before anything of Plan begins; nil: nobody is.
	Digest   string
	Approval *plan.Approval
	// Plan is what runs; nil for nothing. It belongs to the record.
	Plan *plan.Plan
	// Contracts are those of the tools of its steps, by name.
	Contracts map[string]*tool.Contract
	// Settled are steps of it that have come to something already, by id.
	Settled map[string]*Result
	// Rest are steps of it that do not run.
	Rest []string
	// Earlier says of its steps that stand for earlier rounds which results they have.
	Earlier []Earlier
	// Begun are steps of it that have begun before the answer was whole: each comes to what it has come to there.
	Begun []string
	// Direct are the steps with whose success the loop is over; the result of the first of them is the agent's.
	Direct []string
	// Formerly says that a direct step that is a list comes to null, as in runs of before.
	Formerly bool
	// Ends says that the loop is over with the round where nothing of it runs, or nothing but what had begun, if that has not failed. Output is what the agent comes to then, Error
	// why it fails; where both are nil, it comes to null.
	Ends   bool
	Output *Result
	Error  *fault.Error
	// Void says that somebody interrupted the round before it was decided: it has no record.
	Void bool
	// Refused says why nobody approved of the round, of which nothing runs; nil for any other.
	Refused *fault.Error
	// Invalid says that the answer could not be used, and Problems why.
	Invalid  bool
	Problems []fault.Problem
}

// Earlier is a step that stands for an earlier round: its result is an object of the results of some of that round's steps.
type Earlier struct {
	Step  string
	Round int
	IDs   []string
}

// Part is one of several results that a step has together: that of a step of an earlier round.
type Part struct {
	ID   string
	Step int // in the run
}

// Effects is the I/O that the machine asks for. All of it is idempotent: doing it twice is harmless, forgetting it is
// repaired by the sweep. The groups may be carried out in any order but one: Finished means that every record is in, so
// the history document may be created; it comes alone.
type Effects struct {
	// Dispatch hands attempts to workers, now or at a time.
	Dispatch []Dispatch
	// Expand lists for_each steps whose list is there: its length is to be told by Run.Expand, or the step's own first
	// attempt is decided with the reason that it has none.
	Expand []int
	// Enter lists composites whose input has to read blobs, or is large: that it can be read is to be told by Run.Enter, or
	// the composite's own first attempt is decided with the reason why not.
	Enter []Call
	// Judge lists steps whose condition has to read blobs: what it comes to is to be recorded.
	Judge []int
	// Derive lists steps whose value is to be built beside the machine: what it comes to is to be recorded.
	Derive []Derive
	// Fit lists steps whose result lies in a blob, or takes long to be held against the schema of the state: whether it fits
	// is to be recorded.
	Fit []int
	// Weigh lists calls of which is to be recorded whether their contract asks for an approval.
	Weigh []Call
	// Ask lists calls whose question a person is to be told of, and ThePlan: whoever looks for questions is to find it.
	Ask []Call
	// Expire lists questions whose time is over: that is to be recorded, under the key of an answer.
	Expire []Question
	// Shape lists the composites whose output has to read blobs, or goes into one: what it comes to is to be recorded.
	// Their Step is ThePlan for the plan itself.
	Shape []Call
	// Until lists iterations of loops that are over, and whether the loop goes on has to be read from blobs: that is to be
	// recorded.
	Until []Call
	// Round lists agents whose planner has answered: what the answer comes to is to be recorded.
	Round []Call
	// Close lists open scopes that were not amended for as long as they may: that they are closed is to be recorded.
	Close []Closing
	// Late lists attempts that should have begun by now. One that no worker has taken yet is to be decided with
	// LateError; one that was taken is left alone.
	Late []Dispatch
	// Decide creates records for attempts that no worker may decide any more.
	Decide []Decide
	// Stop, if not nil, creates the run's stop record.
	Stop *Stop
	// Settled lists the steps and items that became terminal, for events.
	Settled []Call
	// Finished is set once, when the last step is terminal.
	Finished bool
}

// Dispatch asks for one attempt of one call to be handed to a worker.
type Dispatch struct {
	Call
	Attempt int
	At      time.Time // zero: now
}

// Derive asks for what the value of a step comes to.
type Derive struct {
	Step int
	Room int64 // the most bytes that it may have
}

// Decide asks for the record of an attempt to be created with an error, and for what is out of it to be withdrawn: its
// message purged, its execution cancelled.
type Decide struct {
	Call
	Attempt int
	Error   *fault.Error
}

// move takes what has an effect on calls that are out, or are asked about, from other effects.
func (e *Effects) move(from *Effects) {
	e.Dispatch, from.Dispatch = append(e.Dispatch, from.Dispatch...), from.Dispatch[:0]
	e.Weigh, from.Weigh = append(e.Weigh, from.Weigh...), from.Weigh[:0]
	e.Ask, from.Ask = append(e.Ask, from.Ask...), from.Ask[:0]
	e.Expire, from.Expire = append(e.Expire, from.Expire...), from.Expire[:0]
	e.Late, from.Late = append(e.Late, from.Late...), from.Late[:0]
	e.Decide, from.Decide = append(e.Decide, from.Decide...), from.Decide[:0]
}

// Reset empties the effects and keeps their memory.
func (e *Effects) Reset() {
	*e = Effects{Dispatch: e.Dispatch[:0], Expand: e.Expand[:0], Enter: e.Enter[:0], Judge: e.Judge[:0], Derive: e.Derive[:0], Fit: e.Fit[:0],
		Weigh: e.Weigh[:0], Ask: e.Ask[:0], Expire: e.Expire[:0], Shape: e.Shape[:0], Until: e.Until[:0], Round: e.Round[:0], Close: e.Close[:0], Late: e.Late[:0], Decide: e.Decide[:0],
		Settled: e.Settled[:0]}
}
