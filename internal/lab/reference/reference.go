// Package reference is the dumb twin of Stepjet: it reads a plan and runs it, one step after the other, in the plainest
// way that the plan language allows. Random plans are given to both, and what they come to must be the same.
//
// It was written from the description of the language alone and imports nothing but the standard library, so that a
// misreading is not shared. It is slow, holds everything in memory, and parses the same bytes again and again; nothing
// but tests may use it. Where the language leaves a case open, the comment at that place says what was chosen.
package reference

// The codes of the errors that this package gives. They are spelled out here, since package fault belongs to what is
// tested.
const (
	codeToolFailed       = "tool_failed"
	codeToolTerminal     = "tool_terminal"
	codeTimeout          = "timeout"
	codeUnresolvedRef    = "unresolved_ref"
	codeInvalidArguments = "invalid_arguments"
	codeTooLarge         = "too_large"
	codeCancelled        = "cancelled"
	codeSkipped          = "skipped"
	codeCondition        = "condition_failed"
	codeSubPlanFailed    = "sub_plan_failed"
	codeRejected         = "rejected"
	codeInvalidValue     = "invalid_value"
)

// The statuses of steps and of runs.
const (
	succeeded = "succeeded"
	failed    = "failed"
	skipped   = "skipped"
	cancelled = "cancelled"
	notTaken  = "not_taken"
	expired   = "expired"
	partial   = "partial"
)

// Err is why a step did not succeed.
type Err struct {
	// Code is one of the plan language's run-time codes.
	Code string
	// Message is free text, except that of a skipped step.
	Message string
	// Retryable is what the tool said of its error. Only tool_failed and timeout are tried again, whatever it says.
	Retryable bool
	// Hint is what a person is told to do. Of an item's error others see it.
	Hint string
}

// Reply is what a tool answered to one attempt: an error, or the bytes of its output.
type Reply struct {
	// Body is the output. It is not read where Err is set.
	Body []byte
	// Text is whether the output was declared text/plain.
	Text bool
	// Err is the tool's error; nil for success.
	Err *Err
	// Asks is whether it asks a person in the place of a result: then it has neither.
	Asks bool
}

// Behaviour plays all tools: it answers one attempt (counted from 1) of one step. The same call must always get the
// same answer. For an item of a for_each step the step is "S=i", i counted from 0.
type Behaviour func(step, tool string, args []byte, attempt int) Reply

// Contract is what this package has to know of a tool's contract.
type Contract struct {
	// MaxAttempts is the most attempts of a step that names no number itself. Less than 1 counts as 1.
	MaxAttempts int
	// PartialSuccess is error_propagation: partial-success. Otherwise it is fail-fast.
	PartialSuccess bool
	// Approval says which calls wait for a person: none, "always" all, else those for which this condition on $args holds,
	// or can't be told.
	Approval string
	// Asks is whether the tool says of itself that it may ask a person in the middle of a call.
	Asks bool
}

// Step is what one step came to.
type Step struct {
	// Status is succeeded, failed, skipped, cancelled or not_taken.
	Status string
	// Code and Message say why it did not succeed.
	Code, Message string
	// Attempts counts the decided attempts; 0 for a step that was never dispatched. Those of a for_each step are its
	// items' together.
	Attempts int
	// Arguments are the resolved arguments; nil for a step that was never dispatched, and for one with a for_each.
	Arguments []byte
	// Result is the JSON that the output stands for, of a for_each step the array of its entries; nil unless the step
	// succeeded.
	Result []byte
	// Items are those of a for_each step, in order; nil where it never came so far.
	Items []Step

	decided   int  // attempts, by a tool or not
	asked     int  // of those that ended with a question
	waits     bool // for the answer to the last of those
	retryable bool // what its error said
	hint      string
	list      [][]byte
}

// Output is one step's result among the results of a run.
type Output struct {
	Step string
	JSON []byte
}

// StepError names a step that did not succeed.
type StepError struct {
	Step, Code, Message string
	Attempts            int
	// HandledBy is the step that dealt with the failure; empty for none.
	HandledBy string
}

// Result is what a run came to.
type Result struct {
	// Status is succeeded, partial, failed, cancelled or expired.
	Status string
	// Steps has every step of the plan by its id.
	Steps map[string]Step
	// Results has the results of those output steps that succeeded, in the order of output_steps (of steps where there
	// are none), and null for those that were not taken.
	Results []Output
	// Output is what a plan came to that has an output, in their place; nil where there is none.
	Output []byte
	// Errors has every step that did not succeed, in the order of steps, but for those that were not taken.
	Errors []StepError
	// NotTaken has the steps that were not taken, in the order of steps.
	NotTaken []string
}
