package tool

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// unknownMember stands for members of an object of which nothing is known: no key of a schema is like it.
const unknownMember = "\x00"

// CheckPart holds a value against what a schema says of the place that a path of keys leads to, in a whole of which
// nothing else is known: what is wrong only because of something that lies beside the path is no violation. Neither is a
// null, which stands for nothing. Of a value that is itself but a part of what is there, what it lacks is none either. It
// takes what it uses from steps, as CheckWithin. Pointers are those of the value.
func CheckPart(s *Schema, path []string, value []byte, part bool, steps *int) []Violation {
	if s == nil || s.s == nil {
		return nil
	}
	var whole []byte
	var holes []Hole
	at := ""
	for _, key := range path {
		holes = append(holes, Hole{Pointer: at + "/" + unknownMember})
		at += "/" + jsontape.EscapeToken(key)
		whole = append(jsontape.AppendQuoted(append(whole, '{'), key), ':')
	}
	if part = part && len(value) > 0 && (value[0] == '{' || value[0] == '['); part && value[0] == '{' {
		holes = append(holes, Hole{Pointer: at + "/" + unknownMember})
	}
	whole = append(whole, value...)
	whole = append(whole, strings.Repeat("}", len(path))...)
	if s.quick != nil && s.quick.valid(whole, holes) {
		return nil
	}
	v, err := decodeBounded(whole)
	if err != nil {
		return []Violation{{Message: err.Error()}}
	}
	bad := s.validate(v, len(whole), finder{holes: holes, wants: func(v *Violation) bool {
		rest, in := strings.CutPrefix(v.Pointer, at)
		return in && (rest == "" || rest[0] == '/') && !v.null && !(part && (v.Missing != "" || v.fewer))
	}}, steps)
	for i := range bad {
		bad[i].Pointer = strings.TrimPrefix(bad[i].Pointer, at)
	}
	return bad
}

// fewer reports whether a value is refused because there is too little of it.
func fewer(k any) bool {
	switch k.(type) {
	case *kind.MinProperties, *kind.MinItems, *kind.DependentRequired, *kind.Dependency:
		return true
	}
	return false
}

// Misfit writes what is wrong with a value, of the first few violations: each begins with what shown makes of its pointer.
func Misfit(bad []Violation, shown func(pointer string) string) (message, hint string) {
	var ways []string
	for _, v := range bad[:min(len(bad), mostRefused)] {
		ways = append(ways, shown(v.Pointer)+" "+v.Message)
	}
	if len(bad) > mostRefused {
		ways = append(ways, "…")
	}
	if i := slices.IndexFunc(bad, func(v Violation) bool { return v.Hint != "" }); i >= 0 {
		hint = "what would fit at " + shown(bad[i].Pointer) + ": " + bad[i].Hint
	}
	return strings.Join(ways, "; "), hint
}
