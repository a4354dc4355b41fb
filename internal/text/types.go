package text

import "strings"

// typeNames names the types of JSON Schema in a sentence.
var typeNames = map[string]string{
	"object": "an object", "array": "an array", "string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean",
}

// OneOfTypes names types of JSON Schema in a sentence: "an array or null". None are those of an object, whose schema need
// not say so.
func OneOfTypes(types []string) string {
	if len(types) == 0 {
		return typeNames["object"]
	}
	names := make([]string, len(types))
	for i, t := range types {
		if names[i] = typeNames[t]; names[i] == "" {
			names[i] = t // null
		}
	}
	return strings.Join(names, " or ")
}
