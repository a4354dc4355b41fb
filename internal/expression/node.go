package expression

import "github.com/stepjet/stepjet/fault"

// node is a part of an expression that comes to a value.
type node interface {
	eval(e *evaluation) (value, *fault.Error)
	parts() []node
}

func (*literal) parts() []node       { return nil }
func (*reference) parts() []node     { return nil }
func (x *list) parts() []node        { return x.items }
func (x *alternative) parts() []node { return []node{x.left, x.right} }
func (x *conditional) parts() []node { return []node{x.condition, x.then, x.otherwise} }
func (x *negation) parts() []node    { return []node{x.x} }
func (x *sign) parts() []node        { return []node{x.x} }
func (x *match) parts() []node       { return []node{x.x} }
func (x *logical) parts() []node     { return []node{x.left, x.right} }
func (x *binary) parts() []node      { return []node{x.left, x.right} }
func (x *call) parts() []node        { return x.args }

func (x *chain) parts() []node {
	all := []node{x.links[0].left}
	for _, link := range x.links {
		all = append(all, link.right)
	}
	return all
}

// described names an operand in messages, by how it is written where that is short.
func described(x node) string {
	switch x := x.(type) {
	case *reference:
		return clip(x.text)
	case *literal:
		return clip(x.text)
	case *call:
		return x.name + "(…)"
	}
	return "an operand"
}

type literal struct {
	value value
	text  string
}

func (x *literal) eval(*evaluation) (value, *fault.Error) { return x.value, nil }

type reference struct {
	index int
	text  string
}

func (x *reference) eval(e *evaluation) (value, *fault.Error) { return e.lookup(x.index), nil }

// list is an array that stands in the text.
type list struct{ items []node }

func (x *list) eval(e *evaluation) (value, *fault.Error) {
	items, err := evalAll(e, x.items)
	return value{kind: array, list: items}, err
}

func evalAll(e *evaluation, nodes []node) ([]value, *fault.Error) {
	all := make([]value, len(nodes))
	for i, x := range nodes {
		v, err := x.eval(e)
		if err != nil {
			return nil, err
		}
		all[i] = v
	}
	return all, nil
}

// alternative is a ?? b.
type alternative struct{ left, right node }

func (x *alternative) eval(e *evaluation) (value, *fault.Error) {
	if v, err := x.left.eval(e); err != nil || v.kind != null {
		return v, err
	}
	return x.right.eval(e)
}

// conditional is a ? b : c.
type conditional struct{ condition, then, otherwise node }

func (x *conditional) eval(e *evaluation) (value, *fault.Error) {
	v, err := x.condition.eval(e)
	if err != nil {
		return value{}, err
	}
	if v.kind != null && v.kind != boolean {
		e.op, e.at = "`? :`", -1
		return value{}, e.mismatch(x.condition, v, booleans)
	}
	if v.yes {
		return x.then.eval(e)
	}
	return x.otherwise.eval(e)
}

// negation is "not x".
type negation struct {
	at int
	op string
	x  node
}

func (x *negation) eval(e *evaluation) (value, *fault.Error) {
	v, err := x.x.eval(e)
	switch {
	case err != nil || v.kind == null:
		return value{}, err
	case v.kind == boolean:
		return truth(!v.yes), nil
	}
	e.op, e.at = x.op, x.at
	return value{}, e.mismatch(x.x, v, booleans)
}

// logical is and, or. null is "not known", as in SQL: it is the result unless the other side decides.
type logical struct {
	at          int
	op          string
	left, right node
	ends        bool // the value of one side that decides: true of or, false of and
}

func (x *logical) eval(e *evaluation) (value, *fault.Error) {
	unknown := false
	for _, side := range [...]node{x.left, x.right} {
		v, err := side.eval(e)
		switch {
		case err != nil:
			return value{}, err
		case v.kind == null:
			unknown = true
		case v.kind != boolean:
			e.op, e.at = x.op, x.at
			return value{}, e.mismatch(side, v, booleans)
		case v.yes == x.ends:
			return v, nil
		}
	}
	if unknown {
		return value{}, nil
	}
	return truth(!x.ends), nil
}

