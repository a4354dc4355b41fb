package servers

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
)

// maxText is the longest text of a definition that nobody has to look at before models read it, in bytes.
const maxText = 8 << 10

// cleaned returns a definition whose texts hold nothing that a person would not see: no control characters but line
// breaks and tabs, nothing invisible, nothing that turns the direction of writing. A definition that is clean stays
// byte for byte as it is.
func cleaned(raw json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	changed := false
	v = mapTexts(v, func(s string) string {
		c := Clean(s)
		changed = changed || c != s
		return c
	})
	if !changed {
		return raw
	}
	out, err := jsontape.Marshal(v)
	if err != nil { // it was JSON before
		return raw
	}
	return out
}

// mapTexts replaces every string of a JSON value, keys apart.
func mapTexts(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = mapTexts(v[i], f)
		}
	case map[string]any:
		for k := range v {
			v[k] = mapTexts(v[k], f)
		}
	}
	return v
}

// Clean takes what can't be seen out of a text.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, s)
}

func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r): // control; format: zero width, bidi, tags
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef: // variation selectors can carry bytes
		return true
	}
	return strings.ContainsRune("\u115f\u1160\u3164\uffa0\u2800", r) // blank letters
}

// orders are ways to speak to the model that reads a description, instead of describing the tool to it.
var orders = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`<\s*/?\s*(important|system|instructions?|secret|hidden|admin)\b[^>]*>`,
	`\b(ignore|disregard|forget|override)\b[^.\n]{0,40}\b(previous|prior|earlier|above|all|other|system)\b[^.\n]{0,40}\b(instructions?|rules?|prompts?|messages?|directions?)\b`,
	`\b(do not|don't|never|without)\b[^.\n]{0,30}\b(tell(ing)?|mention(ing)?|inform(ing)?|reveal(ing)?|notify(ing)?|show(ing)?)\b[^.\n]{0,40}\b(the )?(user|human|person)\b`,
	`\b(before|after|instead of|when(ever)?) (using|calling|invoking|you (use|call)) (this|any|other|another|the other) (other )?tools?\b[^.\n]{0,60}\b(you must|always|first|read|send|call|pass)\b`,
	`\b(system|developer) prompt\b`,
	`\b(read|send|include|upload|pass|forward)\b[^.\n]{0,60}(~/\.|id_rsa|\.ssh|\.env\b|\bcredentials?\b|\bpasswords?\b|\bapi[ _-]?keys?\b)[^.\n]{0,60}\b(as|in|into|to|with)\b`,
}, "|"))

// suspicions say why somebody should look at a definition before models read it; none for most. others are the names
// of the tools of the other servers.
func suspicions(pinned json.RawMessage, others []string) (why []string) {
	dec := json.NewDecoder(bytes.NewReader(pinned))
	var v any
	if dec.Decode(&v) != nil {
		return []string{"its definition can't be read"}
	}
	say := func(s string) {
		if !slices.Contains(why, s) {
			why = append(why, s)
		}
	}
	mapTexts(v, func(s string) string {
		if len(s) > maxText {
			say("a text of " + itoa(len(s)) + " bytes")
		}
		c := Clean(s)
		if found := orders.FindString(c); found != "" {
			say("what may be an order to the model: " + quote(found))
		}
		for _, name := range others {
			if namesTool(c, name) {
				say("it names a tool of another server, " + name)
			}
		}
		return s
	})
	return why
}

func quote(s string) string { return "\"" + text.Cut(s, 80) + "\"" }

// namesTool reports whether a text speaks of a tool. A name that is one plain word may mean the word.
func namesTool(s, name string) bool {
	if !strings.ContainsAny(name, "_-./:") {
		return false
	}
	for i := strings.Index(s, name); i >= 0; {
		before, after := s[:i], s[i+len(name):]
		if !endsInName(before) && (after == "" || !nameByte(after[0])) {
			return true
		}
		next := strings.Index(after, name)
		if next < 0 {
			return false
		}
		i += len(name) + next
	}
	return false
}

func endsInName(s string) bool { return s != "" && nameByte(s[len(s)-1]) }

func nameByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
