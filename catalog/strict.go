package catalog

import "slices"

// What strict schemas take (OpenAI, "Structured outputs: supported schemas"; Anthropic takes about the same).
var (
	strictKeywords = []string{
		"type", "description", "title", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs",
		"definitions", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
	}
	// droppedKeywords say nothing that a model has to be held to: Stepjet checks the arguments against the whole
	// schema.
	droppedKeywords = []string{
		"$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly", "minLength", "maxLength", "uniqueItems",
		"minProperties", "maxProperties", "contentMediaType", "contentEncoding",
	}
	strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

// strictly returns a schema in which every object is closed and has all its properties; those that were optional may be
// null. It reports false for a schema that can't be written so.
func strictly(schema object) (object, bool) {
	out := object{}
	for _, m := range schema {
		switch {
		case m.name == "oneOf": // a model held to one of several is held to any of them
			m.name = "anyOf"
		case slices.Contains(droppedKeywords, m.name), m.name == "required", m.name == "additionalProperties":
			continue
		case m.name == "format" && !slices.Contains(strictFormats, text(m.value)):
			continue
		case !slices.Contains(strictKeywords, m.name):
			return nil, false
		}
		v, ok := strictKeyword(m, schema)
		if !ok {
			return nil, false
		}
		out = append(out, member{m.name, v})
	}
	return closed(out, schema)
}

// closed adds what makes an object strict. One that takes any properties can't be.
func closed(out, schema object) (object, bool) {
	properties, has := out.get("properties").(object)
	if !has {
		known := schema.get("type") != nil || schema.get("anyOf") != nil || schema.get("oneOf") != nil || schema.get("enum") != nil ||
			schema.get("const") != nil || schema.get("$ref") != nil
		array := slices.Contains(types(schema), "array") && schema.get("items") == nil
		return out, known && !array && !slices.Contains(types(schema), "object")
	}
	if more := schema.get("additionalProperties"); more != nil && more != false {
		return nil, false
	}
	names := make([]any, len(properties))
	for i, p := range properties {
		names[i] = p.name
	}
	return append(out, member{"required", names}, member{"additionalProperties", false}), true
}

// strictKeyword goes into the schemas below a keyword.
func strictKeyword(m member, schema object) (any, bool) {
	switch m.name {
	case "items":
		o, ok := m.value.(object)
		if !ok {
			return nil, false
		}
		return pass(strictly(o))
	case "anyOf":
		list, ok := m.value.([]any)
		out := make([]any, len(list))
		for i := range list {
			o, is := list[i].(object)
			s, can := strictly(o)
			out[i], ok = s, ok && is && can
		}
		return out, ok
	case "properties", "$defs", "definitions":
		return strictMembers(m, schema)
	}
	return m.value, true
}

func pass(o object, ok bool) (any, bool) { return o, ok }

func strictMembers(m member, schema object) (any, bool) {
	all, ok := m.value.(object)
	if !ok {
		return nil, false
	}
	required, _ := schema.get("required").([]any)
	out := make(object, len(all))
	for i, p := range all {
		o, is := p.value.(object)
		s, can := strictly(o)
		if !is || !can {
			return nil, false
		}
		if m.name == "properties" && !slices.Contains(required, any(p.name)) {
			s = nullable(s)
		}
		out[i] = member{p.name, s}
	}
	return out, true
}

// nullable returns a schema that takes null too.
func nullable(s object) object {
	t := types(s)
	switch {
	case slices.Contains(t, "null"):
		return s
	case len(t) == 0 || s.get("const") != nil:
		return object{{"anyOf", []any{s, object{{"type", "null"}}}}}
	}
	list := make([]any, 0, len(t)+1)
	for _, name := range t {
		list = append(list, name)
	}
	s = s.with("type", append(list, "null"))
	if enum, ok := s.get("enum").([]any); ok {
		s = s.with("enum", append(slices.Clone(enum), nil))
	}
	return s
}

// types returns the types that a schema names.
func types(s object) (all []string) {
	switch t := s.get("type").(type) {
	case string:
		return []string{t}
	case []any:
		for _, v := range t {
			all = append(all, text(v))
		}
	}
	return all
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
