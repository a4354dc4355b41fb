package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Bounds of what is told of one tool.
const (
	signatureDepth = 4
	signatureEnum  = 8
	signatureSize  = 1200 // characters
	lineSize       = 300
	commentSize    = 100
)

// signature writes a JSON Schema the way TypeScript writes types: an eighth of the tokens, and models read it as well.
// Comments, of the topmost properties only, are their descriptions.
func signature(raw json.RawMessage, comments bool) string {
	v, err := parse(raw)
	if err != nil {
		return "any"
	}
	w := signer{root: v, comments: comments}
	return clip(w.of(v, 0), signatureSize)
}

type signer struct {
	root     any
	comments bool
	hops     int
}

func (w *signer) of(v any, depth int) string {
	s, ok := v.(object)
	if !ok {
		return "any"
	}
	if enum, ok := s.get("enum").([]any); ok {
		return enumeration(enum)
	}
	if c := s.get("const"); c != nil {
		return literal(c)
	}
	if ref := text(s.get("$ref")); ref != "" {
		return w.referred(ref, depth)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list, ok := s.get(word).([]any); ok {
			return w.union(list, depth)
		}
	}
	t := types(s)
	if len(t) == 0 && s.get("properties") != nil {
		t = []string{"object"}
	}
	words := make([]string, len(t))
	for i, name := range t {
		words[i] = w.typed(name, s, depth)
	}
	if len(words) == 0 {
		return "any"
	}
	return strings.Join(words, " | ")
}

func (w *signer) typed(name string, s object, depth int) string {
	switch name {
	case "array":
		item := "any"
		if depth < signatureDepth {
			item = w.of(s.get("items"), depth+1)
		}
		if strings.Contains(item, " | ") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case "object":
		return w.object(s, depth)
	}
	return name
}

func (w *signer) object(s object, depth int) string {
	properties, _ := s.get("properties").(object)
	if len(properties) == 0 {
		return "object"
	}
	if depth >= signatureDepth {
		return "{…}"
	}
	required, _ := s.get("required").([]any)
	parts := make([]string, len(properties))
	for i, p := range properties {
		mark := "?"
		for _, r := range required {
			if r == p.name {
				mark = ""
			}
		}
		parts[i] = key(p.name) + mark + ": " + w.of(p.value, depth+1)
		if about, ok := p.value.(object); ok && w.comments && depth == 0 && text(about.get("description")) != "" {
			parts[i] += " /* " + clip(oneLine(text(about.get("description"))), commentSize) + " */"
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (w *signer) union(list []any, depth int) string {
	words := make([]string, 0, len(list))
	for i, v := range list {
		if i == signatureEnum {
			words = append(words, "…")
			break
		}
		words = append(words, w.of(v, depth+1))
	}
	return strings.Join(words, " | ")
}

// referred follows a reference within the schema.
func (w *signer) referred(ref string, depth int) string {
	path, ok := strings.CutPrefix(ref, "#/")
	if w.hops++; !ok || depth >= signatureDepth || w.hops > 50 {
		return "any"
	}
	v := w.root
	for part := range strings.SplitSeq(path, "/") {
		o, _ := v.(object)
		v = o.get(jsontape.UnescapeToken(part))
	}
	return w.of(v, depth)
}

func enumeration(list []any) string {
	words := make([]string, 0, len(list))
	for i, v := range list {
		if i == signatureEnum {
			words = append(words, "…")
			break
		}
		words = append(words, literal(v))
	}
	return strings.Join(words, " | ")
}

func literal(v any) string {
	b, err := jsontape.Marshal(v)
	if err != nil {
		return "any"
	}
	return string(b)
}

func key(name string) string {
	for i := range len(name) {
		if !subjects.IsPlain(name[i]) {
			return literal(name)
		}
	}
	return name
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Signature tells a plan's author all about a tool in a few lines, as the guide of execute_tool_plan lists it:
// name(arguments) -> result, what it does, and its contract.
func Signature(d *tool.Definition) string {
	input, output := "{}", "any"
	if len(d.InputSchema) > 0 {
		input = signature(d.InputSchema, true)
	}
	if len(d.OutputSchema) > 0 {
		output = signature(d.OutputSchema, false)
	}
	text := fmt.Sprintf("%s(%s) -> %s", d.Name, input, output)
	if d.Description != "" {
		text += "\n  " + clip(oneLine(d.Description), lineSize)
	}
	if h := hints(d); h != "" {
		text += "\n  [" + h + "]"
	}
	return text
}
