package outcome

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// DeadLetter is what is kept of a step, or of an item of one, that was executed, failed and used up its attempts:
// enough to see why, and to make the same call again. Of the run's out-of-band context only the keys are in it, since
// that may hold secrets.
type DeadLetter struct {
	Run        string `json:"run"` // plain id
	Tenant     string `json:"tenant"`
	Generation uint64 `json:"generation"`
	Step       string `json:"step"` // "S", or "S=i" for an item
	Tool       string `json:"tool"`
	Attempts   int    `json:"attempts"`
	// Error is that of the last attempt.
	Error *fault.Error `json:"error"`
	// Key is the idempotency key that all attempts had.
	Key    string    `json:"key"`
	Worker string    `json:"worker,omitempty"` // of the last attempt
	Failed time.Time `json:"failed,omitzero"`  // when the last attempt was recorded
	// Approval is whether the plan had a person approve of the call: who makes it again has one asked again.
	Approval bool `json:"approval,omitempty"`
	// Permissions are those that its run was submitted with: who makes it again has no others. Nil: everything.
	Permissions []string `json:"permissions,omitzero"`
	// Context names the keys of the out-of-band context that its tool was given, never their values.
	Context []ContextKey `json:"context,omitempty"`
	// Blob holds the arguments where they are too large to be inline; then Arguments is empty.
	Blob *Handle `json:"blob,omitempty"`
	// Arguments are the resolved arguments, byte for byte those that the tool got.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// JSON writes the letter; unlike encoding/json, it keeps the exact bytes of the arguments.
func (d *DeadLetter) JSON() []byte {
	type fields DeadLetter
	head := fields(*d)
	head.Arguments = nil
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(head) != nil { // only details that are no JSON can do that; the rest still counts
		head.Error = &fault.Error{Code: d.Error.Code, Message: d.Error.Message, Hint: d.Error.Hint, Retryable: d.Error.Retryable}
		b.Reset()
		_ = enc.Encode(head)
	}
	if len(d.Arguments) > 0 {
		b.Truncate(b.Len() - len("}\n"))
		b.WriteString(`,"arguments":`)
		b.Write(d.Arguments)
		b.WriteString("}\n")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
