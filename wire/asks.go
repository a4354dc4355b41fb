package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Asks is what a worker asks a person in the place of a result: its attempt is neither a success nor a failure, and the
// next one begins with the answer.
type Asks struct {
	tool.Asked
	// State is the worker's own, JSON of at most MaxNote bytes: what the next worker has to find again. Nobody else reads
	// it. nil for none.
	State json.RawMessage `json:"state,omitempty"`
}

// Check says why nobody can be asked that; nil where a person can.
func (a *Asks) Check() *fault.Error {
	raw, err := json.Marshal(a.Asked)
	if err != nil {
		return fault.New(fault.ToolTerminal, "the tool asks what is no JSON: %v", err)
	}
	if _, bad := tool.ReadAsked(raw); bad != nil {
		return fault.New(fault.ToolTerminal, "the tool asks what nobody can be asked: %s", bad.Message).WithHint("%s", bad.Hint)
	}
	if len(a.State) > MaxNote || a.State != nil && !json.Valid(a.State) {
		return fault.New(fault.ToolTerminal, "the state beside what the tool asks is no JSON of %d bytes at most", MaxNote).
			WithHint("keep what is larger elsewhere, and its name in the state")
	}
	return nil
}

// body writes what is asked.
func (a *Asks) body() []byte {
	raw, err := json.Marshal(a)
	if err != nil { // Check says so
		raw = []byte(`{}`)
	}
	return raw
}

// ParseAsks reads what a worker asks. The error says why nobody can be asked that.
func ParseAsks(body []byte) (*Asks, *fault.Error) {
	var a Asks
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fault.New(fault.ToolTerminal, "what the tool asks can't be read: %v", err).
			WithHint(`write {"question": "…", "schema": {…}, "state": {…}}`)
	}
	if bad := a.Check(); bad != nil {
		return nil, bad
	}
	return &a, nil
}

// Reply is what a worker is handed whose tool has asked in an earlier attempt.
type Reply struct {
	// Attempt is the one that ended with the question.
	Attempt int `json:"attempt"`
	// Answer is what was said, a JSON value.
	Answer json.RawMessage `json:"answer"`
	// State is what the worker that asked wanted to be found again; nil for nothing.
	State json.RawMessage `json:"state,omitempty"`
}

// set writes the header of a reply.
func (r *Reply) set(h *header) {
	if r == nil {
		return
	}
	var b bytes.Buffer // the values keep their bytes, but for white space
	b.WriteString(`{"attempt":` + strconv.Itoa(r.Attempt) + `,"answer":`)
	_ = json.Compact(&b, r.Answer) // it was read from JSON, and so was the state
	if r.State != nil {
		b.WriteString(`,"state":`)
		_ = json.Compact(&b, r.State)
	}
	b.WriteByte('}')
	h.set(subjects.HeaderAnswer, b.String())
}

// replyOf reads the header of a reply; nil where there is none. The error is for one that nobody of ours wrote.
func replyOf(h nats.Header) (*Reply, error) {
	s := get(h, subjects.HeaderAnswer)
	if s == "" {
		return nil, nil
	}
	var r Reply
	if err := json.Unmarshal([]byte(s), &r); err != nil || r.Attempt < 1 || r.Answer == nil {
		return nil, fault.New(fault.Internal, "a step with a %s that can't be read", subjects.HeaderAnswer)
	}
	return &r, nil
}
