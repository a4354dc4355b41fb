// Package jsonfile reads files of JSON that people write: strictly, all problems at once, each with its place as a JSON
// pointer and a hint at what was probably meant.
package jsonfile

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

// Problems are all that is wrong with a file, in the order of their places.
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

// Add notes a problem.
func (p *Problems) Add(code fault.Code, path, hint, format string, args ...any) {
	*p = append(*p, fault.Problem{Code: code, Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Wrong notes an invalid value.
func (p *Problems) Wrong(path, hint, format string, args ...any) {
	p.Add(fault.InvalidValue, path, hint, format, args...)
}

// Under returns the pointer of a member.
func Under(path, key string) string {
	return path + "/" + jsontape.EscapeToken(key)
}

// Fields reads one object of the file strictly.
type Fields struct {
	Path     string
	Values   map[string]json.RawMessage
	problems *Problems
}

// With returns the same object with other members.
func (f Fields) With(values map[string]json.RawMessage) Fields {
	f.Values = values
	return f
}

// Object checks that raw is an object of known fields.
func (p *Problems) Object(path string, raw json.RawMessage, known ...string) (Fields, bool) {
	f := Fields{Path: path, problems: p}
	if err := json.Unmarshal(raw, &f.Values); err != nil || f.Values == nil {
		p.Wrong(path, "", "it must be an object, not %s", kind(raw))
		return f, false
	}
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		if !slices.Contains(known, name) {
			p.Add(fault.UnknownField, Under(path, name), Suggest(name, known), "the field %q is not known here", name)
		}
	}
	return f, true
}

// Has reports whether a field is there.
func (f Fields) Has(name string) bool { return f.Values[name] != nil }

// At returns the pointer of a field.
func (f Fields) At(name string) string { return Under(f.Path, name) }

// Read decodes a field; false where it is absent or not what it should be, which is noted.
func (f Fields) Read(name string, into any, what string) bool {
	raw := f.Values[name]
	if raw == nil {
		return false
	}
	if err := json.Unmarshal(raw, into); err != nil || string(raw) == "null" {
		f.problems.Wrong(f.At(name), "", "it must be %s, not %s", what, kind(raw))
		return false
	}
	return true
}

// Text reads a string; ok is false where it is absent or none.
func (f Fields) Text(name string) (s string, ok bool) {
	ok = f.Read(name, &s, "a string")
	return s, ok
}

// Flag reads true or false, false where it is absent.
func (f Fields) Flag(name string) (b bool) {
	f.Read(name, &b, "true or false")
	return b
}

// Texts reads an array of strings.
func (f Fields) Texts(name string) (s []string) {
	f.Read(name, &s, "an array of strings")
	return s
}

// TextMap reads an object of strings.
func (f Fields) TextMap(name string) (m map[string]string) {
	f.Read(name, &m, "an object of strings")
	return m
}

// Number reads a whole number between 1 and most.
func (f Fields) Number(name string, otherwise, most int64) int64 {
	var n int64
	if !f.Read(name, &n, "a whole number") {
		return otherwise
	}
	if n < 1 || n > most {
		f.problems.Wrong(f.At(name), "", "it must be between 1 and %d, not %d", most, n)
		return otherwise
	}
	return n
}

// Choice reads one of a few words; the first is the default.
func (f Fields) Choice(name string, words ...string) string {
	s, ok := f.Text(name)
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, s) {
		hint := ""
		if near := text.NearMiss(s, words...); near != "" {
			hint = Suggest(s, words)
		}
		f.problems.Wrong(f.At(name), hint, "it must be one of %s, not %q", strings.Join(words, ", "), s)
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

// Suggest names the word that was probably meant, or all of them.
func Suggest(s string, words []string) string {
	if near := text.NearMiss(s, words...); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + strings.Join(words, ", ")
}
