package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
)

// Claim says which worker executes an attempt of an at_most_once tool, and on account of which message.
type Claim struct {
	Nonce string `json:"nonce"` // the worker's own: no other claim has it
	Seq   uint64 `json:"seq"`   // stream sequence of the step's message
}

// Message writes a claim as headers and body. The worker's name is for people who look.
func (c Claim) Message(worker string) (nats.Header, []byte) {
	body, _ := json.Marshal(c) // a string and a number: it can't fail
	return nats.Header{subjects.HeaderVersion: ourVersion, subjects.HeaderWorker: {worker}}, body
}

// ParseClaim reads a claim. What can't be read is the zero Claim: somebody else's, on account of no message.
func ParseClaim(body []byte) Claim {
	var c Claim
	if json.Unmarshal(body, &c) != nil {
		return Claim{}
	}
	return c
}
