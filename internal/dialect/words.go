package dialect

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// reference writes a reference of the plan language to what an origin has.
func (w *stepWriter) reference(o origin) string {
	if o.fails {
		return "$error:" + w.calls[o.call].id + o.rest.String()
	}
	return "$ref:" + w.calls[o.call].id + o.rest.String()
}

// guard fills in the guards: the condition has to ask whether what is read is there wherever a reference alone does not.
// It finds null where a result lacks the path, and where the step names the call whose result it is.
func (w *stepWriter) guard() {
	for _, s := range w.reads {
		if s.constant == nil && slices.ContainsFunc(s.origins, func(o origin) bool { return o.fails || len(o.rest) > 0 || w.named[o.call] }) {
			w.guards = append(w.guards, w.there(s))
		}
	}
	slices.Sort(w.guards)
	w.guards = slices.Compact(w.guards)
}

// there is the condition that one of several origins has something.
func (w *stepWriter) there(s sources) string {
	if len(s.origins) == 0 {
		return "false"
	}
	if o := s.origins[0]; len(s.origins) == 1 && o.fails && s.constant == nil {
		failed := "$status:" + w.calls[o.call].id + " == 'failed'"
		if len(o.rest) == 0 || len(o.rest) == 1 && plainError(o.rest) || o.rest[0].key == "code" {
			return failed
		}
		return failed + " and " + w.reference(o) + " != null"
	}
	return w.inCondition(s) + " != null"
}

// inCondition writes, as a condition does, the first of several origins that has something.
func (w *stepWriter) inCondition(s sources) string {
	var all []string
	for _, o := range s.origins {
		all = append(all, w.operandOf(o))
	}
	if s.constant != nil || len(all) == 0 {
		all = append(all, w.literal(orNull(s.constant)))
	}
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, " ?? ") + ")"
}

// literal writes a scalar as an operand of a condition: in its texts, too, dollars that begin references are doubled.
func (w *stepWriter) literal(scalar []byte) string {
	if scalar[0] == '"' {
		return quoted(w.EscapeText(jsontape.Unquoted(scalar)))
	}
	return string(scalar)
}

// operandOf writes an origin as an operand of a condition.
func (w *stepWriter) operandOf(o origin) string {
	if !o.fails {
		return w.reference(o)
	}
	found := w.reference(o)
	if len(o.rest) == 1 && o.rest[0].key == "code" {
		id := w.calls[o.call].id
		found = "($error:" + id + ".tool_code ?? $error:" + id + ".code)"
	}
	return "($status:" + w.calls[o.call].id + " == 'failed' ? " + found + " : null)"
}

// plainError reports whether a path into an error of the state is the same in that of a step.
func plainError(p path) bool { return len(p) > 0 && (p[0].key == "message" || p[0].key == "details") }

// errorOf appends the value of an error, or of a part of it: {code, message, details}, where the code is that of the
// tool where it has one.
func (w *stepWriter) errorOf(out []byte, o origin) []byte {
	id := w.calls[o.call].id
	code := "$error:" + id + ".tool_code || $error:" + id + ".code"
	switch {
	case len(o.rest) == 0:
		return append(out, `{"code":"`+code+`","message":"$error:`+id+`.message","details":"$error:`+id+`.details"}`...)
	case o.rest[0].key == "code":
		return jsontape.AppendQuoted(out, code)
	}
	return jsontape.AppendQuoted(out, w.reference(o))
}
