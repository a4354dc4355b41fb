package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/plan"
)

// value is a part of a document, and its place.
type value struct {
	raw json.RawMessage
	at  string
}

// there reports whether the part is there: null means absent.
func (v value) there() bool { return len(v.raw) > 0 && v.raw[0] != 'n' }

func (v value) kind() jsontape.Kind { return kindOf(v.raw) }

func kindOf(raw []byte) jsontape.Kind {
	if len(raw) == 0 {
		return 0
	}
	switch raw[0] {
	case '{':
		return jsontape.Object
	case '[':
		return jsontape.Array
	case '"':
		return jsontape.String
	case 't':
		return jsontape.True
	case 'f':
		return jsontape.False
	case 'n':
		return jsontape.Null
	}
	return jsontape.Number
}

// items returns those of an array.
func (v value) items() (all []value) {
	var list []json.RawMessage
	if json.Unmarshal(v.raw, &list) != nil {
		return nil
	}
	for i, raw := range list {
		all = append(all, value{raw, v.at + "/" + strconv.Itoa(i)})
	}
	return all
}

// members returns those of an object, in their order.
func (v value) members() (names []string, all map[string]value) {
	all = map[string]value{}
	jsontape.Members(v.raw, func(key, raw []byte) bool {
		name := jsontape.Unquoted(key)
		names = append(names, name)
		all[name] = value{bytes.TrimSpace(raw), string(jsontape.AppendToken([]byte(v.at), name))}
		return true
	})
	return names, all
}

// report gathers what is wrong, all of it at once.
type report struct {
	plan.Report
	more int
}

func (r *report) problem(code fault.Code, at, hint, format string, args ...any) {
	if len(r.Problems) == plan.MaxProblems {
		r.more++
		return
	}
	r.Problems = append(r.Problems, fault.Problem{Code: code, Path: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (r *report) warn(code fault.Code, at, hint, format string, args ...any) {
	if len(r.Warnings) < plan.MaxWarnings {
		r.Warnings = append(r.Warnings, fault.Problem{Code: code, Path: at, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
}

// closed returns the report, with a last entry for what is not listed.
func (r *report) closed() plan.Report {
	if r.more > 0 {
		r.Problems = append(r.Problems, fault.Problem{Code: fault.LimitExceeded, Count: r.more,
			Message: fmt.Sprintf("%d more problems are not listed", r.more), Hint: "mend the ones listed first"})
	}
	return r.Report
}

// wrong reports a value of the wrong kind.
func (r *report) wrong(v value, wanted, hint string) {
	r.problem(fault.InvalidValue, v.at, hint, "must be %s, but is %s", wanted, v.kind())
}

// object reads an object whose fields are known, and reports the others: one that is near a known one is a problem.
func (r *report) object(v value, what string, known ...string) map[string]value {
	if v.kind() != jsontape.Object {
		r.wrong(v, "an object", "write {…} with some of: "+strings.Join(known, ", "))
		return nil
	}
	names, members := v.members()
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		if near := text.NearMiss(name, known...); near != "" {
			r.problem(fault.UnknownField, members[name].at, fmt.Sprintf("write %q", near), "%q is not a field of %s", clip(name), what)
			if _, both := members[near]; !both {
				members[near] = members[name]
			}
			continue
		}
		r.warn(fault.UnknownField, members[name].at, "its fields are "+strings.Join(known, ", "),
			"%q is not a field of %s; it is ignored", clip(name), what)
	}
	return members
}

// text reads a string; empty where there is none.
func (r *report) text(v value) string {
	if !v.there() {
		return ""
	}
	if v.kind() != jsontape.String {
		r.wrong(v, "a string", "")
		return ""
	}
	return jsontape.Unquoted(v.raw)
}

// name reads a string that must not be empty.
func (r *report) name(v value, hint string) string {
	s := r.text(v)
	if v.there() && v.kind() == jsontape.String && s == "" {
		r.problem(fault.InvalidValue, v.at, hint, "must not be empty")
	}
	return s
}

// flag reads true or false; false where there is none.
func (r *report) flag(v value) bool {
	if v.there() && v.kind() != jsontape.True && v.kind() != jsontape.False {
		r.wrong(v, "true or false", "")
	}
	return v.kind() == jsontape.True
}

// whole reads a whole number within bounds; otherwise where there is none.
func (r *report) whole(v value, least, most, otherwise int64) int64 {
	if !v.there() {
		return otherwise
	}
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err != nil || n < least || n > most {
		r.problem(fault.InvalidValue, v.at, "", "must be a whole number from %d to %d, but is %s", least, most, clip(string(v.raw)))
		return otherwise
	}
	return n
}

// oneOf reads one of some words; the first where there is none.
func (r *report) oneOf(v value, words ...string) string {
	s := r.text(v)
	if s == "" && (!v.there() || v.kind() != jsontape.String) {
		return words[0]
	}
	if !slices.Contains(words, s) {
		r.problem(fault.InvalidValue, v.at, "write one of "+quotedList(words), "%q is none of them", clip(s))
		return words[0]
	}
	return s
}

// texts reads an array of strings, none of them empty or twice.
func (r *report) texts(v value, what string) (all []string) {
	if !v.there() {
		return nil
	}
	if v.kind() != jsontape.Array {
		r.wrong(v, "an array of "+what, "write […] around it")
		return nil
	}
	items := v.items()
	if len(items) > MostNames {
		r.problem(fault.LimitExceeded, v.at, "", "%d %s; %d are the most of one list", len(items), what, MostNames)
		return nil
	}
	for _, x := range items {
		switch s := r.name(x, ""); {
		case s == "":
		case slices.Contains(all, s):
			r.problem(fault.InvalidValue, x.at, "leave one of them out", "%q stands there twice", clip(s))
		default:
			all = append(all, s)
		}
	}
	return all
}

// duration reads a time such as "90s"; 0 where there is none.
func (r *report) duration(v value) time.Duration {
	s := r.text(v)
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < plan.MinTimeout || d > plan.MaxTimeout {
		r.problem(fault.InvalidValue, v.at, `write "90s", "10m" or "2h"`, "%q is no duration from 1 ms to 168 h", clip(s))
		return 0
	}
	return d
}

// MostNames is the most names in one list of a condition: tools that are needed, states.
const MostNames = 64

// clip cuts what somebody wrote to the length that a message has room for.
func clip(s string) string { return text.Clip(s, 80) }

// quotedList writes words one after the other, each in quotes.
func quotedList(words []string) string { return strings.Join(quoted(words), ", ") }

// thereAre says which names there are, those like the wanted one first.
func thereAre(wanted string, names []string) string {
	if near := text.Nearest(wanted, names); len(near) > 0 {
		return "did you mean " + strings.Join(quoted(near), " or ") + "?"
	}
	if len(names) == 0 {
		return "there are none"
	}
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("there are %s and %d more", quotedList(names[:most]), len(names)-most)
	}
	return "there are " + quotedList(names)
}

func quoted(words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strconv.Quote(w)
	}
	return all
}

// marshal writes a value that this package put together.
func marshal(v any) json.RawMessage {
	raw, err := jsontape.Marshal(v)
	if err != nil {
		panic(err) // it holds nothing but JSON
	}
	return raw
}

func quoteJSON(s string) []byte { return jsontape.AppendQuoted(nil, s) }

func quotedJSON(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(quoteJSON(w))
	}
	return strings.Join(all, ", ")
}
