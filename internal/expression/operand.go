package expression

import "github.com/stepjet/stepjet/fault"

// operand reads what stands between two operators.
func (p *parser) operand() (x node, err *fault.Error) {
	if p.i == len(p.tokens) {
		return nil, p.unexpected(p.i)
	}
	first := p.i
	switch op := p.says(p.i); op {
	case "not", "!":
		x, err = p.negation()
		if p.bare = first; err != nil {
			return nil, err
		}
		return x, nil
	case "-", "+":
		x, err = p.signed()
	case "(":
		p.i++
		if x, err = p.expression(0); err == nil {
			err = p.expect(")")
		}
	case "[":
		x, err = p.list()
	default:
		x, err = p.leaf()
	}
	p.bare = -1
	if err != nil {
		return nil, err
	}
	return x, p.alone(first)
}

// alone refuses a bracket behind an operand, which is an index or a call elsewhere.
func (p *parser) alone(first int) *fault.Error {
	switch at := p.i; p.says(at) {
	case "[":
		return p.wrong(p.tokens[at].at, "%s does not belong here", clip(p.text[p.tokens[at].at:])).
			WithHint("an index or a key is a part of the reference: `$ref:step.items[0].name`")
	case "(":
		return p.wrong(p.tokens[first].at, "%s is no function", clip(p.text[p.tokens[first].at:])).
			WithHint("values have no methods; functions stand before what they take: `len($ref:step.items)`")
	}
	return nil
}

func (p *parser) negation() (node, *fault.Error) {
	at, op := p.tokens[p.i].at, p.says(p.i)
	p.i++
	x, err := p.expression(bindsNot)
	if err == nil {
		err = p.count()
	}
	return &negation{at: at, op: op, x: x}, err
}

func (p *parser) signed() (node, *fault.Error) {
	at, op := p.tokens[p.i].at, p.says(p.i)
	p.i++
	x, err := p.expression(bindsSign)
	if err == nil {
		err = p.noText(at, op, x)
	}
	if err == nil {
		err = p.count()
	}
	return &sign{at: at, minus: op == "-", x: x}, err
}

// leaf reads a literal, a reference or a call.
func (p *parser) leaf() (node, *fault.Error) {
	i := p.i
	t := p.tokens[i]
	p.i++
	switch t.kind {
	case constant:
		return t.literal, p.count()
	case referred:
		return &reference{index: t.ref, text: p.refs[t.ref].text}, p.count()
	case name:
		if p.says(p.i) == "(" {
			return p.call(i)
		}
		if f, ok := functions[p.text[t.at:t.end]]; ok {
			return nil, p.wrong(t.at, "%s is a function, and brackets are missing", p.text[t.at:t.end]).
				WithHint("write `%s`", f.example)
		}
		return nil, p.unknown(i)
	case operator:
	}
	return nil, p.unexpected(i)
}

// call reads the call of the function whose name is at i of the tokens.
func (p *parser) call(i int) (node, *fault.Error) {
	t := p.tokens[i]
	text := p.text[t.at:t.end]
	f, ok := functions[text]
	if !ok {
		return nil, p.unknown(i)
	}
	args, err := p.sequence(")")
	if err == nil {
		err = p.count()
	}
	if err != nil {
		return nil, err
	}
	if len(args) < f.least || len(args) > f.most {
		return nil, p.wrong(t.at, "%s takes %s, not %d", text, f.takes, len(args)).WithHint("write `%s`", f.example)
	}
	return &call{at: t.at, name: text, args: args, function: f}, nil
}

// list reads an array.
func (p *parser) list() (node, *fault.Error) {
	items, err := p.sequence("]")
	if err == nil {
		err = p.count()
	}
	return &list{items}, err
}

// sequence reads what stands in brackets, parted by commas. One more comma may stand at its end.
func (p *parser) sequence(closing string) (all []node, err *fault.Error) {
	p.i++
	for p.says(p.i) != closing {
		x, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
		if p.says(p.i) == closing {
			break
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
	p.i++
	return all, nil
}
