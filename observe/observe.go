// Package observe says what happens inside Stepjet while it happens: everything that a metric, a span or a line of a
// log is made of, and no opinion on which of them. It knows no telemetry library.
//
// Put an Observer into the Config of a client, a worker and an orchestrator. One observer may serve all of them:
//
//   - a client calls OnSubmit;
//   - an orchestrator calls OnOpen, OnDispatch, OnRecord, OnSink and OnFinish, for the runs that it owns;
//   - a worker calls OnExecute.
//
// # What an observer may do
//
// Everything. It is called from a goroutine of its own, one for each client, worker or orchestrator, one event at a
// time and in the order in which they happened, so an observer of one of them needs no locks. Nothing that it does
// holds up or harms a run:
//
//   - Slow: up to 16,384 events, or 64 MiB of them, wait for it. What comes then is lost, and the log says how much.
//   - Stuck: closing a client, or ending a worker or an orchestrator, waits one second for it, and then leaves it.
//   - Panicking: the panic is recovered, the log has it, and the next event comes as if nothing had been.
//
// What an event points to (errors, the document of a run) is shared, and must not be changed.
//
// # What it is told
//
// What happened, as far as the process that it is in has seen it: at most once, and mostly once. A process that dies
// takes with it what it had not told. When another orchestrator takes a run over, records that came before are not told
// again, and those that came while nobody owned it are not told at all; OnFinish is called only by the one whose
// history document stands. What has to be exact is read from the history.
//
// Times named as such are those of the ledger and of the servers; the others are this process's own.
//
// Arguments, results and context are never told. Errors are: their messages may quote what a tool said, without the
// run's secrets.
package observe

import (
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// Observer is told what happens. Embed None to implement only some of it: later versions may tell more.
type Observer interface {
	// OnSubmit is called by a client once a plan was taken or refused.
	OnSubmit(Submit)
	// OnOpen is called by the orchestrator that begins with a run.
	OnOpen(Open)
	// OnDispatch is called by an orchestrator once an attempt was sent to its tool.
	OnDispatch(Dispatch)
	// OnExecute is called by a worker once it is done with an attempt.
	OnExecute(Execute)
	// OnRecord is called by an orchestrator once an attempt is decided.
	OnRecord(Record)
	// OnSink is called by an orchestrator once an object of an agent went to a sink, or is given up.
	OnSink(Sink)
	// OnFinish is called by the orchestrator that wrote a run's history.
	OnFinish(Finish)
}

// None is an observer that takes no notice.
type None struct{}

// OnSubmit does nothing.
func (None) OnSubmit(Submit) {}

// OnOpen does nothing.
func (None) OnOpen(Open) {}

// OnDispatch does nothing.
func (None) OnDispatch(Dispatch) {}

// OnExecute does nothing.
func (None) OnExecute(Execute) {}

// OnRecord does nothing.
func (None) OnRecord(Record) {}

// OnSink does nothing.
func (None) OnSink(Sink) {}

// OnFinish does nothing.
func (None) OnFinish(Finish) {}

// Run names a run.
type Run struct {
	Tenant, ID string
	// Generation tells the run from others of the same id; 0 where that is not known.
	Generation uint64
	// Traceparent and Tracestate are the W3C Trace Context that came with the plan, empty for none. Within an Attempt
	// they are that attempt's own, whose span id is derived from its name (docs/protocol.md, "Trace").
	Traceparent, Tracestate string
}

// Sampled reports whether whoever began the trace keeps it, as far as its flags say so. It costs next to nothing, so
// that an observer asks it before it makes anything.
func (r Run) Sampled() bool {
	const flags = 54 // the place of their last digit
	if len(r.Traceparent) <= flags {
		return false
	}
	n := strings.IndexByte("0123456789abcdef", r.Traceparent[flags])
	return n >= 0 && n&1 == 1
}

// Attempt names one attempt of a step.
type Attempt struct {
	Run
	// Step is the step's id, or "id=3" for the item 3 (from 0) of a for_each.
	Step, Tool string
	// Number counts from 1.
	Number int
}

// Submit is told by a client once a plan was taken or refused.
type Submit struct {
	// Run has no ID where the plan was refused before it had one.
	Run
	// Bytes is the size of the plan.
	Bytes int
	// Attached is whether the same plan had been submitted under this id before.
	Attached     bool
	Began, Ended time.Time
	// Err is nil where the plan is durable.
	Err error
}

// Open is told by the orchestrator that begins with a run. A run that is rejected is finished without it.
type Open struct {
	Run
	Steps int
	// Resumed is whether an earlier owner, perhaps this one, had begun with it.
	Resumed bool
	// Submitted and Started are the ledger's times of the plan and of its start.
	Submitted, Started time.Time
}

// Dispatch is told by an orchestrator once an attempt lies in its tool's queue, or could not be put there.
type Dispatch struct {
	Attempt
	// Bytes is the size of the arguments.
	Bytes int64
	// Due is when the attempt may begin; zero for at once.
	Due time.Time
	// Repair is how many times it was sent before, because it seemed to be lost.
	Repair int
	Sent   time.Time
	// Err is nil where it is there. Otherwise it is sent again later.
	Err error
}

// Execute is told by a worker once an attempt needs nothing more of it but its record.
type Execute struct {
	Attempt
	Worker string
	// Delivery counts from 1 how often the attempt was handed to a worker.
	Delivery int
	// Delivered is when it came. Began is when the tool was called; zero where it never was.
	Delivered, Began, Ended time.Time
	// Err is what the tool, or the worker for it, says went wrong.
	Err *fault.Error
	// Asked is whether the tool asks a person, in the place of a result.
	Asked bool
	// Left is whether no record is written, since the attempt is another worker's, or was decided.
	Left bool
}

// Record is told by an orchestrator once an attempt is decided in the ledger.
type Record struct {
	Attempt
	// Worker executed it; ByOwner is whether none did, but an orchestrator decided it by itself, and Worker is that
	// one's name.
	Worker  string
	ByOwner bool
	// Ready is when the step's inputs were there, Started and Ended when it was executed, by the servers' time. They
	// are zero where that is not known. Recorded is the ledger's time.
	Ready, Started, Ended, Recorded time.Time
	// Bytes is the size of the result.
	Bytes int64
	// Err is nil for a success.
	Err *fault.Error
	// Asked is whether the attempt ended with a question of its worker to a person, whose answer begins the next.
	Asked bool
	// Again is whether another attempt follows, DeadLetter whether none does and the call is kept as a dead letter.
	Again, DeadLetter bool
}

// Sink is told by an orchestrator once an object that a call of an agent returned went to a sink, or could not. Another
// owner may tell of the same object again.
type Sink struct {
	Run
	// Step and Tool are those of the call.
	Step, Tool string
	// Subject is what it was published on; Bucket is whether that is a key of the bucket.
	Subject string
	Bucket  bool
	// Kept is whether a stream or the bucket has it; else it went to who listened.
	Kept bool
	// Err is nil where it went there. Otherwise it is on the blackboard alone.
	Err *fault.Error
}

// Finish is told by the orchestrator whose history document of the run stands.
type Finish struct {
	Run
	Status outcome.RunStatus
	// Document is the run with all its steps, but without plan, arguments and results.
	Document *outcome.Run
}
