package task

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/outcome"
)

// Verdict is what a person made of a question.
type Verdict string

// The verdicts.
const (
	Approve Verdict = "approve"
	Reject  Verdict = "reject"
	Answer  Verdict = "answer"
	Open    Verdict = "open" // nothing was said: the question stays
)

// Reply is what a filled-in form says.
type Reply struct {
	Verdict Verdict
	// Arguments are those to call with instead, of an approval that changed some; nil else.
	Arguments json.RawMessage
	// Value is the answer, where Verdict is Answer.
	Value  json.RawMessage
	Reason string
}

// The actions of a client's user.
const (
	accepted = "accept"
	declined = "decline"
)

// Read returns what a client's user made of the form of a question: action is accept, decline or cancel, content the
// fields. Errors: InvalidValue for a form that is not filled in as it asks.
func Read(q *outcome.Question, action string, content json.RawMessage) (Reply, error) {
	var fields map[string]json.RawMessage
	if len(content) > 0 && json.Unmarshal(content, &fields) != nil {
		return Reply{}, errForm("the content of the answer is no object")
	}
	switch {
	case action == declined:
		reason, err := reasonOf(fields)
		return Reply{Verdict: Reject, Reason: reason}, err
	case action != accepted:
		return Reply{Verdict: Open}, nil
	case q.Kind == outcome.Ask:
		return readAnswer(q, content, fields)
	default:
		return readApproval(q, fields)
	}
}

func reasonOf(fields map[string]json.RawMessage) (reason string, err error) {
	if raw, there := fields[reasonField]; there && json.Unmarshal(raw, &reason) != nil {
		return "", errForm("%q is no text", reasonField)
	}
	return reason, nil
}

func readApproval(q *outcome.Question, fields map[string]json.RawMessage) (Reply, error) {
	reason, err := reasonOf(fields)
	if err != nil {
		return Reply{}, err
	}
	yes := true
	if raw, there := fields[confirmField]; there && json.Unmarshal(raw, &yes) != nil {
		return Reply{}, errForm("%q is true or false", confirmField)
	}
	if !yes {
		return Reply{Verdict: Reject, Reason: reason}, nil
	}
	edited, err := edit(q, fields)
	return Reply{Verdict: Approve, Reason: reason, Arguments: edited}, err
}

// edit returns the arguments with what was changed in the form; nil where nothing was.
func edit(q *outcome.Question, fields map[string]json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if q.Items > 0 || json.Unmarshal(q.Arguments, &members) != nil {
		return nil, nil
	}
	changed := false
	for _, a := range editable(q) {
		now, there := fields[fieldOf(a.name)]
		if !there || same(now, members[a.name]) {
			continue
		}
		var value any
		decoder := json.NewDecoder(bytes.NewReader(now))
		decoder.UseNumber()
		if decoder.Decode(&value) != nil || typeOf(value) == "" {
			return nil, errForm("%q is neither a text nor a number nor a boolean", a.name)
		}
		members[a.name], changed = now, true
	}
	if !changed {
		return nil, nil
	}
	return written(members), nil
}

// written writes an object with its members by name.
func written(members map[string]json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		key, _ := json.Marshal(name) // a text can be written
		b = append(append(append(b, key...), ':'), members[name]...)
	}
	return append(b, '}')
}

// same reports whether two values are the same, however a client's JSON library writes numbers and texts.
func same(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	left, _ := json.Marshal(x)
	right, _ := json.Marshal(y)
	return bytes.Equal(left, right)
}

func readAnswer(q *outcome.Question, content json.RawMessage, fields map[string]json.RawMessage) (Reply, error) {
	if flat(q.Schema) {
		if len(content) == 0 { // a form of which nothing has to be filled in
			content = json.RawMessage("{}")
		}
		return Reply{Verdict: Answer, Value: content}, nil
	}
	raw, there := fields[answerField]
	if !there {
		return Reply{}, errForm("the field %q is not filled in", answerField)
	}
	if choices := choicesOf(q); len(choices) > 0 {
		for _, c := range choices {
			if asText(c) == asText(raw) {
				return Reply{Verdict: Answer, Value: c}, nil
			}
		}
		return Reply{}, errForm("%s is none of the choices", asText(raw))
	}
	if len(q.Schema) > 0 && primitive(q.Schema) == "" { // JSON, written as a text
		text := asText(raw)
		if !json.Valid([]byte(text)) {
			return Reply{}, errForm("the answer is no JSON")
		}
		return Reply{Verdict: Answer, Value: json.RawMessage(text)}, nil
	}
	return Reply{Verdict: Answer, Value: raw}, nil
}
