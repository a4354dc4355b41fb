package reference

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// EachForms names what Generate can put into a plan and counts under Options.ForEach, besides Forms.
func EachForms() []string {
	return []string{
		"for_each reference", "for_each object form", "for_each alternatives", "for_each array", "for_each empty", "for_each as",
		"item whole", "item template", "item path", "item object form", "item arguments",
		"entries whole", "entry", "entry data", "entry other", "entries projected", "item failure",
	}
}

// itemArguments writes the arguments of a step that runs for each item of a list, which can't fail.
func (g *generator) itemArguments(last *made, targets []made, as string) string {
	var parts []string
	for _, i := range g.Perm(len(trickyKeys))[:g.Intn(4)] {
		if key := trickyKeys[i]; !strings.HasPrefix(key, "$") {
			parts = append(parts, g.space()+g.spell(key)+":"+g.itemArgument(as, targets))
		}
	}
	text := "{" + strings.Join(parts, ",") + "}"
	if last.items == 0 && g.Intn(2) == 0 {
		g.c.Forms["item arguments"]++
		text = `{"$ref":` + g.spell(as) + `}`
	}
	if g.Intn(4) == 0 {
		text = g.spell(text)
	}
	return `"arguments":` + text
}

// itemsOf writes the list of a step that runs for each item, and what an item is called.
func (g *generator) itemsOf(last *made, targets []made) (field, as string) {
	as = "item"
	fields := []string{`"in":` + g.space() + g.list(last, targets)}
	if g.Intn(2) == 0 || g.taken("item") {
		g.c.Forms["for_each as"]++
		as = pick(g.Rand, []string{"x1", "each", "-i-", "It"}) // newID makes none of these
		fields = append(fields, `"as":`+g.spell(as))
	}
	return `"for_each":` + g.object(fields), as
}

// list writes the list of a for_each.
func (g *generator) list(last *made, targets []made) string {
	last.items = -1
	var arrays []string
	for _, t := range targets {
		if t.each {
			arrays = g.arrays(append(arrays, t.id), t.id+"[0].data", t.result)
		} else {
			arrays = g.arrays(arrays, t.id, t.result)
		}
	}
	if len(arrays) == 0 || g.Intn(3) == 0 {
		return g.literalList(last, targets)
	}
	target := pick(g.Rand, arrays)
	if g.Intn(12) == 0 {
		target = g.refTo("array", targets) // or to something else that nobody knows beforehand
	}
	switch g.Intn(4) {
	case 0:
		g.c.Forms["for_each object form"]++
		return `{"$ref":` + g.space() + g.spell(target) + `}`
	case 1:
		g.c.Forms["for_each alternatives"]++
		return g.spell("$ref:" + g.ref(targets) + ` || $ref:` + target)
	}
	g.c.Forms["for_each reference"]++
	return g.spell("$ref:" + target)
}

// arrays returns references to the arrays in a result.
func (g *generator) arrays(all []string, way string, v *value) []string {
	if v == nil {
		return all
	}
	if v.kind == '[' {
		all = append(all, way)
	}
	for i, m := range v.members {
		if v.kind == '[' {
			all = g.arrays(all, fmt.Sprintf("%s[%d]", way, i), m.value)
		} else {
			all = g.arrays(all, way+"["+g.spell(m.key)+"]", m.value)
		}
	}
	return all
}

