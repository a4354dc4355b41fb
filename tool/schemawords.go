package tool

import (
	"fmt"
	"maps"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/internal/text"
)

// typeNames are the types that JSON Schema has.
var typeNames = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// otherTypes are what other languages call them; "" for what is no single type.
var otherTypes = map[string]string{
	"str": "string", "text": "string", "char": "string", "uuid": "string", "date": "string", "datetime": "string",
	"date-time": "string", "time": "string", "url": "string", "uri": "string", "email": "string", "enum": "string",
	"int": "integer", "int32": "integer", "int64": "integer", "long": "integer", "short": "integer", "uint": "integer",
	"float": "number", "float32": "number", "float64": "number", "double": "number", "decimal": "number", "real": "number",
	"bool": "boolean", "dict": "object", "dictionary": "object", "map": "object", "struct": "object", "record": "object",
	"json": "object", "list": "array", "tuple": "array", "set": "array", "sequence": "array",
	"none": "null", "nil": "null", "void": "null", "undefined": "null",
	"any": "", "mixed": "", "unknown": "", "*": "", "": "", "union": "", "optional": "",
}

// meantType returns the type that a word was probably meant to be; every says that it means all of them.
func meantType(word string) (t string, every bool) {
	lower := strings.ToLower(strings.TrimSpace(word))
	if contains(typeNames, lower) {
		return lower, false
	}
	if t, known := otherTypes[lower]; known {
		return t, t == ""
	}
	return text.NearMiss(lower, typeNames...), false
}

// types looks at the value of "type".
func (w *flawWalk) types(v any, at string) {
	switch v := v.(type) {
	case string:
		w.oneType(v, at, "")
	case []any:
		if len(v) == 0 {
			w.add(at, `for a value of any type leave "type" out`, `"type" is an empty array; the types are %s`,
				listed(typeNames))
		}
		for i, x := range v {
			place := at + "/" + strconv.Itoa(i)
			if s, ok := x.(string); ok {
				w.oneType(s, place, " among the types")
				continue
			}
			w.add(place, "", `%s is no type; the types are %s`, brief(x), listed(typeNames))
		}
	default:
		w.add(at, `for a value of any type leave "type" out`,
			`"type" is %s, but has to be the name of a type or an array of them; the types are %s`, brief(v), listed(typeNames))
	}
}

func (w *flawWalk) oneType(s, at, where string) {
	if contains(typeNames, s) {
		return
	}
	meant, every := meantType(s)
	hint := ""
	switch {
	case every:
		hint = `for a value of any type leave "type" out`
	case meant != "" && where == "":
		hint = fmt.Sprintf(`write "type": %q`, meant)
	case meant != "":
		hint = fmt.Sprintf("write %q", meant)
	}
	w.add(at, hint, "%q%s is no type; the types are %s", clip(s), where, listed(typeNames))
}

// reference looks at the value of "$ref": what it leads to has to be within the schema.
func (w *flawWalk) reference(ref, at string) {
	place, local := strings.CutPrefix(ref, "#")
	switch {
	case !local:
		whole, _, _ := strings.Cut(ref, "#")
		if strings.Contains(ref, "://json-schema.org/") || slices.ContainsFunc(w.ids, func(id string) bool {
			return strings.HasSuffix(id, whole) || strings.HasSuffix(whole, id)
		}) {
			return
		}
		w.add(at, `copy what it refers to into "$defs" of this schema, and write "$ref": "#/$defs/NAME"`,
			`"$ref": %q leads out of the schema; a schema has to stand alone, and nothing is loaded from outside`, clip(ref))
	case place == "":
	case place[0] == '/':
		plain, err := url.PathUnescape(place)
		if err == nil {
			if _, there := lookup(w.base, plain); there {
				return
			}
		}
		w.add(at, w.meantRef(place), `"$ref": %q leads to nothing in the schema`, clip(ref))
	case !w.anchors[place]:
		w.add(at, w.meantRef("/"+place), `"$ref": %q names no "$anchor" of the schema`, clip(ref))
	}
}

// meantRef returns a hint where a definition has the name that a reference ends with, or one like it.
func (w *flawWalk) meantRef(place string) string {
	name := place[strings.LastIndexByte(place, '/')+1:]
	var near []string
	for _, defs := range []string{"$defs", "definitions"} {
		v, _ := lookup(w.base, "/"+defs)
		m, _ := v.(map[string]any)
		if _, there := m[name]; there {
			return fmt.Sprintf(`did you mean "#/%s/%s"?`, defs, clip(name))
		}
		if k := text.NearMiss(name, slices.Sorted(maps.Keys(m))...); k != "" {
			near = append(near, fmt.Sprintf(`did you mean "#/%s/%s"?`, defs, clip(k)))
		}
	}
	if len(near) > 0 {
		return near[0]
	}
	return fmt.Sprintf(`put the schema that is meant under "$defs", and write "$ref": "#/$defs/%s"`, clip(name))
}

// pattern looks at a regular expression.
func (w *flawWalk) pattern(raw, at string) {
	_, err := w.patterns.compile(raw)
	if err == nil {
		return
	}
	if _, bad := syntax.Parse(ecma(raw), syntax.Perl); bad == nil { // only too large, all of them together
		if w.patterns.told {
			return
		}
		w.patterns.told = true
		w.add(at, "repeat less often, or check the length with maxLength", "%s", err.Error())
		return
	}
	message, hint := unsupported(raw)
	if message == "" {
		message = "the pattern can't be read: " + strings.TrimPrefix(err.Error(), patternsAre)
	}
	w.add(at, hint, "%s", message)
}
