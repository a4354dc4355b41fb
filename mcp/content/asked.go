package content

import (
	"encoding/json"
	"maps"
	"slices"
)

// The methods by which a server asks its caller something.
const (
	Elicit = "elicitation/create"
	Sample = "sampling/createMessage"
)

// Question is what a server asks its caller before a tool goes on.
type Question struct {
	Method  string
	Message string
	URL     string          // a person is to open, where there is no form
	Schema  json.RawMessage // of the form's fields
	Key     string          // the server's name of it, in an answer or a task
	Mode    string          // of an elicitation: "form", or empty for that; "url"
}

// Form reports whether a person answers by a form.
func (q Question) Form() bool {
	return q.Method == Elicit && q.URL == "" && (q.Mode == "" || q.Mode == "form")
}

// Fields returns the names of the fields of the form, sorted.
func (q Question) Fields() []string { return Properties(q.Schema) }

// Properties returns the names of the properties of a schema of an object, sorted; none of any other.
func Properties(schema json.RawMessage) []string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s) // what can't be read has none
	return slices.Sorted(maps.Keys(s.Properties))
}

// QuestionOf reads a request by which a server asks something; ok is false for any other method.
func QuestionOf(method string, params json.RawMessage) (q Question, ok bool) {
	if method != Elicit && method != Sample {
		return q, false
	}
	return question(method, params), true
}

func question(method string, params json.RawMessage) Question {
	var p struct {
		Message string          `json:"message"`
		URL     string          `json:"url"`
		Schema  json.RawMessage `json:"requestedSchema"`
		Mode    string          `json:"mode"`
	}
	_ = json.Unmarshal(params, &p) // then its method is all that is known
	return Question{Method: method, Message: p.Message, URL: p.URL, Schema: p.Schema, Mode: p.Mode}
}

// Asked returns what a server asks its caller, of an answer or a task that has "inputRequests", in the order of their
// keys.
func Asked(raw json.RawMessage) (all []Question) {
	var a struct {
		InputRequests map[string]struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		} `json:"inputRequests"`
	}
	_ = json.Unmarshal(raw, &a) // what can't be read asks nothing
	for _, key := range slices.Sorted(maps.Keys(a.InputRequests)) {
		q := question(a.InputRequests[key].Method, a.InputRequests[key].Params)
		q.Key = key
		all = append(all, q)
	}
	return all
}
