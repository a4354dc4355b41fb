// Package saved makes a template of a plan that was run: constants in the arguments of its steps become inputs.
package saved

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/plan"
)

// Input names a constant of a plan that becomes an input of the template.
type Input struct {
	Path string // the step's id and the way into its arguments, as in "pay.amount" or "mail.to[0].address"
	Name string
}

// Template returns the definition of a template, with the plan's steps in their order. What a plan alone has becomes
// what a template has instead: an approval of the plan is one of each call, and its timeout is left to the step that
// calls. Errors: InvalidConfig for an input that is no constant of the plan, and for a plan that can't be a template.
func Template(name, description string, body []byte, inputs []Input) ([]byte, error) {
	x := &source{text: body}
	if err := x.read(); err != nil {
		return nil, err
	}
	declared := schema{Type: "object", Required: []string{}}
	for _, in := range inputs {
		value, err := x.take(in)
		if err != nil {
			return nil, err
		}
		if err := declared.add(in, value); err != nil {
			return nil, err
		}
	}
	d := definition{Name: name, Description: description, Input: declared}
	if n := x.member(0, "approval"); n != 0 && !x.is(n, "null", "false") {
		x.edits = append(x.edits, edit{n, "null"})
		d.Orchestration = json.RawMessage(`{"approval":"always"}`)
	}
	if n := x.member(0, "timeout"); n != 0 {
		x.edits = append(x.edits, edit{n, "null"})
	}
	d.Plan = x.edited()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "writing a template")
	}
	return b.Bytes(), nil
}

type definition struct {
	Name          string          `json:"name"`
	Description   string          `json:"description,omitempty"`
	Input         schema          `json:"inputSchema"`
	Orchestration json.RawMessage `json:"x-orchestration,omitempty"`
	Plan          json.RawMessage `json:"plan"`
}

// schema declares the inputs, in the order in which they were named.
type schema struct {
	Type       string     `json:"type"`
	Properties properties `json:"properties"`
	Required   []string   `json:"required"`
	Additional bool       `json:"additionalProperties"`
}

type property struct {
	name  string
	value json.RawMessage // that stood in its place
}

type properties []property

// MarshalJSON writes the object in the order of the slice.
func (all properties) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, p := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsontape.AppendQuoted(b, p.name), `:{`...)
		if t := typeOf(p.value); t != "" {
			b = append(b, `"type":"`+t+`",`...)
		}
		b = append(append(append(b, `"examples":[`...), p.value...), "]}"...)
	}
	return append(b, '}'), nil
}

// typeOf returns the type in JSON Schema of a constant; empty for null, in whose place anything may stand.
func typeOf(value []byte) string {
	switch value[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return ""
	}
	return "number"
}

// add declares an input. One that stands in several places stood for the same constant in all of them.
func (s *schema) add(in Input, value json.RawMessage) error {
	i := slices.IndexFunc(s.Properties, func(p property) bool { return p.name == in.Name })
	if i < 0 {
		s.Properties, s.Required = append(s.Properties, property{in.Name, value}), append(s.Required, in.Name)
		return nil
	}
	if there := s.Properties[i].value; !bytes.Equal(there, value) {
		return fault.New(fault.InvalidConfig, "the input %q stands for %s in one place and for %s in another", in.Name,
			text.Clip(string(there), 60), text.Clip(string(value), 60)).WithHint("give the two different names")
	}
	return nil
}

// source is the text of a plan, and what of it is exchanged.
type source struct {
	text  []byte
	tape  []jsontape.Node
	edits []edit
}

type edit struct {
	node int32
	with string
}

func (x *source) read() error {
	s := jsontape.New(x.text, plan.MaxDepth)
	defer s.Release()
	s.Record = true
	err := s.Scan()
	if x.tape = s.Tape; err != nil || len(x.tape) == 0 || x.member(0, "steps") == 0 {
		return fault.New(fault.InvalidConfig, "the plan of the run has no steps that a template could have").
			WithHint("a plan in the state dialect, or one that calls a template, is no template itself")
	}
	return nil
}

func (x *source) raw(n int32) string { return string(x.text[x.tape[n].Start:x.tape[n].End]) }

func (x *source) is(n int32, words ...string) bool { return slices.Contains(words, x.raw(n)) }

func (x *source) key(k int32) string {
	inside := x.tape[k].Inside()
	return inside.Text(x.text)
}

