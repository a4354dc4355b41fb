package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// AskDefinition returns the tool AskTool as an author of plans is shown it. No registry has it.
func AskDefinition() *Definition {
	return &Definition{
		Name: AskTool,
		Description: "Asks a person and waits for the answer, which is the step's result. choices lists the values that are an answer; " +
			"schema, a JSON schema, says which are. Every plan can call it; no worker hosts it.",
		InputSchema: json.RawMessage(askSchema),
	}
}

// Asked is what a step asks a person, by the tool AskTool.
type Asked struct {
	// Question is the text; Schema and Choices say which values are an answer, nil for any.
	Question string            `json:"question"`
	Schema   json.RawMessage   `json:"schema,omitempty"`
	Choices  []json.RawMessage `json:"choices,omitempty"`
}

// MaxQuestion bounds what a person is shown of a question, beside the arguments of a call that is approved of: its
// text, and of one by the tool AskTool the schema and the choices too, together, in bytes.
const MaxQuestion = 64 << 10

// TooLargeToAsk is the error for a question of so many bytes; nil where it has at most MaxQuestion.
func TooLargeToAsk(size int) *fault.Error {
	if size <= MaxQuestion {
		return nil
	}
	return fault.New(fault.TooLarge, "the question has %d bytes, at most %d are shown to a person", size, MaxQuestion).
		WithHint("refer to a part of the value, such as a name or a sum, and not to all of it")
}

// ReadAsked reads the arguments of the tool AskTool. Errors: TooLarge for more than MaxQuestion; InvalidArguments, also
// for a schema that is none, and for choices that it refuses.
func ReadAsked(arguments []byte) (*Asked, *fault.Error) {
	if bad := AskInput().Check(arguments, nil); len(bad) > 0 {
		return nil, Refusal(AskTool, bad)
	}
	var a Asked
	if err := json.Unmarshal(arguments, &a); err != nil {
		return nil, fault.New(fault.InvalidArguments, "the question can't be read: %v", err)
	}
	if err := TooLargeToAsk(a.size()); err != nil {
		return nil, err
	}
	if bad := a.flaws(nil); len(bad) > 0 {
		return nil, fault.New(fault.InvalidArguments, "nobody can answer that: %s", bad[0].Message).WithHint("%s", bad[0].Hint)
	}
	return &a, nil
}

// size returns how many bytes of a question a person is shown.
func (a *Asked) size() int {
	n := len(a.Question) + len(a.Schema)
	for _, c := range a.Choices {
		n += len(c)
	}
	return n
}

// askedSteps is what it takes to compile the schema of an answer, and for each of its bytes, in steps of checking.
const askedSteps, askedStepsPerByte = 2000, 50

// CheckAsked returns what can be said of the arguments of the tool AskTool beyond its input schema, before all of them
// are known: that the question is too large, that its schema is none, and that choices don't fit it. What stands at a
// hole is a placeholder, "null" or an empty text. It takes what it uses from an allowance of steps, as
// Schema.CheckWithin does; where there is too little left, it says nothing.
func CheckAsked(arguments []byte, holes []Hole, steps *int) (tooLarge *fault.Error, bad []Violation) {
	var a Asked
	if json.Unmarshal(arguments, &a) != nil {
		return nil, nil // its schema says so
	}
	size := a.size()
	for _, h := range holes {
		if !h.Text {
			size -= len("null")
		}
	}
	if err := TooLargeToAsk(size); err != nil {
		return err, nil
	}
	cost := askedSteps + askedStepsPerByte*size
	if a.Schema == nil || cost > *steps || slices.ContainsFunc(holes, func(h Hole) bool { return partOf(h.Pointer, "/schema") }) {
		return nil, nil
	}
	*steps -= cost
	return nil, a.flaws(holes)
}

// partOf reports whether a pointer is that of a value, or of a part of it.
func partOf(pointer, value string) bool {
	return pointer == value || strings.HasPrefix(pointer, value+"/")
}

// flaws says why nobody can answer, but for what stands at holes.
func (a *Asked) flaws(holes []Hole) (all []Violation) {
	schema, err := a.compile()
	if err != nil {
		return []Violation{{Pointer: "/schema", Message: err.Message, Hint: err.Hint}}
	}
	for i, c := range a.Choices {
		at := fmt.Sprintf("/choices/%d", i)
		if slices.ContainsFunc(holes, func(h Hole) bool { return partOf(h.Pointer, at) || h.Pointer == "/choices" }) {
			continue
		}
		if bad := schema.Check(c, nil); len(bad) > 0 {
			all = append(all, Violation{
				Pointer: at, Message: fmt.Sprintf("the choice %s does not fit the schema, so nobody could answer with it: %s", text.Clip(string(c), 80), bad[0].Message),
				Hint: "leave the schema out, since the choices say what an answer is; or write choices that fit it",
			})
		}
	}
	return all
}

func (a *Asked) compile() (*Schema, *fault.Error) {
	raw := a.Schema
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	s, err := CompileSchema(raw)
	if err != nil {
		return nil, fault.New(fault.InvalidArguments, "the schema of the answer is none: %s", text.Clip(fault.As(err).Message, 1024)).
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
