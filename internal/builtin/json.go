package builtin

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Limits of what the JSON tools read, so that walking it stays cheap.
const (
	maxJSON  = 8 << 20 // bytes of arguments
	maxDepth = 256     // nesting of arguments
)

const anyResult = `{"type":"object","properties":{"result":{}},"required":["result"],"additionalProperties":false}`

func jsonTools() []Tool {
	const objects = `{"type":"array","items":{"type":"object"}`
	return []Tool{
		define("json", "echo", "Returns its arguments as they are.", `{"type":"object"}`, `{"type":"object"}`,
			func(c Call) ([]byte, error) { return bytes.Clone(c.Args), nil }),
		jsonTool("json_get", "Returns the part of a value that a JSON pointer (RFC 6901) names, or the default where there is none.",
			object(`"value":{},"pointer":{"type":"string","description":"for example /items/0/name; empty for the whole value"},"default":{"description":"returned where the pointer finds nothing; without it that is an error"}`, `"value","pointer"`), anyResult, jsonGet),
		jsonTool("json_keys", "Lists the keys of an object in their order.",
			object(`"value":{"type":"object"}`, `"value"`), stringsResult, jsonKeys),
		jsonTool("json_values", "Lists the values of an object in their order.",
			object(`"value":{"type":"object"}`, `"value"`),
			`{"type":"object","properties":{"result":{"type":"array"}},"required":["result"],"additionalProperties":false}`,
			jsonValues),
		jsonTool("json_length", "Counts the members of an object, the items of an array or the characters of a string.",
			object(`"value":{"type":["object","array","string"]}`, `"value"`), countResult, jsonLength),
		jsonTool("json_pick", "Returns an object with the given keys of another and nothing else; absent keys are left out.",
			object(`"value":{"type":"object"},"keys":{"type":"array","items":{"type":"string"}}`, `"value","keys"`),
			`{"type":"object","properties":{"result":{"type":"object"}},"required":["result"],"additionalProperties":false}`,
			jsonPick),
		jsonTool("json_merge", "Merges objects: for a key that several have, the last one's value counts. With deep, objects under the same key are merged in turn.",
			object(`"values":`+objects+`},"deep":{"type":"boolean"}`, `"values"`),
			`{"type":"object","properties":{"result":{"type":"object"}},"required":["result"],"additionalProperties":false}`,
			jsonMerge),
		jsonTool("json_equal", "Says whether two values are equal; the order of keys and the way a number is written do not matter.",
			object(`"a":{},"b":{}`, `"a","b"`), boolResult, jsonEqual),
		jsonTool("json_diff", "Compares two values and lists what to add, remove and replace to get from a to b, with JSON pointers.",
			object(`"a":{},"b":{}`, `"a","b"`), diffResult, jsonDiff),
		jsonTool("json_parse", "Reads a text that holds JSON and returns the value.",
			object(`"text":{"type":"string"}`, `"text"`), anyResult, jsonParse),
		jsonTool("json_stringify", "Writes a value as compact JSON text.",
			object(`"value":{}`, `"value"`), stringResult, jsonStringify),
	}
}

// jsonTool returns run the arguments, known to be valid JSON of bounded size and depth, so that gjson may walk them.
func jsonTool(name, description, input, output string, run func(args gjson.Result) ([]byte, error)) Tool {
	var needs []string
	for _, r := range gjson.Get(input, "required").Array() {
		needs = append(needs, r.String())
	}
	return define("json", name, description, input, output, func(c Call) ([]byte, error) {
		args, err := walkable(c.Args)
		if err != nil {
			return nil, err
		}
		for _, name := range needs {
			if !member(args, name).Exists() {
				return nil, required(name)
			}
		}
		return run(args)
	})
}

// walkable parses JSON once it is sure that walking it can cost no more than its size.
func walkable(raw []byte) (gjson.Result, error) {
	if len(raw) > maxJSON {
		return gjson.Result{}, fault.New(fault.TooLarge, "%d bytes of JSON are over the limit of %d", len(raw), maxJSON).
			WithHint("pass on only the part that is needed, with a path in the reference")
	}
	if depth(raw) > maxDepth {
		return gjson.Result{}, fault.New(fault.InvalidArguments, "JSON nested deeper than %d", maxDepth)
	}
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return gjson.Result{}, fault.New(fault.InvalidArguments, "not valid JSON: %s", clip(raw))
	}
	return gjson.ParseBytes(bytes.TrimSpace(raw)), nil
}

