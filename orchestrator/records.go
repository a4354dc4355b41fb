package orchestrator

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// startRecord is the body of a run's start: the verdict, and what is frozen for it. Everybody follows the stored one.
type startRecord struct {
	// Problems, if any, mean that the plan was rejected.
	Problems []fault.Problem `json:"problems,omitempty"`
	Warnings []fault.Problem `json:"warnings,omitempty"`
	// Since is when the plan was first rejected, where it came again soon after and these problems are those of then.
	Since time.Time `json:"since,omitzero"`
	// Reuse, if not nil, is what is taken over from the run that this one tries again.
	Reuse *reuse `json:"reuse,omitempty"`
	// Tools are the frozen contracts of the tools used, by name.
	Tools map[string]*frozenTool `json:"tools,omitempty"`
	// Bucket is where large values of the run go; empty: where those of all tenants go that are not declared. An orchestrator that
	// doesn't know of it would look for results there; so the start record has a version that it leaves alone.
	Bucket string `json:"bucket,omitempty"`

	later bool // the id had a rejected run before, to be replaced: an older orchestrator must not end this one
}

// version gives the version of the record's form: what only newer orchestrators do right, older ones leave alone.
func (s *startRecord) version() string {
	if s.Bucket != "" {
		return subjects.BucketVersion
	}
	if s.later || s.Reuse != nil && len(s.Reuse.Items) > 0 {
		return subjects.StartVersion
	}
	return subjects.Version
}

// frozenTool is what a run keeps of a tool for as long as it runs, whatever the registry says later.
type frozenTool struct {
	Digest   string        `json:"digest"` // of the definition, kept in the registry under it
	Shard    int           `json:"shard"`
	AckWait  int64         `json:"ack_wait_ms"` // its lease, in milliseconds
	Contract tool.Contract `json:"contract"`

	form []byte // as JSON, where it was written before
}

// freeze gives the form in which runs keep a tool of the registry.
func freeze(t *kv.Tool) *frozenTool {
	f := &frozenTool{Digest: t.Digest, Shard: t.Shard, AckWait: t.AckWait.Milliseconds(), Contract: t.Contract}
	f.form, _ = json.Marshal(f) // without it, encode says what is wrong
	return f
}

// encode writes the record. Nearly always it is made of tools that were written before.
func (s *startRecord) encode() ([]byte, error) {
	if len(s.Problems)+len(s.Warnings) > 0 || s.Reuse != nil || len(s.Tools) == 0 {
		return json.Marshal(s)
	}
	b := []byte(`{"tools":{`)
	for i, name := range slices.Sorted(maps.Keys(s.Tools)) {
		if s.Tools[name].form == nil {
			return json.Marshal(s)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(appendJSON(b, name), ':'), s.Tools[name].form...)
	}
	b = append(b, '}')
	if s.Bucket != "" {
		b = appendJSON(append(b, `,"bucket":`...), s.Bucket)
	}
	return append(b, '}'), nil
}

func (s *startRecord) rejected() bool { return len(s.Problems) > 0 }

func (s *startRecord) contracts() map[string]*tool.Contract {
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
		if w.Error = usable(w.Handle, e.rec.Attempt, bucket); w.Error != nil {
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
