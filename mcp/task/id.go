package task

import (
	"encoding/base64"
	"strings"
)

// Kind is what a run is to its caller, which says what its result looks like.
type Kind string

// The kinds.
const (
	Plan Kind = "p" // a plan: the result is the outcome
	Tool Kind = "t" // a call of one tool: the result is the tool's
)

// ID is what a handle names.
type ID struct {
	Run  string
	Kind Kind
}

// Sign writes the handle of a run for its owner: <run>.<kind>.<code>, or without a code where there is no key. A run's
// id may hold dots.
func (k Keys) Sign(id ID, o Owner) string {
	text := id.Run + "." + string(id.Kind)
	if len(k) == 0 {
		return text
	}
	code := mac(k[0], "task", id.Run, string(id.Kind), o.Tenant, o.Principal)[:macSize]
	return text + "." + base64.RawURLEncoding.EncodeToString(code)
}

// Parse reads a handle; ok is false for one that none of the keys made for that owner.
func (k Keys) Parse(handle string, o Owner) (id ID, ok bool) {
	text, code := handle, ""
	if len(k) > 0 {
		dot := strings.LastIndexByte(handle, '.')
		if dot < 0 {
			return id, false
		}
		text, code = handle[:dot], handle[dot+1:]
	}
	dot := strings.LastIndexByte(text, '.')
	if dot < 1 {
		return id, false
	}
	id = ID{Run: text[:dot], Kind: Kind(text[dot+1:])}
	if id.Kind != Plan && id.Kind != Tool {
		return id, false
	}
	if len(k) == 0 {
		return id, true
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(code)
	return id, err == nil && k.verify(raw, "task", id.Run, string(id.Kind), o.Tenant, o.Principal)
}
