package request

import (
	"encoding/json"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// count is what is left of rounds that not even ids are left of.
type count struct {
	from, to             int64
	calls, failed, bytes int64
	messages             []json.RawMessage
	summary              json.RawMessage // of the first of them
}

// counted makes the oldest entries of what was cut one, as far as they have more than most bytes: how many calls there
// were, and what people have said, the last of it where that is too much.
func counted(cut []json.RawMessage, most int) []json.RawMessage {
	if sizeOf(cut) <= most {
		return cut
	}
	c := countOf(cut[0])
	n := 1
	rest := sizeOf(cut[1:])
	for n < len(cut) && c.size()+rest > most {
		c.add(countOf(cut[n]))
		rest -= len(cut[n]) + 1
		n++
	}
	for len(c.messages) > 0 && c.size()+rest > most {
		c.messages = c.messages[1:]
	}
	return append([]json.RawMessage{c.json()}, cut[n:]...)
}

// countOf counts an entry of what was cut: a round, a count, or a summary.
func countOf(entry json.RawMessage) (c count) {
	c.messages = items(member(entry, "messages"))
	if rounds := member(entry, "rounds"); rounds != nil {
		var between [2]int64
		_ = json.Unmarshal(rounds, &between)
		c.from, c.to = between[0], between[1]
		c.calls, c.failed, c.bytes = integer(entry, "calls"), integer(entry, "failed"), integer(entry, "bytes")
		c.summary = member(entry, "summary")
		return c
	}
	c.from = integer(entry, "round")
	c.to = c.from
	for _, rec := range items(member(entry, "records")) {
		c.calls++
		c.bytes += integer(rec, "bytes")
		if string(member(rec, "status")) == `"failed"` {
			c.failed++
		}
	}
	return c
}

func (c *count) add(next count) {
	c.to = next.to
	c.calls, c.failed, c.bytes = c.calls+next.calls, c.failed+next.failed, c.bytes+next.bytes
	c.messages = append(c.messages, next.messages...)
}

func (c *count) size() int {
	return sizeOf(c.messages) + len(c.summary) + 128 // of the members at most
}

func (c *count) json() json.RawMessage {
	var o jsontape.ObjectWriter
	o.Add("rounds", span(c.from, c.to))
	if c.summary != nil {
		o.Add("summary", c.summary)
	}
	o.Int("calls", c.calls)
	o.Int("failed", c.failed)
	o.Int("bytes", c.bytes)
	if len(c.messages) > 0 {
		o.Add("messages", jsontape.AppendArray(nil, c.messages))
	}
	return o.JSON()
}
