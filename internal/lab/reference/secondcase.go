package reference

import (
	"slices"
	"strings"
)

// SecondForms names what Generate can put into a plan and counts under Options.Second, besides Forms.
func SecondForms() []string {
	return []string{
		"if", "if without references", "if lone", "if compared", "if ordered", "if and or", "if not", "if ??",
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
