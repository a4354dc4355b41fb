package expression

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/stepjet/stepjet/fault"
)

// tree hands the tokens to the parser, and makes nodes of what it returns.
func (s *scanner) tree() (node, *fault.Error) {
	source := s.source()
	parsed, err := parser.Parse(source)
	if err != nil {
		return nil, s.unexpected(err, len(source))
	}
	b := builder{scanner: s}
	root, wrong := b.node(parsed.Node)
	s.uses = b.uses
	return root, wrong
}

// builder makes our nodes of the parser's. Its switches are the list of what an expression may have.
type builder struct {
	*scanner
	nodes   int
	matches int
	uses    []Use
	within  int // how many "??" the node that is made is an operand of, or a part of one
}

func (b *builder) node(n ast.Node) (node, *fault.Error) {
	// The parser hangs the middle of a < b < c twice into its tree, so that the tree may be exponential: what counts is
	// how many nodes are made.
	if b.nodes++; b.nodes > MaxNodes {
		return nil, invalid("the expression has more than %d operators and operands", MaxNodes).WithHint(shorter)
	}
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return b.leaf(n)
	case *ast.UnaryNode:
		return b.unary(n)
	case *ast.BinaryNode:
		return b.binary(n)
	case *ast.ConditionalNode:
		return b.conditional(n)
	case *ast.ArrayNode:
		items, err := b.all(n.Nodes)
		return &list{items}, err
	case *ast.CallNode:
		return b.call(n)
	}
	at := b.token(n).at
	return nil, b.wrong(at, "%s does not belong here", clip(b.text[at:])).
		WithHint("an index or a key is a part of the reference: `$ref:step.items[0].name`")
}

