package model

import (
	"encoding/json"
	"strings"

	"github.com/stepjet/stepjet/internal/jsonmend"
)

// written is a call as far as it has been written.
type written struct {
	id, name  string
	arguments strings.Builder
}

// object returns the arguments of a call as an object, or as a string of what was written.
func (w *written) object() (args json.RawMessage, repaired, ok bool) {
	text := w.arguments.String()
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}"), false, true
	}
	if v := json.RawMessage(text); isObject(v) {
		return compact(v), false, true
	}
	if v, ok := jsonmend.Repair(strings.TrimSpace(text)); ok && anObject(v) {
		return v, true, true
	}
	return encode(text), false, false
}
