package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// Redacted stands where a secret's value would.
const Redacted = "[secret]"

// minSecret is the shortest value, in bytes, that is looked for in texts. Shorter ones would turn up everywhere.
const minSecret = 4

// Redactor takes the values of secrets out of texts. It may be used from many goroutines; nil changes nothing.
type Redactor struct {
	r       *strings.Replacer
	secrets []string
}

// NewRedactor makes one for the secrets of some contexts, those of 4 bytes and more; nil where they have none.
func NewRedactor(contexts ...Context) *Redactor {
	secrets := map[string]bool{}
	for _, c := range contexts {
		for k, v := range c.entries() {
			if c.Secret(k) && !c.Sealed(k) && len(v) >= minSecret {
				secrets[v] = true
			}
		}
	}
	if len(secrets) == 0 {
		return nil
	}
	longestFirst := func(a, b string) int { return cmp.Compare(len(b), len(a)) } // one may begin with another
	all := slices.SortedFunc(maps.Keys(secrets), longestFirst)
	pairs := make([]string, 0, 2*len(all))
	for _, v := range all {
		pairs = append(pairs, v, Redacted)
	}
	return &Redactor{strings.NewReplacer(pairs...), all}
}

// Text returns s without secrets.
func (r *Redactor) Text(s string) string {
	if r == nil {
		return s
	}
	return r.r.Replace(s)
}

// Excerpt is Text for what was cut out of a longer text: at its edges it also takes out what is left of a secret that
// was cut through, where that is 4 bytes and more.
func (r *Redactor) Excerpt(s string) string {
	if r == nil {
		return s
	}
	s = r.Text(s)
	head, tail := 0, 0
	for _, v := range r.secrets {
		for n := minSecret; n < len(v); n++ {
			if strings.HasPrefix(s, v[len(v)-n:]) {
				head = max(head, n)
			}
			if strings.HasSuffix(s, v[:n]) {
				tail = max(tail, n)
			}
		}
	}
	if head+tail > len(s) {
		return Redacted
	}
	if head > 0 {
		s = Redacted + s[head:]
	}
	if tail > 0 {
		s = s[:len(s)-tail] + Redacted
	}
	return s
}

// Error returns e without secrets in message, hint and details; e itself where there are none to look for. The cause,
// which is never sent, is dropped.
func (r *Redactor) Error(e *fault.Error) *fault.Error {
	if r == nil || e == nil {
		return e
	}
	clean := *e
	clean.Message, clean.Hint, clean.Details, clean.Cause = r.Text(e.Message), r.Text(e.Hint), redactJSON(e.Details, r), nil
	return &clean
}

// redactJSON looks at texts as they read, however they are escaped. Where nothing is found the bytes stay as they are.
func redactJSON(raw json.RawMessage, r *Redactor) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return json.RawMessage(r.Text(string(raw)))
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

func redactValue(v any, r *Redactor, found *bool) any {
	text := func(s string) string {
		clean := r.Text(s)
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
