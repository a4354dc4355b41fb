package outcome

import (
	"time"
	"unicode/utf8"
)

// Message is what an agent has told people by a call of its entry "communicate". It follows from the call's record, and is
// there for as long as the run is.
type Message struct {
	// Step is the call. Its result is the whole message.
	Step string `json:"step"`
	// Round is the round of the agent that the call stands in, from 0.
	Round int `json:"round"`
	// At is when the record of the call was written.
	At time.Time `json:"at,omitzero"`
	// Text is what it says, as its planner wrote it: text of anybody. It has at most MaxMessage bytes, and is empty where the call's
	// result could not be read.
	Text string `json:"text,omitempty"`
	// Bytes is how many bytes the whole message has, where Text is not all of it.
	Bytes int64 `json:"bytes,omitempty"`
	// Reused is whether it was told by the run that this one tries again, and not once more.
	Reused bool `json:"reused,omitempty"`
}

// MaxMessage is the most bytes of a message that stand in a document and in an event.
const MaxMessage = 4096

// Says sets what the message says: all of it, or its beginning and how long it is.
func (m *Message) Says(whole string) {
	const mark = "…"
	m.Text, m.Bytes = whole, 0
	if len(whole) <= MaxMessage {
		return
	}
	end := MaxMessage - len(mark)
	for end > 0 && !utf8.RuneStart(whole[end]) {
		end--
	}
	m.Text, m.Bytes = whole[:end]+mark, int64(len(whole))
}
