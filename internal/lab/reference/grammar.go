package reference

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// The grammar of references, as regular expressions. They are anchored at the start only.
const (
	idPattern      = `[A-Za-z0-9_-]{1,64}`
	dotPattern     = `\.[A-Za-z0-9_-]+`
	indexPattern   = `\[(?:0|[1-9][0-9]*)\]`
	stringPattern  = `"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"`
	quotedPattern  = `\[` + stringPattern + `\]`
	everyPattern   = `\[\*\]`
	segmentPattern = dotPattern + `|` + indexPattern + `|` + quotedPattern + `|` + everyPattern
	refPattern     = `^(` + idPattern + `)((?:` + segmentPattern + `)*)`
)

var (
	refRE     = regexp.MustCompile(refPattern)
	segmentRE = regexp.MustCompile(segmentPattern)
	quotesRE  = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"?`) // one that isn't closed goes on to the end
	prefixRE  = regexp.MustCompile(`(\$+)(?:(\{?ref:|\{input\.)|(\{?(?:error|status):)[A-Za-z0-9_-])`)
	wholeRE   = regexp.MustCompile(`^\$(?:(ref):|(error|status):[A-Za-z0-9_-])`)
	spacesRE  = regexp.MustCompile(`^[ \t\r\n]*`)
	wordRE    = regexp.MustCompile(`^(?:input|last)[.\[]`)
)

var errRef = errors.New("invalid_ref")

// What a reference goes into.
const (
	ofResult = "ref"
	ofError  = "error"
	ofStatus = "status"
)

// ref is a reference: a step and the way into its result, or into how it ended.
type ref struct {
	of   string // one of the constants above
	id   string
	text string // as written
	path []segment
}

// segment is one part of a path: .text, [text], ["text"] or [*].
type segment struct {
	form byte // '.', '[', '"' or '*'
	text string
}

// cutRef takes the longest reference off the start of s.
func cutRef(s string) (r ref, rest string, ok bool) {
	m := refRE.FindStringSubmatch(s)
	if m == nil {
		return ref{}, s, false
	}
	r.of, r.id, r.text = ofResult, m[1], m[0]
	for _, part := range segmentRE.FindAllString(m[2], -1) {
		seg := segment{form: part[0], text: strings.Trim(part, ".[]")}
		if seg.form == '[' && part[1] == '"' {
			seg = segment{form: '"'}
			quoted := []byte(part[1 : len(part)-1])
			if loneSurrogate(quoted) || json.Unmarshal(quoted, &seg.text) != nil {
				return ref{}, s, false
			}
		}
		if part == "[*]" {
			seg.form = '*'
		}
		r.path = append(r.path, seg)
	}
	return r, s[len(m[0]):], true
}

// cutPrefixed takes the longest reference off the start of s, with what is before it: $ref:, $error: or $status:. is
// tells whether one of those is there at all.
func cutPrefixed(s string) (r ref, rest string, is, ok bool) {
	m := wholeRE.FindStringSubmatch(s)
	if m == nil {
		return ref{}, s, false, false
	}
	of := m[1] + m[2]
	r, rest, ok = cutRef(s[len("$")+len(of)+len(":"):])
	r.of = of
	return r, rest, true, ok
}

// wholeRef reads a reference that is all of s.
func wholeRef(s string) (ref, error) {
	r, rest, ok := cutRef(s)
	if !ok || rest != "" {
		return ref{}, errRef
	}
	return r, nil
}

// phrase is what a string in the arguments means: one of four forms.
type phrase struct {
	form   phraseForm
	refs   []ref   // of whole (one) and of alternatives
	scalar []byte  // of alternatives: the JSON scalar at the end; nil for none
	pieces []piece // of a template: text and references, in their order
	plain  string  // of plain: the text, its escapes undone
}

type phraseForm int

const (
	plain phraseForm = iota
	whole
	alternatives
	template
)

// piece is a part of a template: a reference, or text.
type piece struct {
	text string
	ref  *ref
}

