package model

import (
	"bytes"
	"encoding/json"
)

// transcript is a request as a conversation, before it is put into the form of a provider. It only grows: that of a
// later round begins with that of an earlier one, but for what the tail says.
type transcript struct {
	system string
	tools  []Tool // offered natively, by name
	turns  []turn
	schema json.RawMessage // of the answer; nil for text and native calls
	strict bool            // the schema is the asker's own, and the answer is its value
	ids    map[string]bool // of native calls: no two of a conversation may have the same
	tailed bool            // the last turn is true of this request alone
}

// kept returns the turns whose ends a cache should know: that up to which the next request of the conversation has all, and
// that up to which the one before had. -1 is none.
func (t transcript) kept() (now, before int) {
	now, before = len(t.turns)-1, -1
	if t.tailed {
		now--
	}
	for i := now; i > 0 && before < 0; i-- {
		if t.turns[i].role == assistant && t.turns[i-1].role == user {
			before = i - 1
		}
	}
	return now, before
}

// turn is what one side says at a time.
type turn struct {
	role    role
	text    string
	calls   []Step   // of the model
	results []result // of calls
	state   *State   // of the provider, instead of text and calls
}

type role string

const (
	user      role = "user"
	assistant role = "assistant"
)

// result is what a call came to, as text.
type result struct {
	id, text string
	failed   bool
}

func (t *transcript) say(text string) { t.turns = append(t.turns, turn{role: user, text: text}) }

func (t *transcript) message(m Message) {
	if m.Role != "system" { // those stand in the system prompt
		t.turns = append(t.turns, turn{role: role(m.Role), text: string(m.Content)})
	}
}

func orEmpty(records []Record) []Record {
	if records == nil {
		return []Record{}
	}
	return records
}

// objectOf returns arguments as an object; those of a call that were none become one, since providers take no other.
func objectOf(raw json.RawMessage) json.RawMessage {
	switch {
	case isObject(raw):
		return compact(raw)
	case isNull(raw):
		return json.RawMessage("{}")
	}
	return encode(map[string]json.RawMessage{"arguments": compact(raw)})
}

// result is what a model is told of a call: its result, or its error.
func (rec Record) result() result {
	out := result{id: rec.ID}
	switch {
	case !isNull(rec.Error):
		out.text, out.failed = `{"error":`+string(compact(rec.Error))+`}`, true
	case !isNull(rec.Result):
		out.text = readable(rec.Result)
	case rec.Status != "" && rec.Status != "succeeded":
		out.text, out.failed = string(encode(map[string]string{"status": rec.Status})), true
	default:
		out.text = "null"
	}
	if rec.Note != "" {
		out.text += "\n" + rec.Note
	}
	return out
}

// readable returns a string as its text, any other value as JSON.
func readable(raw json.RawMessage) string {
	var text string
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) && json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(compact(raw))
}
