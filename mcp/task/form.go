package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Form is what a client shows its user to be answered: a text, and a JSON schema of an object whose properties are
// texts, numbers, booleans and choices, since clients know no others.
type Form struct {
	Message string
	Schema  json.RawMessage
}

// property is one field of a form, in the order in which it is written.
type property struct {
	name   string
	schema map[string]any
}

// maxShown bounds the arguments that a form's text shows, in bytes.
const maxShown = 2 << 10

// The fields of the form of an approval, besides arguments that may be edited.
const (
	confirmField = "confirm"
	reasonField  = "reason"
	answerField  = "answer"
)

// FormOf returns the form of a question.
func FormOf(q *outcome.Question) Form {
	if q.Kind == outcome.Ask {
		return askForm(q)
	}
	return approvalForm(q)
}

// approvalForm asks for a yes or a no, and shows the arguments that are texts, numbers and booleans as fields that can
// be changed. The others stand in the text.
func approvalForm(q *outcome.Question) Form {
	message := q.Text
	if message == "" {
		message = "Approve " + described(q) + "?"
	}
	switch {
	case q.Revision > 0:
		message = proposal(q)
	case q.Round != nil:
		message = roundProposed(q)
	}
	fields := []property{
		{confirmField, map[string]any{"type": "boolean", "title": "Approve", "description": "false rejects it.", "default": true}},
		{reasonField, map[string]any{"type": "string", "title": "Reason", "description": "For who reads what became of the run."}},
	}
	if rest := otherArguments(q); rest != "" {
		message += "\n\n" + rest
	}
	for _, a := range editable(q) {
		fields = append(fields, property{fieldOf(a.name), map[string]any{
			"type": typeOf(a.value), "title": a.name, "default": a.value,
		}})
	}
	return Form{Message: message, Schema: formSchema(fields, nil)}
}

// proposal words the question about an amendment: the plan's own question, who wants what for which reason, and what is
// changed.
func proposal(q *outcome.Question) string {
	message := "Approve amendment " + strconv.Itoa(q.Revision) + " of "
	if q.Step == subjects.RootScope {
		message += "the plan?"
	} else {
		message += "the plan of step " + q.Step + "?"
	}
	if q.Text != "" {
		message += " (" + q.Text + ")"
	}
	if q.By != "" {
		message += " Asked for by " + q.By
		if !q.Verified {
			message += " (unverified)"
		}
		message += "."
	}
	if q.Reason != "" {
		message += "\n\n" + q.Reason
	}
	return message + "\n\n" + clipped(string(q.Change))
}

// roundProposed words the question about a round of an agent: the agent's own question, and what would run.
func roundProposed(q *outcome.Question) string {
	message := "Approve round " + strconv.Itoa(*q.Round) + " of " + q.Tool + " (step " + q.Step + ")?"
	if q.Text != "" {
		message += " (" + q.Text + ")"
	}
	return message + "\n\n" + clipped(string(q.Plan))
}

func described(q *outcome.Question) string {
	switch {
	case q.Step == subjects.RootScope:
		return "the plan"
	case q.Items > 0:
		return fmt.Sprintf("%d calls of %s (step %s)", q.Items, q.Tool, q.Step)
	default:
		return "the call of " + q.Tool + " (step " + q.Step + ")"
	}
}

// argument is one member of the arguments that a question shows.
type argument struct {
	name  string
	value any
}

// arguments returns the members of the arguments that a question shows, by name; nil of a plan's and of many items'.
func arguments(q *outcome.Question) (all []argument) {
	var members map[string]json.RawMessage
	if q.Items > 0 || json.Unmarshal(q.Arguments, &members) != nil {
		return nil
	}
	for name, raw := range members {
		var value any
		decoder := json.NewDecoder(strings.NewReader(string(raw)))
		decoder.UseNumber() // digits stay as they are
		if decoder.Decode(&value) == nil {
			all = append(all, argument{name, value})
		}
	}
	slices.SortFunc(all, func(a, b argument) int { return strings.Compare(a.name, b.name) })
	return all
}

