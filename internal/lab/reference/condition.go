package reference

import (
	"bytes"
	"errors"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// condition is an "if", as far as this package understands it: references, literals, comparisons, and, or, not and ??.
// What stands beside an operator is a reference, a literal, or in brackets, so that nothing binds more than anything
// else.
type condition struct {
	op    string // "" for a reference or a literal, "(" for brackets, "[" for a list, or the name of a function
	parts []*condition
	ref   *ref
	value *value // of a literal

	refs []ref // all of it, in their order
}

var (
	errCondition = errors.New("invalid_condition")

	operatorRE = regexp.MustCompile(`^[ \t\r\n]*(==|!=|<=|>=|<|>|\?\?|\|\||&&|and\b|or\b|[-+*),\]])`)
	callRE     = regexp.MustCompile(`^(?:(sum|product|min|max)[ \t\r\n]*\(|\[)`)
	notRE      = regexp.MustCompile(`^(?:!|not\b)`)
	literalRE  = regexp.MustCompile(`^(?:-?[0-9][0-9.eE+-]*|"[^"\\]*"|'[^'\\]*'|true\b|false\b|null\b)`)
)

// closers stand behind what is read: a bracket that closes, or the next of a list.
var closers = []string{")", ",", "]"}

var operators = []string{"==", "!=", "<=", ">=", "<", ">", "??", "or", "and", "not", "+", "-", "*"}

// parseCondition reads a step's condition; nil for none.
func parseCondition(v *value) (*condition, error) {
	if v == nil {
		return nil, nil
	}
	if v.kind != '"' {
		return nil, errCondition
	}
	c, rest, err := cutCondition(v.text)
	if err != nil || skipSpaces(rest) != "" {
		return nil, errCondition
	}
	c.refs = c.all(nil)
	return c, nil
}

// cutCondition takes a condition off the start of s, up to a bracket that closes what it did not open.
func cutCondition(s string) (*condition, string, error) {
	first, s, err := cutOperand(s)
	if err != nil {
		return nil, s, err
	}
	parts, ops := []*condition{first}, []string(nil)
	for {
		m := operatorRE.FindStringSubmatch(s)
		if m == nil || slices.Contains(closers, m[1]) {
			c, err := bound(parts, ops)
			return c, s, err
		}
		next, rest, err := cutOperand(s[len(m[0]):])
		if err != nil {
			return nil, s, err
		}
		parts, ops = append(parts, next), append(ops, strings.NewReplacer("&&", "and", "||", "or").Replace(m[1]))
		s = rest
	}
}

// bound puts operands and the operators between them together: "or" binds least, then "and". Of others that stand beside each
// other it is not for this package which binds more.
func bound(parts []*condition, ops []string) (*condition, error) {
	alike := !slices.ContainsFunc(ops, func(op string) bool { return op != ops[0] })
	for _, least := range []string{"or", "and"} {
		if alike || !slices.Contains(ops, least) {
			continue
		}
		var all []*condition
		from := 0
		for i := 0; i <= len(ops); i++ {
			if i < len(ops) && ops[i] != least {
				continue
			}
			c, err := bound(parts[from:i+1], ops[from:i])
			if err != nil {
				return nil, err
			}
			all, from = append(all, c), i+1
		}
		return inTurn(least, all), nil
	}
	if !alike || len(ops) > 0 && slices.Contains(operators, parts[0].op) {
		return nil, errCondition
	}
	if len(ops) == 0 {
		return parts[0], nil
	}
	return inTurn(ops[0], parts), nil
}

// inTurn is a op b op c, the first two of them first.
func inTurn(op string, parts []*condition) *condition {
	c := parts[0]
	for _, next := range parts[1:] {
		c = &condition{op: op, parts: []*condition{c, next}}
	}
	return c
}

func cutOperand(s string) (*condition, string, error) {
	s = skipSpaces(s)
	if not := notRE.FindString(s); not != "" {
		part, rest, err := cutOperand(s[len(not):])
		return &condition{op: "not", parts: []*condition{part}}, rest, err
	}
	if rest, is := strings.CutPrefix(s, "("); is {
		c, rest, err := cutCondition(rest)
		rest, closed := strings.CutPrefix(skipSpaces(rest), ")")
		if err != nil || !closed {
			return nil, rest, errCondition
		}
		return &condition{op: "(", parts: []*condition{c}}, rest, nil
	}
	if m := callRE.FindStringSubmatch(s); m != nil {
		return cutCall(m[1], s[len(m[0]):])
	}
	if r, rest, is, ok := cutPrefixed(s); is {
		dashed := func(s segment) bool { return s.form == '.' && strings.Contains(s.text, "-") }
		if !ok || slices.ContainsFunc(r.path, dashed) {
			return nil, rest, errCondition
		}
		return &condition{ref: &r}, rest, nil
	}
	text := literalRE.FindString(s)
	if text == "" {
		return nil, s, errCondition
	}
	spelled := text
	if text[0] == '\'' {
		spelled = string(encode(text[1 : len(text)-1]))
	}
	v, err := read([]byte(spelled))
	if err == nil && v.kind == '0' {
		v = numeric(readDecimal(v.raw)) // it is written as what it is worth
	}
	return &condition{value: v}, s[len(text):], err
}

// cutCall takes the operands of a function, or of a list, off the start of s.
func cutCall(name, s string) (*condition, string, error) {
	closing := ")"
	if name == "" {
		name, closing = "[", "]"
	}
	c := &condition{op: name}
	for {
		part, rest, err := cutCondition(s)
		if err != nil {
			return nil, rest, err
		}
		c.parts, s = append(c.parts, part), skipSpaces(rest)
		if rest, closed := strings.CutPrefix(s, closing); closed {
			return c, rest, nil
		}
		rest, more := strings.CutPrefix(s, ",")
		if !more {
			return nil, s, errCondition
		}
		s = rest
	}
}

// all adds the references of a condition to a list.
func (c *condition) all(list []ref) []ref {
	if c.ref != nil {
		list = append(list, *c.ref)
	}
	for _, part := range c.parts {
		list = part.all(list)
	}
	return list
}

// whole is a reference with what it is to.
func (r ref) whole() string { return r.of + r.text }

// alone adds the references that stand somewhere with no ?? around them.
func (c *condition) alone(list []string) []string {
	if c.op == "??" {
		return list
	}
	if c.ref != nil {
		list = append(list, c.ref.whole())
	}
	for _, part := range c.parts {
		list = part.alone(list)
	}
	return list
}

// ends reports whether something without a reference is an alternative of a ??.
func (c *condition) ends() bool {
	return slices.ContainsFunc(c.parts, func(part *condition) bool {
		return part.ends() || c.op == "??" && len(part.all(nil)) == 0
	})
}

// Holds evaluates the condition of a step; a step without one is always taken. A lone reference is true unless it is
// nothing, false, or empty.
func (p *Plan) Holds(step int, s Sight) (bool, *Err) {
	holds, _, err := p.comesTo(step, s)
	return holds, err
}

// comesTo is Holds, and whether the condition came to more than null.
func (p *Plan) comesTo(step int, s Sight) (holds, known bool, err *Err) {
	c := p.Steps[step].condition
	if c == nil {
		return true, true, nil
	}
	r := resolver{plan: p, sight: s}
	v := r.evaluate(c)
	for c.op == "(" {
		c = c.parts[0]
	}
	switch {
	case r.err != nil:
		return false, false, r.err
	case v.kind == 'n':
		return false, false, nil
	case c.ref != nil:
		return something(v), true, nil
	case v.kind != 't':
		return false, false, &Err{Code: codeCondition, Message: "it is neither true nor false"}
	}
	return string(v.raw) == "true", true, nil
}

// something is whether a value is more than null, false, 0, "", [] or {}.
func something(v *value) bool {
	switch v.kind {
	case '"':
		return v.text != ""
	case '[', '{':
		return len(v.members) > 0
	case '0':
		return number(v).Sign() != 0
	}
	return string(v.raw) == "true"
}

var (
	nothing = &value{kind: 'n', raw: []byte("null")}
	yes     = &value{kind: 't', raw: []byte("true")}
	no      = &value{kind: 't', raw: []byte("false")}
)

func truth(b bool) *value {
	if b {
		return yes
	}
	return no
}

func (r *resolver) evaluate(c *condition) *value {
	switch c.op {
	case "":
		if c.ref == nil {
			return c.value
		}
		v, found := r.follow(*c.ref, !r.deriving || !slices.Contains(r.alone, c.ref.whole()))
		if r.deriving && found == intoScalar && slices.Contains(r.alone, c.ref.whole()) {
			r.fail(codeUnresolvedRef, "a path into a value without parts")
			return nothing
		}
		if found == present {
			v, _ = readResult(v.raw) // a list that was put together has no members yet
			return v
		}
		return nothing
	case "(":
		return r.evaluate(c.parts[0])
	case "not":
		v := r.evaluate(c.parts[0])
		if r.err != nil || v.kind == 'n' {
			return nothing
		}
		return truth(!r.boolean(v))
	case "and", "or":
		return r.decide(c)
	case "sum", "product", "min", "max", "[":
		return r.call(c.op, c.parts)
	case "??":
		if v := r.evaluate(c.parts[0]); r.err != nil || v.kind != 'n' {
			return v
		}
		return r.evaluate(c.parts[1])
	}
	a, b := r.evaluate(c.parts[0]), nothing
	if r.err == nil {
		b = r.evaluate(c.parts[1])
	}
	if r.err != nil {
		return nothing
	}
	switch c.op {
	case "==":
		return truth(equal(a, b))
	case "!=":
		return truth(!equal(a, b))
	case "+", "-", "*":
		return r.arithmetic(c.op, a, b)
	}
	return r.order(c.op, a, b)
}

// decide is and, or: the first side that decides, else nothing where one is nothing.
func (r *resolver) decide(c *condition) *value {
	unknown := false
	for _, part := range c.parts {
		v := r.evaluate(part)
		switch {
		case r.err != nil:
			return nothing
		case v.kind == 'n':
			unknown = true
		case r.boolean(v) == (c.op == "or"):
			return v
		}
		if r.err != nil {
			return nothing
		}
	}
	if unknown {
		return nothing
	}
	return truth(c.op == "and")
}

func (r *resolver) boolean(v *value) bool {
	if v.kind != 't' {
		r.fail(codeCondition, "it is neither true nor false")
	}
	return string(v.raw) == "true"
}

// order is < <= > >=: of two numbers or of two strings.
func (r *resolver) order(op string, a, b *value) *value {
	for _, v := range []*value{a, b} {
		if v.kind != '0' && v.kind != '"' && v.kind != 'n' {
			r.fail(codeCondition, "it has no order")
			return nothing
		}
	}
	n := 0
	switch {
	case a.kind == 'n' || b.kind == 'n':
		return nothing
	case a.kind != b.kind:
		r.fail(codeCondition, "a number and a string")
		return nothing
	case a.kind == '0':
		n = number(a).Cmp(number(b))
	default:
		n = bytes.Compare([]byte(a.text), []byte(b.text))
	}
	return truth(n < 0 && op[0] == '<' || n > 0 && op[0] == '>' || n == 0 && strings.HasSuffix(op, "="))
}

// equal compares to any depth.
func equal(a, b *value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case '0':
		return number(a).Cmp(number(b)) == 0
	case '"':
		return a.text == b.text
	case '[', '{':
		return sameMembers(a, b)
	}
	return string(a.raw) == string(b.raw)
}

func sameMembers(a, b *value) bool {
	if len(a.members) != len(b.members) {
		return false
	}
	for i, m := range a.members {
		other := b.members[i].value
		if a.kind == '{' {
			other = b.get(m.key)
		}
		if other == nil || !equal(m.value, other) {
			return false
		}
	}
	return true
}

// number is what a number is worth, however many digits it has.
func number(v *value) *big.Rat {
	n, ok := new(big.Rat).SetString(string(v.raw))
	if !ok {
		panic("no number: " + string(v.raw)) // of what was read as one
	}
	return n
}
