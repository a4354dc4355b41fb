package kv

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// meta is what the reply subject of a message from a consumer tells.
type meta struct {
	delivered   uint64 // how often this message was delivered, from 1
	streamSeq   uint64
	consumerSeq uint64
	time        int64 // when the stream stored it, Unix nanoseconds
	pending     uint64
}

// parseMeta reads a reply subject: $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
// or, from newer servers, the same with <domain>.<account> before the stream and possibly more tokens at the end.
func parseMeta(reply string) (m meta, ok bool) {
	rest, ok := strings.CutPrefix(reply, "$JS.ACK.")
	if !ok {
		return m, false
	}
	skip := 2
	if strings.Count(rest, ".") >= 8 {
		skip = 4
	}
	for range skip {
		if _, rest, ok = strings.Cut(rest, "."); !ok {
			return m, false
		}
	}
	var at int64
	for _, field := range []*uint64{&m.delivered, &m.streamSeq, &m.consumerSeq, nil, &m.pending} {
		var token string
		token, rest, _ = strings.Cut(rest, ".")
		n, ok := number(token)
		if !ok {
			return m, false
		}
		if field == nil {
			at = int64(n)
		} else {
			*field = n
		}
	}
	m.time = at
	return m, true
}

// number reads a decimal number without allocating an error.
func number(s string) (n uint64, ok bool) {
	if s == "" || len(s) > 19 {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	return n, true
}

// status returns the code of a control message of JetStream's, such as "100" or "409"; "" for a message of somebody's.
func status(m *nats.Msg) string {
	if len(m.Data) > 0 || len(m.Header) == 0 || strings.HasPrefix(m.Reply, "$JS.ACK.") {
		return ""
	}
	return first(m.Header, "Status")
}

// last returns the last value of a header whose name is written exactly so.
func last(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// first returns the first value of a header whose name is written exactly so.
func first(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// NoResponders reports whether a message is the server's word that nobody listens to what a request was published on.
func NoResponders(m *nats.Msg) bool { return len(m.Data) == 0 && first(m.Header, "Status") == "503" }

// parseAck reads JetStream's answer to a publish. {"stream":"KV_runs_0","seq":12} is read by hand, all else (errors,
// duplicates, domains) by a decoder.
func parseAck(m *nats.Msg) ack {
	if NoResponders(m) {
		return ack{err: nats.ErrNoResponders}
	}
	if seq, ok := plainAck(m.Data); ok {
		return ack{seq: seq}
	}
	var full struct {
		Error     *jetstream.APIError `json:"error"`
		Seq       uint64              `json:"seq"`
		Duplicate bool                `json:"duplicate"`
	}
	if json.Unmarshal(m.Data, &full) != nil || full.Error == nil && full.Seq == 0 {
		return ack{err: errNoAnswer} // whatever that was, it decides nothing
	}
	if full.Error != nil {
		code := full.Error.ErrorCode
		if code == 0 {
			code = jetstream.ErrorCode(full.Error.Code) // an error without a code of its own is still no success
		}
		return ack{code: code, text: full.Error.Description}
	}
	return ack{seq: full.Seq, duplicate: full.Duplicate}
}

var (
	ackStream = []byte(`{"stream":"`)
	ackSeq    = []byte(`seq":`)
)

// plainAck reads an answer that has a stream and a sequence and nothing else.
func plainAck(b []byte) (seq uint64, ok bool) {
	b, ok = bytes.CutPrefix(b, ackStream)
	if !ok {
		return 0, false
	}
	end := bytes.IndexByte(b, '"') // the names of streams hold no quotes
	if end < 0 {
		return 0, false
	}
	b = bytes.TrimLeft(b[end+1:], `, "`)
	if b, ok = bytes.CutPrefix(b, ackSeq); !ok {
		return 0, false
	}
	b = bytes.TrimLeft(b, " ")
	digits := 0
	for digits < len(b) && b[digits] >= '0' && b[digits] <= '9' {
		seq = seq*10 + uint64(b[digits]-'0')
		digits++
	}
	return seq, digits > 0 && digits < 20 && seq > 0 && len(b) == digits+1 && b[digits] == '}'
}
