package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dialect"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
)

// End is why a loop ends with an answer.
type End string

// The ends. An answer with steps and an output has none: whether it ends the loop, its steps decide.
const (
	EndNone     End = ""
	EndOutput   End = "output"   // it has an output, and nothing to run
	EndResponse End = "response" // commands: there is nothing more to run
	EndNoSteps  End = "no_steps" // nothing to run, and no output
)

// Answer is what a planner answered, as the loop goes on with it.
type Answer struct {
	Dialect Dialect
	// Text is what it said in words.
	Text string
	// Fragment is what is to run, as a document of the plan language: what is recorded, and read again by who takes the run
	// over; nil for nothing. Steps of earlier rounds that it refers to stand at its end, as r0, r1 and so on.
	Fragment []byte
	// Plan is the fragment as it was read.
	Plan *plan.Plan
	// Calls are its calls, for Admit; those of earlier rounds are not among them.
	Calls []Call
	// Commands are those of its steps, in the same order, in the dialect commands.
	Commands []Command
	// Again names the steps that say "again": they are made although they were before.
	Again map[string]bool
	// Output is what the answer puts forward as the agent's output; nil for nothing. It may have references.
	Output json.RawMessage
	// End is why the loop ends with this answer.
	End End
	// Usage is what the answer took.
	Usage Tokens
	// Provider is what the planner wants back in the next request, byte for byte; nil for nothing.
	Provider json.RawMessage
	// Repaired says that the answer was no JSON, and was made such by its quotes, commas and comments alone.
	Repaired bool

	writers *dialect.Writers // of the dialect calls
}

// Read reads what a planner returned, in any of the dialects. The answer is nil if and only if the report has problems,
// which a planner may be asked again with: they have places in the answer, and hints. Only entries may be called, also in
// plans within steps; that an entry is locked is no problem of the answer (see Admit). The facts are those of the
// beginning of the round; earlier are the ids of the steps of the rounds before, each of which steps may refer to as
// "$ref:r0.<id>".
func Read(answer []byte, f *Facts, earlier [][]string) (*Answer, plan.Report) {
	s := take(answer)
	a := &Answer{Dialect: s.dialect, Text: s.text, Usage: s.usage, Provider: s.provider, Repaired: s.repaired}
	r := &reading{said: s, f: f, earlier: earlier, a: a}
	if len(s.Problems) == 0 {
		switch s.dialect {
		case "":
			r.odd()
		case DialectPlan:
			r.steps()
		case DialectCalls:
			r.calls()
		case DialectCommands:
			r.commands()
		case DialectEnd:
			r.end()
		}
	}
	report := s.closed()
	if len(report.Problems) > 0 {
		return nil, report
	}
	return a, report
}

// reading is one reading of one answer.
type reading struct {
	*said
	f       *Facts
	earlier [][]string
	a       *Answer
}

// odd reads an object or an array of no dialect: an output, where it is what the output schema asks for.
func (r *reading) odd() {
	if schema := r.f.d.Output; schema != nil && len(schema.Check(r.value, nil)) == 0 && r.sound(r.value) {
		r.a.Dialect, r.a.End, r.a.Text, r.a.Output = DialectEnd, EndOutput, "", r.value
		return
	}
	r.problem(fault.InvalidValue, "", `write {"steps": [{"id", "tool", "arguments"}]} or {"output": the answer}`,
		"nobody can tell what this answer asks for")
}

// output takes the value that an answer puts forward; null is none.
func (r *reading) output() {
	if v := r.members["output"]; v.there() {
		r.a.Output = v.raw
	}
}

// end reads an answer that has nothing to run.
func (r *reading) end() {
	r.output()
	switch {
	case r.a.Output != nil:
		r.a.End = EndOutput
		r.alone()
	case r.a.Text != "":
		r.a.Output, r.a.End = quoteJSON(r.a.Text), EndOutput
		r.fromText()
	default:
		r.a.End = EndNoSteps
	}
}

// ended ends an answer of a dialect that has nothing to run.
func (r *reading) ended(why End) {
	r.output()
	r.a.End = why
	switch {
	case r.a.Output != nil:
		if why == EndNoSteps {
			r.a.End = EndOutput
		}
		r.alone()
	case r.a.Text != "":
		r.a.Output = quoteJSON(r.a.Text)
		r.fromText()
	}
}

