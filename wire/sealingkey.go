package wire

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
)

// SealingKey is the public key that submitters seal the secrets of their runs to, as orchestrators publish it in the
// registry.
type SealingKey struct {
	ID      string    `json:"id"`
	Public  string    `json:"public"` // its text form
	Created time.Time `json:"created"`
}

// Message writes the key as headers and body.
func (k SealingKey) Message() (nats.Header, []byte) {
	body, _ := json.Marshal(k) // strings and a time: it can't fail
	// A doctor that does not know of it would take a version that it knows for a mistake, and remove it.
	return nats.Header{subjects.HeaderVersion: sealedVersion}, body
}

// ParseSealingKey reads a key whose version is known; false for what is none.
func ParseSealingKey(body []byte) (k SealingKey, ok bool) {
	if json.Unmarshal(body, &k) != nil || k.Public == "" {
		return SealingKey{}, false
	}
	return k, true
}
