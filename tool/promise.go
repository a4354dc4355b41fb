package tool

import "encoding/json"

// Promise compiles what a result has to keep of the output schema so that whoever relied on that finds what it
// declares; nil for a tool that declares none. It is for results of another definition of the tool, say a newer one:
// what they have more is allowed where the output schema would refuse it. Errors are *fault.Error of code invalid_tool.
func (d *Definition) Promise() (*Schema, error) {
	doc, err := decodeBounded(d.OutputSchema)
	if len(d.OutputSchema) == 0 || err != nil {
		return d.Output()
	}
	loosen(doc)
	raw, err := json.Marshal(doc)
	if err != nil {
		return d.Output()
	}
	if s, err := CompileSchema(raw); err == nil {
		return s, nil
	}
	return d.Output() // one part refers to another by a place that is gone
}

// loosen takes out of a schema what refuses properties for not being named. Where one of several schemas has to fit,
// and only one, several may fit after that.
func loosen(schema any) {
	m, ok := schema.(map[string]any)
	if !ok {
		return
	}
	for _, closed := range []string{"additionalProperties", "unevaluatedProperties"} {
		if refusesAll(m[closed]) {
			delete(m, closed)
		}
	}
	if one, there := m["oneOf"]; there && m["anyOf"] == nil {
		m["anyOf"] = one
		delete(m, "oneOf")
	}
	for name, v := range m {
		switch name {
		case "not", "if", "const", "enum", "default", "examples": // to loosen a condition is to tighten what depends on it
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			if all, ok := v.(map[string]any); ok {
				for _, s := range all {
					loosen(s)
				}
			}
		default:
			if all, ok := v.([]any); ok {
				for _, s := range all {
					loosen(s)
				}
			}
			loosen(v)
		}
	}
}

// refusesAll reports whether a schema is one of the two usual forms of "nothing".
func refusesAll(schema any) bool {
	if m, ok := schema.(map[string]any); ok && len(m) == 1 {
		none, ok := m["not"].(map[string]any)
		return ok && len(none) == 0 || m["not"] == true
	}
	return schema == false
}
