package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// MaxDepth is how deep JSON may nest, in plans and in tools' outputs; the root counts one.
const MaxDepth = 64

// MaxOutput is the largest output of a tool and the largest resolved arguments of a step, in bytes: 64 MiB.
const MaxOutput = 64 << 20

// maxTolerated is the depth beyond MaxDepth up to which a text is still read to see whether it is JSON at all.
const maxTolerated = 1 << 18

// Output returns the JSON value that a tool's output stands for (plan language, "A tool's output is"). text says that
// its content type was text/plain: then it is a string, also when it is empty. Otherwise it is the JSON that it is, or
// a string where it is not JSON, or null where it is empty.
//
// The result shares the memory of body where that is JSON already, without the white space around it. The error has
// code tool_terminal: the output is not UTF-8 or holds half a surrogate pair, is JSON with a key used twice in one
// object or nested more than MaxDepth deep, or is larger than MaxOutput (code too_large).
func Output(body []byte, text bool) ([]byte, *fault.Error) {
	switch {
	case len(body) > MaxOutput:
		return nil, fault.New(fault.TooLarge, "the output has %d bytes, at most %d are allowed", len(body), MaxOutput).
			WithHint("return a part of it, or a place to fetch it from")
	case text:
		return quote(body)
	case len(body) == 0:
		return []byte("null"), nil
	}
	first, where, err := check(body, MaxDepth)
	if err != nil && err.Deep {
		if _, _, again := check(body, maxTolerated); again == nil || again.Deep {
			return nil, terminal("is JSON nested more than %d deep", MaxDepth).WithHint("return flatter data, or the inner part as a string")
		}
	}
	switch {
	case err != nil:
		return quote(body)
	case first == fault.DuplicateKey:
		return nil, terminal("is JSON with a key used twice in one object, at %q", clip(where)).WithHint("return each key once")
	case first == fault.InvalidUTF8:
		return nil, terminal("is JSON with text that is not valid UTF-8 or half a surrogate pair, at %q", clip(where)).WithHint("return text as UTF-8")
	}
	return trimWhite(body), nil
}

// check scans a text and gives the first flaw that leaves it readable, and where it is.
func check(body []byte, limit int) (first fault.Code, where string, err *jsontape.SyntaxError) {
	s := jsontape.New(body, limit)
	defer s.Release()
	err = s.Scan()
	return s.First, s.Where, err
}

func terminal(format string, args ...any) *fault.Error {
	return fault.New(fault.ToolTerminal, "the tool's output %s", fmt.Sprintf(format, args...))
}

// quote makes a JSON string of text.
func quote(text []byte) ([]byte, *fault.Error) {
	if !utf8.Valid(text) {
		return nil, terminal("is not valid UTF-8").WithHint("return binary data as base64, or a place to fetch it from")
	}
	size := jsontape.EscapedSize(text) + 2
	if size > MaxOutput {
		return nil, fault.New(fault.TooLarge, "the output has %d bytes as a JSON string, at most %d are allowed", size, MaxOutput).
			WithHint("return a part of it, or a place to fetch it from")
	}
	b := make([]byte, 0, size)
	b = append(b, '"')
	b = jsontape.AppendEscaped(b, text)
	return append(b, '"'), nil
}

