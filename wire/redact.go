package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// Redacted stands where a secret's value would.
const Redacted = "[secret]"

// minSecret is the shortest value, in bytes, that is looked for in texts. Shorter ones would turn up everywhere.
const minSecret = 4

// Redact gives s with the values of the context's secrets replaced, those of 4 bytes and more.
func (c Context) Redact(s string) string {
	if r := c.replacer(); r != nil {
		return r.Replace(s)
	}
	return s
}

// RedactError gives e with the values of the context's secrets replaced in message, hint and details; e itself where it
// has none. The cause, which is never sent, is dropped.
func (c Context) RedactError(e *fault.Error) *fault.Error {
	r := c.replacer()
	if r == nil || e == nil {
		return e
	}
	clean := *e
	clean.Message, clean.Hint, clean.Details, clean.Cause = r.Replace(e.Message), r.Replace(e.Hint), redactJSON(e.Details, r), nil
	return &clean
}

// replacer replaces all secrets in one pass, a longer one before a shorter that it begins with; nil if there is none.
func (c Context) replacer() *strings.Replacer {
	var secrets []string
	for k, v := range c.entries() {
		if c.Secret(k) && len(v) >= minSecret {
			secrets = append(secrets, v)
		}
	}
	if secrets == nil {
		return nil
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, v := range secrets {
		pairs = append(pairs, v, Redacted)
	}
	return strings.NewReplacer(pairs...)
}

// redactJSON looks at texts as they read, however they are escaped. Where nothing is found the bytes stay as they are.
func redactJSON(raw json.RawMessage, r *strings.Replacer) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return json.RawMessage(r.Replace(string(raw)))
	}
	found := false
	v = redactValue(v, r, &found)
	if !found {
		return raw
	}
	clean, err := json.Marshal(v)
	if err != nil { // it was decoded from JSON
		return nil
	}
	return clean
}

func redactValue(v any, r *strings.Replacer, found *bool) any {
	text := func(s string) string {
		clean := r.Replace(s)
		*found = *found || clean != s
		return clean
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case json.Number:
		if clean := text(string(v)); clean != string(v) {
			return clean
		}
	case []any:
		for i := range v {
			v[i] = redactValue(v[i], r, found)
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k, x := range v {
			clean[text(k)] = redactValue(x, r, found)
		}
		return clean
	}
	return v
}
