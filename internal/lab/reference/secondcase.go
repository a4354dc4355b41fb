package reference

import (
	"slices"
	"strings"
)

// SecondForms names what Generate can put into a plan and counts under Options.Second, besides Forms.
func SecondForms() []string {
	return []string{
		"if", "if without references", "if lone", "if compared", "if ordered", "if and or", "if not", "if ??",
		"value", "value of items", "value JSON", "value among others", "key $$calc", "calc lone", "calc + - *", "calc of a list", "calc condition", "calc list", "calc ??",
		"status", "error code", "error path", "error whole", "status template", "error alternatives",
	}
}

// condition writes the condition of a step, as far as this package understands conditions.
func (g *generator) condition(targets []made) string {
	g.c.Forms["if"]++
	if len(targets) == 0 {
		g.c.Forms["if without references"]++
		return pick(g.Rand, []string{"true", "1 < 2", "false", "'a' == \"b\"", "null"})
	}
	if g.Intn(5) == 0 {
		g.c.Forms["if lone"]++
		return g.gap() + g.inCondition(targets) + g.gap()
	}
	return g.gap() + g.proposition(2, targets) + g.gap()
}

// worth writes the value of a step; as is what its item is called, empty for none. JSON in it refers to no other value, so
// that no chain of steps can explode.
func (g *generator) worth(targets []made, as string) string {
	g.c.Forms["value"]++
	calc := func() string {
		return `{` + g.spell("$calc") + g.space() + `:` + g.space() + g.spell(g.calc(targets, as)) + `}`
	}
	switch g.Intn(4) {
	case 0:
		g.c.Forms["value JSON"]++
		text := g.itemArgument(as, called(targets))
		if as == "" {
			text = g.argument(3, called(targets))
		}
		if text == "null" {
			return `{"$calc":"null"}` // null stands for no value
		}
		return text
	case 1:
		g.c.Forms["value among others"]++
		g.c.Forms["key $$calc"]++
		return `{"a":[` + calc() + `,` + g.argument(1, called(targets)) + `],"$$calc":"1",` + g.spell("b") + `:` + calc() + `}`
	}
	return calc()
}

// called returns the steps that call tools.
func called(targets []made) []made {
	return slices.DeleteFunc(slices.Clone(targets), func(m made) bool { return m.tool == "" })
}

// calc writes an expression.
func (g *generator) calc(targets []made, as string) string {
	numbers := pick(g.Rand, trickyNumbers)
	operand := func() string {
		text := numbers
		switch n := g.Intn(4); {
		case n == 0 && as != "":
			text = "$ref:" + as + pick(g.Rand, []string{"", "[0]", ".x", ".temp"})
		case n < 3 && len(targets) > 0:
			text = g.inCondition(targets)
		}
		if g.Intn(4) == 0 {
			g.c.Forms["calc ??"]++
			return "(" + text + " ?? " + pick(g.Rand, trickyNumbers) + ")"
		}
		return text
	}
	switch g.Intn(8) {
	case 0:
		g.c.Forms["calc lone"]++
		return operand()
	case 1:
		g.c.Forms["calc list"]++
		return "[" + g.gap() + operand() + " , " + operand() + "]"
	case 2:
		if len(targets) > 0 {
			g.c.Forms["calc condition"]++
			return g.proposition(1, targets)
		}
	case 3, 4:
		g.c.Forms["calc of a list"]++
		return pick(g.Rand, []string{"sum", "product", "min", "max"}) + "(" + operand() + "," + g.gap() + operand() + ")"
	}
	g.c.Forms["calc + - *"]++
	return operand() + " " + pick(g.Rand, []string{"+", "-", "*"}) + " " + operand()
}

func (g *generator) gap() string { return strings.Repeat(" ", g.Intn(2)) }

// proposition writes what comes to true or false; depth is how deep it may go.
func (g *generator) proposition(depth int, targets []made) string {
	within := func() string { return "(" + g.gap() + g.proposition(depth-1, targets) + g.gap() + ")" }
	n := g.Intn(8)
	switch {
	case depth > 0 && n < 2:
		g.c.Forms["if and or"]++
		text, op := within(), pick(g.Rand, []string{" and ", " or ", "&&", "||"})
		for range 1 + g.Intn(2) {
			text += op + within()
		}
		return text
	case depth > 0 && n == 2:
		g.c.Forms["if not"]++
		return pick(g.Rand, []string{"not ", "!"}) + within()
	case depth > 0 && n == 3:
		g.c.Forms["if ??"]++
		return within() + " ?? " + pick(g.Rand, []string{"true", "false", within()})
	}
	left, like := g.operand(targets)
	if n == 7 {
		g.c.Forms["if ordered"]++
		return left + g.gap() + pick(g.Rand, []string{"<", "<=", ">", ">="}) + g.gap() + like
	}
	g.c.Forms["if compared"]++
	return left + " " + pick(g.Rand, []string{"==", "!="}) + g.gap() + like
}

// operand writes a reference, perhaps with something in its place, and a literal that it may be equal to.
func (g *generator) operand(targets []made) (text, like string) {
	literals := append([]string{"true", "false", "null", "'Tokyo'", `"a b"`, "''", `"日本"`, "42"}, trickyNumbers...)
	like = pick(g.Rand, literals)
	text = g.inCondition(targets)
	switch {
	case strings.HasPrefix(text, "$status:"):
		like = pick(g.Rand, []string{"'succeeded'", `"failed"`, "'skipped'", "'not_taken'", "'cancelled'"})
	case strings.HasSuffix(text, ".code"):
		like = pick(g.Rand, []string{"'tool_failed'", "'timeout'", "'skipped'", "null"})
	}
	if g.Intn(5) == 0 {
		g.c.Forms["if ??"]++
		text = "(" + text + " ?? " + pick(g.Rand, []string{g.inCondition(targets), pick(g.Rand, literals)}) + ")"
	}
	return text, like
}

// inCondition writes a reference with its prefix that may stand in a condition: no key with a "-" stands there bare.
func (g *generator) inCondition(targets []made) string {
	for {
		text := g.prefixed(2, targets)
		r, _, _, _ := cutPrefixed(text)
		if !slices.ContainsFunc(r.path, func(s segment) bool { return s.form == '.' && strings.Contains(s.text, "-") }) {
			return text
		}
	}
}

// prefixed writes a reference with its prefix: in language 2 one of so many goes to how a step ended.
func (g *generator) prefixed(of int, targets []made) string {
	if g.second && g.Intn(of) == 0 {
		return g.ending(targets)
	}
	return "$ref:" + g.ref(targets)
}

// ending writes a reference to how a step ended. Texts of errors are not referred to where they are nobody's promise.
func (g *generator) ending(targets []made) string {
	id := pick(g.Rand, targets).id
	n := g.Intn(8)
	switch {
	case n < 3:
		g.c.Forms["status"]++
		return "$status:" + id
	case n < 5 || g.codes:
		g.c.Forms["error code"]++
		return "$error:" + id + ".code"
	case n < 7:
		g.c.Forms["error whole"]++
		return "$error:" + id
	}
	g.c.Forms["error path"]++
	return "$error:" + id + pick(g.Rand, []string{".message", ".details", `["details"]["x"]`, ".nope", ".tool_code"})
}