// parse finds out what a string in the arguments means. The forms are tried in the order in which the language lists
// them.
func parse(s string) (phrase, error) {
	if r, after, is, ok := cutPrefixed(s); is {
		if ok && strings.HasPrefix(skipSpaces(after), "||") {
			return parseAlternatives(s)
		}
		if !strings.ContainsAny(quotesRE.ReplaceAllString(s, ""), " \t\r\n") {
			if !ok || after != "" {
				return phrase{}, errRef
			}
			return phrase{form: whole, refs: []ref{r}}, nil
		}
	}
	if reservedWord(s) {
		return phrase{}, errRef
	}
	if n := len(s) - len(strings.TrimLeft(s, "$")); n > 1 && reservedWord(s[n-1:]) {
		return parseTemplate(s[1:]) // one of the dollars is the escape
	}
	return parseTemplate(s)
}

// reservedWord reports whether a string is, as a whole, one of the references that belong to no step and mean nothing
// yet.
func reservedWord(s string) bool {
	rest, ok := strings.CutPrefix(s, "$")
	if !ok {
		return false
	}
	if wordRE.MatchString(rest) && !strings.ContainsAny(quotesRE.ReplaceAllString(rest, ""), " \t\r\n$") {
		return true
	}
	r, rest, ok := cutRef(rest)
	if !ok || r.id != "input" && r.id != "last" && (r.id != "index" || len(r.path) > 0) {
		return false
	}
	return rest == "" || strings.HasPrefix(skipSpaces(rest), "||")
}

func skipSpaces(s string) string { return s[len(spacesRE.FindString(s)):] }

// parseAlternatives reads references with || between them; the last may be a scalar. Space is free around || and
// nowhere else; where the language says "spaces", tabs and line ends are taken to be meant too.
func parseAlternatives(s string) (phrase, error) {
	p := phrase{form: alternatives}
	for {
		r, rest, is, ok := cutPrefixed(s)
		if !is {
			p.scalar = []byte(s)
			if !scalar(s) {
				return p, errRef
			}
			return p, nil
		}
		if !ok {
			return p, errRef
		}
		p.refs = append(p.refs, r)
		if rest == "" {
			return p, nil
		}
		if s, ok = strings.CutPrefix(skipSpaces(rest), "||"); !ok {
			return p, errRef
		}
		s = skipSpaces(s)
	}
}

// scalar reports whether s is one JSON string, number, true, false or null, and nothing around it.
func scalar(s string) bool {
	return json.Valid([]byte(s)) && !strings.ContainsAny(s[:1], "{[") && strings.Trim(s, " \t\r\n") == s && !loneSurrogate([]byte(s))
}

// parseTemplate reads text with references in it. It is plain where there are none.
func parseTemplate(s string) (phrase, error) {
	p := phrase{form: plain}
	text := ""
	for {
		m := prefixRE.FindStringSubmatchIndex(s)
		if m == nil {
			break
		}
		end := max(m[5], m[7])
		dollars, opening := m[3]-m[2], s[m[3]:end]
		text += s[:m[0]] + strings.Repeat("$", dollars/2) // an odd n gives (n-1)/2, and the division rounds down
		s = s[end:]
		if dollars%2 == 0 {
			text += opening
			continue
		}
		if opening == "{input." {
			return p, errRef // it means nothing yet
		}
		r, rest, ok := cutRef(s)
		if !ok || !endsWell(opening, rest) {
			return p, errRef
		}
		r.of = strings.Trim(opening, "{:")
		s = strings.TrimPrefix(rest, closing(opening))
		p.form = template
		p.pieces = append(p.pieces, piece{text: text}, piece{ref: &r})
		text = ""
	}
	p.plain = text + s
	p.pieces = append(p.pieces, piece{text: p.plain})
	return p, nil
}

// closing is what ends a reference that was opened so, and is no text.
func closing(opening string) string {
	if opening[0] == '{' {
		return "}"
	}
	return ""
}

// endsWell reports whether a reference in a template may be followed by rest.
func endsWell(opening, rest string) bool {
	switch {
	case opening[0] == '{':
		return strings.HasPrefix(rest, "}")
	case rest == "", rest[0] >= 0x80:
		return true
	case rest[0] == '.':
		return rest == "." || strings.ContainsAny(rest[1:2], " \t\r\n")
	}
	return strings.ContainsAny(rest[:1], " \t\r\n"+`,;:!?)]}"'`)
}

// parseKey undoes the escapes of a key. A reference in it is an error. The keys $ref and $$ref are not for it.
func parseKey(key string) (string, error) {
	p, err := parseTemplate(key)
	if err == nil && p.form != plain {
		err = errRef
	}
	return p.plain, err
}
