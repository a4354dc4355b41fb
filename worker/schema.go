package worker

import (
	"encoding/json"
	"math/big"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/stepjet/stepjet/fault"
)

// standardTypes are types of the standard library whose JSON form doesn't follow from their kind.
var standardTypes = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[json.Number]():     {Type: "number"},
	reflect.TypeFor[big.Int]():         {Type: "integer"},
	reflect.TypeFor[[]byte]():          {Types: []string{"null", "string"}, ContentEncoding: "base64"},
}

// openObject accepts any object: the schema of arguments that the type says nothing about.
const openObject = `{"type":"object"}`

// inputSchema infers the schema of a tool's arguments. Errors have code invalid_tool.
func inputSchema(t reflect.Type) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem() // arguments are never null
	}
	if t.Kind() == reflect.Interface || t == reflect.TypeFor[json.RawMessage]() {
		return json.RawMessage(openObject), nil
	}
	if t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return nil, fault.New(fault.InvalidTool, "arguments are a JSON object, which %v can't hold", t).
			WithHint("take a struct, a map, json.RawMessage or any")
	}
	raw, err := infer(t)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidTool, err, "inferring the schema of the arguments").
			WithHint("give it with the option InputSchema")
	}
	return raw, nil
}

// outputSchema infers the schema of a tool's result; nil where its type has none that could be inferred (a recursive
// one). A definition may lack it.
func outputSchema(t reflect.Type) json.RawMessage {
	if t == resultType {
		return nil
	}
	raw, err := infer(t)
	if err != nil {
		return nil
	}
	return raw
}

func infer(t reflect.Type) (json.RawMessage, error) {
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: standardTypes})
	if err != nil {
		return nil, err
	}
	return json.Marshal(schema)
}
