package expression

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// How much operators bind; ? : binds less than all of them.
const (
	bindsOr = iota + 1
	bindsAnd
	bindsComparison
	bindsSum
	bindsNot
	bindsProduct
	bindsSign
	bindsAlternative
)

var precedence = map[string]int{
	"or": bindsOr, "||": bindsOr, "and": bindsAnd, "&&": bindsAnd,
	"==": bindsComparison, "!=": bindsComparison, "<": bindsComparison, "<=": bindsComparison, ">": bindsComparison,
	">=": bindsComparison, "in": bindsComparison, "contains": bindsComparison, "startsWith": bindsComparison,
	"endsWith": bindsComparison, "matches": bindsComparison,
	"+": bindsSum, "-": bindsSum, "*": bindsProduct, "/": bindsProduct, "%": bindsProduct, "??": bindsAlternative,
}

// parser makes nodes of tokens. It recurses no deeper than there are tokens.
type parser struct {
	*scanner
	i       int // of the next token
	nodes   int
	matches int
	bare    int // the token of a "not" that the last operand begins with, without brackets around it; -1 for none
}

// tree makes the nodes of all tokens.
func (s *scanner) tree() (node, *fault.Error) {
	p := parser{scanner: s}
	root, err := p.expression(0)
	if err == nil && p.i < len(p.tokens) {
		err = p.unexpected(p.i)
	}
	if err != nil {
		return nil, err
	}
	return root, nil
}

// says returns the operator, bracket or comma at i of the tokens, "" where something else stands, or nothing.
func (p *parser) says(i int) string {
	if i >= len(p.tokens) || p.tokens[i].kind != operator {
		return ""
	}
	return p.text[p.tokens[i].at:p.tokens[i].end]
}

// expect reads a bracket, or another mark that has to come next.
func (p *parser) expect(mark string) *fault.Error {
	if p.says(p.i) != mark {
		return p.unexpected(p.i)
	}
	p.i++
	return nil
}

func (p *parser) count() *fault.Error {
	if p.nodes++; p.nodes > MaxNodes {
		return invalid("the expression has more than %d operators and operands", MaxNodes).WithHint(shorter)
	}
	return nil
}

// expression reads an operand and what is joined to it by operators that bind at least so much.
func (p *parser) expression(least int) (node, *fault.Error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	for before := ""; ; {
		op, negated := p.says(p.i), false
		if op == "not" {
			op, negated = p.says(p.i+1), true
			if !slices.Contains(words[3:], op) {
				return nil, p.unexpected(p.i + 1)
			}
		}
		if precedence[op] == 0 || precedence[op] < least {
			break
		}
		if err := p.ambiguous(before, op); err != nil {
			return nil, err
		}
		if left, err = p.join(left, op, negated); err != nil {
			return nil, err
		}
		before, p.bare = op, -1
	}
	if least == 0 && p.says(p.i) == "?" {
		return p.conditional(left)
	}
	return left, nil
}

// ambiguous refuses what would not mean what it looks like to many: "not a == b", which is "(not a) == b", and
// "a ?? 0 + 1", which is "(a ?? 0) + 1".
func (p *parser) ambiguous(before, op string) *fault.Error {
	switch {
	case before == "??" && op != "??":
		return p.unexpected(p.i)
	case p.bare >= 0 && precedence[op] > bindsAnd:
		return p.wrong(p.tokens[p.bare].at, "%q takes only what stands next to it, not all of the comparison",
			p.says(p.bare)).
			WithHint("put the comparison in brackets: `not (a %s b)`", op)
	}
	return nil
}