func (b *builder) all(nodes []ast.Node) (made []node, err *fault.Error) {
	made = make([]node, len(nodes))
	for i := range nodes {
		if made[i], err = b.node(nodes[i]); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// token returns the token that a node of the parser begins with, or that is its operator.
func (b *builder) token(n ast.Node) token { return b.tokens[b.index(n)] }

func (b *builder) index(n ast.Node) int { return min(b.tokenAt(n.Location().From), len(b.tokens)-1) }

// leaf makes a node of a name that stands for a token.
func (b *builder) leaf(n *ast.IdentifierNode) (node, *fault.Error) {
	i := b.named(n)
	t := b.tokens[i]
	switch t.kind {
	case constant:
		return t.literal, nil
	case referred:
		b.use(t.ref)
		return &reference{index: t.ref, text: b.refs[t.ref].text}, nil
	case name, operator:
	}
	return nil, b.unknown(i)
}

// named returns the index of the token that an identifier stands for.
func (b *builder) named(n *ast.IdentifierNode) int {
	i, _ := strconv.Atoi(strings.TrimPrefix(n.Value, "$"))
	return i
}

func (b *builder) unary(n *ast.UnaryNode) (node, *fault.Error) {
	x, err := b.node(n.Node)
	if err != nil {
		return nil, err
	}
	at := b.token(n).at
	switch n.Operator {
	case "not", "!":
		return &negation{at: at, op: n.Operator, x: x}, nil
	case "+", "-":
		if err := b.noText(at, n.Operator, x); err != nil {
			return nil, err
		}
		return &sign{at: at, minus: n.Operator == "-", x: x}, nil
	}
	return nil, b.wrong(at, "%q is no operator", n.Operator)
}

func (b *builder) binary(n *ast.BinaryNode) (node, *fault.Error) {
	if err := b.looseNot(n); err != nil {
		return nil, err
	}
	if n.Operator == "??" {
		return b.alternatives(n)
	}
	left, err := b.node(n.Left)
	if err != nil {
		return nil, err
	}
	at := b.token(n).at
	if n.Operator == "matches" {
		return b.match(at, left, n.Right)
	}
	right, err := b.node(n.Right)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "and", "&&":
		return &logical{at: at, op: n.Operator, left: left, right: right, ends: false}, nil
	case "or", "||":
		return &logical{at: at, op: n.Operator, left: left, right: right, ends: true}, nil
	case "+", "-", "*", "/", "%":
		if err := b.noText(at, n.Operator, left, right); err != nil {
			return nil, err
		}
	}
	if apply, ok := binaries[n.Operator]; ok {
		return &binary{at: at, op: n.Operator, left: left, right: right, apply: apply}, nil
	}
	return nil, b.wrong(at, "%q is no operator", n.Operator)
}

// alternatives makes a "??". All references in a chain of them are alternatives of each other, and an operand without
// any ends them.
func (b *builder) alternatives(n *ast.BinaryNode) (node, *fault.Error) {
	if b.within == 0 {
		b.uses = append(b.uses, Use{})
	}
	b.within++
	defer func() { b.within-- }()
	left, err := b.operand(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := b.operand(n.Right)
	return &alternative{left, right}, err
}

// operand makes an operand of a "??".
func (b *builder) operand(n ast.Node) (node, *fault.Error) {
	before := len(b.uses[len(b.uses)-1].References)
	x, err := b.node(n)
	use := &b.uses[len(b.uses)-1]
	use.Ended = use.Ended || len(use.References) == before
	return x, err
}

// use notes that a reference is used: in the chain of alternatives that is made, or by itself.
func (b *builder) use(ref int) {
	if b.within == 0 {
		b.uses = append(b.uses, Use{References: []int{ref}})
		return
	}
	last := &b.uses[len(b.uses)-1]
	last.References = append(last.References, ref)
}

// noText refuses to calculate with a string that stands in the text.
func (b *builder) noText(at int, op string, operands ...node) *fault.Error {
	for _, x := range operands {
		if x, ok := x.(*literal); ok && x.value.kind == str {
			return b.wrong(at, "%q takes numbers, and %s is a string", op, clip(x.text)).
				WithHint("texts are put together in a template, in another string of the plan: \"${ref:a.first} ${ref:a.last}\"")
		}
	}
	return nil
}

// looseNot refuses "not a == b": it would mean "(not a) == b", which nobody means who writes it.
func (b *builder) looseNot(n *ast.BinaryNode) *fault.Error {
	not, ok := n.Left.(*ast.UnaryNode)
	if !ok || not.Operator != "not" && not.Operator != "!" || n.Operator == "and" || n.Operator == "&&" ||
		n.Operator == "or" || n.Operator == "||" {
		return nil
	}
	op, first := b.index(n), b.index(not)
	if !b.says(first, not.Operator) { // the "not" of "a not in b"
		return nil
	}
	if first > 0 && b.says(first-1, "(") && b.closing(first-1) == op-1 {
		return nil
	}
	return b.wrong(b.tokens[first].at, "%q takes only what stands next to it, not all of the comparison", not.Operator).
		WithHint("put the comparison in brackets: `not (a %s b)`", n.Operator)
}

func (b *builder) says(i int, text string) bool {
	t := b.tokens[i]
	return t.kind == operator && b.text[t.at:t.end] == text
}

// closing returns the index of the bracket that closes the one at i.
func (b *builder) closing(i int) int {
	open := 0
	for ; i < len(b.tokens); i++ {
		switch {
		case b.says(i, "("):
			open++
		case b.says(i, ")"):
			if open--; open == 0 {
				return i
			}
		}
	}
	return i
}

func (b *builder) conditional(n *ast.ConditionalNode) (node, *fault.Error) {
	if n.Exp1 == n.Cond {
		return nil, invalid("\"?:\" lacks what stands between \"?\" and \":\"").
			WithHint("write `condition ? a : b`, or `a ?? b` for b in place of null")
	}
	parts, err := b.all([]ast.Node{n.Cond, n.Exp1, n.Exp2})
	if err != nil {
		return nil, err
	}
	return &conditional{parts[0], parts[1], parts[2]}, nil
}

func (b *builder) call(n *ast.CallNode) (node, *fault.Error) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok || b.tokens[b.named(callee)].kind != name {
		return nil, b.wrong(b.token(n).at, "%s is no function", clip(b.text[b.token(n).at:])).
			WithHint("values have no methods; functions stand before what they take: `len($ref:step.items)`")
	}
	i := b.named(callee)
	t := b.tokens[i]
	text := b.text[t.at:t.end]
	f, ok := functions[text]
	if !ok {
		return nil, b.unknown(i)
	}
	if len(n.Arguments) < f.least || len(n.Arguments) > f.most {
		return nil, b.wrong(t.at, "%s takes %s, not %d", text, f.takes, len(n.Arguments)).WithHint("write `%s`", f.example)
	}
	args, err := b.all(n.Arguments)
	if err != nil {
		return nil, err
	}
	return &call{at: t.at, name: text, args: args, function: f}, nil
}

// unexpected says in our words where the parser could not go on.
func (s *scanner) unexpected(err error, length int) *fault.Error {
	var at *file.Error
	if !errors.As(err, &at) || at.From >= length-1 {
		return invalid("the expression ends too early").WithHint("an operand or a closing bracket is missing")
	}
	i := min(s.tokenAt(at.From), len(s.tokens)-1)
	if first := s.strange(i); first >= 0 {
		return s.unknown(first)
	}
	t := s.tokens[i]
	text := s.text[t.at:t.end]
	e := s.wrong(t.at, "%s does not belong here", clip(text))
	switch {
	case strings.Contains(s.text, "??") && t.kind == operator && text != ")" && text != "(" && text != ",":
		return e.WithHint("put `a ?? b` in brackets before you go on with it: `(a ?? b) > 0`")
	case t.kind != operator && i > 0 && (s.tokens[i-1].kind != operator || s.text[t.at-1] == ')'):
		return e.WithHint("an operator is missing before it, such as `and`, `==`, `+`")
	case text == "," && i > 0 && s.tokens[i-1].kind == constant:
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
