package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/tool"
)

// MaxBytes is the largest plan that a document is compiled to, in bytes. What stands once in the document may be needed
// in many places.
const MaxBytes = 8 << 20

// maxWork bounds the time that compiling takes: a reading looks at all that write at its path, above it and below it.
const maxWork = 4 << 20

// Language is what the compiler has to know of the plan language, beside its forms.
type Language struct {
	// Escape returns arguments that mean exactly a JSON object.
	Escape func(json []byte) ([]byte, error)
	// EscapeText returns the text within a template that means exactly a text.
	EscapeText func(text string) string
	// Output returns the schema of what a tool returns; nil where none is declared. A nil Output knows no tool.
	Output func(tool string) *tool.Schema
}

// Compiled is what a document was compiled to.
type Compiled struct {
	// Plan is the plan; nil where there is none to speak of.
	Plan []byte
	// Problems are why the document is refused. Their places are pointers into it.
	Problems []fault.Problem

	doc *compiler
}

// compiler is one compilation of one document.
type compiler struct {
	Language
	document

	input, initial, output int32        // nodes; 0 for what is absent
	others                 []int32      // keys of members that are the plan's own
	schema                 *tool.Schema // of the state; nil for none

	calls    []call
	ids      map[string]int // of the calls, by id
	written  *place
	problems []fault.Problem
	faulty   map[int]bool // calls that have problems
	in       int          // the call in hand

	cells   []cell            // steps that are no calls
	cellIDs map[string]string // by what they come to
	nextID  map[string]int    // numbers of ids
	made    int               // bytes of cells
	work    int               // writers that were looked at
	out     []byte
}

// Is reports whether a document is of the dialect: it has calls, and one of them names its tool as calls do.
func Is(src []byte, tape []jsontape.Node) bool {
	c := document{src, tape}
	calls := c.member(0, "calls")
	steps := c.member(0, "steps")
	if calls == 0 || steps != 0 && tape[steps].Kind != jsontape.Null || tape[calls].Kind != jsontape.Array {
		return false
	}
	is := tape[calls].Next == calls+1
	c.eachItem(calls, func(n int32) {
		is = is || c.member(n, "_tool") != 0 || c.member(n, "_delegate") != 0
	})
	return is
}

// Compile compiles a document that was scanned without flaws.
func Compile(src []byte, tape []jsontape.Node, l Language) *Compiled {
	c := &compiler{Language: l, document: document{src, tape}, faulty: map[int]bool{}, cellIDs: map[string]string{}, in: -1}
	calls := c.root()
	c.readCalls(calls)
	c.placeWriters()
	blueprint{c}.check()
	d := &Compiled{doc: c}
	c.out = append(c.out, `{"steps":[`...)
	for i := range c.calls {
		if c.in = i; len(c.out)+c.made > MaxBytes || c.work > maxWork {
			c.add(fault.LimitExceeded, "/calls", "split it into several plans, or have fewer calls read what many others write",
				"too many calls read what many others write: compiled, the plan would be too large")
			return &Compiled{Problems: c.problems, doc: c}
		}
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.step(i)
	}
	c.in = len(c.calls)
	output := c.outputValue()
	for i := range c.cells {
		c.out = append(jsontape.AppendQuoted(append(c.out, `,{"id":`...), c.cells[i].id), ',')
		c.out = append(append(c.out, c.cells[i].body...), '}')
	}
	c.out = append(c.out, ']')
	c.returned(output)
	for _, key := range c.others {
		c.out = append(c.out, ',')
		c.out = append(c.out, src[tape[key].Start:tape[key+1].End]...)
	}
	c.out = append(c.out, '}')
	d.Plan, d.Problems = c.out, c.problems
	return d
}

// root reads the members of the root, and returns the list of calls.
func (c *compiler) root() (calls int32) {
	c.eachMember(0, func(key string, value int32) {
		absent := c.tape[value].Kind == jsontape.Null
		switch key {
		case "calls":
			calls = value
		case "steps": // null: they are absent
		case "input":
			c.input = value
		case "output":
			if !absent {
				c.output = value
			}
		case "state":
			if !absent {
				c.readState(value)
			}
		default:
			if meant := rootMeant[key]; meant != "" && !absent {
				c.strangeRoot(key, meant, value)
			} else {
				c.others = append(c.others, value-1)
			}
		}
	})
	return calls
}

