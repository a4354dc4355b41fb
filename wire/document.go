package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Documented returns the headers of the document of a finished run, where it lies in its key: with its head. handle says
// where the rest of it lies; nil: it is all there.
func Documented(doc *outcome.Run, handle *outcome.Handle) nats.Header {
	h := VersionedBy(handle)
	of := outcome.HeadOf(doc)
	head, err := json.Marshal(of)
	if len(head) > maxHead { // many tools, whose calls took all sorts of times
		of.Calls = nil
		head, err = json.Marshal(of)
	}
	if err == nil {
		h[subjects.HeaderHead] = []string{string(head)}
	} // else a time is none in JSON: whoever lists it reads the document
	return h
}

// maxHead is the longest head that says what calls came to: a record has room for headers of 16 KiB.
const maxHead = 8 << 10

// ParseHead reads the head of a document from its headers; false where there is none that can be read.
func ParseHead(h nats.Header) (head outcome.Head, ok bool) {
	v := get(h, subjects.HeaderHead)
	return head, v != "" && json.Unmarshal([]byte(v), &head) == nil && head.Status != ""
}

// HeadReply writes the answer to a request for the head of a run that goes on.
func HeadReply(h outcome.Head) []byte {
	b, _ := json.Marshal(h) // a struct of plain fields: it can't fail
	return b
}

// ParseHeadReply reads an answer to a request for a head. Errors: what was answered in its place, and Internal.
func ParseHeadReply(m *nats.Msg) (h outcome.Head, err error) {
	if err := ParseRefusal(m.Header, m.Data); err != nil {
		return h, err
	}
	if err := json.Unmarshal(m.Data, &h); err != nil {
		return h, fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
	}
	return h, nil
}
