package wire

import (
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Refusal writes an error as the answer to a request.
func Refusal(err error) (nats.Header, []byte) { return Result{Error: fault.As(err)}.Message() }

// ParseRefusal returns the error that an answer says, as it was sent; nil for an answer that refuses nothing.
func ParseRefusal(h nats.Header, body []byte) error {
	if get(h, subjects.HeaderStatus) != subjects.StatusError {
		return nil
	}
	var f fault.Error
	if err := json.Unmarshal(body, &f); err != nil {
		return fault.Wrap(fault.Internal, err, "reading an orchestrator's refusal")
	}
	return &f
}

// Registration says which worker a request to register a tool is of. All of it is optional.
type Registration struct {
	Worker string
	Keys   []string // ids of the keys with which it opens sealed secrets
}

// noKeys is what a worker says that holds none. One that says nothing may be older than the question.
const noKeys = "none"

// Header writes a registration's headers, without the version that every request has.
func (r Registration) Header() nats.Header {
	keys := noKeys
	if len(r.Keys) > 0 {
		keys = strings.Join(r.Keys, ",")
	}
	return nats.Header{subjects.HeaderWorker: {r.Worker}, subjects.HeaderKeys: {keys}}
}

// ParseRegistration reads what a registration says of its worker; ok is false where it says nothing.
func ParseRegistration(h nats.Header) (r Registration, ok bool) {
	worker, keys := get(h, subjects.HeaderWorker), get(h, subjects.HeaderKeys)
	if worker == "" || keys == "" {
		return Registration{}, false
	}
	r.Worker = worker
	if keys != noKeys {
		r.Keys = strings.Split(keys, ",")
	}
	return r, true
}

// Cancel is the body of a request to cancel a run. An empty one is fine: nobody is named then.
type Cancel struct {
	By string `json:"by"`
}

// Body writes the request.
func (c Cancel) Body() []byte {
	body, _ := json.Marshal(c) // a string: it can't fail
	return body
}

// ParseCancel reads the request. It never fails: of what can't be read, nobody is named.
func ParseCancel(body []byte) Cancel {
	var c Cancel
	if json.Unmarshal(body, &c) != nil {
		return Cancel{}
	}
	return c
}

// Cancelled is the answer to a request to cancel a run: what stop of it stands.
type Cancelled struct {
	Run    string            `json:"run"`    // plain id
	Status outcome.RunStatus `json:"status"` // what the stop ends the run with; outcome.Expired where its deadline was first
	By     string            `json:"by,omitempty"`
	// Already says that it stood before this request.
	Already bool `json:"already,omitempty"`
}

// Body writes the answer.
func (c Cancelled) Body() []byte {
	body, _ := json.Marshal(c) // strings: it can't fail
	return body
}
