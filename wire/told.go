package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
)

// Told is the record of what an evaluation came to that had to read a blob: an owner that can't read the blob follows
// the record.
type Told struct {
	// Holds is whether the condition is true; it counts where Error is nil.
	Holds bool `json:"holds"`
	// Error is why it could not be evaluated: the step fails with it.
	Error *fault.Error `json:"error,omitempty"`
}

// Message writes a told as headers and body.
func (t Told) Message() (nats.Header, []byte) {
	body, err := json.Marshal(t)
	if err != nil { // details that are no JSON
		short := *t.Error
		short.Details = nil
		body, _ = json.Marshal(Told{Error: &short})
	}
	return Versioned(), body
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
