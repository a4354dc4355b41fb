package reference

import (
	"regexp"
	"strconv"
	"strings"
)

var bareKeyRE = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// arguments writes a step's arguments, as a list of no or one field. References go to targets only.
func (g *generator) arguments(targets []made) []string {
	n := g.Intn(20)
	if len(targets) == 0 && n < 2 {
		g.c.Forms["arguments absent"]++
		return nil
	}
	if len(targets) == 0 && n < 4 {
		g.c.Forms["arguments empty"]++
		return []string{`"arguments":` + pick(g.Rand, []string{`""`, "null", "{}"})}
	}
	text := ""
	if len(targets) > 0 && n < 2 {
		g.c.Forms["object form as arguments"]++
		text = g.objectForm("object", targets)
	} else {
		text = g.argumentObject(3, targets)
	}
	if n > 12 {
		g.c.Forms["arguments string"]++
		return []string{`"arguments":` + g.space() + g.spell(g.space()+text+g.space())}
	}
	g.c.Forms["arguments object"]++
	return []string{`"arguments":` + g.space() + text}
}

func (g *generator) argumentObject(depth int, targets []made) string {
	var parts []string
	for _, i := range g.Perm(len(trickyKeys))[:g.Intn(4)+depth/3] {
		key := trickyKeys[i]
		switch {
		case key == "$ref":
			g.c.Forms["key $$ref"]++
			key = "$$ref"
		case key == "$text":
			g.c.Forms["key $$text"]++
			key = "$$text"
		case strings.HasPrefix(key, "$ref:"):
			g.c.Forms["key escape"]++
			key = "$" + key + pick(g.Rand, []string{"", "$$$${ref:", " $$ref:"})
		}
		parts = append(parts, g.space()+g.spell(key)+g.space()+":"+g.space()+g.argument(depth-1, targets)+g.space())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// argument writes one value inside the arguments.
func (g *generator) argument(depth int, targets []made) string {
	n := g.Intn(10)
	switch {
	case n < 2 && depth > 0:
		return g.argumentObject(depth, targets)
	case n < 4 && depth > 0:
		var parts []string
		for range g.Intn(4) {
			parts = append(parts, g.space()+g.argument(depth-1, targets)+g.space())
		}
		return "[" + strings.Join(parts, ",") + "]"
	case n == 4:
		return pick(g.Rand, []string{"null", "true", "false", pick(g.Rand, trickyNumbers)})
	case n == 5 && g.Intn(3) == 0:
		return g.verbatim(targets)
	case n == 5:
		return g.spell(pick(g.Rand, plainTexts))
	case n == 6 || len(targets) == 0:
		return g.spell(g.escaped())
	}
	return g.reference(targets)
}

// verbatim writes a text that stands for itself, or an object that only looks like one.
func (g *generator) verbatim(targets []made) string {
	text := g.spell(pick(g.Rand, append(foreignTexts("a"), "$ref:nope", "${ref:", "$$ref:a")))
	if g.Intn(4) == 0 {
		g.c.Forms["$text as data"]++
		return `{"$text":` + pick(g.Rand, []string{"{}", `{"$search":"coffee"}`, "null", `["$text"]`, `"t","more":1`}) + "}"
	}
	if g.Intn(4) == 0 && len(targets) > 0 {
		g.c.Forms["foreign beside a right one"]++
		id := pick(g.Rand, targets).id
		return "[" + g.spell("$ref:"+id) + "," + g.spell(pick(g.Rand, foreignTexts(id))) + "]"
	}
	g.c.Forms["verbatim"]++
	return "{" + g.space() + g.spell("$text") + g.space() + ":" + text + g.space() + "}"
}

// escaped is text that would be a reference if it weren't for the dollars before it.
func (g *generator) escaped() string {
	dollars := strings.Repeat("$$", 1+g.Intn(3))
	if g.Intn(2) == 0 {
		g.c.Forms["escape even"]++
		return pick(g.Rand, []string{"", "see ", "$ "}) + dollars + "ref:" + pick(g.Rand, []string{"nope", "", "a.b..c", "a || $$ref:b"})
	}
	g.c.Forms["escape even braced"]++
	return pick(g.Rand, []string{"", "see "}) + dollars + "{ref:" + pick(g.Rand, []string{"nope}", "", "a b"})
}

// reference writes a value that holds at least one reference.
func (g *generator) reference(targets []made) string {
	switch g.Intn(7) {
	case 0, 1:
		g.c.Forms["whole"]++
		return g.spell(g.prefixed(4, targets))
	case 2:
		return g.objectForm("", targets)
	case 3, 4:
		return g.spell(g.alternatives(targets))
	}
	return g.spell(g.template(targets))
}

func (g *generator) objectForm(kind string, targets []made) string {
	g.c.Forms["object form"]++
	return "{" + g.space() + g.spell("$ref") + g.space() + ":" + g.space() + g.spell(g.refTo(kind, targets)) + g.space() + "}"
}

// alternatives writes references with || between them, and perhaps a scalar at the end.
func (g *generator) alternatives(targets []made) string {
	spaces := func() string { return strings.Repeat(" ", g.Intn(3)) }
	text := g.prefixed(8, targets)
	more := g.Intn(3)
	for range more {
		text += spaces() + "||" + spaces() + g.prefixed(8, targets)
	}
	if strings.Contains(text, "$error:") {
		g.c.Forms["error alternatives"]++
	}
	if more == 0 || g.Intn(2) == 0 {
		g.c.Forms["alternatives with scalar"]++
		scalars := []string{"null", `"none"`, `"a || b"`, "0", "1.0", "true", "1e400", `""`, `"$ref:a"`, `"\u0041"`, "-12345678901234567890"}
		return text + spaces() + "||" + spaces() + pick(g.Rand, scalars)
	}
	g.c.Forms["alternatives of references"]++
	return text
}

// template writes text with references in it.
func (g *generator) template(targets []made) string {
	lead := []string{"", "", "It is ", "a=", "${x} ", "costs $5 ", "日本", "\"quoted\" ", "\\", "a || ", "<&>", "\u2028", "\x01\b", "$ref "}
	follow := []string{" ", "\t", "\r\n", ", ", ";", ":", "!", "?", ")", "]", "}", "\"", "'", "é", "日", ". ", ".\n", " || ", " $ "}
	text := pick(g.Rand, lead)
	for range 1 + g.Intn(3) {
		switch g.Intn(4) {
		case 0, 1:
			g.c.Forms["template braced"]++
			text += g.braced(targets) + pick(g.Rand, []string{"", "", "x", ".output", "[0]"})
		case 2:
			g.c.Forms["template bare"]++
			text += "$ref:" + g.ref(targets) + pick(g.Rand, follow)
		default:
			text += g.oddEscape(targets)
		}
	}
	if strings.HasPrefix(text, "$ref:") { // else it could be one of the forms that are tried first
		text = "t " + text
	}
	return text + pick(g.Rand, []string{"", ".", " end", "$"})
}

// braced writes a reference in braces.
func (g *generator) braced(targets []made) string {
	if g.second && g.Intn(6) == 0 {
		g.c.Forms["status template"]++
		return "${status:" + pick(g.Rand, targets).id + "}"
	}
	return "${ref:" + g.ref(targets) + "}"
}

// oddEscape writes dollars that end in a reference.
func (g *generator) oddEscape(targets []made) string {
	dollars := strings.Repeat("$$", 1+g.Intn(3))
	if g.Intn(2) == 0 {
		g.c.Forms["escape odd"]++
		return dollars + "$ref:" + g.ref(targets) + " "
	}
	g.c.Forms["escape odd braced"]++
	return dollars + "${ref:" + g.ref(targets) + "}"
}

// ref writes a reference without its prefix. Most paths lead somewhere.
func (g *generator) ref(targets []made) string {
	target := pick(g.Rand, targets)
	text, at := target.id, target.result
	if target.each {
		text, at = g.entry(target)
		if at == nil {
			return text
		}
	}
	for range g.Intn(4) {
		switch {
		case at != nil && len(at.members) > 0 && g.Intn(8) > 0:
			i := g.Intn(len(at.members))
			switch {
			case at.kind == '[' && g.Intn(3) == 0:
				g.c.Forms["path [*]"]++
				text += "[*]"
			case at.kind == '[':
				text += g.index(i)
			default:
				text += g.key(at.members[i].key)
			}
			at = at.members[i].value
		case at != nil && g.Intn(4) > 0:
			return text // there is nothing further down
		case g.Intn(3) == 0:
			text, at = text+g.index(pick(g.Rand, []int{0, 1, 2, 10, 1 << 40})), nil
		default:
			text, at = text+g.key(pick(g.Rand, trickyKeys)), nil
		}
	}
	if text == target.id {
		g.c.Forms["no path"]++
	}
	return text
}

// index writes the way to an item of an array.
func (g *generator) index(i int) string {
	if g.Intn(2) == 0 {
		g.c.Forms["path .digits"]++
		return "." + strconv.Itoa(i)
	}
	g.c.Forms["path [index]"]++
	return "[" + strconv.Itoa(i) + "]"
}

// key writes the way to a member of an object.
func (g *generator) key(key string) string {
	if bareKeyRE.MatchString(key) && g.Intn(3) > 0 {
		g.c.Forms["path .key"]++
		return "." + key
	}
	g.c.Forms["path [string]"]++
	return "[" + g.spell(key) + "]"
}
