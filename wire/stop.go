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
	// Nonce is the request's own, so that of several that say the same it is known which one wrote the record. Empty where
	// nobody waits to be told.
	Nonce string `json:"nonce,omitempty"`
}

// maxStoppedBy bounds, in bytes, the name of who stopped a run.
const maxStoppedBy = 256

// Message writes a stop as headers and body.
func (s Stop) Message() (nats.Header, []byte) {
	body, _ := json.Marshal(s) // strings: it can't fail
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
