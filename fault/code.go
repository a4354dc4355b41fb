package fault

// Code is a kind of error. The set is closed: a reader may switch over it.
type Code string

// Problems of a plan, found before anything runs (design: plan language, "Validation").
const (
	MalformedJSON       Code = "malformed_json"        // not one JSON object within the depth limit
	InvalidUTF8         Code = "invalid_utf8"          // bytes or lone surrogates that are no text
	DuplicateKey        Code = "duplicate_key"         // the same key twice in one object
	UnknownField        Code = "unknown_field"         // near miss of a known field, or a reserved one
	InvalidValue        Code = "invalid_value"         // wrong type or value of a known field
	EmptyPlan           Code = "empty_plan"            // no steps
	InvalidID           Code = "invalid_id"            // id, tool name or run id outside its grammar
	DuplicateStep       Code = "duplicate_step"        // a step id used twice
	UnknownTool         Code = "unknown_tool"          // not registered for this tenant
	RecursivePlan       Code = "recursive_plan"        // a step calls execute_tool_plan
	InvalidArguments    Code = "invalid_arguments"     // not an object, or against the input schema (also at run time)
	InvalidRef          Code = "invalid_ref"           // outside the reference grammar, or in a key
	UnknownRef          Code = "unknown_ref"           // names no step of the plan
	Cycle               Code = "cycle"                 // a step waits for itself
	UnknownOutputStep   Code = "unknown_output_step"   // output_steps names no step
	DuplicateOutputStep Code = "duplicate_output_step" // output_steps names a step twice
	ImpossibleRef       Code = "impossible_ref"        // leads to nothing, or to a value of the wrong type, by declared schemas
	NotPermitted        Code = "not_permitted"         // the tool's group needs a permission that the run was not given
	MissingDependency   Code = "missing_dependency"    // the tool's contract wants another tool's output
	InvalidCondition    Code = "invalid_condition"     // a condition or a calculation that is none
	StateMismatch       Code = "state_mismatch"        // against the schema of the state, in the state dialect
	LimitExceeded       Code = "limit_exceeded"        // too large, too many
	Conflict            Code = "conflict"              // the run id was used for a different plan
)

// Errors of a step, found while it runs (design: plan language, "At run time").
const (
	ToolFailed      Code = "tool_failed"      // the tool answered with an error; retryable
	ToolTerminal    Code = "tool_terminal"    // the tool's error can't be helped by trying again
	Timeout         Code = "timeout"          // an execution or the whole step took too long; retryable
	UnresolvedRef   Code = "unresolved_ref"   // a reference found nothing, or a value it can't go into
	TooLarge        Code = "too_large"        // resolved arguments or a result over their limit
	WorkerLost      Code = "worker_lost"      // the step's worker died again and again
	OutcomeUnknown  Code = "outcome_unknown"  // an at_most_once tool may or may not have run
	Sealed          Code = "sealed"           // the worker can't open the step's secrets
	Cancelled       Code = "cancelled"        // the run was cancelled, expired, or failed fast
	Skipped         Code = "skipped"          // a dependency did not succeed
	InvalidRecord   Code = "invalid_record"   // the attempt's record is of a version above its run's, or of none
	Rejected        Code = "rejected"         // a person said no
	SubPlanFailed   Code = "sub_plan_failed"  // the plan of a composite did not succeed
	RepeatExhausted Code = "repeat_exhausted" // a loop ran as often as it may, and its until was never true
	StateInvalid    Code = "state_invalid"    // what the call returned does not fit the schema of the state
	ConditionFailed Code = "condition_failed" // a condition or a calculation met values that it can't take
	RoundsExhausted Code = "rounds_exhausted" // an agent had as many rounds as it may, and no output
	PlannerInvalid  Code = "planner_invalid"  // the planner of an agent answered again and again with what can't be used
	BudgetExceeded  Code = "budget_exceeded"  // an agent has used up its budget
	Replan          Code = "replan"           // the tool asks for a new plan: the round of its agent is over for starting
	Locked          Code = "locked"           // an agent may not call this tool yet: its message says what to call first
)

// Errors of the way there: between a program and NATS, or within Stepjet.
const (
	NoConnection    Code = "no_connection"     // the NATS server can't be reached
	NoJetStream     Code = "no_jetstream"      // the server has no JetStream for this account
	Permission      Code = "permission"        // the account may not use a subject
	StoreFull       Code = "store_full"        // a stream has no room left
	MessageTooLarge Code = "message_too_large" // over the server's max_payload
	NotFound        Code = "not_found"         // no such run, tool or record
	AlreadyFinished Code = "already_finished"  // the run had ended before
	NotAmendable    Code = "not_amendable"     // the plan is of a kind that stays as it was submitted
	Overtaken       Code = "overtaken"         // the amendment was recorded, and means nothing where it stands
	NotReady        Code = "not_ready"         // Stepjet isn't set up here, or no orchestrator answers
	NewerVersion    Code = "newer_version"     // written by a Stepjet newer than this program, which leaves it alone
	InvalidTool     Code = "invalid_tool"      // a tool definition that contradicts itself
	InvalidConfig   Code = "invalid_config"    // a program's own settings
	Internal        Code = "internal"          // anything else; a defect
)

// Retryable is whether an error of this code usually is worth another attempt of the same step.
func (c Code) Retryable() bool { return c == ToolFailed || c == Timeout }

// stepCodes are the codes that a record of a step may carry.
var stepCodes = map[Code]bool{
	ToolFailed: true, ToolTerminal: true, Timeout: true, InvalidArguments: true, UnresolvedRef: true, TooLarge: true,
	WorkerLost: true, OutcomeUnknown: true, Sealed: true, Cancelled: true, Skipped: true, Locked: true, BudgetExceeded: true, Replan: true, Rejected: true,
}

// OfStep reports whether a step's record may carry this code. What a worker sends beyond them is read as ToolFailed.
func (c Code) OfStep() bool { return stepCodes[c] }
