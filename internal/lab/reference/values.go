package reference

import (
	"fmt"
	"strings"
)

// What a reader of JSON stumbles over: keys that look like paths or like references, numbers that no float holds, text
// that has to be escaped, or looks like a reference and isn't.
var (
	trickyKeys = []string{
		"x", "temp", "id", "0", "1", "01", "10", "-", "a-b", "_", "a.b", "k e.y", "", "ключ", `q"uote`, `back\slash`, "#", "*",
		"@this", "a|b", "😀", "line\nbreak", "]", "[0]", "$ref", "$text", "$ref:x", "null", "\u2028", "<&>", "\x01",
	}
	trickyNumbers = []string{
		"0", "-0", "1.0", "1.50", "42", "-7", "12345678901234567890", "1e400", "-1E+5", "5e-324", "0.1", "1e0", "-0.0",
	}
	trickyTexts = []string{
		"", "42", "Tokyo", "null", "a b", "\"", "\\", "\\u0041", "é", "日本語", "😀", "$ref:a", "$$ref:a", "${ref:a}", "\u2028\u2029",
		"<script>&amp;", "\x01\b\f\n\r\t\x7f", "a/b", "{\"a\":1}", "||", "\u00a0",
	}
	// plainTexts hold no reference and no escape: they must come through as they are.
	plainTexts = []string{
		"", " ", "costs $5", "$refund", "$ ref:a", "a ref:a", "{ref:a}", "${x}", "$", "$$", "see $ref", "$Ref:b", "$re", "a$", "||", "{{a b}}",
		"$(ref:a)", "$ {ref:a}", "{\"$ref\":1}", "\u2028 \x7f\b", "<&>", "日本 😀", "\\$", "\"$\"",
	}
)

// foreignTexts are another language's references to a step.
func foreignTexts(id string) []string {
	return []string{
		"{{" + id + "}}", "${{ " + id + ".x }}", "${" + id + "[0]}", "{steps." + id + "}", "[[" + id + "[*]]]", "<" + id + ".x>", "%" + id + ".x%",
		"$" + id + ".x$", " $" + id + ".x ", "$." + id + ".x", "#" + id + ".x", "@" + id + `["x"]`, "$steps." + id + ".x", "ref:" + id + ".x", "$ref." + id + ".x",
		"$REF " + id + ".x", "$Ref: " + id + ".x",
	}
}

// space is what may stand between the parts of JSON: mostly nothing.
func (g *generator) space() string {
	if g.Intn(6) > 0 {
		return ""
	}
	return pick(g.Rand, []string{" ", "\n", "\t", "\r\n ", "  "})
}

// spell writes a string as JSON in one of the many ways.
func (g *generator) spell(s string) string {
	if g.Intn(3) > 0 {
		return string(encode(s))
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case g.Intn(4) == 0 && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case g.Intn(4) == 0 && r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04X\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		case r == '/' && g.Intn(2) == 0:
			b.WriteString(`\/`)
		default:
			quoted := encode(string(r))
			b.Write(quoted[1 : len(quoted)-1])
		}
	}
	b.WriteByte('"')
	return b.String()
}

// scalar writes any value that holds no others.
func (g *generator) scalar() string {
	switch g.Intn(6) {
	case 0:
		return "null"
	case 1:
		return pick(g.Rand, []string{"true", "false"})
	case 2, 3:
		return pick(g.Rand, trickyNumbers)
	}
	return g.spell(pick(g.Rand, trickyTexts))
}

// json writes any value; depth is how deep it may still go.
func (g *generator) json(depth int) string {
	kind := g.Intn(5)
	if depth == 0 || kind == 0 {
		return g.scalar()
	}
	var parts []string
	for _, i := range g.Perm(len(trickyKeys))[:g.Intn(5)] {
		part := g.space() + g.json(depth-1) + g.space()
		if kind > 2 {
			part = g.space() + g.spell(trickyKeys[i]) + g.space() + ":" + part
		}
		parts = append(parts, part)
	}
	if kind > 2 {
		return "{" + strings.Join(parts, ",") + "}"
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// script makes up what the tool does with the step made last.
func (g *generator) script(o Options) {
	last := &g.steps[len(g.steps)-1]
	var s Script
	switch n := g.Intn(20); {
	case n < 3:
		g.c.Forms["echo"]++
		s.Echo = true
	case n < 5:
		g.c.Forms["text output"]++
		s.Reply = Reply{Body: []byte(pick(g.Rand, trickyTexts)), Text: true}
	case n < 6:
		g.c.Forms["empty output"]++
	case n < 7 && !o.NoFailures:
		g.c.Forms["invalid output"]++
		s.Reply = Reply{Body: []byte(pick(g.Rand, invalidOutputs)), Text: g.Intn(4) == 0}
	case n < 8:
		s.Reply = Reply{Body: []byte(pick(g.Rand, trickyTexts))} // some are JSON, some are not
	default:
		g.c.Forms["JSON output"]++
		s.Reply = Reply{Body: []byte(g.space() + g.json(4) + g.space())}
	}
	if !o.NoFailures {
		s.Failures = g.failures()
		g.asksInBetween(&s, last.tool)
	}
	g.c.Scripts[last.id] = s
	if result, err := Convert(s.Reply.Body, s.Reply.Text); err == nil && !s.Echo {
		last.result, _ = read(result)
	}
}

var invalidOutputs = []string{
	"\xff\xfe", `{"a":"` + "\xc3\x28" + `"}`, `{"a":1,"a":2}`, `{"x":{"k":1,"\u006b":2}}`, `{"a":"\ud800"}`,
	strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65),
}

// failures makes up what fails before the script's own reply: nothing mostly, some attempts, or more than there can be.
func (g *generator) failures() []Err {
	err := Err{
		Code:      pick(g.Rand, []string{codeToolFailed, codeToolFailed, codeTimeout, codeToolTerminal, codeInvalidArguments}),
		Message:   "503 from upstream",
		Retryable: g.Intn(3) > 0,
	}
	count := 0
	switch g.Intn(10) {
	case 0:
		g.c.Forms["permanent failure"]++
		count = 25 // a step has 20 attempts at most
	case 1, 2:
		g.c.Forms["transient failure"]++
		count = 1 + g.Intn(3)
	}
	var all []Err
	for range count {
		all = append(all, err)
	}
	return all
}
