package subjects

// The closed list of headers. Bodies are the user's own bytes; what Stepjet adds travels here. Times are RFC 3339 with
// nanoseconds, in UTC.
const (
	// HeaderVersion is the version of the message's form, on every message: Version.
	HeaderVersion = "Stepjet-Version"
	// HeaderClient, on a submitted plan: the client token to notify. [A-Za-z0-9_-]{1,64}.
	HeaderClient = "Stepjet-Client"
	// HeaderContext, on a submitted plan or a step: out-of-band context, a JSON object of strings.
	HeaderContext = "Stepjet-Context"
	// HeaderContextSecrets, beside HeaderContext: which of its keys are secret, separated by commas.
	HeaderContextSecrets = "Stepjet-Context-Secrets"
	// HeaderContextSealed, beside HeaderContext: which of its keys have a sealed value, separated by commas. They are
	// secret. The message has SealedVersion.
	HeaderContextSealed = "Stepjet-Context-Sealed"
	// HeaderContextSteps, on a submitted plan: context for single steps, a JSON object of objects of strings by step
	// id.
	HeaderContextSteps = "Stepjet-Context-Steps"
	// HeaderRetryOf, on a submitted plan: the finished run of the same plan whose successes are taken over.
	HeaderRetryOf = "Stepjet-Retry-Of"
	// HeaderRetryFrom, beside HeaderRetryOf: the step that is executed again, with all that depends on it, though it
	// succeeded.
	HeaderRetryFrom = "Stepjet-Retry-From"
	// HeaderPermissions, on a submitted plan: what its run may use, separated by commas; "none" for nothing. Without it the
	// run may use everything. The message has PermittedVersion.
	HeaderPermissions = "Stepjet-Permissions"
	// HeaderResult, on a step: the subject that its result is published to.
	HeaderResult = "Stepjet-Result"
	// HeaderDefinition, on a step: the digest of the tool's definition that the run started with.
	HeaderDefinition = "Stepjet-Definition"
	// HeaderClaim, on a step of an at_most_once tool: the subject to create before executing.
	HeaderClaim = "Stepjet-Claim"
	// HeaderStream, on a call of a planner whose agent lets steps begin while it writes: the subject to create, as of a claim,
	// before the first is handed over.
	HeaderStream = "Stepjet-Stream"
	// HeaderKey, on a step: the idempotency key, the same for all attempts.
	HeaderKey = "Stepjet-Key"
	// HeaderRetriedKey, on a step of a run that tries another one again: the key that the step had in that one, if it
	// had any.
	HeaderRetriedKey = "Stepjet-Retried-Key"
	// HeaderAttempt, on a step: the attempt's number, from 1.
	HeaderAttempt = "Stepjet-Attempt"
	// HeaderTimeout, on a step: the longest one execution may take, in milliseconds.
	HeaderTimeout = "Stepjet-Timeout-Ms"
	// HeaderDeadline, on a step: when the step or its run expires; no result is of use after it.
	HeaderDeadline = "Stepjet-Deadline"
	// HeaderStartBy, on a step: after this time no worker may begin it, since it has waited too long for a slot.
	HeaderStartBy = "Stepjet-Start-By"
	// HeaderHandle, on a step or a result: the body lies in the object store and this is its handle, as JSON.
	HeaderHandle = "Stepjet-Handle"
	// HeaderBucket, on a step of a declared tenant: the bucket that a large result is put into. Without it:
	// BlobsBucket.
	HeaderBucket = "Stepjet-Bucket"
	// HeaderHead, on the document of a finished run: what a list shows of it, as JSON; absent from an older orchestrator.
	HeaderHead = "Stepjet-Head"
	// HeaderMayAsk, on a step: how many more questions the tool's worker may ask a person; without it none.
	HeaderMayAsk = "Stepjet-May-Ask"
	// HeaderAnswer, on a step whose tool has asked in an earlier attempt: what was answered, as JSON. The message has
	// AnsweredVersion.
	HeaderAnswer = "Stepjet-Answer"
	// HeaderStatus, on a result: StatusOK, StatusError or StatusAsks.
	HeaderStatus = "Stepjet-Status"
	// HeaderKeys, on the registration of a tool, beside HeaderWorker: the ids of the keys with which the worker opens
	// sealed secrets, separated by commas; "none" where it holds none.
	HeaderKeys = "Stepjet-Secrets-Keys"
	// HeaderWorker, on a result or a registration: the name of the worker.
	HeaderWorker = "Stepjet-Worker"
	// HeaderStarted and HeaderEnded, on a result: when the execution began and ended, by the worker's clock.
	HeaderStarted = "Stepjet-Started"
	HeaderEnded   = "Stepjet-Ended"
	// HeaderDeliveries, on a result: how often the attempt was handed to a worker, where that was more than once.
	HeaderDeliveries = "Stepjet-Deliveries"
	// HeaderContentType, on a result: application/json (default) or text/plain.
	HeaderContentType = "Content-Type"
	// HeaderType, on a result: what kind of object it is, 1 to 128 of [A-Za-z0-9_.:/-]; an agent keeps one with a type.
	HeaderType = "Stepjet-Type"
	// HeaderPlanner, on a result: what an agent's planner is shown in its place, as a JSON string.
	HeaderPlanner = "Stepjet-Planner"
	// HeaderTraceparent and HeaderTracestate (W3C Trace Context) are copied plan → step → result.
	HeaderTraceparent = "traceparent"
	HeaderTracestate  = "tracestate"
)

// Version is the version of messages that this Stepjet writes. A reader leaves higher ones alone.
const Version = "1"

// StartVersion is the version of a start record that an orchestrator which knows only Version must leave alone: it
// would end the run otherwise than one that knows what the record says.
const StartVersion = "2"

// SealedVersion is the version of a plan or a step with sealed values in its context. All else of it is as in Version:
// whoever does not know of sealed values would hand them to the tool as they are, and so has to leave it alone.
const SealedVersion = "2"

// GroupPermission begins a permission that is a group: a run with any of such calls the tools of these groups alone. The
// message has GroupedVersion.
const GroupPermission = "group:"

// GroupedVersion is the version of a plan whose run calls the tools of some groups alone, for who does not know of that
// would refuse it.
const GroupedVersion = "4"

// PermittedVersion is the version of a plan that says what its run may use: whoever does not know of that would let it use
// everything. All else is as in the versions below.
const PermittedVersion = "3"

// BucketVersion is the version of what a reader that knows only lower ones would look for in BlobsBucket: a message
// whose handle names a declared tenant's bucket, and the start of a run whose results lie in one.
const BucketVersion = "3"

// AnsweredVersion is the version of a step with an answer to its tool: a worker that does not know of that would call the
// tool from the beginning.
const AnsweredVersion = "4"

// NeedsVersion is the version of a start, or of an entry of the registry, that says what must be known to go on with
// it: who knows only lower ones doesn't look for that.
const NeedsVersion = "4"

// Values of HeaderStatus.
const (
	StatusOK    = "ok"
	StatusError = "error"
	// StatusAsks is that of an attempt whose worker asks a person, in a run that needs "asks".
	StatusAsks = "asks"
)