// join reads an operator and its right side.
func (p *parser) join(left node, op string, negated bool) (joined node, err *fault.Error) {
	if negated {
		p.i++
	}
	at := p.tokens[p.i].at
	p.i++
	first := p.i
	right, err := p.expression(precedence[op] + 1)
	if err == nil {
		err = p.count()
	}
	if err != nil {
		return nil, err
	}
	switch precedence[op] {
	case bindsAlternative:
		return &alternative{left, right}, nil
	case bindsAnd, bindsOr:
		return &logical{at: at, op: op, left: left, right: right, ends: precedence[op] == bindsOr}, nil
	case bindsSum, bindsProduct:
		err = p.noText(at, op, left, right)
	}
	joined = &binary{at: at, op: op, left: left, right: right, apply: binaries[op]}
	switch {
	case err != nil:
	case op == "matches":
		joined, err = p.match(at, left, right, p.tokens[first])
	case isOrder(op) && isOrder(p.says(p.i)):
		joined, err = p.chain(joined.(*binary))
	}
	if err == nil && negated {
		joined = &negation{at: at, op: "not", x: joined}
		err = p.count()
	}
	return joined, err
}

func isOrder(op string) bool { return op == "<" || op == "<=" || op == ">" || op == ">=" }

// chain reads what follows a < b in a < b < c.
func (p *parser) chain(first *binary) (node, *fault.Error) {
	x := &chain{links: []*binary{first}}
	for left := first.right; isOrder(p.says(p.i)); {
		at, op := p.tokens[p.i].at, p.says(p.i)
		if err := p.ambiguous("", op); err != nil {
			return nil, err
		}
		p.i++
		right, err := p.expression(bindsComparison + 1)
		if err == nil {
			err = p.count()
		}
		if err != nil {
			return nil, err
		}
		x.links = append(x.links, &binary{at: at, op: op, left: left, right: right, apply: order})
		left = right
	}
	return x, nil
}

// noText refuses to calculate with a string that stands in the text.
func (p *parser) noText(at int, op string, operands ...node) *fault.Error {
	for _, x := range operands {
		if x, ok := x.(*literal); ok && x.value.kind == str {
			return p.wrong(at, "%q takes numbers, and %s is a string", op, clip(x.text)).
				WithHint("texts are put together by `concat($ref:a.first, \" \", $ref:a.last)`")
		}
	}
	return nil
}

// conditional reads what follows a in a ? b : c.
func (p *parser) conditional(condition node) (node, *fault.Error) {
	p.i++
	if p.says(p.i) == ":" {
		return nil, invalid("\"?:\" lacks what stands between \"?\" and \":\"").
			WithHint("write `condition ? a : b`, or `a ?? b` for b in place of null")
	}
	then, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	otherwise, err := p.expression(0)
	if err == nil {
		err = p.count()
	}
	return &conditional{condition, then, otherwise}, err
}

// unexpected refuses the token at i, or that there is none.
func (p *parser) unexpected(i int) *fault.Error {
	if i >= len(p.tokens) {
		return invalid("the expression ends too early").WithHint("an operand or a closing bracket is missing")
	}
	if first := p.strange(i); first >= 0 {
		return p.unknown(first)
	}
	t := p.tokens[i]
	text := p.text[t.at:t.end]
	e := p.wrong(t.at, "%s does not belong here", clip(text))
	switch {
	case t.kind == referred && i > 0 && p.tokens[i-1].kind == referred && p.text[t.at-1] == '-':
		before := p.text[p.tokens[i-1].at : t.at-1]
		return e.WithHint("write `%s - %s` with spaces for a difference", clip(before), clip(text))
	case strings.Contains(p.text, "??") && precedence[text] > 0:
		return e.WithHint("put `a ?? b` in brackets before you go on with it: `(a ?? b) > 0`")
	case t.kind != operator && i > 0 && (p.tokens[i-1].kind != operator || p.says(i-1) == ")"):
		return e.WithHint("an operator is missing before it, such as `and`, `==`, `+`")
	case text == "," && i > 0 && p.tokens[i-1].kind == constant:
		return e.WithHint("numbers have no commas: 1000, 0.5; lists stand in [ ]")
	}
	return e.WithHint("an operand or an operator before it is missing or one too many")
}

// strange returns the index of the first name up to the token at i that is no function's; -1 for none.
func (s *scanner) strange(i int) int {
	return slices.IndexFunc(s.tokens[:i+1], func(t token) bool {
		_, known := functions[s.text[t.at:t.end]]
		return t.kind == name && !known
	})
}
