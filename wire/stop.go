package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
)

// Stop is the record that ends a run early.
type Stop struct {
	Reason outcome.RunStatus `json:"reason"` // outcome.Cancelled or outcome.Expired
	By     string            `json:"by,omitempty"`
}

// maxStoppedBy bounds, in bytes, the name of who stopped a run.
const maxStoppedBy = 256

// Message writes a stop as headers and body.
func (s Stop) Message() (nats.Header, []byte) {
	body, _ := json.Marshal(s) // two strings: it can't fail
	return Versioned(), body
}

// ParseStop reads a stop. It never fails: the record stands and stops the run, whatever else it says.
func ParseStop(body []byte) Stop {
	var s Stop
	if err := json.Unmarshal(body, &s); err != nil || s.Reason != outcome.Expired {
		s.Reason = outcome.Cancelled
	}
	s.By = text.Clip(s.By, maxStoppedBy)
	return s
}
