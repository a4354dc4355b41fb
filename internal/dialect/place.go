package dialect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Place returns the place in what was submitted that a pointer into the compiled plan stands for.
func (d *Compiled) Place(pointer string) string {
	if rest, ok := strings.CutPrefix(pointer, "/output/"); ok && d.doc.output != 0 {
		return "/output" + d.doc.follow(d.doc.output, strings.Split(rest, "/"))
	}
	rest, ok := strings.CutPrefix(pointer, "/steps")
	if !ok || rest != "" && rest[0] != '/' {
		return pointer
	}
	tokens := strings.Split(strings.TrimPrefix(rest, "/"), "/")
	i, err := strconv.Atoi(tokens[0])
	if err != nil {
		return "/calls"
	}
	i, own := d.doc.stemsFrom(i)
	switch {
	case i >= len(d.doc.calls):
		return "/output"
	case !own:
		return d.doc.calls[i].at
	}
	k := &d.doc.calls[i]
	if len(tokens) == 1 {
		return k.at
	}
	switch tokens[1] {
	case "tool":
		field, _ := k.callee()
		return d.doc.metaPlace(k, field, nil)
	case "id":
		return d.doc.metaPlace(k, metaID, nil)
	case "if":
		return d.doc.metaPlace(k, metaIf, nil)
	case "depends_on":
		return d.doc.metaPlace(k, metaAfter, tokens[2:])
	case "arguments":
		return d.doc.argumentPlace(k, tokens[2:])
	}
	return k.at
}

// stemsFrom returns the call that a step of the compiled plan stems from, and whether it is that call's own.
func (c *compiler) stemsFrom(step int) (call int, own bool) {
	if step < len(c.calls) {
		return step, true
	}
	return c.cells[min(step-len(c.calls), len(c.cells)-1)].call, false
}

// metaPlace returns the place of a field of a call, and in it as far as it is there; the call's own where it is absent.
func (c *compiler) metaPlace(k *call, field int, tokens []string) string {
	n := k.meta[field]
	if n == 0 {
		return k.at
	}
	return k.at + "/" + metaNames[field] + c.follow(n, tokens)
}

// argumentPlace returns the place of an argument, and in it as far as it was written: a reference may stand for more.
func (c *compiler) argumentPlace(k *call, tokens []string) string {
	if k.meta[metaScopes] != 0 {
		return c.metaPlace(k, metaScopes, tokens)
	}
	if len(tokens) == 0 || k.node == 0 {
		return k.at
	}
	key := jsontape.UnescapeToken(tokens[0])
	if strings.HasPrefix(key, "_") {
		key = "_" + key
	}
	n := c.member(k.node, key)
	if n == 0 {
		return k.at
	}
	return k.at + string(jsontape.AppendToken(nil, key)) + c.follow(n, tokens[1:])
}

// ID returns the id of the call that a place lies in; empty for none.
func (d *Compiled) ID(place string) string {
	rest, in := strings.CutPrefix(place, "/calls/")
	if !in {
		return ""
	}
	number, _, _ := strings.Cut(rest, "/")
	if i, err := strconv.Atoi(number); err == nil && i < len(d.doc.calls) {
		return d.doc.calls[i].id
	}
	return ""
}

// Faulty reports whether the call that a place of the compiled plan stems from has a problem of its own, so that what is
// wrong with its step may only follow from that.
func (d *Compiled) Faulty(pointer string) bool {
	rest, in := strings.CutPrefix(pointer, "/steps/")
	if !in {
		return strings.HasPrefix(pointer, "/output") && d.doc.faulty[len(d.doc.calls)]
	}
	number, field, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	i, own := d.doc.stemsFrom(i)
	_, name := d.doc.calls[i].callee()
	return d.doc.faulty[i] && (!own || field != "tool" || name == 0)
}

// Words returns a message or a hint about the compiled plan in the words of the dialect: references to steps as the
// places in the state that those write to.
func (d *Compiled) Words(s string) string { return d.doc.words(s) }

func (c *compiler) words(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			b.WriteString(s)
			return inWords.Replace(b.String())
		}
		b.WriteString(s[:i])
		s = s[i:]
		text, n := c.word(s)
		b.WriteString(text)
		s = s[n:]
	}
}

var inWords = strings.NewReplacer(`"depends_on"`, `"_after"`, `"steps"`, `"calls"`, `"if":`, `"_if":`, `"tool":`, `"_tool":`,
	`"if" in each step`, `"_if" in each call`, `$ref:<id>`, `†state.<name>`)

// word returns what the reference at the beginning of s is in the dialect, and its length; the dollar for what is none.
func (c *compiler) word(s string) (text string, n int) {
	open := ""
	rest := s[1:]
	if strings.HasPrefix(rest, "{") {
		open, rest = "${", rest[1:]
	}
	of, rest, ok := strings.Cut(rest, ":")
	if !ok || of != "ref" && of != "error" {
		return "$", 1
	}
	id := rest[:plainEnd(rest, 0)]
	path := path{{key: id}}
	switch i, known := c.ids[id]; {
	case id == "" || !known && of == "error":
		return "$", 1
	case known && i < 0:
		path = c.cellPath(id)
	case known && of == "error" && len(c.calls[i].errors) > 0:
		path = c.calls[i].errors[0]
	case known && of == "error" || known && len(c.calls[i].results) == 0:
		return "$", 1
	case known:
		path = c.calls[i].results[0]
	}
	return open + (ref{ofState, path}).String(), len(s) - len(rest) + len(id)
}

// cellPath returns the path of the state that a step comes to that is no call.
func (c *compiler) cellPath(id string) path {
	i := slices.IndexFunc(c.cells, func(x cell) bool { return x.id == id })
	return c.cells[max(i, 0)].path
}
