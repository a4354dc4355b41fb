package outcome

import (
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
)

// DryRun is what a plan would come to, as far as that can be told without running it: what is wrong with it, or what it
// would ask of which tools, and a run of it in which every tool returns a made-up value. No tool was called, and
// nothing was stored.
//
// Calls, Tools, Notices, Status, Results, Errors and what Steps tells of calls rest on the made-up values, as far as a
// plan's course rests on what its tools return. Where a value is not one that a tool's author gave as an example, what
// would be wrong with it fails no step: it is a doubt, and the run goes on.
type DryRun struct {
	// Problems are why the plan would be rejected. With any, nothing but Warnings is there beside them.
	Problems []fault.Problem `json:"problems"`
	Warnings []fault.Problem `json:"warnings"`
	// Waves holds the ids of the steps of each depth.
	Waves [][]string `json:"waves,omitempty"`
	// Calls is how often a worker would be asked: once for a step, for a for_each step once for each item of its list.
	// Retries are not among them.
	Calls int `json:"calls"`
	// Guessed says that Calls rests on made-up results: on the length of lists, or on conditions.
	Guessed bool `json:"guessed,omitempty"`
	// TimeoutMS bounds the run from its submission, in milliseconds; 0 where the plan sets no timeout.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Tools are those that the plan calls, by name.
	Tools []DryTool `json:"tools,omitempty"`
	// Notices say which limits the run would meet, and what else is worth knowing before it begins.
	Notices []Notice `json:"notices,omitempty"`
	// Steps are in the plan's order.
	Steps []DryStep `json:"steps,omitempty"`
	// Status is what the made-up run comes to; empty where Cut says why it was not followed to its end.
	Status RunStatus `json:"status,omitempty"`
	Cut    string    `json:"cut,omitempty"`
	// Results are made up: those of the output steps, as an outcome has them.
	Results Results `json:"results,omitempty"`
	// Output is likewise what a plan comes to that has an output, in their place.
	Output json.RawMessage `json:"output,omitempty"`
	// Errors name the steps that did not succeed in the made-up run. They rest on the plan and on examples alone, but
	// for those of conditions and of values, of which Doubts say which rest on more.
	Errors []StepError `json:"errors,omitempty"`
	// NotTaken are the steps whose condition was false in the made-up run, and those that only had a use with them.
	NotTaken []string `json:"not_taken,omitempty"`
	// Doubts are what made-up values would have gone wrong with: references that found nothing, and arguments that
	// don't fit. Of a for_each step they are those of its first item. DoubtsLeftOut counts those beyond the first 100.
	Doubts        []fault.Problem `json:"doubts,omitempty"`
	DoubtsLeftOut int             `json:"doubts_left_out,omitempty"`
}

// Valid reports whether the plan would be accepted.
func (d *DryRun) Valid() bool { return len(d.Problems) == 0 }

// DryTool is one tool of a dry run: its contract as it counts for the tenant, and what the plan would ask of it.
type DryTool struct {
	Tool string `json:"tool"`
	// Calls is how many calls there would be, AtOnce how many of them are ready at the same time at most, were every
	// call as long as every other.
	Calls  int `json:"calls"`
	AtOnce int `json:"at_once"`
	// Limit is the most that run at a time, over all runs and workers.
	Limit int `json:"limit"`
	// MaxAttempts is of each call, where its step says nothing else.
	MaxAttempts int `json:"max_attempts"`
	// TimeoutMS bounds one execution and WaitTimeoutMS the wait for a worker, in milliseconds; 0 for none.
	TimeoutMS     int64 `json:"timeout_ms"`
	WaitTimeoutMS int64 `json:"wait_timeout_ms,omitempty"`
	// Destructive is the tool's own hint.
	Destructive bool `json:"destructive,omitempty"`
	// Returns is the made-up result of each call.
	Returns json.RawMessage `json:"returns"`
	// From says what Returns was made of.
	From Origin `json:"from"`
}

// Origin says what a made-up result was made of.
type Origin string

// The origins.
const (
	FromExample Origin = "example" // one of the "examples" of the tool's output schema, or its "const"
	FromSchema  Origin = "schema"  // the least value that the tool's output schema accepts
	FromNothing Origin = "nothing" // null, for a tool that declares no output schema, or one that no value was found for
)

// DryStep is one step of a dry run.
type DryStep struct {
	ID   string `json:"id"`
	Tool string `json:"tool"` // empty for a value, and for a step with a plan of its own
	Wave int    `json:"wave"` // from 1
	// DependsOn are the steps that it waits for, by references or by depends_on.
	DependsOn []string `json:"depends_on,omitempty"`
	Optional  bool     `json:"optional,omitempty"`
	// Repeat says how a loop goes on: "until $last.ready, at most 20 times"; its calls are as many with made-up results.
	Repeat string `json:"repeat,omitempty"`
	// TimeoutMS bounds the step from ready until decided, in milliseconds; 0 for none.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Calls is how many there would be; Guessed says that it is the length of a list that was made up.
	Calls   int  `json:"calls"`
	Guessed bool `json:"guessed,omitempty"`
	// Arguments are the resolved ones of the step, or of its first item; absent of a step that isn't called, and where
	// ArgumentBytes, their size, is over 64 KiB.
	Arguments     json.RawMessage `json:"arguments,omitempty"`
	ArgumentBytes int             `json:"argument_bytes,omitempty"`
	// Value is what a value comes to; absent where it is over 64 KiB.
	Value  json.RawMessage `json:"value,omitempty"`
	Status StepStatus      `json:"status"`
	// Steps are those of the step's own plan, in its order, where they begin: with the calls of all items, and else as they
	// stand in the first. The id of each begins with this one's and "/".
	Steps []DryStep `json:"steps,omitempty"`
}

// Notice is one thing worth knowing before a plan runs.
type Notice struct {
	Kind NoticeKind `json:"kind"`
	// Tool and Step name what it is about; one of them may be empty.
	Tool    string `json:"tool,omitempty"`
	Step    string `json:"step,omitempty"`
	Message string `json:"message"`
}

// NoticeKind is what a notice is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticeDestructive NoticeKind = "destructive"  // the tool may destroy or overwrite
	NoticeAtMostOnce  NoticeKind = "at_most_once" // a call may end with outcome_unknown
	NoticeLimit       NoticeKind = "limit"        // more calls are ready at once than may run at a time
	NoticeWait        NoticeKind = "wait"         // calls without a slot fail after a while
	NoticeBatch       NoticeKind = "batch"        // a worker gathers calls into one
	NoticeTimeout     NoticeKind = "timeout"      // the plan or the step sets one
	NoticeLarge       NoticeKind = "large"        // many items, or arguments that don't travel in a message
	NoticeGuess       NoticeKind = "guess"        // a list whose length was made up
	NoticeCondition   NoticeKind = "condition"    // whether the step is taken was decided by made-up results
	NoticeQuestion    NoticeKind = "question"     // a person is asked
	NoticeItems       NoticeKind = "items"        // some items fail, and their step succeeds all the same
)