// binary is an operator between two values. All but == and != make null of null.
type binary struct {
	at          int
	op          string
	left, right node
	apply       func(e *evaluation, x *binary, a, b value) (value, *fault.Error)
}

var binaries = map[string]func(e *evaluation, x *binary, a, b value) (value, *fault.Error){
	"==": equality, "!=": equality,
	"<": order, "<=": order, ">": order, ">=": order,
	"+": arithmetic, "-": arithmetic, "*": arithmetic, "/": arithmetic, "%": arithmetic,
	"in": membership, "contains": containment, "startsWith": affix, "endsWith": affix,
}

func (x *binary) eval(e *evaluation) (value, *fault.Error) {
	a, err := x.left.eval(e)
	if err != nil {
		return value{}, err
	}
	b, err := x.right.eval(e)
	if err != nil {
		return value{}, err
	}
	e.op, e.at = x.op, x.at
	return x.apply(e, x, a, b)
}

// chain is a < b < c: a < b and b < c, with b evaluated once. Evaluated twice, chains in chains would take for ever.
type chain struct{ links []*binary }

func (x *chain) eval(e *evaluation) (value, *fault.Error) {
	a, err := x.links[0].left.eval(e)
	if err != nil {
		return value{}, err
	}
	unknown := false
	for _, link := range x.links {
		b, err := link.right.eval(e)
		if err != nil {
			return value{}, err
		}
		e.op, e.at = link.op, link.at
		v, err := order(e, link, a, b)
		if err != nil || v.kind == boolean && !v.yes {
			return v, err
		}
		unknown = unknown || v.kind == null
		a = b
	}
	if unknown {
		return value{}, nil
	}
	return truth(true), nil
}

// call is a function and what it is given.
type call struct {
	function
	at   int
	name string
	args []node
}

// function says how a function is called. All but those of lists make null of null.
type function struct {
	takes, example string
	least, most    int
	apply          func(e *evaluation, x *call, args []value) (value, *fault.Error)
}

var functions = map[string]function{
	"len":     {"one value", "len($ref:step.items)", 1, 1, length},
	"lower":   {"one string", "lower($ref:step.name)", 1, 1, letters},
	"upper":   {"one string", "upper($ref:step.name)", 1, 1, letters},
	"trim":    {"one string", "trim($ref:step.name)", 1, 1, letters},
	"concat":  {"arrays, or strings", "concat($ref:step.items, [1, 2])", 1, MaxNodes, concat},
	"merge":   {"objects", "merge($ref:step.defaults, $ref:step.given)", 1, MaxNodes, merge},
	"put":     {"an object, and keys and values", "put($ref:step.order, \"total\", 5)", 3, MaxNodes, put},
	"truthy":  {"one value", "truthy($ref:step.items)", 1, 1, truthy},
	"abs":     {"one number", "abs($ref:step.n)", 1, 1, absolute},
	"round":   {"a number and how many digits", "round($ref:step.n, 2)", 1, 2, round},
	"sum":     {"numbers and lists of them", "sum($ref:step.numbers)", 1, MaxNodes, reduce},
	"product": {"numbers and lists of them", "product($ref:step.a, $ref:step.b)", 1, MaxNodes, reduce},
	"min":     {"numbers and lists of them", "min($ref:step.numbers)", 1, MaxNodes, reduce},
	"max":     {"numbers and lists of them", "max($ref:step.numbers, 0)", 1, MaxNodes, reduce},
}

func (x *call) eval(e *evaluation) (value, *fault.Error) {
	args, err := evalAll(e, x.args)
	if err != nil {
		return value{}, err
	}
	e.op, e.at = x.name, x.at
	return x.apply(e, x, args)
}
