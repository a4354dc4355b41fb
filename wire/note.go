package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// MaxNote is the largest note of an attempt, in bytes.
const MaxNote = 4 << 10

// NoteMessage writes what a worker notes of an attempt, JSON of its own, as headers and body. The worker's name is for
// people who look.
func NoteMessage(worker string, note json.RawMessage) (nats.Header, []byte) {
	return nats.Header{subjects.HeaderVersion: ourVersion, subjects.HeaderWorker: {worker}}, note
}

// ParseNote reads what was noted. Errors: newer_version; invalid_record for what is no JSON, or too large.
func ParseNote(h nats.Header, body []byte) (json.RawMessage, error) {
	switch {
	case KindNote.Newer(h):
		return nil, Newer("the note of an attempt")
	case !KindNote.Known(h) || len(body) > MaxNote || !json.Valid(body):
		return nil, fault.New(fault.InvalidRecord, "the note of the attempt can't be read").
			WithHint("it is JSON of %d bytes at most; look for which worker wrote it", MaxNote)
	}
	return body, nil
}
