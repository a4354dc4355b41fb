// Package content translates between what a tool of MCP returns and what a step of Stepjet returns, in both directions:
// the bridge reads the result of tools/call with Read, the server writes one with Of. What one writes the other reads
// to the same bytes, so a result may pass any number of bridges and servers.
//
// A number keeps its digits: all of JSON that isn't changed is passed on as it came.
package content

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// KeyMeta is the member of "_meta" by which a caller names a call: sent again under the same name, it is the same call.
// Stepjet as a server names the run by it, and tells it to the servers that it calls.
const KeyMeta = "io.stepjet/idempotency-key"

// Kind says what an answer to tools/call is.
type Kind string

// The kinds. All but Complete are of 2026-07-28.
const (
	Complete      Kind = "complete"
	InputRequired Kind = "input_required" // the server asks its caller something before it goes on
	Task          Kind = "task"           // the result is to be polled for
)

// Keep stores bytes that are no text and returns the handle that stands for them in a result, as a JSON object. Its
// errors are passed on as they are.
type Keep func(data []byte) (handle json.RawMessage, err error)

// Result is what an answer to tools/call means to a step.
type Result struct {
	// Kind is Complete for what older servers return too. Of any other kind nothing else is read.
	Kind Kind
	// Body is the result of the step: a JSON value, or plain text where Text says so.
	Body []byte
	Text bool
	// Failed says that the tool reports an error. Message is what it says of it, and Body is what it would be of a
	// success.
	Failed  bool
	Message string
}

// answer is the result of tools/call, as far as it is looked into.
type answer struct {
	ResultType Kind              `json:"resultType"`
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
	IsError    bool              `json:"isError"`
}

// Read reads the result of tools/call: structuredContent where there is one, else a lone text, as the value that it
// holds where that is a JSON object or array, else {"content":[…]} with the items as they came. Bytes of images, audio
// and resources go to keep and are replaced by "artifact", its handle. Errors: tool_terminal for what is no result of
// tools/call, and those of keep.
func Read(raw json.RawMessage, keep Keep) (Result, error) {
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil || len(raw) == 0 || raw[0] != '{' {
		return Result{}, notAResult("it is no object with an array \"content\"")
	}
	r := Result{Kind: a.ResultType, Failed: a.IsError}
	if r.Kind == "" {
		r.Kind = Complete
	}
	if r.Kind != Complete {
		return r, nil
	}
	if r.Failed {
		r.Message = texts(a.Content)
	}
	if len(a.Structured) > 0 && string(a.Structured) != "null" {
		r.Body = a.Structured
		return r, nil
	}
	if text, ok := loneText(a.Content); ok {
		r.Body, r.Text = []byte(text), !container([]byte(text))
		return r, nil
	}
	var err error
	r.Body, err = inside(a.Content, keep)
	return r, err
}

// Head is what an answer to tools/call has in the place of a result.
type Head struct {
	// Task is the handle of the task that it names; empty for none.
	Task string
	// Again is the state with which the server wants to be called again, where it asks its caller nothing; nil for any other
	// answer.
	Again *string
}

// HeadOf reads the head of an answer, which is empty for a result, and for what is no answer.
func HeadOf(raw json.RawMessage) (h Head) {
	var a struct {
		ResultType Kind                       `json:"resultType"`
		TaskID     string                     `json:"taskId"`
		State      *string                    `json:"requestState"`
		Requests   map[string]json.RawMessage `json:"inputRequests"`
	}
	switch {
	case json.Unmarshal(raw, &a) != nil:
	case a.ResultType == Task:
		h.Task = a.TaskID
	case a.ResultType == InputRequired && len(a.Requests) == 0:
		h.Again = a.State
	}
	return h
}

func notAResult(why string) error {
	return fault.New(fault.ToolTerminal, "the MCP server's answer is not the result of a tool: %s", why).
		WithHint("the server doesn't keep to the protocol; its maintainers should know")
}

// item is one element of content, as far as it is looked into.
type item struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Data     *string         `json:"data"`
	Resource json.RawMessage `json:"resource"`
}

// texts returns the texts of content, one a line.
func texts(content []json.RawMessage) string {
	var b bytes.Buffer
	for _, raw := range content {
		var one item
		if json.Unmarshal(raw, &one) == nil && one.Type == "text" {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(one.Text)
		}
	}
	return b.String()
}

// loneText returns the text that is all of the content.
func loneText(content []json.RawMessage) (string, bool) {
	var one item
	if len(content) != 1 || json.Unmarshal(content[0], &one) != nil || one.Type != "text" {
		return "", false
	}
	return one.Text, true
}

// maxDepth is how deep a text may nest that is taken for the value that it holds: that of results.
const maxDepth = 64

// container reports whether a text is a JSON object or array that a result may be.
func container(text []byte) bool {
	at := jsontape.SkipSpace(text, 0)
	if at >= len(text) || text[at] != '{' && text[at] != '[' {
		return false
	}
	s := jsontape.New(text, maxDepth)
	defer s.Release()
	return s.Scan() == nil && s.First == ""
}

// inside writes {"content":[…]}.
func inside(content []json.RawMessage, keep Keep) ([]byte, error) {
	out := []byte(`{"content":[`)
	for i, raw := range content {
		kept, err := keepItem(raw, keep)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, kept...)
	}
	return append(out, "]}"...), nil
}

// keepItem puts the handle of an item's bytes in their place.
func keepItem(raw json.RawMessage, keep Keep) (json.RawMessage, error) {
	var one item
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, notAResult("an item of its content is no object")
	}
	switch {
	case (one.Type == "image" || one.Type == "audio") && one.Data != nil:
		return keepMember(raw, "data", keep)
	case one.Type == "resource" && len(one.Resource) > 0:
		inner, err := keepMember(one.Resource, "blob", keep)
		if err != nil {
			return nil, err
		}
		return replace(raw, "resource", "resource", inner), nil
	}
	return raw, nil
}

// keepMember stores the bytes that a member of an object holds as base64; an object without it stays as it is.
func keepMember(object json.RawMessage, name string, keep Keep) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(object, &members) != nil || members[name] == nil {
		return object, nil
	}
	if json.Unmarshal(members[name], &text) != nil {
		return nil, notAResult("\"" + name + "\" of an item is no string")
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, notAResult("\"" + name + "\" of an item is not base64")
	}
	handle, err := keep(data)
	if err != nil {
		return nil, err
	}
	return replace(object, name, artifact, handle), nil
}

// replace writes an object anew, in its order, with another name and value for one of its members.
func replace(object json.RawMessage, name, as string, value []byte) json.RawMessage {
	out := []byte{'{'}
	jsontape.Members(object, func(key, old []byte) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if jsontape.Unquoted(key) == name {
			out = append(jsontape.AppendQuoted(out, as), ':')
			out = append(out, value...)
			return true
		}
		out = append(append(append(out, key...), ':'), old...)
		return true
	})
	return append(out, '}')
}