// depth counts how deep brackets nest, outside of strings.
func depth(raw []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// member returns an object's value under a key, compared after unescaping; the last one where a key is repeated.
func member(obj gjson.Result, key string) gjson.Result {
	var found gjson.Result
	if obj.IsObject() {
		obj.ForEach(func(k, v gjson.Result) bool {
			if k.String() == key {
				found = v
			}
			return true
		})
	}
	return found
}

func wrap(raw string) []byte { return []byte(`{"result":` + raw + `}`) }

func jsonGet(args gjson.Result) ([]byte, error) {
	pointer := member(args, "pointer").String()
	if pointer != "" && pointer[0] != '/' {
		return nil, fault.New(fault.ToolTerminal, "%q is not a JSON pointer", clip([]byte(pointer))).
			WithHint("it begins with a slash: write %q", clip([]byte("/"+strings.ReplaceAll(pointer, ".", "/"))))
	}
	v, err := resolve(member(args, "value"), pointer)
	if err == nil {
		return wrap(v.Raw), nil
	}
	if otherwise := member(args, "default"); otherwise.Exists() {
		return wrap(otherwise.Raw), nil
	}
	return nil, err
}

// resolve follows a JSON pointer: empty, or one that begins with a slash.
func resolve(v gjson.Result, pointer string) (gjson.Result, error) {
	if pointer == "" {
		return v, nil
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		next := child(v, jsontape.UnescapeToken(part))
		if !next.Exists() {
			return v, fault.New(fault.ToolTerminal, "the pointer %q finds nothing at %q", clip([]byte(pointer)),
				clip([]byte(part))).
				WithHint("%s; or give a default", describe(v))
		}
		v = next
	}
	return v, nil
}

func child(v gjson.Result, key string) gjson.Result {
	if !v.IsArray() {
		return member(v, key)
	}
	index, err := strconv.Atoi(key)
	if err != nil || index < 0 || strconv.Itoa(index) != key {
		return gjson.Result{}
	}
	var found gjson.Result
	v.ForEach(func(_, item gjson.Result) bool {
		if index == 0 {
			found = item
		}
		index--
		return index >= 0
	})
	return found
}

// describe says what there is at a value, for the hint of a pointer that went wrong.
func describe(v gjson.Result) string {
	switch {
	case v.IsArray():
		return "there is an array of " + strconv.Itoa(count(v)) + " items"
	case !v.IsObject():
		return "there is no object or array, but " + clip([]byte(v.Raw))
	}
	var keys []string
	v.ForEach(func(k, _ gjson.Result) bool {
		keys = append(keys, clip([]byte(k.String())))
		return len(keys) < 10
	})
	if len(keys) == 0 {
		return "there is an empty object"
	}
	return "there are the keys " + strings.Join(keys, ", ")
}

func count(v gjson.Result) int {
	n := 0
	v.ForEach(func(_, _ gjson.Result) bool { n++; return true })
	return n
}

func jsonLength(args gjson.Result) ([]byte, error) {
	v := member(args, "value")
	if v.Type == gjson.String {
		return result(utf8.RuneCountInString(v.String()))
	}
	if v.IsObject() || v.IsArray() {
		return result(count(v))
	}
	return nil, fault.New(fault.InvalidArguments, "the argument \"value\" is no object, array or string but %s",
		clip([]byte(v.Raw)))
}

func jsonParse(args gjson.Result) ([]byte, error) {
	text := member(args, "text").String()
	v, err := walkable([]byte(text))
	if err != nil {
		e := *fault.As(err)
		if e.Code == fault.InvalidArguments {
			e.Code = fault.ToolTerminal // the argument is a string, as it should be; its content is at fault
		}
		return nil, e.WithHint("the text must hold exactly one JSON value")
	}
	return wrap(v.Raw), nil
}

func jsonStringify(args gjson.Result) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(member(args, "value").Raw)); err != nil {
		return nil, fault.Wrap(fault.InvalidArguments, err, "reading the argument \"value\"")
	}
	return result(b.String())
}
