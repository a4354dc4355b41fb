package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// DeadLetterMessage writes a dead letter as headers and body.
func DeadLetterMessage(d *outcome.DeadLetter) (nats.Header, []byte) {
	return VersionedBy(d.Blob), d.JSON()
}

// ParseDeadLetter reads a dead letter; name says which, for errors. It always has an error. Errors: NewerVersion;
// Internal for what nobody of Stepjet's wrote.
func ParseDeadLetter(h nats.Header, body []byte, name string) (*outcome.DeadLetter, error) {
	if !KindDeadLetter.Known(h) {
		return nil, Newer("the dead letter " + name)
	}
	var d outcome.DeadLetter
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading a dead letter")
	}
	if d.Error == nil {
		d.Error = fault.New(fault.Internal, "the dead letter says no error")
	}
	return &d, nil
}
