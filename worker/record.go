package worker

import (
	"cmp"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// maxBlob is the largest result or arguments, in bytes.
const maxBlob = kv.MaxBlob

// record writes the decided result. It waits only where the result is large; the lease is kept until settle.
func (x *execution) record() {
	if x.result.Error == nil && len(x.result.Body) > x.e.inline && !x.upload() {
		x.settle(false)
		return
	}
	x.publish()
}

// upload puts a large result into the object store and leaves a handle in its place, or the error of a step whose
// bucket is closed to this worker: the tool has run, and must not run again for that. It reports false if the worker
// ended before there was room.
func (x *execution) upload() bool {
	name := x.attempt.BlobName(nuid.Next())
	for waits := retries(); ; {
		handle, err := x.e.store.Archive.PutBlob(x.e.hard, x.step.Bucket, name, x.result.Body)
		if err == nil {
			handle.Checked = true // by succeed
			x.result.Handle, x.result.Body = handle, nil
			return true
		}
		if x.e.hard.Err() != nil {
			return false
		}
		if fault.CodeOf(err) == fault.Permission {
			x.result.Error = fault.New(fault.ToolTerminal,
				"the result of %d bytes can't be stored: the worker may not write into the bucket %s",
				len(x.result.Body), x.bucket()).WithHint("%s", x.permit())
			return true
		}
		wait := waits.Next()
		x.log().Warn("a large result can't be stored yet; it is kept", "bytes", len(x.result.Body), "error", err, "wait",
			wait)
		if !backoff.Pause(x.e.hard, wait) {
			return false
		}
	}
}

// bucket names where large values of the step's run lie.
func (x *execution) bucket() string { return cmp.Or(x.step.Bucket, subjects.BlobsBucket) }

// permit says what whoever runs the worker does about a bucket that is closed to it.
func (x *execution) permit() string {
	if x.step.Bucket == "" {
		return "give the worker's user the permissions that stepjet acl worker prints"
	}
	return "the tenant " + x.attempt.Tenant +
		" has a bucket of its own: give the worker's user the permissions that stepjet acl worker prints with --declared " +
		x.attempt.Tenant
}

// publish offers the record to the ledger; recorded hears what became of it.
func (x *execution) publish() {
	h, body := x.result.Message()
	x.e.store.Ledger.CreateAsync(x.e.hard, x.step.Result, h, body, nil, x.recorded)
}

// recorded acknowledges the step once its attempt is decided, by whomever, and otherwise tries again. A full ledger is
// waited for within the store already.
func (x *execution) recorded(decision kv.Decision, _ uint64, err error) {
	switch {
	case err == nil:
		if decision != kv.Written {
			x.log().Debug("the attempt was decided by somebody else; this result is dropped")
		}
		x.settle(true)
	case x.e.hard.Err() != nil:
		x.log().Warn("the worker ended before the result could be recorded; the step will be handed out again", "error", err)
		x.settle(false)
	default:
		x.retry(err)
	}
}

func (x *execution) retry(err error) {
	if fault.CodeOf(err) == fault.MessageTooLarge {
		x.shrink()
	}
	wait := x.waits.Next()
	x.log().Warn("the result can't be recorded yet; it is kept", "error", err, "wait", wait)
	x.e.tasks.add()
	go func() {
		defer x.e.tasks.done()
		if !backoff.Pause(x.e.hard, wait) {
			x.settle(false)
			return
		}
		x.publish()
	}()
}

// shrink makes a record fit that the server finds too large: because of a huge trace context, or of a long error on a
// server with an unusually small max_payload.
func (x *execution) shrink() {
	if x.result.Trace != (wire.Trace{}) {
		x.result.Trace = wire.Trace{}
		return
	}
	f := x.result.Error
	if f == nil {
		f = fault.New(fault.TooLarge, "the result of %d bytes is too large for the server", len(x.result.Body))
	}
	short := *f
	short.Message, short.Hint, short.Details = text.Clip(f.Message, 200), "", nil
	x.result.Error, x.result.Body, x.result.Asks = &short, nil, nil
}

// settle ends the execution's decision: the lease is given back (ack), now or when the handler has returned, or left to
// run out.
func (x *execution) settle(ack bool) {
	switch {
	case !ack:
		x.e.forget(x)
	case !x.owe():
		x.acknowledge()
	}
	x.part()
	x.e.open.done()
}
