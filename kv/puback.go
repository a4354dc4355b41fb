package kv

import (
	"bytes"
	"encoding/json"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

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
