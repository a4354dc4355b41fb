// Package jsonmend reads the JSON that a language model wrote: as it stands, in a fence of Markdown, or repaired once and
// mechanically, by quotes, commas and comments. It never makes up what is not there: what was cut off stays so. And it picks
// nothing out of a text: where one speaks about such JSON, nobody can tell whether it is meant.
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

// Flaw is why a text is not read as JSON.
type Flaw int

// The flaws.
const (
	// None: there is a value, and it is wanted.
	None Flaw = iota
	// Words: the text is none, and holds none that is wanted.
	Words
	// Unwanted: there is a value, and it is not wanted.
	Unwanted
	// Unreadable: it begins as JSON, and is none.
	Unreadable
	// CutOff: it ends before its outermost value is closed.
	CutOff
	// Amid: what is wanted stands among words.
	Amid
	// Several: what is wanted stands there more than once.
	Several
)

// Told says what is wrong with a text, and what to write instead; nothing of one that has a value, or is one of words.
func (f Flaw) Told() (message, hint string) {
	switch f {
	case CutOff:
		return "the answer ends before its JSON is closed, and is not made whole by guessing; nothing of it was run",
			"answer with one whole JSON object, with less at a time"
	case Amid:
		return "there is JSON among the words of this answer, and nobody can tell whether it is meant; nothing of it was run",
			`answer with the JSON object and nothing else, or with {"output": "the text"}`
	case Several:
		return "there is JSON more than once in this answer, and nobody can tell which is meant; nothing of it was run",
			`answer with one JSON object and nothing else, or with {"output": "the text"}`
	case Unreadable:
		return "the answer looks like JSON, and can't be read as an answer", "answer with one JSON object and nothing else"
	case None, Words, Unwanted:
	}
	return "", ""
}

// Read is what a text was read as.
type Read struct {
	// Value is its JSON, compact; nil for none. It is there for None and Unwanted.
	Value json.RawMessage
	// Repaired says that it is none as it was written.
	Repaired bool
	Flaw     Flaw
}

// Value reads JSON: a text that is some, as it stands or in a fence, or that ends with some in a fence, behind words that have
// none. wanted says which value is meant.
func Value(text string, wanted func(json.RawMessage) bool) Read {
	t := strings.TrimSpace(text)
	if strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") || json.Valid([]byte(t)) {
		return bare(t, wanted)
	}
	if quoted(t) {
		return Read{Flaw: CutOff}
	}
	return inWords(t, wanted)
}

// bare reads a text that begins as JSON.
func bare(t string, wanted func(json.RawMessage) bool) Read {
	if json.Valid([]byte(t)) {
		return judged(compact([]byte(t)), false, wanted)
	}
	s := shapeOf(t)
	switch {
	case s.end == 0 && (t[0] == '{' || jsonBegins(t[1:])):
		return Read{Flaw: CutOff}
	case s.end == 0:
		return inWords(t, wanted)
	case strings.Trim(t[s.end:], closers) == "":
		if v, ok := Repair(t); ok {
			return judged(v, true, wanted)
		}
		return Read{Flaw: Unreadable}
	}
	out := inWords(t, wanted) // something stands behind it
	if out.Flaw == Words && t[0] == '{' {
		out.Flaw = Unreadable
	}
	return out
}

// closers may stand behind a value: they are too many, and nothing is missing.
const closers = "}], ;\t\r\n"

func judged(v json.RawMessage, repaired bool, wanted func(json.RawMessage) bool) Read {
	if wanted(v) {
		return Read{Value: v, Repaired: repaired}
	}
	return Read{Value: v, Repaired: repaired, Flaw: Unwanted}
}

// quoted reports whether a text is the beginning of a string. One that closes its first quote quotes somebody.
func quoted(t string) bool {
	if !strings.HasPrefix(t, `"`) {
		return false
	}
	for i := 1; i < len(t); i++ {
		switch t[i] {
		case '\\':
			i++
		case '"':
			return false
		}
	}
	return true
}

// jsonBegins reports whether what stands behind a bracket is how JSON goes on, and not a word as in "[note]".
func jsonBegins(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	return rest == "" || strings.ContainsRune("{[\"'-0123456789", rune(rest[0])) ||
		strings.HasPrefix(rest, "true") || strings.HasPrefix(rest, "false") || strings.HasPrefix(rest, "null")
}

// inWords reads a text with other words than JSON: it may end with some in a fence.
func inWords(t string, wanted func(json.RawMessage) bool) Read {
	found, out := 0, Read{Flaw: Words}
	for at := 0; at < len(t); {
		f, is := nextFence(t, at)
		n, cut := held(t[at:f.from], wanted)
		found += n
		if !is {
			if cut {
				return Read{Flaw: CutOff}
			}
			break
		}
		at = f.to
		switch ends := f.to == len(t); {
		case f.text == "" || f.text[0] != '{' && f.text[0] != '[': // code, mostly
		case !ends:
			n, _ := held(f.text, wanted)
			found += n
		default:
			r := bare(f.text, wanted)
			switch {
			case r.Flaw == None:
				found++
			case f.from > 0 && (r.Flaw == Unwanted || r.Flaw == Unreadable && !objectBegins(f.text)):
				r = Read{Flaw: Words} // words that end with an example
			}
			out = r
		}
	}
	switch {
	case found > 1:
		return Read{Flaw: Several}
	case found == 1 && out.Flaw != None:
		return Read{Flaw: Amid}
	}
	return out
}

// mostHeld is how many brackets of a text of words are looked at closely.
const mostHeld = 64

// held counts what is wanted in a text of words, and reports whether it ends within an object.
func held(words string, wanted func(json.RawMessage) bool) (n int, cut bool) {
	for tries := 0; tries < mostHeld; tries++ {
		at := strings.IndexByte(words, '{')
		if at < 0 {
			return n, false
		}
		words = words[at:]
		s := shapeOf(words)
		if s.end == 0 {
			return n, objectBegins(words)
		}
		if v := json.RawMessage(words[:s.end]); json.Valid(v) && wanted(v) {
			n++
		}
		words = words[s.end:]
	}
	return n, false
}

// objectBegins reports whether some bracket of a text that closes none is followed by a quoted name, as that of an object.
func objectBegins(t string) bool {
	for _, open := range strings.Split(t, "{")[1:] {
		rest, is := strings.CutPrefix(strings.TrimLeft(open, " \t\r\n"), `"`)
		if _, behind, closed := strings.Cut(rest, `"`); is && (!closed || strings.HasPrefix(strings.TrimLeft(behind, " \t\r\n"), ":")) {
			return true
		}
	}
	return false
}

// Repair mends what looks as if it were to be JSON, once and mechanically: quotes, commas, comments. All its brackets have to
// be there, up to that of the outermost value: no bracket is made up, and nothing that was left out.
func Repair(text string) (json.RawMessage, bool) {
	if len(text) > MaxRepair || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || depth(text) > MaxDepth {
		return nil, false
	}
	s := shapeOf(text)
	if s.end == 0 || s.elided || strings.Trim(text[s.end:], closers) != "" {
		return nil, false
	}
	mended, err := jsonrepair.Repair(text[:s.end])
	if err != nil || !json.Valid([]byte(mended)) || shapeOf(mended).brackets != s.brackets {
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
