package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"
)

// Gathering is what the lease of a tool's gathering worker says. Nothing rests on it: two that gather for a moment
// make smaller batches, and none gathers for as long as a lease at most.
type Gathering struct {
	ID     string `json:"id"` // of who holds it, unique
	Worker string `json:"worker,omitempty"`
	Free   bool   `json:"free,omitempty"` // it was given back
}

// Message writes a lease as headers and body.
func (g Gathering) Message() (nats.Header, []byte) {
	body, _ := json.Marshal(g) // strings and a flag: it can't fail
	return Versioned(), body
}

// ParseGathering reads a lease; false for a message of another form or a version that is not known.
func ParseGathering(h nats.Header, body []byte) (g Gathering, ok bool) {
	if !KindGathering.Known(h) || json.Unmarshal(body, &g) != nil || g.ID == "" {
		return Gathering{}, false
	}
	return g, true
}
