package expression

// places says, of each reference, what it stands beside somewhere in the expression.
type places struct {
	alone []bool // nothing takes its place where it is null
	asked []bool // the expression asks just for whether it is null: before "??", or by == null and != null
}

// Alone reports whether reference i of References stands by itself somewhere: no "??" takes in what it comes to.
func (x *Expression) Alone(i int) bool { return x.at.alone[i] }

// AsksFor reports whether the expression asks somewhere whether reference i of References is there: it stands in what a
// "??" takes in, or is compared with null by == or !=.
func (x *Expression) AsksFor(i int) bool { return x.at.asked[i] }

func placesOf(root node, refs int) places {
	p := places{alone: make([]bool, refs), asked: make([]bool, refs)}
	p.note(root, false)
	return p
}

// note goes through a node; within is whether a "??" takes in what it comes to.
func (p *places) note(x node, within bool) {
	switch x := x.(type) {
	case *reference:
		p.alone[x.index] = p.alone[x.index] || !within
		p.asked[x.index] = p.asked[x.index] || within
		return
	case *alternative:
		within = true
	case *binary:
		if x.op == "==" || x.op == "!=" {
			p.compared(x.left, x.right)
			p.compared(x.right, x.left)
		}
	}
	for _, part := range x.parts() {
		p.note(part, within)
	}
}

// compared notes that an operand is compared with another.
func (p *places) compared(x, with node) {
	r, refers := x.(*reference)
	if l, is := with.(*literal); refers && is && l.value.kind == null {
		p.asked[r.index] = true
	}
}
