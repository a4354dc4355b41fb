package wire

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxToken bounds what is told at once of what a handler is writing, in bytes.
const MaxToken = 4_096

// Token is a part of what the handler of a step is writing.
type Token struct {
	// At is how many bytes of it came before: whoever has missed some sees so.
	At   int64  `json:"at,omitempty"`
	Text string `json:"text"`
}

// Body writes what a worker tells, of MaxToken bytes at most.
func (t Token) Body() []byte {
	b, _ := json.Marshal(t) // of a number and a text: it can't fail
	return b
}

// ParseToken reads what a worker tells: a text that does nothing where it is shown but break lines. ok is false for what is
// none.
func ParseToken(body []byte) (t Token, ok bool) {
	if len(body) > 8*MaxToken || json.Unmarshal(body, &t) != nil || t.At < 0 || t.At > exact || t.Text == "" || len(t.Text) > MaxToken {
		return Token{}, false
	}
	t.Text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case !unicode.IsPrint(r) || r == utf8.RuneError:
			return '_'
		}
		return r
	}, t.Text)
	return t, true
}

// TokenReply is what the owner of a run answers to it.
type TokenReply struct {
	// Heard says that somebody may be listening. Else the worker keeps silent for a while.
	Heard bool `json:"heard"`
}

// Body writes the answer.
func (r TokenReply) Body() []byte {
	b, _ := json.Marshal(r) // of a bool: it can't fail
	return b
}

// ParseTokenReply reads it; what can't be read is a no.
func ParseTokenReply(body []byte) (r TokenReply) {
	if json.Unmarshal(body, &r) != nil {
		return TokenReply{}
	}
	return r
}
