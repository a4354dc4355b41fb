package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Answer is the record that a question was answered: by a person, or by the run's owner because its time was over, or
// because what is asked about can't be shown.
type Answer struct {
	// Digest names what was shown. An answer with another than that of the question where it stands in the ledger is
	// void.
	Digest string `json:"digest"`
	// Decision is one of the constants; empty where Value or Error says it.
	Decision string `json:"decision,omitempty"`
	// Value decides the step instead of its tool, or is what was asked for; nil for none.
	Value json.RawMessage `json:"value,omitempty"`
	// Arguments take the place of those that were shown; nil leaves them.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Error is the owner's: why there is nothing to show. The step fails with it.
	Error  *fault.Error `json:"error,omitempty"`
	Reason string       `json:"reason,omitempty"`
	By     string       `json:"by,omitempty"`
	// Verified says that By is the server's word.
	Verified bool `json:"verified,omitempty"`
}

// The decisions.
const (
	Approve = "approve"
	Reject  = "reject"
	// Expire is the owner's: nobody answered in time. What that comes to the question says.
	Expire = "expire"
)

// Limits of what an answer says, in bytes.
const (
	maxReason = 4096
	maxBy     = 256
)

// Message writes an answer as headers and body.
func (a Answer) Message() (nats.Header, []byte) {
	body, err := json.Marshal(a)
	if err != nil && a.Error != nil { // details that are no JSON
		a.Error = withoutDetails(a.Error)
		body, err = json.Marshal(a)
	}
	if err != nil { // a value that is no JSON: nobody of ours makes such, and it is void
		body, _ = json.Marshal(Answer{})
	}
	return Versioned(), body
}

// ParseAnswer reads an answer. It never fails: what can't be read has no digest, and so is void.
func ParseAnswer(body []byte) Answer {
	var a Answer
	if json.Unmarshal(body, &a) != nil {
		return Answer{}
	}
	return a.clipped()
}

func (a Answer) clipped() Answer {
	a.Reason, a.By = text.Clip(a.Reason, maxReason), text.Clip(a.By, maxBy)
	return a
}

// Same reports whether two answers say the same of the same, whoever said it.
func (a Answer) Same(b Answer) bool {
	return a.Digest == b.Digest && a.Decision == b.Decision && sameJSON(a.Value, b.Value) && sameJSON(a.Arguments, b.Arguments)
}

// sameJSON compares two values as they are written, but for white space.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// AnswerRequest is the body of a request to answer a question.
type AnswerRequest struct {
	Step string `json:"step"`
	Answer
}

// Body writes the request.
func (r AnswerRequest) Body() ([]byte, error) {
	r.Verified = false
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fault.New(fault.InvalidValue, "the answer is no JSON: %v", err)
	}
	return body, nil
}

// ParseAnswerRequest reads the request, and what the server says of who made it. Errors: InvalidValue, which says how
// it is written; TooLarge for more than InlineLimit; Permission for a header that hides who asks (Requester).
func ParseAnswerRequest(m *nats.Msg) (AnswerRequest, error) {
	var r AnswerRequest
	if len(m.Data) > InlineLimit {
		return r, fault.New(fault.TooLarge, "the answer has %d bytes, at most %d are allowed", len(m.Data), InlineLimit).
			WithHint("hand large data on by a name or an address")
	}
	if err := readOnce(m.Data, "the answer", answerKeys, &r); err != nil {
		return r, err.WithHint(`write {"step": "pay", "digest": "…", "decision": "approve" or "reject"}, or "value" instead of "decision"`)
	}
	switch {
	case r.Step == "" || r.Digest == "":
		return r, fault.New(fault.InvalidValue, "the answer names no step, or no digest of what it is for").
			WithHint("both stand in the question: stepjet questions show RUN STEP")
	case (r.Decision == "") == (r.Value == nil):
		return r, fault.New(fault.InvalidValue, "an answer has either a decision or a value").
			WithHint(`"decision": "approve" lets the step run, "value" takes the place of its result`)
	case r.Decision != "" && r.Decision != Approve && r.Decision != Reject:
		return r, fault.New(fault.InvalidValue, "%q is no decision", text.Clip(r.Decision, 64)).WithHint(`"approve" or "reject"`)
	case r.Arguments != nil && r.Decision != Approve:
		return r, fault.New(fault.InvalidValue, `arguments are for "decision": "approve" alone`).
			WithHint("leave them out, or approve")
	}
	r.Answer = r.clipped()
	r.Error = nil // an owner's alone
	who, err := Requester(m)
	if r.Verified = who != ""; r.Verified {
		r.By = who
	}
	return r, err
}

