package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Dialect is the form of an answer.
type Dialect string

// The dialects.
const (
	DialectPlan     Dialect = "plan"     // {"steps": […], "output"?}, and the native calls of a language model
	DialectCalls    Dialect = "calls"    // {"calls": […], "output"}
	DialectCommands Dialect = "commands" // {"next_action", "execution_commands": […]}
	DialectEnd      Dialect = "end"      // {"output": value}, or text
)

// keysOf are the members that say which dialect an answer is of, in the order in which they are looked for.
var keysOf = []struct {
	dialect Dialect
	keys    []string
}{
	{DialectPlan, []string{"steps"}},
	{DialectCalls, []string{"calls"}},
	{DialectCommands, []string{"execution_commands", "tool_commands", "tool_command", "next_action", "use_tool"}},
	{DialectEnd, []string{"output"}},
}

// dialectsOf returns the dialects that the members of an answer are of.
func dialectsOf(members map[string]value) (all []Dialect) {
	for _, d := range keysOf {
		if slices.ContainsFunc(d.keys, func(k string) bool { _, there := members[k]; return there }) {
			all = append(all, d.dialect)
		}
	}
	if len(all) > 1 && all[len(all)-1] == DialectEnd { // an output stands beside calls, too
		all = all[:len(all)-1]
	}
	return all
}

// ofDialect reports whether an object is an answer.
func ofDialect(v json.RawMessage) bool {
	_, members := value{raw: v}.members()
	return kindOf(v) == jsontape.Object && len(dialectsOf(members)) > 0
}

// Command is one of the dialect commands.
type Command struct {
	Purpose        string          `json:"purpose"`
	Tool           string          `json:"tool_name"`
	Arguments      json.RawMessage `json:"tool_kwargs"`
	TodoSuggestion string          `json:"todo_suggestion,omitempty"`
	Next           string          `json:"next,omitempty"`

	at string // its place in the answer
}

// commandsOf reads commands, whatever they are called and however many there are. What names no tool is dropped.
func commandsOf(members map[string]value) (all []Command) {
	for _, key := range []string{"execution_commands", "tool_commands", "tool_command"} {
		v, there := members[key]
		if !there || !v.there() {
			continue
		}
		list := []value{v}
		if v.kind() == jsontape.Array {
			list = v.items()
		}
		for _, x := range list {
			if c, ok := commandOf(x); ok {
				all = append(all, c)
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return all
}

func commandOf(v value) (c Command, ok bool) {
	if v.kind() != jsontape.Object {
		return c, false
	}
	_, m := v.members()
	text := func(key string) string {
		return strings.TrimSpace(readable(m[key].raw, m[key].kind() == jsontape.String))
	}
	c = Command{Purpose: text("purpose"), Tool: text("tool_name"), TodoSuggestion: text("todo_suggestion"), Next: text("next"),
		Arguments: json.RawMessage("{}"), at: v.at}
	if kwargs := m["tool_kwargs"]; kwargs.kind() == jsontape.Object {
		c.Arguments = kwargs.raw
	}
	if c.Purpose == "" {
		c.Purpose = "Use " + c.Tool
	}
	return c, c.Tool != ""
}

// goesOn reports whether an answer of commands asks for them to be run. Where it does not say so, it does if it has any.
func goesOn(members map[string]value, commands []Command) bool {
	if v, there := members["use_tool"]; there && isNo(v.raw) {
		return false
	}
	v := members["next_action"]
	action := strings.ToLower(strings.TrimSpace(readable(v.raw, v.kind() == jsontape.String)))
	return len(commands) > 0 && (action == "execute" || action == "")
}

// isNo reports whether a value means no.
func isNo(raw []byte) bool {
	switch kindOf(raw) {
	case jsontape.False, jsontape.Null:
		return true
	case jsontape.Number:
		return string(raw) == "0"
	case jsontape.String:
		return slices.Contains([]string{"", "false", "no", "0", "off", "none"}, strings.ToLower(strings.TrimSpace(jsontape.Unquoted(raw))))
	default:
		return false
	}
}

// objectWriter writes an object whose members stand in the order in which they were added.
type objectWriter struct{ b bytes.Buffer }

func (o *objectWriter) add(name string, raw []byte) {
	sep := byte(',')
	if o.b.Len() == 0 {
		sep = '{'
	}
	o.b.WriteByte(sep)
	o.b.Write(quoteJSON(name))
	o.b.WriteByte(':')
	o.b.Write(raw)
}

func (o *objectWriter) json() json.RawMessage {
	if o.b.Len() == 0 {
		return json.RawMessage("{}")
	}
	return append(o.b.Bytes(), '}')
}
