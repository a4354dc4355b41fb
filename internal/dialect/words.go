package dialect

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// reference writes a reference of the plan language to what an origin has.
func (o origin) reference() string { return "$ref:" + o.step + o.rest.String() }

// chain writes, as an expression does, the first of several sources that has something. end is what stands in place of
// all, beside their own constant; empty for nothing.
func (l *Language) chain(s sources, end string) string {
	var all []string
	for _, o := range s.origins {
		all = append(all, o.reference())
	}
	switch {
	case s.constant != nil:
		all = append(all, l.literal(s.constant))
	case end != "" || len(all) == 0:
		all = append(all, "null")
	}
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, " ?? ") + ")"
}

// alternatives writes the same as a string of the plan language does.
func (s sources) alternatives() string {
	var all []string
	for _, o := range s.origins {
		all = append(all, o.reference())
	}
	if s.constant != nil {
		all = append(all, string(s.constant))
	}
	return strings.Join(all, " || ")
}

// there is the condition that one of several sources has something.
func (l *Language) there(s sources) string {
	if len(s.origins) == 0 {
		return "false"
	}
	return l.chain(s, "") + " != null"
}

// missing is the condition that none of several sources has anything; nothing where one always has.
func (l *Language) missing(s sources) []string {
	if len(s.origins) == 0 || s.sure() {
		return nil
	}
	return []string{l.chain(s, "") + " == null"}
}

// guard fills in the guards: the condition has to ask whether what is read is there wherever a reference alone does not.
// It finds null where a result lacks the path, and where the step names the call whose result it is.
func (w *stepWriter) guard() {
	for _, s := range w.reads {
		if !s.sure() && slices.ContainsFunc(s.origins, func(o origin) bool { return o.unsure || len(o.rest) > 0 || w.named[o.step] }) {
			w.guards = append(w.guards, w.there(s))
		}
	}
	slices.Sort(w.guards)
	w.guards = slices.Compact(w.guards)
}

// literal writes a scalar as an operand of an expression: in its texts, too, dollars that begin references are doubled.
func (l *Language) literal(scalar []byte) string {
	if scalar[0] == '"' {
		return quoted(l.EscapeText(jsontape.Unquoted(scalar)))
	}
	return string(scalar)
}
