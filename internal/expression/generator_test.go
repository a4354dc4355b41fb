package expression

import (
	"encoding/json"
	"flag"
	"math/rand"
	"strconv"
	"strings"
)

var (
	seed   = flag.Int64("seed", 1, "of random expressions")
	rounds = flag.Int("rounds", 20_000, "how many random expressions")
)

// generator makes random expressions, most of which have operands of the right kinds.
type generator struct {
	*rand.Rand
	text   map[string]string // the JSON of references
	leaves map[string][]*tree
}

func newGenerator(r *rand.Rand) *generator { return &generator{Rand: r} }

type result struct {
	value any
	err   error
}

// expression returns a tree and what it comes to.
func (g *generator) expression() (*tree, result) {
	g.text, g.leaves = map[string]string{}, map[string][]*tree{}
	for i := range 2 + g.Intn(4) {
		kind := g.pick("number", "number", "text", "bool", "list", "object")
		g.reference(kind, "$ref:"+string(rune('a'+i))+g.pick("", ".x", "[0]", `["k-e y"]`, "-1.n"))
	}
	kind := g.pick("bool", "bool", "number", "text", "list")
	x := g.tree(kind, 1+g.Intn(4))
	v, err := x.eval()
	return x, result{v, err}
}

func (g *generator) given() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for ref, text := range g.text {
		all[ref] = json.RawMessage(text)
	}
	return all
}

func (g *generator) pick(from ...string) string { return from[g.Intn(len(from))] }

func (g *generator) reference(kind, ref string) {
	text := ""
	switch {
	case g.Intn(8) == 0:
		if g.Intn(2) == 0 {
			g.leaves[kind] = append(g.leaves[kind], &tree{text: ref}) // nothing there
			return
		}
		text = "null"
	case kind == "number":
		text = g.number()
	case kind == "text":
		text = strconv.Quote(g.words())
	case kind == "bool":
		text = g.pick("true", "false")
	case kind == "list":
		text = "[" + strings.Join(g.items(), g.pick(",", ", ")) + "]"
	default:
		text = g.pick(`{}`, `{"a": 1, "b": [1.0, 2]}`, `{"b": [1, 2e0], "a": 1.00}`, `{"a": 1}`, `{"abc": {"x": null}}`)
	}
	g.text[ref] = text
	g.leaves[kind] = append(g.leaves[kind], &tree{text: ref, leaf: jsonOf(text)})
}

func jsonOf(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return asTwin(v)
}

func (g *generator) items() (all []string) {
	of := g.pick("number", "number", "text", "mixed")
	for range g.Intn(5) {
		switch {
		case g.Intn(6) == 0:
			all = append(all, "null")
		case of == "number" || of == "mixed" && g.Intn(2) == 0:
			all = append(all, g.number())
		default:
			all = append(all, strconv.Quote(g.words()))
		}
	}
	return all
}

func (g *generator) words() string {
	return g.pick("", "a", "abc", "Abc", "ABC", " x ", "äß", "10", "sunny", "it's", `a "b"`, "line\nbreak", "日本")
}

func (g *generator) number() string {
	sign := g.pick("", "", "-")
	switch g.Intn(12) {
	case 0:
		return sign + strconv.Itoa(g.Intn(100)) + "." + strconv.Itoa(g.Intn(1000))
	case 1:
		return sign + g.digits(1+g.Intn(45))
	case 2:
		return sign + g.digits(1+g.Intn(30)) + "." + g.digits(1+g.Intn(30))
	case 3:
		return sign + strconv.Itoa(1+g.Intn(9)) + g.pick("e", "E", "e+", "e-") + strconv.Itoa(g.Intn(60))
	case 4:
		return sign + "0." + strings.Repeat("0", g.Intn(40)) + "5"
	case 5:
		return g.pick("-0", "0", "0.0", "1.0", "1e0", "10e-1", "0e999", "9999999999999999999999999999999999", "2e3300", "1e-4000", "0.5", "2.5")
	case 6:
		return sign + g.pick("0.1", "0.2", "0.3", "1.005", "2.675", "1e2", "100")
	}
	return sign + strconv.Itoa(g.Intn(12))
}

func (g *generator) digits(n int) string {
	b := []byte{'1' + byte(g.Intn(9))}
	for len(b) < n {
		b = append(b, '0'+byte(g.Intn(10)))
	}
	return string(b)
}

