package agent

import (
	"bytes"
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dialect"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// MostState is the most bytes of the state that calls write to: the record of each round has what its calls read of it.
const MostState = 128 << 10

// Wrote is what a call of an answer has come to, as far as the state is concerned.
type Wrote struct {
	Result json.RawMessage
	Err    *fault.Error // nil for a success
}

// Writes reports whether calls of an answer write to the state.
func (a *Answer) Writes() bool { return a.writers != nil }

// Shared returns the state behind an answer's own calls, of those that have come to something, by their ids; nil for what
// it was, and for an answer of another dialect. The facts are those of the beginning of the round. lost says of calls why
// what they have written is not in it, or not all.
func (a *Answer) Shared(f *Facts, wrote map[string]Wrote) (shared json.RawMessage, lost map[string]string) {
	if a.writers == nil || len(wrote) == 0 {
		return nil, nil
	}
	came := make(map[string]dialect.Came, len(wrote))
	for id, w := range wrote {
		if came[id] = (dialect.Came{Result: w.Result}); w.Err != nil {
			came[id] = dialect.Came{Error: readError(w.Err)}
		}
	}
	var schema *tool.Schema
	if f.d.State != nil {
		schema = f.d.State.Schema
	}
	return a.writers.After(f.shared, came, schema, MostState)
}

// readError is an error as calls read it.
func readError(err *fault.Error) json.RawMessage {
	code := err.ToolCode
	if code == "" {
		code = string(err.Code)
	}
	return marshal(struct {
		Code    string          `json:"code"`
		Details json.RawMessage `json:"details"`
		Message string          `json:"message"`
	}{code, err.Details, err.Message})
}

// document is the plan of an answer's calls: with the input and the state, or of both what the calls may read where they
// are large.
func (r *reading) document(calls json.RawMessage) []byte {
	whole := r.documentOf(calls, r.f.input, r.f.shared)
	if len(r.f.input)+len(r.f.shared) <= fewShared {
		return whole
	}
	text := append(append([]byte{}, calls...), r.a.Output...)
	if r.f.d.State != nil && r.f.d.State.Schema != nil && bytes.ContainsRune(text, '\\') { // what is written there may be named in escapes
		return whole
	}
	input, shared := dialect.Needed(r.f.input, text), dialect.Needed(r.f.shared, text)
	if s := r.f.d.State; s != nil && s.Schema != nil {
		for _, bad := range s.Schema.Check(shared, nil) {
			if bad.Missing == "" { // it is about how many members there are
				shared = r.f.shared
			}
		}
	}
	if less := r.documentOf(calls, input, shared); bytes.Equal(plan.Compiled(less), plan.Compiled(whole)) {
		return less
	}
	return whole
}

// fewShared bytes of input and state are not worth leaving out.
const fewShared = 4 << 10

func (r *reading) documentOf(calls, input, shared json.RawMessage) []byte {
	var doc, state objectWriter
	doc.add("calls", calls)
	if input != nil {
		doc.add("input", input)
	}
	if shared != nil {
		state.add("initial", shared)
	}
	if s := r.f.d.State; s != nil && s.Schema != nil {
		state.add("schema", s.schema)
	}
	doc.add("state", state.json())
	if r.a.Output != nil {
		doc.add("output", r.a.Output)
	}
	return doc.json()
}

// inCalls reports whether what the answer refers to is the state.
func (r *reading) inCalls() bool {
	return r.dialect == DialectCalls || r.dialect == DialectEnd && r.f.d.Planner.Mode == ModeCalls && r.members["output"].there()
}

// fromState makes a fragment of an output that stands alone and refers to the state.
func (r *reading) fromState() {
	doc := r.document(json.RawMessage("[]"))
	_, told := plan.Parse(doc, nil)
	n := len(r.Problems)
	for _, x := range told.Problems {
		if x.Path != "/calls" { // there are none
			r.Problems = append(r.Problems, x)
		}
	}
	if len(r.Problems) > n {
		return
	}
	_, compiled := value{raw: plan.Compiled(doc)}.members()
	var steps []json.RawMessage
	for _, x := range compiled["steps"].items() {
		steps = append(steps, x.raw)
	}
	var step, made objectWriter
	step.add("id", quoteJSON("output"))
	step.add("value", compiled["output"].raw)
	made.add("steps", arrayOf(append(steps, step.json())))
	made.add("output", []byte(`"$ref:output"`))
	r.parse(made.json(), len(steps)+1, func(string) string { return "/output" })
}
