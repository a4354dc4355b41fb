package kv

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Sign is something that the worker of a tool says to JetStream, as one who listens beside it sees it.
type Sign struct {
	// Kind is what was said.
	Kind SignKind
	// StreamSeq and Delivered, of what is said about a step: the sequence of its message, and which delivery is meant.
	StreamSeq uint64
	Delivered int
	// Call, of Managed: the request to JetStream's API, such as CONSUMER.CREATE.
	Call string
	// Expires and Heartbeat, of Pulled: how long the request lives at the server, 0 for ever, and how often the
	// server says that it does, 0 for never.
	Expires, Heartbeat time.Duration
}

// SignKind is a kind of Sign.
type SignKind int

// The kinds of signs.
const (
	Acked      SignKind = iota + 1 // +ACK, or an empty body
	Naked                          // -NAK
	InProgress                     // +WPI
	Terminated                     // +TERM
	Managed                        // it wants to create, change, pause or delete a consumer or a stream
	Pulled                         // it asks for steps, and waits for them
)

const ackPrefix = "$JS.ACK."

// SignSubjects returns what to subscribe to in order to see every sign of a tool's workers.
func SignSubjects(t tool.Registered) []string {
	stream := subjects.StepsStream(t.Shard)
	return []string{
		ackPrefix + stream + "." + subjects.Durable(t.Name) + ".>", ackPrefix + "*.*." + stream + "." + subjects.Durable(t.Name) + ".>",
		apiPrefix + "CONSUMER.>", apiPrefix + "STREAM.>",
	}
}

// managing are the requests that only an orchestrator makes.
var managing = []string{
	"CONSUMER.DURABLE.CREATE", "CONSUMER.CREATE", "CONSUMER.DELETE", "CONSUMER.PAUSE", "CONSUMER.RESET",
	"STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.MSG.DELETE",
}

// ParseSign reads a message that came on one of SignSubjects; false for what means nothing here: a request that only
// looks, or one about another stream.
func ParseSign(t tool.Registered, m *nats.Msg) (Sign, bool) {
	if strings.HasPrefix(m.Subject, ackPrefix) {
		at, ok := parseMeta(m.Subject)
		word, _, _ := strings.Cut(string(m.Data), " ")
		kind := map[string]SignKind{"": Acked, "+ACK": Acked, "+NXT": Acked, "-NAK": Naked, "+WPI": InProgress, "+TERM": Terminated}[word]
		return Sign{Kind: kind, StreamSeq: at.streamSeq, Delivered: int(at.delivered)}, ok && kind != 0
	}
	stream := subjects.StepsStream(t.Shard)
	if m.Subject == apiPrefix+"CONSUMER.MSG.NEXT."+stream+"."+subjects.Durable(t.Name) {
		return parsePull(m.Data)
	}
	for _, call := range managing {
		rest, ok := strings.CutPrefix(m.Subject, apiPrefix+call+".")
		if name, _, _ := strings.Cut(rest, "."); ok && name == stream {
			return Sign{Kind: Managed, Call: call}, true
		}
	}
	return Sign{}, false
}

// parsePull reads a request for steps; false for one that doesn't wait, which the server answers at once. A body that
// is no object is the number of steps alone.
func parsePull(body []byte) (Sign, bool) {
	var pull struct {
		Expires   time.Duration `json:"expires"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
		NoWait    bool          `json:"no_wait"`
	}
	_ = json.Unmarshal(body, &pull) // a number leaves all as it is
	return Sign{Kind: Pulled, Expires: pull.Expires, Heartbeat: pull.Heartbeat}, !pull.NoWait || pull.Expires > 0
}
