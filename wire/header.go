package wire

import (
	"encoding/json"
	"mime"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// header is the headers of a message being written. Their values lie in one slice, so that they cost one allocation
// together. More than eight of them would cost a larger map.
type header struct {
	nats.Header
	values []string
}

func newHeader() header {
	h := header{make(nats.Header, 8), make([]string, 0, 8)}
	h.Header[subjects.HeaderVersion] = ourVersion
	return h
}

// ourVersion is shared by all messages; nobody writes to it.
var ourVersion = []string{subjects.Version}

func (h *header) set(name, value string) {
	n := len(h.values)
	h.values = append(h.values, value)
	h.Header[name] = h.values[n : n+1 : n+1]
}

// get reads a header by its exact name; the canonicalising Get of net/textproto costs more and would also match others.
func get(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (h *header) setTime(name string, t time.Time) {
	if !t.IsZero() {
		h.set(name, t.UTC().Format(time.RFC3339Nano))
	}
}

func getTime(h nats.Header, name string) time.Time {
	v := get(h, name)
	if v == "" {
		return time.Time{} // without the error that parsing it would make
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		return time.Time{}
	}
	return t
}

func (h *header) setHandle(handle *outcome.Handle) {
	if handle != nil {
		b, _ := json.Marshal(handle) // plain fields: it can't fail
		h.set(subjects.HeaderHandle, string(b))
	}
}

func getHandle(h nats.Header) (*outcome.Handle, error) {
	s := get(h, subjects.HeaderHandle)
	if s == "" {
		return nil, nil
	}
	var handle outcome.Handle
	if err := json.Unmarshal([]byte(s), &handle); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading "+subjects.HeaderHandle)
	}
	if handle.Name == "" || handle.Size < 0 {
		return nil, fault.New(fault.Internal, "%s without name or size", subjects.HeaderHandle)
	}
	return &handle, nil
}

func isText(contentType string) bool {
	if contentType == "" {
		return false
	}
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.EqualFold(t, "text/plain")
}
