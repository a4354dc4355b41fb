package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays may lie in each other, in a tool's output.
const maxDepth = 64

var (
	errSyntax    = errors.New("no JSON value")
	errUTF8      = errors.New("bytes or surrogates that are no text")
	errDuplicate = errors.New("the same key twice in one object")
	errDepth     = errors.New("nested too deep")
)

// value is one JSON value, together with the very bytes that spell it.
type value struct {
	raw     []byte
	kind    byte     // the first byte; numbers are '0', true and false are 't'
	text    string   // of a string: what it says
	members []member // of an object or an array, in their order

	calc *condition // of an object in a value that is a calculation
}

// member is a part of an object or an array. The offsets count in the raw bytes of the value that it is part of.
type member struct {
	key              string // of objects only
	keyStart, keyEnd int    // of objects only
	start, end       int
	value            *value
}

// get returns the member of an object with a key; nil where there is none.
func (v *value) get(key string) *value {
	for _, m := range v.members {
		if v.kind == '{' && m.key == key {
			return m.value
		}
	}
	return nil
}

// option is get, except that null counts as absent, as it does for all options of a plan.
func (v *value) option(key string) *value {
	if m := v.get(key); m != nil && m.kind != 'n' {
		return m
	}
	return nil
}

// read takes bytes apart that hold exactly one JSON value, with or without space around it.
func read(raw []byte) (*value, error) {
	switch {
	case !utf8.Valid(raw):
		return nil, errUTF8
	case !json.Valid(raw):
		return nil, whyInvalid(raw)
	}
	return readValue(bytes.TrimSpace(raw), 0)
}

// maxAround is how many objects and arrays Stepjet itself puts around what a tool returned: an array of entries.
const maxAround = 2

// readResult is read for what references see, which may be deeper than a tool's output.
func readResult(raw []byte) (*value, error) { return readValue(bytes.TrimSpace(raw), -maxAround) }

// whyInvalid tells JSON that is too deep even for encoding/json (10,000) from what is no JSON.
func whyInvalid(raw []byte) error {
	var skip json.RawMessage
	if err := json.Unmarshal(raw, &skip); err != nil && strings.Contains(err.Error(), "max depth") {
		return errDepth
	}
	return errSyntax
}

func readValue(raw []byte, above int) (*value, error) {
	v := &value{raw: raw, kind: raw[0]}
	switch raw[0] {
	case '{', '[':
		if above == maxDepth {
			return nil, errDepth
		}
		return v, v.readMembers(above + 1)
	case '"':
		if loneSurrogate(raw) {
			return nil, errUTF8
		}
		return v, json.Unmarshal(raw, &v.text)
	case 'n':
	case 't', 'f':
		v.kind = 't'
	default:
		v.kind = '0'
	}
	return v, nil
}

func (v *value) readMembers(depth int) error {
	dec := json.NewDecoder(bytes.NewReader(v.raw))
	if _, err := dec.Token(); err != nil { // the opening bracket
		return err
	}
	seen := map[string]bool{}
	for dec.More() {
		var m member
		if v.kind == '{' {
			if err := m.readKey(v.raw, dec); err != nil {
				return err
			}
			if seen[m.key] {
				return errDuplicate
			}
			seen[m.key] = true
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		m.end = int(dec.InputOffset())
		m.start = m.end - len(raw)
		child, err := readValue(v.raw[m.start:m.end], depth)
		if err != nil {
			return err
		}
		m.value = child
		v.members = append(v.members, m)
	}
	return nil
}

func (m *member) readKey(raw []byte, dec *json.Decoder) error {
	before := int(dec.InputOffset())
	token, err := dec.Token()
	if err != nil {
		return err
	}
	key, ok := token.(string)
	if !ok {
		return fmt.Errorf("%v is no key", token)
	}
	m.key, m.keyEnd = key, int(dec.InputOffset())
	m.keyStart = m.keyEnd - len(bytes.TrimLeft(raw[before:m.keyEnd], " \t\r\n,"))
	if loneSurrogate(raw[m.keyStart:m.keyEnd]) {
		return errUTF8
	}
	return nil
}

var (
	escapeRE = regexp.MustCompile(`(?s)\\(u[0-9A-Fa-f]{4}|.)`)
	pairRE   = regexp.MustCompile(`\x00[H]\x00[L]`)
)

// loneSurrogate reports whether a JSON string has half of a surrogate pair: every \u escape of a high half becomes the
// mark H, of a low half L; whole pairs are taken out, and no mark may be left. (A raw NUL can't occur in a string.)
func loneSurrogate(raw []byte) bool {
	marked := escapeRE.ReplaceAllFunc(raw, func(e []byte) []byte {
		n, err := strconv.ParseUint(string(e[2:]), 16, 16)
		switch {
		case err != nil || e[1] != 'u':
			return []byte("?")
		case n >= 0xD800 && n < 0xDC00:
			return []byte("\x00H")
		case n >= 0xDC00 && n < 0xE000:
			return []byte("\x00L")
		}
		return []byte("?")
	})
	return bytes.IndexByte(pairRE.ReplaceAll(marked, nil), 0) >= 0
}

// shortEscapes are the characters of a JSON string that have an escape of their own.
var shortEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`,
}

// encode spells a string as JSON, in its shortest form: only quotes, backslashes and control characters are escaped.
func encode(s string) []byte {
	var b bytes.Buffer
	b.WriteByte('"')
	for _, r := range s {
		short, ok := shortEscapes[r]
		switch {
		case ok:
			b.WriteString(short)
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.Bytes()
}

// Convert returns the JSON value that a tool's output stands for: text/plain is a string; otherwise JSON is itself,
// without the space around it, and all else is a string; nothing at all is null, unless it was declared to be text.
func Convert(body []byte, text bool) ([]byte, *Err) {
	if !utf8.Valid(body) {
		return nil, &Err{Code: codeToolTerminal, Message: errUTF8.Error()}
	}
	if text { // also when it is empty: the first rule that fits counts
		return encode(string(body)), nil
	}
	if len(body) == 0 {
		return []byte("null"), nil
	}
	switch v, err := read(body); {
	case err == nil:
		return v.raw, nil
	case errors.Is(err, errSyntax):
		return encode(string(body)), nil
	default:
		return nil, &Err{Code: codeToolTerminal, Message: err.Error()}
	}
}
