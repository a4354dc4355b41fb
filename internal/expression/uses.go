package expression

// Use is what an expression asks of references, by their places in References: that one of them is there.
type Use struct {
	References []int
	// Ended says that something without a reference takes their place where none is there.
	Ended bool
}

// Uses returns each place of the expression where references stand: one that stands by itself, or all in a chain of
// "??". They are shared: don't change them.
func (x *Expression) Uses() []Use { return x.uses }

// usesOf appends the uses of a node and of all within it.
func usesOf(uses []Use, x node) []Use {
	switch x := x.(type) {
	case *reference:
		return append(uses, Use{References: []int{x.index}})
	case *alternative:
		var u Use
		u.add(x)
		if len(u.References) > 0 {
			uses = append(uses, u)
		}
		return uses
	}
	for _, part := range x.parts() {
		uses = usesOf(uses, part)
	}
	return uses
}

// add takes in the references of a node: in a chain of "??" all of them are alternatives of each other, and an operand
// without any ends them.
func (u *Use) add(x node) {
	if r, ok := x.(*reference); ok {
		u.References = append(u.References, r.index)
		return
	}
	_, chain := x.(*alternative)
	for _, part := range x.parts() {
		before := len(u.References)
		u.add(part)
		u.Ended = u.Ended || chain && len(u.References) == before
	}
}
