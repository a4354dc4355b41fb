package hosted

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
)

// Problems are all that is wrong with a tools file, in the order of their places.
type Problems []fault.Problem

// Error lists the problems, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		place := one.Path
		if place == "" {
			place = "/"
		}
		lines[i] = place + ": " + one.Message
		if one.Hint != "" {
			lines[i] += " (" + one.Hint + ")"
		}
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(code fault.Code, path, hint, format string, args ...any) {
	*p = append(*p, fault.Problem{Code: code, Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// wrong notes an invalid value.
func (p *Problems) wrong(path, hint, format string, args ...any) {
	p.add(fault.InvalidValue, path, hint, format, args...)
}

// under returns the pointer of a member.
func under(path, key string) string {
	return path + "/" + jsontape.EscapeToken(key)
}

// fields reads one object of the file strictly.
type fields struct {
	path     string
	values   map[string]json.RawMessage
	problems *Problems
}

// object checks that raw is an object of known fields.
func (p *Problems) object(path string, raw json.RawMessage, known ...string) (fields, bool) {
	f := fields{path: path, problems: p}
	if err := json.Unmarshal(raw, &f.values); err != nil || f.values == nil {
		p.wrong(path, "", "it must be an object, not %s", kind(raw))
		return f, false
	}
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		if !slices.Contains(known, name) {
			p.add(fault.UnknownField, under(path, name), suggest(name, known), "the field %q is not known here", name)
		}
	}
	return f, true
}

func (f fields) has(name string) bool { return f.values[name] != nil }

func (f fields) at(name string) string { return under(f.path, name) }

// read decodes a field; false where it is absent or not what it should be, which is noted.
func (f fields) read(name string, into any, what string) bool {
	raw := f.values[name]
	if raw == nil {
		return false
	}
	if err := json.Unmarshal(raw, into); err != nil || string(raw) == "null" {
		f.problems.wrong(f.at(name), "", "it must be %s, not %s", what, kind(raw))
		return false
	}
	return true
}

func (f fields) text(name string) (s string, ok bool) {
	ok = f.read(name, &s, "a string")
	return s, ok
}

func (f fields) flag(name string) (b bool) {
	f.read(name, &b, "true or false")
	return b
}

func (f fields) texts(name string) (s []string) {
	f.read(name, &s, "an array of strings")
	return s
}

func (f fields) textMap(name string) (m map[string]string) {
	f.read(name, &m, "an object of strings")
	return m
}

// number reads a whole number between 1 and most.
func (f fields) number(name string, otherwise, most int64) int64 {
	var n int64
	if !f.read(name, &n, "a whole number") {
		return otherwise
	}
	if n < 1 || n > most {
		f.problems.wrong(f.at(name), "", "it must be between 1 and %d, not %d", most, n)
		return otherwise
	}
	return n
}

// choice reads one of a few words; the first is the default.
func (f fields) choice(name string, words ...string) string {
	s, ok := f.text(name)
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, s) {
		hint := ""
		if near := text.NearMiss(s, words...); near != "" {
			hint = suggest(s, words)
		}
		f.problems.wrong(f.at(name), hint, "it must be one of %s, not %q", strings.Join(words, ", "), s)
		return words[0]
	}
	return s
}

func kind(raw json.RawMessage) string {
	switch {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "an array"
	case raw[0] == '"':
		return "a string"
	case raw[0] == 'n':
		return "null"
	case raw[0] == 't' || raw[0] == 'f':
		return "a boolean"
	}
	return "the number " + text.Cut(string(raw), 40)
}

// suggest names the word that was probably meant, or all of them.
func suggest(s string, words []string) string {
	if near := text.NearMiss(s, words...); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + strings.Join(words, ", ")
}