// member returns the value of an object's member; 0 for none.
func (x *source) member(object int32, name string) int32 {
	if x.tape[object].Kind != jsontape.Object {
		return 0
	}
	for k := object + 1; k < x.tape[object].Next; k = x.tape[k+1].Next {
		if x.key(k) == name {
			return k + 1
		}
	}
	return 0
}

// item returns an element of an array; 0 for none.
func (x *source) item(array int32, index int) int32 {
	if x.tape[array].Kind != jsontape.Array {
		return 0
	}
	for n, v := 0, array+1; v < x.tape[array].Next; n, v = n+1, x.tape[v].Next {
		if n == index {
			return v
		}
	}
	return 0
}

// take puts a reference to an input into the place of a constant, and returns that.
func (x *source) take(in Input) (json.RawMessage, error) {
	refuse := func(why, hint string) error {
		return fault.New(fault.InvalidConfig, "the input %s=%s: %s", in.Path, in.Name, why).WithHint("%s", hint)
	}
	id, rest := in.Path, ""
	if i := strings.IndexAny(in.Path, ".["); i >= 0 {
		id, rest = in.Path[:i], in.Path[i:]
	}
	if in.Name == "" || strings.Trim(in.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return nil, refuse("that is no name", "a name is of A-Z a-z 0-9 _ -")
	}
	step := x.step(id)
	if step == 0 {
		return nil, refuse("the plan has no step "+strconv.Quote(id), "write the id of a step, and the way into its arguments: pay.amount=amount")
	}
	n := x.member(step, "arguments")
	path, ok := elements(rest)
	if !ok || len(path) == 0 || n == 0 || x.tape[n].Kind != jsontape.Object {
		return nil, refuse("that is no place in the arguments of "+strconv.Quote(id), "write pay.amount, or mail.to[0].address")
	}
	for _, e := range path {
		if n = x.down(n, e); n == 0 {
			return nil, refuse("there is nothing at "+strconv.Quote(e), "stepjet get RUN -o json shows the plan")
		}
	}
	for _, e := range x.edits {
		if a, b := &x.tape[e.node], &x.tape[n]; a.Start < b.End && b.Start < a.End {
			return nil, refuse("another input takes that place, or a part of it", "name each place once")
		}
	}
	value := x.raw(n)
	constant := `{"x":` + value + `}`
	if escaped, err := plan.Escape([]byte(constant)); err != nil || string(escaped) != constant {
		return nil, refuse("that is no constant: "+text.Clip(value, 60), "only constants become inputs; what a reference stands for comes from another step")
	}
	x.edits = append(x.edits, edit{n, `"$input.` + in.Name + `"`})
	return json.RawMessage(value), nil
}

// step returns the object of a step; 0 for none.
func (x *source) step(id string) int32 {
	steps := x.member(0, "steps")
	for i := 0; ; i++ {
		s := x.item(steps, i)
		if s == 0 {
			return 0
		}
		if n := x.member(s, "id"); n != 0 && x.tape[n].Kind == jsontape.String && x.key(n) == id {
			return s
		}
	}
}

// down goes on to a member, or to an element where digits meet an array.
func (x *source) down(n int32, element string) int32 {
	if i, err := strconv.Atoi(element); err == nil && x.tape[n].Kind == jsontape.Array {
		return x.item(n, i)
	}
	return x.member(n, element)
}

// elements takes a path apart: ".to[0].address".
func elements(path string) (all []string, ok bool) {
	for path != "" {
		var e string
		switch path[0] {
		case '.':
			end := strings.IndexAny(path[1:], ".[")
			if end < 0 {
				end = len(path) - 1
			}
			e, path = path[1:end+1], path[end+1:]
		case '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return nil, false
			}
			e, path = strings.Trim(path[1:end], `"`), path[end+1:]
		default:
			return nil, false
		}
		if e == "" {
			return nil, false
		}
		all = append(all, e)
	}
	return all, true
}

// edited returns the text with all that was exchanged.
func (x *source) edited() []byte {
	slices.SortFunc(x.edits, func(a, b edit) int { return int(x.tape[a.node].Start - x.tape[b.node].Start) })
	var out []byte
	from := int32(0)
	for _, e := range x.edits {
		out = append(append(out, x.text[from:x.tape[e.node].Start]...), e.with...)
		from = x.tape[e.node].End
	}
	return append(out, x.text[from:]...)
}
