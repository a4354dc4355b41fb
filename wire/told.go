package wire

import (
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Told is the record of what an evaluation came to that had to read a blob, or took more than is done at once: an owner
// that can't read the blob follows the record.
type Told struct {
	// Holds is whether the condition is true; it counts where Error is nil.
	Holds bool `json:"holds"`
	// Guard is the guard of an agent that has a person asked about a call, from 1; 0 for none, and in all else.
	Guard int `json:"guard,omitempty"`
	// Error is why it could not be evaluated: the step fails with it.
	Error *fault.Error `json:"error,omitempty"`
}

// ToldValue is the record of what the value of a step came to: exactly one of its fields is set.
type ToldValue struct {
	// Value is the value, up to InlineLimit.
	Value json.RawMessage `json:"value,omitempty"`
	// Handle says where a larger one lies.
	Handle *outcome.Handle `json:"handle,omitempty"`
	// Error is why there is none: the step fails with it.
	Error *fault.Error `json:"error,omitempty"`
}

// Message writes a told as headers and body.
func (t Told) Message() (nats.Header, []byte) {
	body, err := json.Marshal(t)
	if err != nil { // details that are no JSON
		body, _ = json.Marshal(Told{Error: withoutDetails(t.Error)})
	}
	return Versioned(), body
}

// Message writes what a value came to as headers and body. A value's bytes are kept as they are.
func (t ToldValue) Message() (nats.Header, []byte) {
	if t.Value != nil {
		return Versioned(), append(append([]byte(`{"value":`), t.Value...), '}')
	}
	body, err := json.Marshal(t)
	if err != nil { // details that are no JSON
		body, _ = json.Marshal(ToldValue{Error: withoutDetails(t.Error)})
	}
	return Versioned(), body
}

func withoutDetails(e *fault.Error) *fault.Error {
	short := *e
	short.Details = nil
	return &short
}

// ParseTold reads a told. It never fails: the record stands and decides, and one that nobody of ours wrote fails its
// step.
func ParseTold(body []byte) Told {
	var t Told
	if err := json.Unmarshal(body, &t); err != nil {
		return Told{Error: fault.New(fault.ConditionFailed, "the record of what the condition came to can't be read")}
	}
	return t
}

// ParseToldValue reads what a value came to, in a run whose large values lie in a bucket. It never fails, as ParseTold.
// A blob that is not the run's own, and one of more than maxBlob bytes, fails the step.
func ParseToldValue(body []byte, r subjects.Run, generation uint64, bucket string, maxBlob int64) ToldValue {
	var t ToldValue
	err := json.Unmarshal(body, &t)
	switch {
	case err != nil, t.Value == nil && t.Handle == nil && t.Error == nil:
		return ToldValue{Error: fault.New(fault.ConditionFailed, "the record of what the value came to can't be read")}
	case t.Error != nil:
		return ToldValue{Error: t.Error}
	case t.Handle == nil:
		return t
	}
	own := subjects.RunBlobName(r, generation, subjects.ToldValue, "")
	unique, is := strings.CutPrefix(t.Handle.Name, own)
	if !is || strings.Contains(unique, "/") || t.Handle.Bucket != "" && t.Handle.Bucket != bucket || t.Handle.Size > maxBlob {
		return ToldValue{Error: fault.New(fault.ConditionFailed, "the value is said to lie in the blob %q, which is no value of the run's",
			text.Clip(t.Handle.Name, 256))}
	}
	return ToldValue{Handle: t.Handle}
}
