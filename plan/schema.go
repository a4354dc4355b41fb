package plan

import (
	"fmt"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// maxHoleBytes bounds the pointers of the holes of one step. Where they are longer, the whole of the schema is left to
// the time when the step runs.
const maxHoleBytes = 1 << 20

// Steps of checking arguments against schemas that one plan may take together: so many, and as many for each of its
// bytes.
const (
	maxSchemaSteps     = 16 << 20
	schemaStepsPerByte = 8
)

// schema returns the input schema of a step's tool; nil where there is nothing to check.
func (p *parser) schema(step int) *tool.Schema {
	name := p.plan.Steps[step].Tool
	if p.plan.Steps[step].Ask {
		return tool.AskInput()
	}
	if p.catalog == nil || name == "" || name == RecursiveTool || p.isDone(step) {
		return nil
	}
	t, _ := p.lookup(name)
	return t.Input
}

// isDone reports whether a step's result is there already (Limits.Done, Amendment.Done).
func (p *parser) isDone(step int) bool {
	return p.done || p.over != nil && p.over(step) || p.above == 0 && p.doneSteps != nil && p.doneSteps[p.plan.Steps[step].ID]
}

// lookup asks the catalog once for each tool, so that a plan is read against one state of it.
func (p *parser) lookup(name string) (Tool, bool) {
	t, known := p.tools[name]
	if !known {
		t.Tool, t.ok = p.catalog.Lookup(name)
		if p.tools == nil {
			p.tools = map[string]knownTool{}
		}
		p.tools[name] = t
		p.dependent = p.dependent || len(t.DependsOn) > 0
	}
	return t.Tool, t.ok
}

// knownTool is what the catalog said of a tool.
type knownTool struct {
	Tool
	ok bool
}

// hole notes for the schema that the value in hand is not known yet.
func (w *walker) hole(text bool) {
	if !w.track {
		return
	}
	for _, t := range w.path {
		w.size += len(t.made) + 1
	}
	if w.size > maxHoleBytes {
		w.track = false
		return
	}
	var b []byte
	for _, t := range w.path {
		if t.isKey {
			b = jsontape.AppendToken(b, t.made)
		} else {
			b = jsontape.AppendIndex(b, t.index)
		}
	}
	w.holes = append(w.holes, tool.Hole{Pointer: string(b), Text: text})
}

// checkSchema checks what is known of a step's arguments against its tool's input schema. w is nil for arguments that
// are absent.
func (p *parser) checkSchema(step int, w *walker) {
	schema := p.schema(step)
	if schema == nil || w != nil && (schema.AcceptsAnyObject() || w.size > maxHoleBytes) {
		return
	}
	var holes []tool.Hole
	if w != nil {
		holes = w.holes
	}
	p.text = p.plan.Steps[step].args.known(p.text[:0])
	wrong := schema.CheckWithin(p.text, holes, &p.schemaSteps)
	for _, v := range wrong {
		if p.col.wants(fault.InvalidArguments) {
			at := p.argumentsAt(step) + v.Pointer
			hint := p.argumentHint(step, w, v)
			p.col.add(fault.InvalidArguments, at, fmt.Sprintf("against the input schema of %q: %s", p.plan.Steps[step].Tool, v.Message), hint)
		}
	}
	if len(wrong) == 0 && p.plan.Steps[step].Ask && p.catalog != nil { // what is stored was judged
		tooLarge, bad := tool.CheckAsked(p.text, holes, &p.schemaSteps)
		p.col.unanswerable(p.argumentsAt(step), tooLarge, bad)
	}
}

// unanswerable refuses a question by what is known of it beyond what its schema says.
func (c *collector) unanswerable(at string, tooLarge *fault.Error, bad []tool.Violation) {
	if tooLarge != nil && c.wants(fault.TooLarge) {
		c.add(fault.TooLarge, at, tooLarge.Message, tooLarge.Hint)
	}
	for _, v := range bad {
		if c.wants(fault.InvalidArguments) {
			c.add(fault.InvalidArguments, at+v.Pointer, v.Message, v.Hint)
		}
	}
}

// known appends what is known of the arguments: null or, in a string, nothing stands for each hole.
func (t *template) known(dst []byte) []byte {
	dst = append(dst, t.head...)
	for i := range t.holes {
		if !t.holes[i].text {
			dst = append(dst, "null"...)
		}
		dst = append(dst, t.holes[i].after...)
	}
	return dst
}