// answerKeys are the members that an answer may have.
var answerKeys = []string{"step", "digest", "decision", "value", "arguments", "error", "reason", "by", "verified", meantKey}

// Requester returns who made a request, by the server's word alone: account and user. A server tells of whoever comes
// from an account that imports the subject with "share", and puts its own word in the place of what such a request
// said. It is empty where the server says nothing: within the account of Stepjet, anybody may write this header.
//
// A request that came through an import and has more than that word and the version of the form, or bytes that were not
// read, is an error, Permission: who asks must not be able to hide it. The server replaces the lines that end in CR LF,
// while readers take those that end in LF alone, and stop at an empty one. So who writes the bytes of a header by hand
// can have a line of its own stay, or that of the server not be seen.
func Requester(m *nats.Msg) (string, error) {
	if !subjects.Imported(m.Reply) {
		return "", nil
	}
	if !servers(m) {
		return "", fault.New(fault.Permission, "the request has a header of its own beside what the server says of who asks").
			WithHint("send no header but " + subjects.HeaderVersion)
	}
	var info struct {
		Account string `json:"acc"`
		User    string `json:"user"`
	}
	if json.Unmarshal([]byte(get(m.Header, subjects.HeaderRequestInfo)), &info) != nil || info.User == "" {
		return "", nil
	}
	return text.Clip(strings.TrimPrefix(info.Account+"/"+info.User, "/"), maxBy), nil
}

// servers reports whether all that stands in a header but the version is the server's word, once, or nothing.
func servers(m *nats.Msg) bool {
	known := 0
	if v := m.Header[subjects.HeaderVersion]; len(v) == 1 && v[0] == subjects.Version {
		known++
	}
	if len(m.Header[subjects.HeaderRequestInfo]) == 1 {
		known++
	}
	read := nats.Msg{Subject: m.Subject, Reply: m.Reply, Header: m.Header, Data: m.Data}
	return len(m.Header) == known && m.Size() == read.Size()
}

// AnswerReply is the answer to a request to answer a question: what stands for it.
type AnswerReply struct {
	Run  string `json:"run"` // plain id
	Step string `json:"step"`
	outcome.Answered
	// Already says that it stood before this request, which says the same.
	Already bool `json:"already,omitempty"`
}

// Body writes the answer.
func (a AnswerReply) Body() []byte {
	body, _ := json.Marshal(a) // strings and a time: it can't fail
	return body
}

// QuestionMessage writes an entry of the bucket "questions" as headers and body.
func QuestionMessage(q *outcome.Question) (nats.Header, []byte) {
	body, err := json.Marshal(q)
	if err != nil { // a schema that is no JSON: its call has been refused
		short := *q
		short.Schema, short.Choices, short.Arguments, short.Change, short.Plan = nil, nil, nil, nil, nil
		body, _ = json.Marshal(&short)
	}
	if q.Revision > 0 || q.Round != nil {
		return nats.Header{subjects.HeaderVersion: {subjects.NeedsVersion}}, body
	}
	return VersionedBy(q.Blob), body
}

// ParseQuestion reads an entry of the bucket "questions"; name says which, for errors. Errors: NewerVersion; Internal
// for what nobody of Stepjet's wrote.
func ParseQuestion(h nats.Header, body []byte, name string) (*outcome.Question, error) {
	if !KindQuestion.Known(h) {
		return nil, Newer("the question " + name)
	}
	var q outcome.Question
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading the question "+name)
	}
	return &q, nil
}
