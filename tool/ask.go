package tool

import (
	"encoding/json"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

// AskTool is the name of the built-in tool by which a plan asks a person. No worker hosts a tool of that name.
const AskTool = "ask"

// askSchema is what the tool takes.
const askSchema = `{"type": "object", "additionalProperties": false, "required": ["question"], "properties": {
	"question": {"type": "string", "minLength": 1, "maxLength": 16384},
	"schema": {"type": "object"},
	"choices": {"type": "array", "minItems": 1, "maxItems": 1000}}}`

var askInput = sync.OnceValue(func() *Schema {
	s, err := CompileSchema(json.RawMessage(askSchema))
	if err != nil {
		panic(err) // it stands above
	}
	return s
})

// AskInput returns the input schema of the tool AskTool.
func AskInput() *Schema { return askInput() }

// Asked is what a step asks a person, by the tool AskTool.
type Asked struct {
	// Question is the text; Schema and Choices say which values are an answer, nil for any.
	Question string            `json:"question"`
	Schema   json.RawMessage   `json:"schema,omitempty"`
	Choices  []json.RawMessage `json:"choices,omitempty"`
}

// ReadAsked reads the arguments of the tool AskTool. Errors: InvalidArguments, also for a schema that is none.
func ReadAsked(arguments []byte) (*Asked, *fault.Error) {
	if bad := AskInput().Check(arguments, nil); len(bad) > 0 {
		return nil, Refusal(AskTool, bad)
	}
	var a Asked
	if err := json.Unmarshal(arguments, &a); err != nil {
		return nil, fault.New(fault.InvalidArguments, "the question can't be read: %v", err)
	}
	if _, err := a.compile(); err != nil {
		return nil, err
	}
	return &a, nil
}

func (a *Asked) compile() (*Schema, *fault.Error) {
	raw := a.Schema
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	s, err := CompileSchema(raw)
	if err != nil {
		return nil, fault.New(fault.InvalidArguments, "the schema of the answer is none: %s", text.Clip(err.Error(), 1024)).
			WithHint(`write a JSON schema, such as {"type": "number"}`)
	}
	return s, nil
}

// Accepts says why a value is no answer; nil where it is one. The value is JSON.
func (a *Asked) Accepts(value []byte) *fault.Error {
	s, err := a.compile()
	if err != nil {
		return err
	}
	if bad := s.Check(value, nil); len(bad) > 0 {
		return fault.New(fault.InvalidValue, "the answer does not fit: %s", bad[0].Message).
			WithHint("the question's schema says what an answer is: %s", text.Clip(string(a.Schema), 512))
	}
	if len(a.Choices) == 0 {
		return nil
	}
	list, _ := json.Marshal(map[string]any{"enum": a.Choices}) // they were read from JSON
	choices, bad := CompileSchema(list)
	if bad != nil || len(choices.Check(value, nil)) > 0 {
		all, _ := json.Marshal(a.Choices)
		return fault.New(fault.InvalidValue, "the answer is none of the choices").WithHint("choose one of %s", text.Clip(string(all), 512))
	}
	return nil
}
