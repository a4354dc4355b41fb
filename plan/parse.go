package plan

import (
	"bytes"
	"fmt"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Parse reads a plan with the default limits. The plan is nil if and only if the report has problems. A nil catalog
// skips the checks of tools and schemas.
func Parse(body []byte, c Catalog) (*Plan, Report) { return ParseLimited(body, c, Limits{}) }

// ParseLimited is Parse with other limits.
func ParseLimited(body []byte, c Catalog, l Limits) (*Plan, Report) { return parse(body, c, l, false) }

// parse is ParseLimited; second says that the plan is of language 2 whatever it uses.
func parse(body []byte, c Catalog, l Limits, second bool) (*Plan, Report) {
	p := newParser(body, c, l, newLibrary(c, l.Templates))
	p.second = second || l.Language2
	if l.MaxBytes <= 0 {
		l.MaxBytes = MaxBytes
	}
	if len(body) > l.MaxBytes {
		p.col.addf(fault.LimitExceeded, "", "split it into several plans, or let tools fetch large data themselves",
			"the plan has %d bytes, at most %d are allowed", len(body), l.MaxBytes)
		return nil, p.report()
	}
	if p.scan(body) {
		if !l.Language1 && inCalls(p, body) {
			return inDialect(p, body, c, l)
		}
		if !l.Language1 && p.fieldOf(0, "steps") == 0 && p.fieldOf(0, "template") != 0 {
			return inCall(p, c, l)
		}
		if !p.wrapped() {
			p.read()
		}
	}
	p.complete()
	if p.col.failed() {
		return nil, p.report()
	}
	p.plan.number(0)
	return p.plan, p.report()
}

// newParser returns one that has read nothing.
func newParser(body []byte, c Catalog, l Limits, templates *library) *parser {
	return &parser{
		catalog: c, library: templates, doneSteps: l.Done, frame: frame{within: subjects.RootScope, token: subjects.RootScope},
		refs: refParser{language1: l.Language1}, near: suggester{left: maxSuggestWork},
		schemaSteps: maxSchemaSteps + schemaStepsPerByte*len(body),
	}
}

// parser is one reading of one plan.
type parser struct {
	catalog   Catalog
	library   *library        // the templates that may be called
	declared  *tool.Schema    // of the input, where the plan is a template's; nil for one that nobody declared
	expanded  int             // steps that were read, those of the templates that they call among them
	doneSteps map[string]bool // Limits.Done
	template  string          // whose plan it is; empty for one that was submitted
	src       string
	tape      []jsontape.Node
	col       collector
	near      suggester
	// schemaSteps is what is left of the steps that all checks against schemas may take.
	schemaSteps int

	frame          // the plan in hand
	frames []frame // of the plans within steps that were read

	inside    map[int32]string // values that were read as a step's own, and the object in it that they stand in
	strangers []stranger       // fields of plans and their steps that nobody knows
	tools     map[string]knownTool
	names     []string // of the catalog, once they were needed
	refs      refParser
	targets   []target        // of all steps, in one slice
	holes     []hole          // likewise
	deps      []int           // of the step in hand
	allDeps   []int           // of all steps, in one slice
	inner     []jsontape.Node // tape of arguments that are a string
	path      []token         // scratch of walkers
	text      []byte          // scratch

	second    bool // a word of language 2 is used
	dependent bool // some tool depends on another
}

// stranger is a field that nobody knows.
type stranger struct {
	key     int32
	warning int // its warning's place in the report; -1 where it has none
}

// stepNodes are the parts of a step that are read once all ids are known.
type stepNodes struct {
	object, arguments, dependsOn, tool, forEach, in, as, condition, value, approval, question, plan, repeat, until int32

	ordered []int // the steps that depends_on names

	strangers [2]int32 // from and up to which of the strangers are its own
	unsure    bool     // something is wrong with its references, so that nobody knows where its data comes from
}

// scan reads the text into the tape. It reports false where nothing can be made of it.
func (p *parser) scan(body []byte) bool {
	s := jsontape.New(body, MaxDepth)
	defer s.Release()
	s.Record = true
	s.Tape = make([]jsontape.Node, 0, min(len(body)/6+8, 1<<17)) // compact plans have a value for each six or seven bytes
	s.Flaw = p.flaw("")
	if err := s.Scan(); err != nil {
		p.malformed(body, err)
		return false
	}
	p.tape, p.src = s.Tape, string(body)
	if root := p.tape[0].Kind; root != jsontape.Object {
		hint := `a plan is an object: {"steps": [{"id": "a", "tool": "…", "arguments": {}}]}`
		if root == jsontape.Array {
			hint = `put the array into an object: {"steps": […]}`
		}
		p.col.addf(fault.MalformedJSON, "", hint, "a plan is one JSON object, but this is %s", root)
		return false
	}
	return true
}

// flaw returns the reporter of what is wrong but leaves the text readable.
func (p *parser) flaw(prefix string) func(*jsontape.Scanner, fault.Code, *jsontape.Span) {
	return func(s *jsontape.Scanner, code fault.Code, key *jsontape.Span) {
		if !p.col.wants(code) {
			return
		}
		path := s.Pointer(prefix, key)
		if code == fault.DuplicateKey {
			p.col.add(code, path, fmt.Sprintf("the key %q is used twice in one object", clip(key.Text(s.Src))), "keep one of the two")
			return
		}
		p.col.add(code, path, "the string is not valid UTF-8, or holds half a surrogate pair", `write the character itself, or both halves: \ud83d\ude00`)
	}
}

// read reads the plan's own fields, and then its steps.
func (p *parser) read() {
	p.plan = &Plan{Timeout: MaxTimeout}
	here := p.here()
	m := p.fields(planLevel, p.root, here)
	p.plan.OnFailure = OnFailure(p.oneOf(m[planOnFailure], here, "continue", "stop"))
	p.plan.OnMissing = OnMissing(p.oneOf(m[planOnMissing], here, "null", "error"))
	p.plan.Schedule = Schedule(p.oneOf(m[planSchedule], here, "dataflow", "waves"))
	if n := m[planTimeout]; n != 0 && p.above > 0 {
		p.invalid(p.below(here, n), "move it beside the plan, into the step that has it", "a plan within a step has no timeout of its own")
	} else if d, ok := p.duration(n, here); ok {
		p.plan.Timeout, p.plan.TimeoutSet = d, true
	}
	p.planApproval(m[planApproval])
	p.plan.Concurrency = p.concurrency(m[planConcurrency], here)
	readOpen(p, m[planOpen], m[planOpenFor], here)
	if p.readSteps(m[planSteps]) {
		p.outputs(m[planOutputs], m[planOutput])
		p.cycles()
	}
}

// readSteps reads all steps: first what stands by itself, then what refers to others. It reports false where there is
// no array of steps.
func (p *parser) readSteps(n int32) bool {
	if n == 0 {
		hint := `write {"steps": [{"id": "a", "tool": "…", "arguments": {}}]}`
		if key, ok := p.seemsSteps(); ok {
			hint = fmt.Sprintf(`write "steps" for %q`, key)
		}
		p.col.addf(fault.EmptyPlan, p.at, hint, "the plan has no steps")
		return false
	}
	at := p.below(p.here(), n)
	p.stepsAt = at.String()
	if k := p.tape[n].Kind; k != jsontape.Array {
		p.col.addf(fault.InvalidValue, at.String(), p.stepsHint(n), "steps must be an array, but is %s", k)
		return false
	}
	count := p.count(n)
	switch {
	case count == 0:
		hint := "give it at least one step"
		if !p.refs.language1 && p.fieldOf(0, "calls") != 0 {
			hint = withoutSteps
		}
		p.col.addf(fault.EmptyPlan, at.String(), hint, "the plan has no steps")
		return true
	case count > MaxSteps:
		p.col.addf(fault.LimitExceeded, at.String(), "split it into several plans; nothing else was checked in the steps",
			"the plan has %d steps, at most %d are allowed", count, MaxSteps)
		return false
	}
	p.expanded += count
	p.plan.Steps = make([]Step, count)
	p.steps = make([]stepNodes, count)
	p.plan.ids = newIDs(count)
	i := 0
	for v := n + 1; v < p.tape[n].Next; v = p.tape[v].Next {
		p.step(i, v)
		i++
	}
	if p.above == 0 {
		p.reserve()
	}
	for i := range p.plan.Steps {
		p.stepDeps(i)
	}
	p.dependencies()
	return true
}

// reserve makes room for as many references as there seem to be, so that the slices they lie in need not grow.
func (p *parser) reserve() {
	n := 0
	for i := range p.tape {
		if p.tape[i].Kind == jsontape.String && p.tape[i].Flags&jsontape.Dollar != 0 {
			n++
		}
	}
	if n == 0 {
		return
	}
	p.targets, p.holes, p.refs.elems = make([]target, 0, n), make([]hole, 0, n), make([]elem, 0, n)
	p.allDeps = make([]int, 0, n)
}

// count returns the number of items of an array.
func (p *parser) count(array int32) (n int) {
	for v := array + 1; v < p.tape[array].Next; v = p.tape[v].Next {
		n++
	}
	return n
}

// itemProblem reports a problem of one item of an array.
func (p *parser) itemProblem(code fault.Code, at place, item int, hint, format string, args ...any) {
	if p.col.wants(code) {
		p.col.add(code, string(jsontape.AppendIndex([]byte(at.String()), item)), fmt.Sprintf(format, args...), hint)
	}
}

// malformed says where and why the text is not JSON, and what is usually behind it.
func (p *parser) malformed(body []byte, err *jsontape.SyntaxError) {
	if err.Deep {
		p.col.addf(fault.MalformedJSON, "", "flatten the arguments", "the JSON is nested more than %d deep, at %s", MaxDepth, position(body, err.At))
		return
	}
	p.col.addf(fault.MalformedJSON, "", syntaxHint(body, err.At), "not JSON at %s: %s", position(body, err.At), err.Message)
}

// position writes a place in a text as line and column, both from 1, the column in bytes.
func position(body []byte, at int) string {
	before := body[:min(at, len(body))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	return fmt.Sprintf("line %d, column %d", line, len(before)-bytes.LastIndexByte(before, '\n'))
}

func syntaxHint(body []byte, at int) string {
	rest := body[min(at, len(body)):]
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return `the plan is empty; write {"steps": […]}`
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return "remove the byte order mark before the first brace"
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("```")):
		return "send the JSON alone, without the ``` around it"
	case len(rest) == 0:
		return "the text is cut off: close all strings, brackets and braces"
	case rest[0] == '\'':
		return "JSON takes double quotes only"
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")), rest[0] == '#':
		return "JSON has no comments"
	case rest[0] == '}' || rest[0] == ']':
		return "is there a comma too many before it, or a bracket of the wrong kind?"
	case bytes.HasPrefix(rest, []byte("NaN")), bytes.HasPrefix(rest, []byte("Infinity")), bytes.HasPrefix(rest, []byte("-I")):
		return "JSON has neither NaN nor Infinity; write null or a string"
	case bytes.HasPrefix(rest, []byte("True")), bytes.HasPrefix(rest, []byte("False")), bytes.HasPrefix(rest, []byte("None")):
		return "JSON writes true, false and null"
	case rest[0] < 0x20:
		return `write \n, \t or \u00XX in a string`
	}
	return "send one JSON object (RFC 8259) and nothing else"
}