// editable returns the arguments that fit into a field of a form.
func editable(q *outcome.Question) (some []argument) {
	for _, a := range arguments(q) {
		if typeOf(a.value) != "" {
			some = append(some, a)
		}
	}
	return some
}

// otherArguments shows what is to be approved of and fits into no field.
func otherArguments(q *outcome.Question) string {
	all := arguments(q)
	if all == nil && len(q.Arguments) > 0 && string(q.Arguments) != "null" {
		return clipped(string(q.Arguments))
	}
	rest := map[string]any{}
	for _, a := range all {
		if typeOf(a.value) == "" {
			rest[a.name] = a.value
		}
	}
	if len(rest) == 0 {
		return ""
	}
	shown, _ := json.Marshal(rest) // it was read from JSON
	return clipped(string(shown))
}

func clipped(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

// typeOf names the JSON type of a value that fits into a field; empty for others.
func typeOf(v any) string {
	switch x := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if strings.ContainsAny(x.String(), ".eE") {
			return "number"
		}
		return "integer"
	}
	return ""
}

// fieldOf is the field of an argument: its name, unless that is a field of the form.
func fieldOf(name string) string {
	if name == confirmField || name == reasonField {
		return "argument_" + name
	}
	return name
}

// askForm asks for a value: its fields are those of the wanted object, where they all fit into a form, else there is one
// that holds the answer.
func askForm(q *outcome.Question) Form {
	if flat(q.Schema) {
		return Form{Message: q.Text, Schema: q.Schema}
	}
	return Form{Message: q.Text, Schema: formSchema([]property{{answerField, answerSchema(q)}}, []string{answerField})}
}

// answerSchema is the schema of the one field of an answer.
func answerSchema(q *outcome.Question) map[string]any {
	if choices := choicesOf(q); len(choices) > 0 {
		enum := make([]string, len(choices))
		for i, c := range choices {
			enum[i] = asText(c)
		}
		return map[string]any{"type": "string", "enum": enum}
	}
	if kind := primitive(q.Schema); kind != "" {
		var s map[string]any
		_ = json.Unmarshal(q.Schema, &s) // primitive has read it
		return s
	}
	if len(q.Schema) > 0 {
		return map[string]any{"type": "string", "description": "JSON that fits the schema " + clipped(string(q.Schema))}
	}
	return map[string]any{"type": "string"}
}

func choicesOf(q *outcome.Question) (all []json.RawMessage) {
	_ = json.Unmarshal(q.Choices, &all) // absent, or a list
	return all
}

// asText is a JSON value as a person reads it: a text without its quotes.
func asText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// primitives are the types of fields.
var primitives = []string{"string", "number", "integer", "boolean"}

// primitive returns the type of a schema that fits into one field.
func primitive(schema json.RawMessage) string {
	var s struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(schema, &s) != nil || !slices.Contains(primitives, s.Type) {
		return ""
	}
	return s.Type
}

// flat reports whether a schema is that of an object whose properties all fit into fields.
func flat(schema json.RawMessage) bool {
	var s struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || s.Type != "object" || len(s.Properties) == 0 {
		return false
	}
	for _, p := range s.Properties {
		if primitive(p) == "" {
			return false
		}
	}
	return true
}

// formSchema writes the schema of a form, with its fields in their order.
func formSchema(fields []property, required []string) json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(f.name) // a text can be written
		schema, _ := json.Marshal(f.schema)
		b = append(append(append(b, name...), ':'), schema...)
	}
	b = append(b, '}')
	if len(required) > 0 {
		names, _ := json.Marshal(required)
		b = append(append(b, `,"required":`...), names...)
	}
	return append(b, '}')
}

// errForm is the error for a form that was not filled in as it asks.
func errForm(format string, args ...any) error {
	return fault.New(fault.InvalidValue, format, args...).WithHint("fill in the form again")
}