func trimWhite(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// Shape is the value that a plan comes to, where it says so: any JSON with references (plan language, "output").
type Shape struct {
	// Reads are the steps whose results it refers to: indexes, sorted and unique. They count as the plan's output steps.
	Reads []int
	// Waits are all steps that it refers to, also those of which it only names the error or the status.
	Waits []int
	// TakesInput says that it refers to the input of its plan.
	TakesInput bool

	// plain is that of a plan which names none: what is missing of it is null, as it is no reference of anybody's.
	plain bool
	template
}

// output reads the plan's output as if it were the arguments of one more step, which nobody waits for and which calls
// nothing: what is wrong with a reference is said in the same words.
func (p *parser) output(n int32) {
	p.second = true
	i := len(p.plan.Steps)
	kept := len(p.steps)
	p.plan.Steps, p.steps = append(p.plan.Steps, Step{}), append(p.steps, stepNodes{arguments: n})
	p.shape, p.deps = i+1, p.deps[:0]
	w := walker{p: p, step: i, src: p.src, tape: p.tape, root: n, any: true}
	shape := &Shape{}
	w.compile(&shape.template)
	shape.Waits = sortedOnce(p.deps)
	shape.Reads, shape.TakesInput = shape.reads(), p.plan.Steps[i].TakesInput
	p.plan.Steps, p.steps, p.shape = p.plan.Steps[:i], p.steps[:kept], 0
	p.plan.Output, p.plan.Outputs, p.plan.AllOutputs = shape, shape.Reads, false
}

// reads returns the steps whose results a template refers to.
func (t *template) reads() (steps []int) {
	for i := range t.holes {
		for k := range t.holes[i].targets {
			if x := &t.holes[i].targets[k]; x.of == itsResult && x.step >= 0 {
				steps = append(steps, x.step)
			}
		}
	}
	return sortedOnce(steps)
}

// sortedOnce returns some numbers sorted, each once.
func sortedOnce(all []int) []int {
	all = slices.Clone(all)
	slices.Sort(all)
	return slices.Compact(all)
}

// outputs reads what the plan says of its results: a value of its own, or the names of steps.
func (p *parser) outputs(steps, value int32) {
	switch {
	case value == 0:
		p.outputSteps(steps)
	case steps != 0:
		p.invalid(p.below(p.here(), steps), "remove it: what output refers to goes back, and nothing else",
			`a plan has "output" or "output_steps", not both`)
		p.output(value)
	default:
		p.output(value)
	}
}

// outputSteps reads output_steps; absent, null and empty mean all steps.
func (p *parser) outputSteps(n int32) {
	if n == 0 || p.tape[n].Kind == jsontape.Array && p.count(n) == 0 {
		p.plan.Outputs, p.plan.AllOutputs = make([]int, len(p.plan.Steps)), true
		for i := range p.plan.Outputs {
			p.plan.Outputs[i] = i
		}
		return
	}
	p.plan.Outputs, p.plan.AllOutputs = nil, false
	at := p.below(p.here(), n)
	if k := p.tape[n].Kind; k != jsontape.Array {
		hint := `write "output_steps": ["a", "b"]`
		if k == jsontape.String {
			hint = `write "output_steps": ` + listOfIDs(p.str(n))
		}
		p.col.addf(fault.InvalidValue, at.String(), hint, "output_steps must be an array of step ids, but is %s", k)
		return
	}
	seen := make(map[string]bool, 8)
	for i, v := 0, n+1; v < p.tape[n].Next; i, v = i+1, p.tape[v].Next {
		if p.tape[v].Kind != jsontape.String {
			p.itemProblem(fault.InvalidValue, at, i, "", "must be a step's id, but is %s", p.shown(v))
			continue
		}
		id := p.str(v)
		step, known := p.plan.ids.find(id)
		switch {
		case !known:
			if p.col.wants(fault.UnknownOutputStep) {
				p.col.add(fault.UnknownOutputStep, string(jsontape.AppendIndex([]byte(at.String()), i)),
					fmt.Sprintf("there is no step %q", clip(id)), p.idHint(-1, id, strconv.Quote))
			}
		case seen[id]:
			p.itemProblem(fault.DuplicateOutputStep, at, i, "name each step once", "%q is named twice", clip(id))
		default:
			p.plan.Outputs = append(p.plan.Outputs, int(step))
		}
		seen[id] = true
	}
}

// concurrency reads how many calls may be ready at once.
func (p *parser) concurrency(n int32, at place) int {
	if n == 0 {
		return 0
	}
	p.second = true
	most, _ := p.number(n, at, 1, MaxSteps, true)
	return int(most)
}
