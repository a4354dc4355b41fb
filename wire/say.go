package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// MaxSaid bounds what is said to an agent at a time, in bytes.
const MaxSaid = 16 << 10

// Say is the record of what a person says to an agent while it runs. Created once, by the owner, under an id of the
// person's: where it stands in the ledger says which round takes it.
type Say struct {
	// Content is a text, or a list of parts as language models take them.
	Content json.RawMessage `json:"content"`
	// Mode is Interrupt, or empty for a word that ends nothing.
	Mode     string `json:"mode,omitempty"`
	By       string `json:"by,omitempty"`
	Verified bool   `json:"verified,omitempty"` // by the server's word
}

// Message writes a word as headers and body.
func (s Say) Message() (nats.Header, []byte) {
	body, _ := json.Marshal(s) // of JSON that was read
	return Versioned(), body
}

// ParseSay reads a word. It never fails: what can't be read has no content, and says nothing.
func ParseSay(body []byte) Say {
	var s Say
	if json.Unmarshal(body, &s) != nil {
		return Say{}
	}
	return s
}

// Same reports whether two words say the same, whoever said it.
func (s Say) Same(other Say) bool { return s.Mode == other.Mode && sameJSON(s.Content, other.Content) }

// SayRequest is the body of a request to say something to an agent.
type SayRequest struct {
	// Agent is the token of its step, ID names the word: the same id again is the same word.
	Agent string `json:"agent"`
	ID    string `json:"id"`
	Say
}

// The modes of words. Both are told with the next request.
const (
	Steer     = "steer"     // ends nothing that runs; the same as none
	Interrupt = "interrupt" // ends the round that it comes in
)

// Body writes the request.
func (r SayRequest) Body() ([]byte, error) {
	r.Verified = false
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fault.New(fault.InvalidValue, "what is said is no JSON: %v", err)
	}
	return body, nil
}

// sayKeys are the members that a request may have.
var sayKeys = []string{"agent", "id", "mode", "content", "by", "verified", meantKey}

// ParseSayRequest reads the request, and what the server says of who made it. Errors: InvalidValue, which says how it
// is written; InvalidID; TooLarge for more than MaxSaid; Permission for a header that hides who asks (Requester).
func ParseSayRequest(m *nats.Msg) (SayRequest, error) {
	var r SayRequest
	if len(m.Data) > MaxSaid+1024 ||
		len(m.Data) > MaxSaid && json.Unmarshal(m.Data, &r) == nil && len(r.Content) > MaxSaid {
		return r, fault.New(fault.TooLarge, "what is said has more than %d bytes", MaxSaid).
			WithHint("say where the rest is to be found")
	}
	if err := readOnce(m.Data, "what is said", sayKeys, &r); err != nil {
		return r, err.WithHint(`write {"agent": "a", "id": "m1", "content": "With my dog."}`)
	}
	switch {
	case !subjects.ValidStepToken(r.Agent) || !subjects.ValidStepID(r.ID):
		return r, fault.New(fault.InvalidID, "the agent's step %q, or the id %q, is none",
			text.Clip(r.Agent, 80), text.Clip(r.ID, 80)).
			WithHint("an id is 1 to 64 of A-Z a-z 0-9 _ -; the steps of a run: stepjet get RUN")
	case r.Mode != "" && r.Mode != Steer && r.Mode != Interrupt:
		return r, fault.New(fault.InvalidValue, "%q is no mode", text.Clip(r.Mode, 64)).
			WithHint(`"steer", or leave it out: nothing ends that runs; "interrupt" ends the round`)
	case !isSaid(r.Content):
		return r, fault.New(fault.InvalidValue, "nothing is said").
			WithHint(`"content" is a text, or a list of parts: [{"type": "text", "text": "…"}]`)
	}
	if r.By = text.Clip(r.By, maxBy); r.Mode == Steer {
		r.Mode = ""
	}
	who, err := Requester(m)
	if r.Verified = who != ""; r.Verified {
		r.By = who
	}
	return r, err
}

// isSaid reports whether content is a text or a list, and not empty.
func isSaid(content json.RawMessage) bool {
	var words string
	var parts []json.RawMessage
	return json.Unmarshal(content, &words) == nil && words != "" ||
		json.Unmarshal(content, &parts) == nil && len(parts) > 0
}

// SayReply is the answer to a request to say something: it stands, and is taken by a round.
type SayReply struct {
	Run   string `json:"run"` // plain id
	Agent string `json:"agent"`
	ID    string `json:"id"`
	// Round is the one that took it; nil as long as it waits for the next.
	Round *int `json:"round,omitempty"`
	// Already says that it stood before this request, which says the same.
	Already bool `json:"already,omitempty"`
}

// Body writes the answer.
func (a SayReply) Body() []byte {
	body, _ := json.Marshal(a) // of texts and numbers
	return body
}