// literalList writes an array that may hold references.
func (g *generator) literalList(last *made, targets []made) string {
	last.items = g.Intn(5)
	if last.items == 0 {
		g.c.Forms["for_each empty"]++
		return "[" + g.space() + "]"
	}
	g.c.Forms["for_each array"]++
	var parts []string
	for range last.items {
		parts = append(parts, g.space()+g.argument(1, targets)+g.space())
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// itemArgument writes a value that comes to something whatever the item and the other steps are.
func (g *generator) itemArgument(as string, targets []made) string {
	switch n := g.Intn(7); {
	case n == 0:
		g.c.Forms["item whole"]++
		return g.spell("$ref:" + as)
	case n == 1:
		g.c.Forms["item object form"]++
		return `[{"$ref":` + g.spell(as) + `}]`
	case n == 2:
		g.c.Forms["item template"]++
		return g.spell(pick(g.Rand, []string{"${ref:" + as + "}x", "see $ref:" + as + ", too", "$$$ref:" + as + " $$ref:" + as}))
	case n == 3:
		g.c.Forms["item path"]++
		return g.spell("$ref:" + as + g.key(pick(g.Rand, trickyKeys)) + g.index(g.Intn(3)) + " || $ref:" + as + g.key(pick(g.Rand, trickyKeys)) + "||0")
	case n < 6 && len(targets) > 0:
		return g.spell("$ref:" + g.ref(targets) + " || $ref:" + as + g.index(g.Intn(3)) + ` || "none"`)
	}
	return g.argument(1, nil)
}

// entry writes the beginning of a reference to a for_each step, and gives what is there; nil where the path must end or
// nobody knows.
func (g *generator) entry(target made) (string, *value) {
	if g.Intn(3) == 0 {
		g.c.Forms["entries whole"]++
		return target.id, nil
	}
	text := target.id + g.index(g.Intn(max(target.items, 1)+g.Intn(2)))
	if g.Intn(3) == 0 {
		g.c.Forms["entries projected"]++
		text = target.id + "[*]"
	}
	switch g.Intn(4) {
	case 0:
		g.c.Forms["entry"]++
		return text, nil
	case 1:
		g.c.Forms["entry other"]++
		return text + pick(g.Rand, []string{".status", ".index", ".error.code", `["error"]`, ".error.nope"}), nil
	}
	g.c.Forms["entry data"]++
	return text + pick(g.Rand, []string{".data", `["data"]`}), target.result
}

// refTo writes a reference that may lead to a value of a kind; empty for any. A plan is refused where none can, and
// what a for_each step comes to is known. What tools return is declared nowhere, so it may be anything.
func (g *generator) refTo(kind string, targets []made) string {
	for {
		text := g.ref(targets)
		r, _, _ := cutRef(text)
		i := slices.IndexFunc(targets, func(m made) bool { return m.id == r.id })
		if known := kindOfEntries(r.path); kind == "" || !targets[i].each || known == "" || known == kind {
			return text
		}
	}
}

// kindOfEntries returns the type of what a path leads to in the list of a for_each step; empty where that isn't known.
func kindOfEntries(path []segment) string {
	switch {
	case len(path) == 0 || path[0].form == '*':
		return "array"
	case len(path) == 1:
		return "object"
	case path[1].text == "index" || path[1].text == "status":
		return "scalar"
	}
	return ""
}

// itemScripts makes up what the tool does with the items of the step made last. Their outputs are valid.
func (g *generator) itemScripts(o Options) {
	last := &g.steps[len(g.steps)-1]
	s := Script{Echo: g.Intn(3) == 0, Reply: Reply{Body: []byte(g.json(3))}}
	if g.Intn(6) == 0 {
		s.Reply = Reply{Body: []byte(pick(g.Rand, trickyTexts)), Text: true}
	}
	if g.c.Contracts[last.tool].Asks { // else all items fail alike
		g.asksInBetween(&s, last.tool)
	}
	g.c.Scripts[last.id] = s
	if result, err := Convert(s.Reply.Body, s.Reply.Text); err == nil && !s.Echo {
		last.result, _ = read(bytes.Clone(result))
	}
	if o.NoFailures {
		return
	}
	most := 1
	if g.c.Contracts[last.tool].PartialSuccess {
		most = 4
	}
	for range g.Intn(most + 1) {
		failing := s
		if failing.Failures = g.failures(); len(failing.Failures) > 0 {
			g.c.Forms["item failure"]++
		}
		g.c.Scripts[token(last.id, g.Intn(4))] = failing
	}
}