// literal writes a literal.
func (g *generator) literal(kind string) *tree {
	switch kind {
	case "number":
		text := strings.TrimPrefix(g.number(), "-")
		return &tree{text: text, leaf: jsonOf(text)}
	case "text":
		words := g.words()
		if g.Intn(2) == 0 {
			return &tree{text: strconv.Quote(words), leaf: words}
		}
		return &tree{text: "'" + strings.NewReplacer("'", `\'`, "\n", `\n`).Replace(words) + "'", leaf: words}
	case "bool":
		text := g.pick("true", "false")
		return &tree{text: text, leaf: text == "true"}
	}
	x := &tree{op: "[]"}
	of := g.pick("number", "text")
	for range 1 + g.Intn(4) {
		x.kids = append(x.kids, g.literal(of))
	}
	return x
}

// tree makes an expression that mostly comes to a kind.
func (g *generator) tree(kind string, depth int) *tree {
	if g.Intn(40) == 0 {
		kind = g.pick("number", "text", "bool", "list", "object")
	}
	if depth == 0 || g.Intn(8) == 0 {
		if refs := g.leaves[kind]; len(refs) > 0 && g.Intn(4) > 0 {
			return refs[g.Intn(len(refs))]
		}
		if g.Intn(20) == 0 {
			return &tree{text: g.pick("null", "nil")}
		}
		return g.literal(kind)
	}
	sub := func(kind string) *tree { return g.tree(kind, depth-1) }
	switch g.Intn(14) {
	case 0:
		return &tree{op: "??", kids: []*tree{sub(kind), sub(kind)}}
	case 1:
		return &tree{op: "?:", kids: []*tree{sub("bool"), sub(kind), sub(kind)}}
	}
	switch kind {
	case "bool":
		return g.condition(sub)
	case "number":
		return g.calculation(sub)
	case "text":
		return &tree{op: g.pick("lower", "upper", "trim"), kids: []*tree{sub("text")}}
	}
	x := &tree{op: "[]"}
	for range g.Intn(4) {
		x.kids = append(x.kids, sub(g.pick("number", "text", "bool", "list")))
	}
	if len(x.kids) == 0 {
		return g.literal(kind)
	}
	return x
}

func (g *generator) condition(sub func(string) *tree) *tree {
	two := func(op, a, b string) *tree { return &tree{op: op, kids: []*tree{sub(a), sub(b)}} }
	switch g.Intn(10) {
	case 0, 1, 2:
		return two(g.pick("and", "or"), "bool", "bool")
	case 3:
		return &tree{op: "not", kids: []*tree{sub("bool")}}
	case 4:
		return two(g.pick("in", "not in"), g.pick("number", "text"), g.pick("list", "list", "object"))
	case 5:
		return two(g.pick("contains", "startsWith", "endsWith", "not contains"), "text", "text")
	case 6:
		pattern := g.pick(`^a`, `b+`, `^\\w+$`, `[A-Z]{3}`, `(?i)ABC`, `\\s`)
		leaf := &tree{text: "'" + strings.ReplaceAll(pattern, `\\`, `\`) + "'", leaf: strings.ReplaceAll(pattern, `\\`, `\`)}
		return &tree{op: "matches", kids: []*tree{sub("text"), leaf}}
	case 7:
		kind := g.pick("text", "bool", "list", "object")
		return two(g.pick("==", "!="), kind, kind)
	}
	kind := g.pick("number", "number", "number", "text")
	return two(g.pick("<", "<=", ">", ">=", "==", "!="), kind, kind)
}

func (g *generator) calculation(sub func(string) *tree) *tree {
	switch g.Intn(10) {
	case 0:
		return &tree{op: "negative", kids: []*tree{g.operand(sub)}}
	case 1:
		return &tree{op: "abs", kids: []*tree{sub("number")}}
	case 2:
		x := &tree{op: "round", kids: []*tree{sub("number")}}
		if g.Intn(3) > 0 {
			text := g.pick("0", "1", "2", "5", "40")
			x.kids = append(x.kids, &tree{text: text, leaf: jsonOf(text)})
			if g.Intn(3) == 0 {
				x.kids[1] = &tree{op: "negative", kids: []*tree{x.kids[1]}}
			}
		}
		return x
	case 3:
		return &tree{op: "len", kids: []*tree{sub(g.pick("text", "list", "object"))}}
	case 4, 5:
		x := &tree{op: g.pick("sum", "product", "min", "max")}
		for range 1 + g.Intn(3) {
			x.kids = append(x.kids, sub(g.pick("number", "list", "list")))
		}
		return x
	}
	return &tree{op: g.pick("+", "-", "*", "/", "%"), kids: []*tree{g.operand(sub), g.operand(sub)}}
}

// operand makes what is calculated with, which is no string in quotes: Compile refuses that.
func (g *generator) operand(sub func(string) *tree) *tree {
	x := sub("number")
	if strings.HasPrefix(x.text, `"`) || strings.HasPrefix(x.text, "'") {
		return g.literal("number")
	}
	return x
}
