package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/text"
)

// fieldError is what is wrong with one field of a contract, and what to do about it.
type fieldError struct{ field, message, hint string }

func (e *fieldError) Error() string { return e.field + ": " + e.message }

func (e *fieldError) withHint(format string, args ...any) *fieldError {
	e.hint = fmt.Sprintf(format, args...)
	return e
}

func badField(field, format string, args ...any) *fieldError {
	return &fieldError{field: field, message: fmt.Sprintf(format, args...)}
}

// fieldErrors are several of one object.
type fieldErrors []*fieldError

func (l fieldErrors) Error() string {
	texts := make([]string, len(l))
	for i, e := range l {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "; ")
}

// error returns one error of all; nil of none.
func (l fieldErrors) error() error {
	switch len(l) {
	case 0:
		return nil
	case 1:
		return l[0]
	}
	return l
}

// fieldsOf returns the field errors that an error consists of; nil where it has none.
func fieldsOf(err error) fieldErrors {
	var several fieldErrors
	if errors.As(err, &several) {
		return several
	}
	var one *fieldError
	if errors.As(err, &one) {
		return fieldErrors{one}
	}
	return nil
}

// hintOf returns the first hint of a field error; "" where there is none.
func hintOf(err error) string {
	for _, e := range fieldsOf(err) {
		if e.hint != "" {
			return e.hint
		}
	}
	return ""
}

// within names the object that a field error arose in.
func within(object string, err error) error {
	var list fieldErrors
	for _, e := range fieldsOf(err) {
		list = append(list, &fieldError{object + "." + e.field, e.message, e.hint})
	}
	if len(list) == 0 {
		list = fieldErrors{{field: object, message: err.Error()}}
	}
	return list.error()
}

// fields reads the members of one JSON object, and keeps the first error of each.
type fields struct {
	raw  map[string]json.RawMessage
	errs fieldErrors
}

// err returns what was wrong so far, in the order of the names.
func (f *fields) err() error {
	slices.SortStableFunc(f.errs, func(a, b *fieldError) int { return strings.Compare(a.field, b.field) })
	return f.errs.error()
}

// readFields takes an object apart. A near miss of a known name is an error that says which was meant: a contract whose
// field is silently ignored would promise what nobody keeps. A null member counts as absent.
func readFields(raw []byte, known ...string) (*fields, error) {
	f := &fields{}
	if err := json.Unmarshal(raw, &f.raw); err != nil || f.raw == nil {
		return nil, fmt.Errorf("must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(f.raw)) {
		if k := text.NearMiss(name, known...); k != "" {
			f.fail(name, "no such field; did you mean %q?", k)
		}
		if string(f.raw[name]) == "null" {
			delete(f.raw, name)
		}
	}
	return f, nil
}

func (f *fields) fail(name, format string, args ...any) {
	if !slices.ContainsFunc(f.errs, func(e *fieldError) bool { return e.field == name }) {
		f.errs = append(f.errs, badField(name, format, args...))
	}
}

// decode reads a member into target, if it is there; want says what it has to be.
func (f *fields) decode(name string, target any, want string) bool {
	raw, ok := f.raw[name]
	if !ok {
		return false
	}
	if err := json.Unmarshal(raw, target); err != nil {
		list := fieldsOf(err) // from an UnmarshalJSON of this package
		for _, e := range list {
			f.errs = append(f.errs, &fieldError{name + "." + e.field, e.message, e.hint})
		}
		if len(list) == 0 {
			f.fail(name, "must be %s", want)
		}
		return false
	}
	return true
}

func (f *fields) str(name string) (s string) {
	if f.decode(name, &s, "a string") && s == "" {
		f.fail(name, "must not be empty")
	}
	return s
}

// oneOf reads a string that has to be one of a few.
func (f *fields) oneOf(name string, allowed ...string) string {
	s := f.str(name)
	if s == "" {
		return ""
	}
	for _, a := range allowed {
		if s == a {
			return s
		}
	}
	f.fail(name, "%q is none of %s", clip(s), listed(allowed))
	return ""
}

func (f *fields) number(name string) (n float64) {
	f.decode(name, &n, "a number")
	return n
}

// integer reads a whole number from least to most; 3.0 and 3e0 are whole too, as some languages write them so.
func (f *fields) integer(name string, least, most int64) int64 {
	var n float64
	if !f.decode(name, &n, "a whole number") {
		return 0
	}
	if n != math.Trunc(n) || n < float64(least) || n > float64(most) {
		f.fail(name, "must be a whole number from %d to %d", least, most)
		return 0
	}
	return int64(n)
}

// millis reads a duration in whole milliseconds, at most MaxDuration.
func (f *fields) millis(name string, least int64) time.Duration {
	return time.Duration(f.integer(name, least, MaxDuration.Milliseconds())) * time.Millisecond
}

// listed writes words as "a, b and c".
func listed(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	s := words[0]
	for _, w := range words[1 : len(words)-1] {
		s += ", " + w
	}
	return s + " and " + words[len(words)-1]
}

// clip shortens what somebody else wrote before it goes into a message.
func clip(s string) string { return text.Cut(s, 64) }
