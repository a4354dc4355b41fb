package worker

import (
	"reflect"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Result is what a tool returns that has two readers: references and outcomes have the Artifact, an agent's planner is
// shown the Text. A handler of Handle and Methods may return it, by value, in the place of any other type; its tool has
// no inferred output schema (option OutputSchema).
type Result struct {
	// Text is what a planner reads in the artifact's place; empty: the artifact itself. What is beyond wire.MaxPlanner
	// bytes is left out. Without an artifact it is the result, all of it.
	Text string
	// Artifact is the result, marshalled as encoding/json does. nil without a Text is null.
	Artifact any
	// Type names what kind of object the artifact is: 1 to 128 of [A-Za-z0-9_.:/-]. An agent keeps an artifact with a
	// type on its blackboard, whatever its entry of the tool says. Empty for none.
	Type string
}

// MarshalJSON writes the result as references see it, where it stands in another value, as in a batch.
func (r Result) MarshalJSON() ([]byte, error) {
	if r.Artifact == nil && r.Text != "" {
		return marshal(r.Text)
	}
	return marshal(r.Artifact)
}

var resultType = reflect.TypeFor[Result]()

// outputOf makes an Output of what a typed function returned.
func outputOf(v any) (Output, error) {
	r, ok := v.(Result)
	if !ok {
		body, err := marshal(v)
		return Output{Body: body}, err
	}
	if r.Type != "" && !subjects.ValidTool(r.Type) {
		return Output{}, Terminal(fault.New(fault.ToolTerminal, "the result's type %q is not 1 to 128 of A-Z a-z 0-9 _ . : / -",
			text.Clip(r.Type, 200)))
	}
	if r.Artifact == nil && r.Text != "" {
		return Output{Body: []byte(r.Text), Text: true, Type: r.Type}, nil
	}
	body, err := marshal(r.Artifact)
	return Output{Body: body, Type: r.Type, Planner: r.Text}, err
}

// typed adds to a record what an Output has beside its body.
func typed(r wire.Result, out Output) wire.Result {
	if subjects.ValidTool(out.Type) {
		r.Type = out.Type
	}
	r.Planner = out.Planner
	return r
}