// fromText holds a text against the output schema: where that asks for something else, the text may be JSON.
func (r *reading) fromText() {
	schema := r.f.d.Output
	if schema == nil || len(schema.Check(r.a.Output, nil)) == 0 {
		return
	}
	if raw := bytes.TrimSpace([]byte(r.a.Text)); json.Valid(raw) && len(schema.Check(raw, nil)) == 0 {
		r.a.Output = raw
		return
	}
	for _, bad := range schema.Check(r.a.Output, nil) {
		r.problem(fault.InvalidValue, bad.Pointer, `answer with {"output": …}`, "against the output schema: %s", bad.Message)
	}
}

// alone judges an output that stands alone: the fragment derives it where it refers to earlier rounds, else it is held
// against the output schema.
func (r *reading) alone() {
	switch {
	case refers.Match(r.a.Output):
		r.derived()
		return
	case r.inCalls() && dialect.Refers(r.a.Output):
		r.fromState()
		return
	}
	if schema := r.f.d.Output; schema != nil {
		for _, bad := range schema.Check(r.a.Output, nil) {
			r.problem(fault.InvalidValue, "/output"+bad.Pointer, bad.Hint, "against the output schema: %s", bad.Message)
		}
	}
}

// derived makes a fragment of one value.
func (r *reading) derived() {
	var step, doc objectWriter
	step.add("id", quoteJSON("output"))
	step.add("value", r.a.Output)
	doc.add("steps", arrayOf(append([]json.RawMessage{step.json()}, r.rounds(r.members)...)))
	doc.add("output", []byte(`"$ref:output"`))
	told := len(r.Problems)
	r.parse(doc.json(), 1, func(path string) string { return renamed(path, "/steps/0/value", "/output") })
	r.mendHints(told)
}

// mendHints says, of problems behind a number of them, what an output that stands alone may refer to: the steps of its fragment
// are none that a planner knows.
func (r *reading) mendHints(told int) {
	for k := told; k < len(r.Problems); k++ {
		if r.Problems[k].Code == fault.UnknownRef {
			r.Problems[k].Hint = r.referable()
		}
	}
}

// mostReferable is how many steps of earlier rounds a hint names.
const mostReferable = 8

// referable says what an output that stands alone may refer to: steps of earlier rounds, the last ones first.
func (r *reading) referable() string {
	var refs []string
	for n := len(r.earlier) - 1; n >= 0 && len(refs) <= mostReferable; n-- {
		for _, id := range r.earlier[n] {
			refs = append(refs, fmt.Sprintf("$ref:r%d.%s", n, id))
		}
	}
	switch {
	case len(refs) == 0:
		return "nothing has run that it could refer to: write the value itself, or steps beside it; a text that begins with a dollar has two"
	case len(refs) > mostReferable:
		refs = append(refs[:mostReferable:mostReferable], "…")
	}
	return "an output without steps may refer to those of earlier rounds: " + strings.Join(refs, ", ")
}

// steps reads a plan.
func (r *reading) steps() {
	v := r.members["steps"]
	if v.kind() != jsontape.Array {
		r.wrong(v, "an array of steps", `write "steps": [{"id": "a", "tool": "…", "arguments": {}}]`)
		return
	}
	items := v.items()
	if len(items) == 0 {
		r.ended(EndNoSteps)
		return
	}
	steps := make([]json.RawMessage, len(items))
	within := map[int]bool{} // the steps that hand in a plan
	for i, x := range items {
		steps[i] = r.step(i, x, within)
	}
	r.asks(v)
	r.output()
	var doc objectWriter
	for _, name := range []string{"timeout", "approval", "open", "open_for"} {
		if m := r.members[name]; m.there() {
			r.problem(fault.UnknownField, m.at, "leave it out: the agent's definition says how long a round may take and who is asked, and steps have their own",
				"an answer has no %q", name)
		}
	}
	for _, name := range []string{"output_steps", "on_failure", "on_missing", "schedule", "concurrency"} {
		if m := r.members[name]; m.there() {
			doc.add(name, m.raw)
		}
	}
	if r.a.Output != nil {
		doc.add("output", r.a.Output)
	}
	doc.add("steps", arrayOf(append(steps, r.rounds(r.members)...)))
	r.parse(doc.json(), len(items), func(path string) string { return planPlace(path, within) })
}

// arrayOf writes an array.
func arrayOf(items []json.RawMessage) json.RawMessage {
	return append(append([]byte{'['}, bytes.Join(rawItems(items), []byte{','})...), ']')
}

func rawItems(items []json.RawMessage) [][]byte {
	all := make([][]byte, len(items))
	for i, x := range items {
		all[i] = x
	}
	return all
}
