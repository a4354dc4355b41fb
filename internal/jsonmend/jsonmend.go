// Package jsonmend reads the JSON that a language model wrote: as it stands, within a fence of Markdown or other text, or
// repaired once and mechanically, by quotes, commas, comments and brackets. It never makes up what is not there.
package jsonmend

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// Bounds of what is repaired. The repair goes down into each bracket, and looks at what it has written so far: it is
// for slips of a model, not for documents.
const (
	// MaxRepair is the longest text that is repaired, in bytes.
	MaxRepair = 128 << 10
	// MaxDepth is how deep it may nest.
	MaxDepth = 100
)

// Value reads JSON: as it stands, within a fence or other text, or repaired once. It is compact. wanted says which value is
// meant; ok is false where there is none such.
func Value(text string, wanted func(json.RawMessage) bool) (v json.RawMessage, repaired, ok bool) {
	whole := strings.TrimSpace(Unfenced(text))
	if v = json.RawMessage(whole); json.Valid(v) && wanted(v) {
		return compact(v), false, true
	}
	if v, ok = within(text, wanted); ok {
		return v, false, true
	}
	if v, ok = Repair(whole); ok && wanted(v) {
		return v, true, true
	}
	return nil, false, false
}

// Unfenced takes the fence of Markdown off a text that is nothing else.
func Unfenced(text string) string {
	t := strings.TrimSpace(text)
	rest, fenced := strings.CutPrefix(t, "```")
	if !fenced {
		return t
	}
	if first, after, ok := strings.Cut(rest, "\n"); ok && !strings.ContainsAny(first, "{[\"") {
		rest = after
	}
	return strings.TrimSuffix(strings.TrimSpace(rest), "```")
}

// within returns the first object in a text that is wanted. Each opening brace is tried, as far as there are few.
func within(text string, wanted func(json.RawMessage) bool) (json.RawMessage, bool) {
	const tries = 16
	for at, n := 0, 0; n < tries; n++ {
		next := strings.IndexByte(text[at:], '{')
		if next < 0 {
			break
		}
		at += next
		var v json.RawMessage
		if json.NewDecoder(strings.NewReader(text[at:])).Decode(&v) == nil {
			if wanted(v) {
				return compact(v), true
			}
			at += len(v)
			continue
		}
		at++
	}
	return nil, false
}

// Repair mends what looks as if it were to be JSON, once and mechanically: quotes, commas, comments, brackets.
func Repair(text string) (json.RawMessage, bool) {
	if len(text) > MaxRepair || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || depth(text) > MaxDepth {
		return nil, false
	}
	mended, err := jsonrepair.Repair(text)
	if err != nil || !json.Valid([]byte(mended)) {
		return nil, false
	}
	return compact([]byte(mended)), true
}

// depth bounds how deep a text may be nested, by its opening brackets, wherever they stand.
func depth(text string) (most int) {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			open++
			most = max(most, open)
		case '}', ']':
			open = max(open-1, 0)
		}
	}
	return most
}

// compact returns JSON without spaces.
func compact(raw []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