// rootMeant are what models write for members of a plan that has calls, and those.
var rootMeant = map[string]string{
	"outputs": "output", "result": "output", "returns": "output", "return": "output",
	"inputs": "input", "variables": "input", "vars": "input",
	"initial_state": "state", "initialState": "state", "initial": "state",
}

// strangeRoot refuses a member that stands for another one: to ignore it would run something else than was meant.
func (c *compiler) strangeRoot(key, meant string, value int32) {
	hint := "write " + quoted(meant)
	switch raw := string(c.raw(value)); {
	case len(raw) > maxRepeated:
	case meant == "state":
		hint += `: {"initial": ` + raw + "}"
	default:
		hint += ": " + raw
	}
	c.add(fault.UnknownField, string(jsontape.AppendToken(nil, key)), hint, "a plan with calls has no field %q", key)
}

// maxRepeated is the longest value that a hint repeats, in bytes.
const maxRepeated = 160

// readState reads what is said of the state.
func (c *compiler) readState(n int32) {
	if c.tape[n].Kind != jsontape.Object {
		c.add(fault.InvalidValue, "/state", `write "state": {"initial": {…}}`, "state must be an object, but is %s", c.tape[n].Kind)
		return
	}
	c.eachMember(n, func(key string, value int32) {
		at := "/state" + string(jsontape.AppendToken(nil, key))
		switch {
		case c.tape[value].Kind == jsontape.Null:
		case key == "initial" && c.tape[value].Kind != jsontape.Object:
			c.add(fault.InvalidValue, at, `write "initial": {"name": value}`, "the initial state must be an object, but is %s", c.tape[value].Kind)
		case key == "initial":
			c.initial = value
		case key == "schema":
			blueprint{c}.read(at, value)
		default:
			hint := `the state has "schema" and "initial"`
			if meant := text.NearMiss(key, "schema", "initial"); meant != "" {
				hint = fmt.Sprintf("write %q", meant)
			}
			c.add(fault.UnknownField, at, hint, "the state has no field %q", clip(key))
		}
	})
}

// add reports a problem. Whatever it is in, what else is wrong there may only follow from it.
func (c *compiler) add(code fault.Code, at, hint, format string, args ...any) {
	if c.in >= 0 {
		c.faulty[c.in] = true
	}
	c.problems = append(c.problems, fault.Problem{Code: code, Path: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// outputValue returns what the plan comes to; nil where the document says nothing of that.
func (c *compiler) outputValue() []byte {
	if c.output == 0 {
		return nil
	}
	w := &stepWriter{compiler: c, call: &call{}, output: true}
	return w.value(nil, c.output, "/output")
}

// returned writes what comes back: the output, or the results of the calls, whatever else was made.
func (c *compiler) returned(output []byte) {
	if output != nil {
		c.out = append(append(c.out, `,"output":`...), output...)
		return
	}
	own := slices.ContainsFunc(c.others, func(key int32) bool { return c.str(key) == "output_steps" })
	if own || len(c.cells) == 0 {
		return
	}
	c.out = append(c.out, `,"output_steps":[`...)
	for i := range c.calls {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = jsontape.AppendQuoted(c.out, c.calls[i].id)
	}
	c.out = append(c.out, ']')
}

// step writes the step of a call.
func (c *compiler) step(i int) {
	k := &c.calls[i]
	w := &stepWriter{compiler: c, call: k, named: map[string]bool{}}
	arguments := w.arguments()
	condition := w.condition()
	c.out = append(c.out, `{"id":`...)
	c.out = jsontape.AppendQuoted(c.out, k.id)
	c.out = append(c.out, `,"tool":`...)
	_, name := k.callee()
	c.out = jsontape.AppendQuoted(c.out, c.str(name))
	if condition != "" {
		c.out = append(c.out, `,"if":`...)
		c.out = jsontape.AppendQuoted(c.out, condition)
	}
	if after := k.meta[metaAfter]; after != 0 {
		c.out = append(c.out, `,"depends_on":`...)
		c.out = w.after(c.out, after)
	}
	if len(arguments) > len("{}") {
		c.out = append(c.out, `,"arguments":`...)
		c.out = append(c.out, arguments...)
	}
	c.out = append(c.out, '}')
}

func clip(s string) string { return text.Clip(s, 60) }

func quoted(s string) string { return string(jsontape.AppendQuoted(nil, s)) }

// verbatim is how a text is written that must not be looked into.
func verbatim(s string) string { return `{"$text": ` + quoted(clip(s)) + `}` }

// listed joins names for a message, and no more than a reader wants.
func listed(names []string) string {
	const most = 12
	names = slices.Clone(names)
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}
