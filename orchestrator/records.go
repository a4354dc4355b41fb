package orchestrator

import (
	"strings"
	"unique"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// frozen returns the form in which runs keep a tool of the registry.
func frozen(t *tool.Registered) *wire.FrozenTool {
	return wire.Frozen(wire.FrozenTool{Digest: t.Digest, Shard: t.Shard, AckWait: t.AckWait.Milliseconds(), Contract: t.Contract})
}

// contracts returns those that a run started with, by tool.
func contracts(s *wire.Start) map[string]*tool.Contract {
	c := make(map[string]*tool.Contract, len(s.Tools))
	for name, t := range s.Tools {
		c[name] = &t.Contract
	}
	return c
}

// ownerMark begins the worker header of records that an orchestrator wrote. No worker's name begins so.
const ownerMark = "="

// ownRecord is the form of an attempt's record that an orchestrator writes.
func ownRecord(name string, err *fault.Error, trace wire.Trace) (nats.Header, []byte) {
	return wire.Result{Error: err, Worker: ownerMark + name, Trace: trace}.Message()
}

// decodeResult reads the record of an attempt. It never fails: the record stands and decides. redactor
// gives what takes the secrets of the run out of its error, bucket is where large values of the run lie.
func decodeResult(c machine.Call, e entry, version uint64, bucket string, redactor func() *wire.Redactor) *machine.Result {
	if bad := wire.AboveRun(e.Header, version); bad != nil {
		return &machine.Result{Call: c, Attempt: e.rec.Attempt.Number, Error: bad}
	}
	w := wire.ParseCleanResult(e.Header, e.Data, redactor)
	if w.Handle != nil {
		if w.Error = wire.CheckResult(w.Handle, e.rec.Attempt, bucket, kv.MaxBlob); w.Error != nil {
			w.Handle = nil
		}
	}
	return &machine.Result{
		Call: c, Attempt: e.rec.Attempt.Number, Error: w.Error, Body: w.Body, Text: w.Text, Handle: w.Handle,
		ByOwner: strings.HasPrefix(w.Worker, ownerMark), Worker: interned(strings.TrimPrefix(w.Worker, ownerMark)), Started: w.Started, Ended: w.Ended,
	}
}

// interned gives a header's value to keep: those of a message are parts of one string that holds all of them. Equal ones, such
// as the names of workers, are one.
func interned(value string) string { return unique.Make(value).Value() }
