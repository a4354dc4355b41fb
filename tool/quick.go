package tool

import (
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// quick is a schema of the kind that most tools have (types, properties, required, additionalProperties, items), in a
// form that a value can be held against without decoding it. It only ever says "certainly valid"; of everything else,
// the validator judges. It is what makes a check cost a tenth of a microsecond instead of two.
type quick struct {
	types    typeSet
	names    []string // of properties; their number is their bit
	props    []*quick // nil for one that only the validator can judge
	required uint64   // bits of names
	closed   bool     // no other properties
	items    *quick   // nil for any
}

// typeSet is a set of JSON types.
type typeSet uint8

const (
	tNull typeSet = 1 << iota
	tBoolean
	tNumber
	tInteger
	tString
	tArray
	tObject

	tAny typeSet = 1<<7 - 1
)

var typeBits = map[string]typeSet{"null": tNull, "boolean": tBoolean, "number": tNumber, "integer": tInteger,
	"string": tString, "array": tArray, "object": tObject}

const (
	maxQuickProps = 64
	maxQuickHoles = 16
	maxQuickDepth = 32
)

// newQuick returns the quick form of a schema, nil where it has none: with any keyword that it doesn't know.
func newQuick(s *jsonschema.Schema, doc any, depth int) *quick {
	if depth > maxQuickDepth {
		return nil
	}
	if b, ok := doc.(bool); ok && b {
		return &quick{types: tAny}
	}
	m, ok := doc.(map[string]any)
	if !ok || s == nil || s.DraftVersion < 2020 && m["items"] != nil {
		return nil
	}
	q := &quick{types: tAny}
	for name, v := range m {
		switch name {
		case "$schema", "title", "description", "$comment", "examples", "default", "x-orchestration", "deprecated",
			"readOnly", "writeOnly":
		case "type":
			q.types = quickTypes(s)
		case "additionalProperties":
			b, ok := v.(bool)
			if !ok {
				return nil
			}
			q.closed = !b
		case "items":
			if q.items = newQuick(s.Items2020, v, depth+1); q.items == nil {
				return nil
			}
		case "properties", "required": // below
		default:
			return nil
		}
	}
	if !q.properties(s, m, depth) {
		return nil
	}
	return q
}

func quickTypes(s *jsonschema.Schema) (t typeSet) {
	if s.Types == nil {
		return tAny
	}
	for _, name := range s.Types.ToStrings() {
		t |= typeBits[name]
	}
	return t
}

// properties takes over "properties" and "required".
func (q *quick) properties(s *jsonschema.Schema, m map[string]any, depth int) bool {
	docs, _ := m["properties"].(map[string]any)
	if len(docs)+len(s.Required) > maxQuickProps {
		return false
	}
	bit := map[string]int{}
	add := func(name string, p *quick) {
		bit[name] = len(q.names)
		q.names = append(q.names, name)
		q.props = append(q.props, p)
	}
	for name, doc := range docs {
		add(name, newQuick(s.Properties[name], doc, depth+1))
	}
	for _, name := range s.Required {
		if _, ok := bit[name]; !ok {
			if q.closed {
				return false
			}
			add(name, &quick{types: tAny})
		}
		q.required |= 1 << bit[name]
	}
	return true
}

// valid reports whether the value is JSON and certainly fits the schema.
func (q *quick) valid(value []byte, holes []Hole) bool {
	if len(holes) > maxQuickHoles {
		return false
	}
	c := jsontape.Cursor{Src: value}
	if !q.value(&c, 0, holes) {
		return false
	}
	c.Space()
	return c.At == len(value)
}

// value reads one value. holes are those of the top level only: further down, a placeholder that doesn't fit leaves the
// judgement to the validator.
func (q *quick) value(c *jsontape.Cursor, depth int, holes []Hole) bool {
	if depth > maxQuickDepth {
		return false
	}
	switch b := c.Next(); {
	case b == '{':
		return q.types&tObject != 0 && q.object(c, depth, holes)
	case b == '[':
		return q.types&tArray != 0 && q.array(c, depth)
	case b == '"':
		_, bad := c.Quoted()
		return q.types&tString != 0 && bad == ""
	case b == 't':
		return q.types&tBoolean != 0 && c.Word("true")
	case b == 'f':
		return q.types&tBoolean != 0 && c.Word("false")
	case b == 'n':
		return q.types&tNull != 0 && c.Word("null")
	case b == '-' || jsontape.IsDigit(b):
		flags, ok := c.Number()
		whole := flags&jsontape.Fraction == 0
		return ok && flags&jsontape.Exponent == 0 && (q.types&tNumber != 0 || q.types&tInteger != 0 && whole)
	}
	return false
}

func (q *quick) object(c *jsontape.Cursor, depth int, holes []Hole) bool {
	c.At++
	var seen uint64
	if c.Next() == '}' {
		c.At++
		return q.required == 0
	}
	for {
		n, ok := q.member(c, holes, depth)
		if !ok || seen&(1<<n) != 0 { // used twice
			return false
		}
		seen |= 1 << n
		if end, ok := c.Separator('}'); !ok {
			return false
		} else if end {
			return seen&q.required == q.required
		}
	}
}

// member reads a key and its value, and returns the number of the property.
func (q *quick) member(c *jsontape.Cursor, holes []Hole, depth int) (n int, ok bool) {
	if c.Next() != '"' {
		return 0, false
	}
	from := c.At + 1
	if _, bad := c.Quoted(); bad != "" {
		return 0, false
	}
	key := c.Src[from : c.At-1]
	if n = q.number(key); n < 0 || q.props[n] == nil || c.Next() != ':' {
		return 0, false
	}
	c.At++
	p := q.props[n]
	if h := holeAt(holes, key); h != nil {
		if h.Text && p.types&tString == 0 {
			return 0, false
		}
		p = &anything
	}
	return n, p.value(c, depth+1, nil)
}

var anything = quick{types: tAny}

// holeAt returns the hole that is the member of the top level.
func holeAt(holes []Hole, key []byte) *Hole {
	for i := range holes {
		if p := holes[i].Pointer; len(p) == len(key)+1 && p[0] == '/' && p[1:] == string(key) &&
			strings.IndexByte(p, '~') < 0 {
			return &holes[i]
		}
	}
	return nil
}

// number returns the bit of a property, or -1. A key with escapes is none that it knows.
func (q *quick) number(key []byte) int {
	for i, name := range q.names {
		if name == string(key) {
			return i
		}
	}
	return -1
}

func (q *quick) array(c *jsontape.Cursor, depth int) bool {
	c.At++
	if c.Next() == ']' {
		c.At++
		return true
	}
	items := q.items
	if items == nil {
		items = &anything
	}
	for {
		if !items.value(c, depth+1, nil) {
			return false
		}
		if end, ok := c.Separator(']'); !ok {
			return false
		} else if end {
			return true
		}
	}
}
