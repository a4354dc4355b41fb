package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Where schemas stand within a schema.
var (
	schemaWords = words("not if then else contains additionalProperties propertyNames items additionalItems " +
		"unevaluatedProperties unevaluatedItems contentSchema")
	schemaLists = words("allOf anyOf oneOf prefixItems items")
	schemaMaps  = words("properties patternProperties $defs definitions dependentSchemas")
)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// schemaFlaws says all that is wrong with a schema that the compiler refused with err, always in the same words: the
// compiler walks maps in any order, and stops at the first reference that leads nowhere. The usual mistakes are looked
// for here and named for what they are; the rest is taken from what the meta-schema says.
func schemaFlaws(doc any, err error) Flaws {
	w := &flawWalk{doc: doc, base: doc, anchors: map[string]bool{}, patterns: &patterns{}}
	w.names(doc)
	w.schema(doc, "")
	w.metaSchema(err)
	if len(w.found) == 0 {
		w.other(err)
	}
	slices.SortStableFunc(w.found, func(a, b fault.Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	if n := len(w.found) - MaxFlaws; n > 0 {
		return append(w.found[:MaxFlaws:MaxFlaws], more(n))
	}
	return w.found
}

// flawWalk walks a schema in a fixed order and collects its flaws.
type flawWalk struct {
	doc      any
	base     any // the part around that has an address of its own, which references start from
	anchors  map[string]bool
	ids      []string
	patterns *patterns
	found    Flaws
}

func (w *flawWalk) add(at, hint, format string, args ...any) {
	w.found = append(w.found, fault.Problem{Code: fault.InvalidTool, Path: at, Hint: hint,
		Message: fmt.Sprintf(format, args...)})
}

// names collects what references may name beside places.
func (w *flawWalk) names(doc any) {
	switch v := doc.(type) {
	case map[string]any:
		for key, x := range v {
			s, ok := x.(string)
			switch {
			case !ok:
			case key == "$anchor" || key == "$dynamicAnchor":
				w.anchors[s] = true
			case key == "$id" || key == "id":
				anchor, local := strings.CutPrefix(s, "#") // as drafts 4 to 7 write an anchor
				if w.anchors[anchor] = local; !local {
					w.ids = append(w.ids, strings.TrimSuffix(s, "#"))
				}
			}
			w.names(x)
		}
	case []any:
		for _, x := range v {
			w.names(x)
		}
	}
}

// schema looks at one schema.
func (w *flawWalk) schema(v any, at string) {
	m, ok := v.(map[string]any)
	if !ok {
		if _, ok := v.(bool); !ok {
			w.noSchema(v, at)
		}
		return
	}
	if id, _ := m["$id"].(string); id != "" && id[0] != '#' {
		defer func(outer any) { w.base = outer }(w.base)
		w.base = m
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.keyword(key, m[key], at, at+"/"+jsontape.EscapeToken(key))
	}
}

// noSchema names what stands in the place of a schema.
func (w *flawWalk) noSchema(v any, at string) {
	hint := ""
	if s, ok := v.(string); ok {
		if t, _ := meantType(s); t != "" {
			hint = fmt.Sprintf(`write {"type": %q}`, t)
		}
	}
	w.add(at, hint, "%s is no schema; a schema is an object, true or false", brief(v))
}

// keyword looks at the value of one keyword; of is where its schema stands.
func (w *flawWalk) keyword(key string, v any, of, at string) {
	switch {
	case key == "type":
		w.types(v, at)
	case key == "required":
		w.required(v, of, at)
	case key == "pattern":
		if s, ok := v.(string); ok {
			w.pattern(s, at)
		}
	case key == "$ref":
		if s, ok := v.(string); ok {
			w.reference(s, at)
		}
	case schemaMaps[key]:
		w.schemas(key, v, at)
	case schemaLists[key]:
		list, ok := v.([]any)
		switch {
		case ok:
			for i, x := range list {
				w.schema(x, at+"/"+strconv.Itoa(i))
			}
		case schemaWords[key]: // items takes both
			w.schema(v, at)
		}
	case schemaWords[key]:
		w.schema(v, at)
	}
}

// schemas looks at an object of schemas by name.
func (w *flawWalk) schemas(key string, v any, at string) {
	m, ok := v.(map[string]any)
	if !ok {
		hint := fmt.Sprintf("write an object of schemas by name, such as %q: {\"city\": {\"type\": \"string\"}}", key)
		if v == nil {
			hint = fmt.Sprintf("leave %q out, or write %q: {}", key, key)
		}
		w.add(at, hint, "%q is %s, but has to be an object of schemas by name", key, brief(v))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		place := at + "/" + jsontape.EscapeToken(name)
		if key == "patternProperties" {
			w.pattern(name, place)
		}
		w.schema(m[name], place)
	}
}

// required has to be an array of names beside "properties"; draft 3 had true in the property itself, and models write
// it.
func (w *flawWalk) required(v any, of, at string) {
	const says = `"required" is %s, but has to be an array of the names of properties`
	switch v := v.(type) {
	case []any:
		if i := slices.IndexFunc(v, func(x any) bool { _, ok := x.(string); return !ok }); i >= 0 {
			w.add(at+"/"+strconv.Itoa(i), "write the name of a property", `"required" names properties, and %s is no name`,
				brief(v[i]))
		}
	case bool:
		hint := `write "required": ["…"] with the names of the properties, beside "properties"`
		if around, name := propertyAt(of); name != "" && v {
			hint = fmt.Sprintf(`leave it out here, and write "required": [%q] beside the "properties" of %s`, clip(name), around)
		} else if name != "" {
			hint = `leave it out: what the "required" beside "properties" doesn't name may be absent`
		}
		w.add(at, hint, says, brief(v))
	case nil:
		w.add(at, `leave "required" out, or write "required": []`, says, "null")
	case string:
		w.add(at, fmt.Sprintf(`write "required": [%q]`, clip(v)), says, brief(v))
	default:
		w.add(at, `write "required": ["…"]`, says, brief(v))
	}
}

// propertyAt takes the place of a property's schema apart: what it is a property of, in words, and its name.
func propertyAt(at string) (around, name string) {
	words := strings.Split(at, "/")
	n := len(words)
	if n < 3 || words[n-2] != "properties" {
		return "", ""
	}
	name = jsontape.UnescapeToken(words[n-1])
	if n == 3 {
		return "the schema", name
	}
	return quoted(strings.Join(words[:n-2], "/")), name
}

// other adds what the compiler says where nothing was found, without its own addresses.
func (w *flawWalk) other(err error) {
	var anchor *jsonschema.DuplicateAnchorError
	var id *jsonschema.DuplicateIDError
	switch {
	case errors.As(err, &anchor): // it has met the two in any order
		at := []string{anchor.Ptr1, anchor.Ptr2}
		slices.Sort(at)
		w.add(at[1], "give one of them another name", `the "$anchor" %q is used before, at %q`, clip(anchor.Anchor), at[0])
	case errors.As(err, &id):
		at := []string{id.Ptr1, id.Ptr2}
		slices.Sort(at)
		w.add(at[1], "give one of them another address", `its "$id" is used before, at %q`, at[0])
	default:
		w.add("", "", "%s", strings.ReplaceAll(strings.ReplaceAll(err.Error(), schemaURL, ""), schemaHost, ""))
	}
}

// metaSchema adds what the meta-schema says of places that nothing was found at. It says a wrong place for names of
// properties, and of patterns in another order each time; both were looked at before.
func (w *flawWalk) metaSchema(err error) {
	var meta *jsonschema.SchemaValidationError
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &meta) || !errors.As(meta.Err, &invalid) {
		return
	}
	said := map[string]string{}
	var visit func(e *jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		switch k := e.ErrorKind.(type) {
		case *kind.PropertyNames:
			return
		case *kind.Format:
			if k.Want == "regex" {
				return
			}
		}
		for _, c := range e.Causes {
			visit(c)
		}
		if len(e.Causes) > 0 {
			return
		}
		at, message := pointer(e.InstanceLocation), (&Schema{}).message(e)
		if before, there := said[at]; !there || message < before {
			said[at] = message
		}
	}
	visit(invalid)
	known := len(w.found)
	for _, at := range slices.Sorted(maps.Keys(said)) {
		if slices.ContainsFunc(w.found[:known], func(f fault.Problem) bool {
			return f.Path == at || below(at, f.Path) || below(f.Path, at)
		}) {
			continue
		}
		hint := ""
		if v, there := lookup(w.doc, at); there && v == nil {
			hint = fmt.Sprintf("null is no value for it; leave %q out", at[strings.LastIndexByte(at, '/')+1:])
		}
		w.add(at, hint, "%s", said[at])
	}
}

// below reports whether a place lies below another, which is not the whole schema.
func below(at, around string) bool { return around != "" && strings.HasPrefix(at, around+"/") }

// lookup returns the value at a JSON pointer.
func lookup(doc any, at string) (any, bool) {
	if at == "" {
		return doc, true
	}
	for _, word := range strings.Split(at, "/")[1:] {
		word = jsontape.UnescapeToken(word)
		switch v := doc.(type) {
		case map[string]any:
			x, ok := v[word]
			if !ok {
				return nil, false
			}
			doc = x
		case []any:
			i, err := strconv.Atoi(word)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// brief writes a JSON value in short.
func brief(v any) string {
	switch v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return clip(string(b))
}
