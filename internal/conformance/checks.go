package conformance

import "context"

// check is one thing that a worker is tried with.
type check struct {
	name     string
	expected string
	run      func(ctx context.Context, s *stage, v *verdict)
	always   bool // made even where it isn't asked for: what follows needs it
	stopped  bool // can be made when the worker was stopped
	useless  bool // can be made with a worker that takes no steps
}

// checks are in the order in which they are made: from what every worker does all the time to what it meets once a
// year, then those for which it is stopped and started.
var checks = []check{
	{name: "takes-steps", run: takesSteps, always: true,
		expected: "takes a step from the tool's durable consumer and records its result"},
	{name: "record", run: record,
		expected: "creates the record once, with the right headers, and the tool's output as its body"},
	{name: "ack", run: ack, expected: "acknowledges the step once, after its record"},
	{name: "text", run: unicodeText, expected: "returns any Unicode text unchanged"},
	{name: "numbers", run: numbers, expected: "returns numbers with the digits they came with"},
	{name: "error", run: toolError, expected: "records a tool's error with the status error and an error envelope"},
	{name: "attempt", run: secondAttempt, expected: "does the second attempt of a step that failed"},
	{name: "secrets", run: secrets, expected: "leaves no secret of the step's context in an error"},
	{name: "large-result", run: largeResult,
		expected: "puts a result over 256 KiB into the object store, or answers too_large"},
	{name: "huge-result", run: hugeResult,
		expected: "survives a result over the server's max_payload, and says so or stores it"},
	{name: "bucket", run: bucket, expected: "puts a result over 256 KiB into the bucket that the step names"},
	{name: "large-arguments", run: largeArguments,
		expected: "reads arguments that lie in the object store, or refuses them"},
	{name: "heartbeat", run: heartbeat, expected: "keeps the lease of a long step with +WPI, so that it runs once"},
	{name: "waiting", run: waiting,
		expected: "keeps the lease of every step that it has taken, or takes none that it can't begin"},
	{name: "full-ledger", run: fullLedger,
		expected: "keeps a result, and doesn't acknowledge, while the ledger takes none"},
	{name: "duplicate", run: duplicate,
		expected: "acknowledges a step that it gets twice, and leaves the first record alone"},
	{name: "decided", run: decided,
		expected: "acknowledges a step that somebody else has decided, and drops its own result"},
	{name: "cancel", run: cancel, expected: "stops a cancelled step and acknowledges it"},
	{name: "timeout", run: timeout, expected: "ends an execution at Stepjet-Timeout-Ms with the error timeout"},
	{name: "deadline", run: deadline, expected: "ends an execution at Stepjet-Deadline, where the orchestrator doesn't"},
	{name: "stops", run: stops, expected: "stops the tool when its time is over or its step cancelled"},
	{name: "holds", run: holds,
		expected: "keeps the lease of a step that was given up until its tool has returned, or a lease after its time"},
	{name: "start-by", run: startBy, expected: "doesn't begin a step after its Stepjet-Start-By"},
	{name: "claim", run: claim, expected: "claims a step that has Stepjet-Claim before it executes it, or refuses it"},
	{name: "version", run: version, expected: "leaves a step of a higher Stepjet-Version alone"},
	{name: "foreign", run: foreign, expected: "survives messages that are no steps, and removes them"},
	{name: "burst", run: burst, expected: "does 200 waiting steps once each, holding no more leases than it works on"},
	{name: "pulls", run: pulls, expected: "asks for steps so that a request that was lost is noticed"},
	{name: "consumer", run: leavesConsumers, useless: true,
		expected: "creates and changes no consumer or stream, and sends no -NAK"},
	{name: "drain", run: drain, expected: "on SIGTERM finishes what it has, and ends"},
	{name: "redelivered", run: redelivered, stopped: true,
		expected: "acknowledges a redelivered step that has its record, without executing it"},
	{name: "poisoned", run: poisoned, stopped: true, expected: "answers the sixth delivery of a step with worker_lost"},
	{name: "claimed", run: claimed, stopped: true, expected: "doesn't execute a step that another worker has claimed"},
}

// Names returns the names of all checks, in their order.
func Names() []string {
	names := make([]string, len(checks))
	for i := range checks {
		names[i] = checks[i].name
	}
	return names
}
