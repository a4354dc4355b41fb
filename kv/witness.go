package kv

import (
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
)

// Sign is something that the worker of a tool says to JetStream, as one who listens beside it sees it.
type Sign struct {
	// Kind is what was said.
	Kind SignKind
	// StreamSeq and Delivered, of what is said about a step: the sequence of its message, and which delivery is meant.
	StreamSeq uint64
	Delivered int
	// Call, of Meddled: the request to JetStream's API, such as CONSUMER.CREATE.
	Call string
}

// SignKind is a kind of Sign.
type SignKind int

// The kinds of signs.
const (
	Acked      SignKind = iota + 1 // +ACK, or an empty body
	Naked                          // -NAK
	InProgress                     // +WPI
	Terminated                     // +TERM
	Meddled                        // it wants to create, change, pause or delete a consumer or a stream
)

const ackPrefix = "$JS.ACK."

// SignSubjects gives what to subscribe to in order to see every sign of a tool's workers.
func SignSubjects(t Tool) []string {
	stream := subjects.StepsStream(t.Shard)
	return []string{
		ackPrefix + stream + "." + subjects.Durable(t.Name) + ".>", ackPrefix + "*.*." + stream + "." + subjects.Durable(t.Name) + ".>",
		apiPrefix + "CONSUMER.>", apiPrefix + "STREAM.>",
	}
}

// meddling are the requests that only an orchestrator makes.
var meddling = []string{
	"CONSUMER.DURABLE.CREATE", "CONSUMER.CREATE", "CONSUMER.DELETE", "CONSUMER.PAUSE", "CONSUMER.RESET",
	"STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.MSG.DELETE",
}

// ParseSign reads a message that came on one of SignSubjects; false for what means nothing here: a request that only
// looks, or one about another stream.
func ParseSign(t Tool, m *nats.Msg) (Sign, bool) {
	if strings.HasPrefix(m.Subject, ackPrefix) {
		at, ok := parseMeta(m.Subject)
		word, _, _ := strings.Cut(string(m.Data), " ")
		kind := map[string]SignKind{"": Acked, "+ACK": Acked, "+NXT": Acked, "-NAK": Naked, "+WPI": InProgress, "+TERM": Terminated}[word]
		return Sign{Kind: kind, StreamSeq: at.streamSeq, Delivered: int(at.delivered)}, ok && kind != 0
	}
	stream := subjects.StepsStream(t.Shard)
	for _, call := range meddling {
		rest, ok := strings.CutPrefix(m.Subject, apiPrefix+call+".")
		if name, _, _ := strings.Cut(rest, "."); ok && name == stream {
			return Sign{Kind: Meddled, Call: call}, true
		}
	}
	return Sign{}, false
}
