package model

import (
	"encoding/json"
	"strings"
)

// early watches an object of commands as it is written, and knows as soon as it is sure that nothing is to be executed:
// its own member next_action has come, and says "response". What stands in strings or deeper is nobody's decision.
type early struct {
	text    []byte
	at      int
	depth   int
	start   int // of the string that is open, behind its quote
	key     string
	quoted  bool
	escaped bool
	value   bool // the next string at depth 1 is a value
	given   bool
	sure    bool
}

// write takes more of the text and reports whether it is sure.
func (e *early) write(more string) bool {
	e.text = append(e.text, more...)
	for ; e.at < len(e.text) && !e.given; e.at++ {
		e.step(e.text[e.at])
	}
	return e.sure
}

func (e *early) step(c byte) {
	switch {
	case e.escaped:
		e.escaped = false
	case e.quoted && c == '\\':
		e.escaped = true
	case e.quoted && c == '"':
		e.quoted = false
		e.ended(e.text[e.start-1 : e.at+1])
	case e.quoted:
	case e.depth == 0 && c != '{':
		e.given = !strings.ContainsRune("`json \t\r\n", rune(c)) // a text around an object may hold others, as examples
	case c == '"':
		e.quoted, e.start = true, e.at+1
	case c == '{' || c == '[':
		e.depth++
	case c == '}' || c == ']':
		e.depth--
	case e.depth == 1 && c == ':':
		e.value = true
	case e.depth == 1 && c == ',':
		e.value = false
	}
}

// ended takes a string that has been closed, with its quotes.
func (e *early) ended(quoted []byte) {
	var s string
	if e.depth != 1 || json.Unmarshal(quoted, &s) != nil {
		return
	}
	if !e.value {
		e.key = s
		return
	}
	if e.key == "next_action" {
		e.given, e.sure = true, s == "response"
	}
}
