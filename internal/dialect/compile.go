package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
)

// MaxBytes is the largest plan that a document is compiled to, in bytes. What stands once in the document may be needed
// in many places.
const MaxBytes = 8 << 20

// Language is what the compiler has to know of the plan language, beside its forms.
type Language struct {
	// Escape returns arguments that mean exactly a JSON object.
	Escape func(json []byte) ([]byte, error)
	// EscapeText returns the text within a template that means exactly a text.
	EscapeText func(text string) string
}

// Compiled is what a document was compiled to.
type Compiled struct {
	// Plan is the plan; nil where there is none to speak of.
	Plan []byte
	// Problems are why the document is refused. Their places are pointers into it.
	Problems []fault.Problem

	doc   *compiler
	steps []int // the call that each step of the plan stems from
}

// compiler is one compilation of one document.
type compiler struct {
	Language
	document

	input, initial, output int32   // nodes; 0 for what is absent
	others                 []int32 // keys of members that are the plan's own

	calls    []call
	ids      map[string]int // of the calls, by id
	written  *place
	problems []fault.Problem
	faulty   map[int]bool // calls that have problems
	in       int          // the call in hand
	out      []byte
}

// Is reports whether a document is of the dialect: it has calls, and one of them names its tool as calls do.
func Is(src []byte, tape []jsontape.Node) bool {
	c := document{src, tape}
	calls := c.member(0, "calls")
	if calls == 0 || c.member(0, "steps") != 0 || tape[calls].Kind != jsontape.Array {
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
	c := &compiler{Language: l, document: document{src, tape}, faulty: map[int]bool{}, in: -1}
	calls := c.root()
	c.readCalls(calls)
	c.placeWriters()
	d := &Compiled{doc: c}
	c.out = append(c.out, `{"steps":[`...)
	for i := range c.calls {
		if c.in = i; len(c.out) > MaxBytes {
			c.add(fault.LimitExceeded, "/calls", "split it into several plans, or have fewer calls write to the same path",
				"compiled, the plan would have more than %d bytes", MaxBytes)
			return &Compiled{Problems: c.problems, doc: c}
		}
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.step(i)
		d.steps = append(d.steps, i)
	}
	c.in = -1
	c.out = append(c.out, ']')
	c.outcome()
	for _, key := range c.others {
		c.out = append(c.out, ',')
		c.out = append(c.out, src[tape[key].Start:tape[key+1].End]...)
	}
	d.Plan, d.Problems = append(c.out, '}'), c.problems
	return d
}

// root reads the members of the root, and returns the list of calls.
func (c *compiler) root() (calls int32) {
	c.eachMember(0, func(key string, value int32) {
		absent := c.tape[value].Kind == jsontape.Null
		switch key {
		case "calls":
			calls = value
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
			c.others = append(c.others, value-1)
		}
	})
	return calls
}

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
			c.add(fault.UnknownField, at, "leave it out", "schemas of the state are not available yet")
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

// outcome writes what the run returns.
func (c *compiler) outcome() {
	if c.output != 0 {
		c.add(fault.UnknownField, "/output", "leave it out: the results of all calls come back, or of those whose ids \"output_steps\" names",
			"an output with a shape is not available yet")
	}
}

// step writes the step of a call.
func (c *compiler) step(i int) {
	k := &c.calls[i]
	w := &stepWriter{compiler: c, call: k, named: map[int]bool{}}
	arguments := w.arguments()
	condition := w.condition()
	c.out = append(c.out, `{"id":`...)
	c.out = jsontape.AppendQuoted(c.out, k.id)
	c.out = append(c.out, `,"tool":`...)
	c.out = jsontape.AppendQuoted(c.out, c.str(k.meta[metaTool]))
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
