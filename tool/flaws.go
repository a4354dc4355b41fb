package tool

import (
	"errors"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// MaxFlaws is the most flaws that are listed of one schema.
const MaxFlaws = 20

// Flaws are all that is wrong with a definition or a schema, in the order of their places. An error of ParseDefinition,
// Validate and CompileSchema has them as its cause. Path is a JSON pointer into the MCP form of the definition, or into
// the schema.
type Flaws []fault.Problem

// Error lists the flaws.
func (l Flaws) Error() string {
	texts := make([]string, len(l))
	for i, f := range l {
		texts[i] = f.Message
		if f.Path != "" {
			texts[i] = "at " + quoted(f.Path) + ": " + texts[i]
		}
	}
	return strings.Join(texts, "; ")
}

// FlawsOf returns the flaws that an error of this package lists; an error without a list is a flaw itself.
func FlawsOf(err error) Flaws {
	if err == nil {
		return nil
	}
	var l Flaws
	if errors.As(err, &l) {
		return l
	}
	e := fault.As(err)
	return Flaws{{Code: e.Code, Message: e.Message, Hint: e.Hint}}
}

// fault makes an error of flaws whose message is given.
func (l Flaws) fault(message string) *fault.Error {
	return &fault.Error{Code: fault.InvalidTool, Message: message, Hint: l.hint(), Cause: l}
}

// hint joins what the flaws say to write; of several each with its place.
func (l Flaws) hint() string {
	if len(l) == 1 {
		return l[0].Hint
	}
	var hints []string
	for _, f := range l {
		h := f.Hint
		if h == "" {
			continue
		}
		if f.Path != "" {
			h = f.Path + ": " + h
		}
		if !contains(hints, h) {
			hints = append(hints, h)
		}
	}
	return strings.Join(hints, "; ")
}

// under returns the flaws with their places below another.
func (l Flaws) under(path string) Flaws {
	out := make(Flaws, len(l))
	for i, f := range l {
		f.Path = path + f.Path
		out[i] = f
	}
	return out
}

// together makes one error of those of a definition's parts; nil of none.
func together(name string, parts []*fault.Error) error {
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	prefix := "tool " + quoted(clip(name)) + ": "
	texts, all := make([]string, len(parts)), Flaws{}
	for i, p := range parts {
		texts[i] = strings.TrimPrefix(p.Message, prefix)
		all = append(all, FlawsOf(p)...)
	}
	return all.fault(prefix + strings.Join(texts, "; "))
}

// ofTool makes an error of flaws at one place of a tool's definition. path "/a/b" is named "a.b" in the message.
func ofTool(name, path, message, hint string) *fault.Error {
	place := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
	l := Flaws{{Code: fault.InvalidTool, Path: path, Message: message, Hint: hint}}
	return l.fault("tool " + quoted(clip(name)) + ": " + place + ": " + message)
}

// fieldFaults makes errors of what is wrong with the fields of an object that stands at a path of a definition.
func fieldFaults(name, path string, err error) (list []*fault.Error) {
	for _, e := range fieldsOf(err) {
		list = append(list, ofTool(name, path+"/"+strings.ReplaceAll(e.field, ".", "/"), e.message, e.hint))
	}
	return list
}

// more says how many flaws are left out of a list.
func more(n int) fault.Problem {
	return fault.Problem{Code: fault.InvalidTool, Message: "and " + strconv.Itoa(n) + " more"}
}
