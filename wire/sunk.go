package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// Sunk is an object that a call of an agent has returned, as it goes to a sink. It follows from the records, so that whoever
// sends it again sends the same, under the same message id.
type Sunk struct {
	// Run is the plain id.
	Run        string `json:"run"`
	Tenant     string `json:"tenant"`
	Generation uint64 `json:"generation"`
	// Agent and Step are the tokens of the agent and of the call, Tool is what it called.
	Agent string `json:"agent"`
	Step  string `json:"step"`
	Tool  string `json:"tool"`
	// Type is what kind of object it is.
	Type string `json:"type"`
	// Value is the object, Blob where it lies when it has more than InlineLimit bytes: one of the two is there.
	Value json.RawMessage `json:"value,omitempty"`
	Blob  *outcome.Handle `json:"blob,omitempty"`
}

// Message writes it as headers and body, under a message id, by which streams know what they have already.
func (s *Sunk) Message(id string) (nats.Header, []byte) {
	body, _ := json.Marshal(s) // of JSON and texts
	h := Versioned()
	h[nats.MsgIdHdr] = []string{id}
	return h, body
}

// ParseSunk reads an object that went to a sink. Errors: InvalidRecord for what is none.
func ParseSunk(body []byte) (*Sunk, error) {
	var s Sunk
	if err := json.Unmarshal(body, &s); err != nil || s.Step == "" || (s.Value == nil) == (s.Blob == nil) {
		return nil, fault.New(fault.InvalidRecord, "this is no object of an agent")
	}
	return &s, nil
}
