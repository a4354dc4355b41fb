package streamed

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/stepjet/stepjet/plan"
)

// Options are the fields of a plan that stand before its steps.
type Options struct {
	fields []Part // that are submitted as they are

	// Output and OutputSteps are what the plan returns. They name steps that are not written yet, so they come last.
	Output      json.RawMessage
	OutputSteps []string
	// Open says that the plan is to be open once it is written, too.
	Open bool
	// Whole says that the plan is submitted when it is complete: of its kind none can grow, or something is wrong with it.
	Whole bool
}

// NewOptions reads the fields before the steps.
func NewOptions(fields []Part) *Options {
	o := &Options{}
	named := false
	for _, f := range fields {
		switch {
		case isNull(f.Value):
		case f.Key == "output" || f.Key == "output_steps":
			o.Whole = o.Whole || !o.Returns(f)
		case f.Key == "open":
			o.Open = string(f.Value) == "true"
		default:
			named = named || f.Key == "open_for"
			o.fields = append(o.fields, f)
		}
	}
	p, _ := plan.Parse(o.document(o.Open, nil, trial), nil)
	switch {
	case p == nil: // the orchestrator says what is wrong, with all the rest
		o.Whole = true
	case p.Schedule == plan.Waves, p.OnFailure == plan.Stop, p.Approval != nil, named && !o.Open:
		o.Whole = true
	}
	return o
}

// trial is a step with which fields of a plan are a plan.
var trial = []json.RawMessage{json.RawMessage(`{"id":"a","value":1}`)}

// Returns takes what the plan returns. It reports false for any other field, for a second one, and for a value that none
// may have.
func (o *Options) Returns(f Part) bool {
	switch {
	case isNull(f.Value):
		return true
	case o.Output != nil || o.OutputSteps != nil:
		return false
	case f.Key == "output":
		o.Output = f.Value
	case f.Key == "output_steps":
		if json.Unmarshal(f.Value, &o.OutputSteps) != nil {
			return false
		}
		if len(o.OutputSteps) == 0 {
			o.OutputSteps = nil // all, as if nothing were said
		}
	default:
		return false
	}
	return true
}

// Begun is the plan to submit: open, for so long, with the first steps.
func (o *Options) Begun(openFor time.Duration, steps []json.RawMessage) []byte {
	var within json.RawMessage
	if !o.Open {
		within, _ = json.Marshal(openFor.String()) // text
	}
	return o.document(true, within, steps)
}

// Finished is the plan as it is once all of it was sent.
func (o *Options) Finished(openFor time.Duration, steps []json.RawMessage) []byte {
	all := *o
	if o.Output != nil {
		all.fields = append(slices.Clip(all.fields), Part{Kind: Field, Key: "output", Value: o.Output})
	}
	if o.OutputSteps != nil {
		names, _ := json.Marshal(o.OutputSteps) // texts
		all.fields = append(slices.Clip(all.fields), Part{Kind: Field, Key: "output_steps", Value: names})
	}
	return all.Begun(openFor, steps)
}

func (o *Options) document(open bool, openFor json.RawMessage, steps []json.RawMessage) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	field := func(key string, value json.RawMessage) {
		name, _ := json.Marshal(key) // text
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
		b.WriteByte(',')
	}
	for _, f := range o.fields {
		field(f.Key, f.Value)
	}
	if open {
		field("open", json.RawMessage("true"))
	}
	if openFor != nil {
		field("open_for", openFor)
	}
	b.WriteString(`"steps":[`)
	b.Write(bytes.Join(rawOf(steps), []byte{','}))
	b.WriteString("]}")
	return b.Bytes()
}

func rawOf(steps []json.RawMessage) [][]byte {
	all := make([][]byte, len(steps))
	for i, s := range steps {
		all[i] = s
	}
	return all
}

// Late reports whether a field behind the steps that is not what the plan returns is of no consequence there: it says what
// goes without saying, or nobody knows it.
func Late(f Part) bool {
	if isNull(f.Value) {
		return true
	}
	if f.Key == "output" || f.Key == "output_steps" {
		return false // a second one, or none that may be
	}
	late := &Options{fields: []Part{f}}
	p, _ := plan.Parse(late.document(false, nil, trial), nil)
	return p != nil && p.OnFailure == plan.Continue && p.OnMissing == plan.MissingNull && p.Schedule == plan.Dataflow &&
		p.Concurrency == 0 && !p.TimeoutSet && !p.Open && p.Approval == nil
}

func isNull(v json.RawMessage) bool { return string(v) == "null" }
