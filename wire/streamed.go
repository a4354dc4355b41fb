package wire

import (
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

// MaxHandedOver is the most steps that a planner hands over at once.
const MaxHandedOver = 256

// HandOver is what a planner says while it writes its answer: steps of it, that may begin.
type HandOver struct {
	// Nonce is that of its claim.
	Nonce string `json:"nonce"`
	// Add are steps as they stand in a plan.
	Add []json.RawMessage `json:"add"`
}

// Body writes what a planner hands over. Errors: InvalidValue for what is no JSON.
func (h HandOver) Body() ([]byte, error) {
	body, err := json.Marshal(h)
	if err != nil {
		return nil, fault.New(fault.InvalidValue, "a step that is handed over is no JSON: %v", err)
	}
	return body, nil
}

// ParseHandOver reads what a planner hands over. Errors: InvalidValue, TooLarge.
func ParseHandOver(body []byte) (h HandOver, err error) {
	if len(body) > MaxAmendment {
		return h, fault.New(fault.TooLarge, "the steps have %d bytes, at most %d are handed over at once", len(body), MaxAmendment).
			WithHint("hand them over one by one")
	}
	if json.Unmarshal(body, &h) != nil || h.Nonce == "" || len(h.Nonce) > maxBy || len(h.Add) == 0 || len(h.Add) > MaxHandedOver {
		return HandOver{}, fault.New(fault.InvalidValue, "these are no steps that are handed over").
			WithHint(`write {"nonce": that of the claim, "add": [steps]}, at most %d of them`, MaxHandedOver)
	}
	return h, nil
}

// HandedOver is the answer to it: each of the steps is among Begun or Held.
type HandedOver struct {
	// Begun are the ids of the steps that take part from now on.
	Begun []string `json:"begun,omitempty"`
	// Held are those that wait until the answer is whole.
	Held []Held `json:"held,omitempty"`
}

// Held is a step that waits until the answer is whole, and why.
type Held struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// Body writes the answer.
func (h HandedOver) Body() []byte {
	for i := range h.Held {
		h.Held[i].Why = text.Clip(h.Held[i].Why, maxReason)
	}
	body, _ := json.Marshal(h) // texts: it can't fail
	return body
}

// ParseHandedOver reads it; ok is false for what can't be read.
func ParseHandedOver(body []byte) (h HandedOver, ok bool) {
	if json.Unmarshal(body, &h) != nil {
		return HandedOver{}, false
	}
	return h, true
}
