package content

import (
	"encoding/base64"
	"encoding/json"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// artifact is the member of an item that holds the handle of its bytes.
const artifact = "artifact"

// Load reads the bytes that a handle stands for.
type Load func(handle json.RawMessage) (data []byte, err error)

// Answer is what a server returns of a step's result.
type Answer struct {
	// Content are the items of "content".
	Content []json.RawMessage
	// Structured is "structuredContent"; nil where the result is content of MCP or a text. Versions before 2026-07-28
	// want an object there.
	Structured json.RawMessage
}

// Of writes the result of a step, a JSON value, as the result of a tool of MCP: {"content":[…]} as Read makes it as
// the items that it holds, with the bytes of artifacts in them again; a string as a text; anything else as
// structuredContent and, for older clients and those that round numbers, as a text with the same JSON. Errors are
// those of load.
func Of(result []byte, load Load) (Answer, error) {
	if items, ok := itemsOf(result); ok {
		for i, raw := range items {
			var err error
			if items[i], err = loadItem(raw, load); err != nil {
				return Answer{}, err
			}
		}
		return Answer{Content: items}, nil
	}
	if at := jsontape.SkipSpace(result, 0); at < len(result) && result[at] == '"' {
		return Answer{Content: []json.RawMessage{Text(jsontape.Unquoted(result[at:]))}}, nil
	}
	return Answer{Content: []json.RawMessage{Text(string(result))}, Structured: result}, nil
}

// Text returns a text as an item of content.
func Text(text string) json.RawMessage {
	return append(jsontape.AppendQuoted([]byte(`{"type":"text","text":`), text), '}')
}

// itemsOf returns the items of a result that is nothing but content of MCP.
func itemsOf(result []byte) (items []json.RawMessage, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil || len(members) != 1 {
		return nil, false
	}
	if json.Unmarshal(members["content"], &items) != nil || items == nil {
		return nil, false
	}
	for _, raw := range items {
		var one item
		if json.Unmarshal(raw, &one) != nil || one.Type == "" {
			return nil, false
		}
	}
	return items, true
}

// loadItem puts the bytes of an item's artifact back in their place.
func loadItem(raw json.RawMessage, load Load) (json.RawMessage, error) {
	var one struct {
		Type     string          `json:"type"`
		Resource json.RawMessage `json:"resource"`
	}
	if json.Unmarshal(raw, &one) != nil {
		return raw, nil
	}
	switch {
	case one.Type == "image" || one.Type == "audio":
		return loadMember(raw, "data", load)
	case one.Type == "resource" && len(one.Resource) > 0:
		inner, err := loadMember(one.Resource, "blob", load)
		return replace(raw, "resource", "resource", inner), err
	}
	return raw, nil
}

func loadMember(object json.RawMessage, name string, load Load) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || members[artifact] == nil {
		return object, nil
	}
	data, err := load(members[artifact])
	if err != nil {
		return object, err
	}
	text := base64.StdEncoding.AppendEncode([]byte{'"'}, data)
	return replace(object, artifact, name, append(text, '"')), nil
}
