package plan

import (
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// refPrefix begins a reference in a string.
const refPrefix = "$ref:"

// piece is a part of a string value, in the order of the text.
type piece struct {
	// text is literal text; it is used where refs is empty.
	text string
	from int // of text in the string, where it is a part of it (dollars taken away by escapes are not)
	// refs are the alternatives of a reference; a template's has one.
	refs []ref
	// def is the JSON scalar at the end of alternatives; empty for none.
	def string
	// broken says why this is no reference; nil where it is one, or text.
	broken *mistake
}

// mistake is why something is no reference.
type mistake struct {
	why  string
	hint string // how to mend it; a %s stands for good as it is written within text
	good string // the reference up to where it breaks
}

// value is what a string in the arguments stands for.
type value struct {
	whole  bool // the one piece is all of it, and its value replaces the string
	pieces []piece
}

// mayRefer reports whether a string can hold a reference or an escape at all.
func (p *refParser) mayRefer(s string) bool {
	return strings.Contains(s, "$ref:") || strings.Contains(s, "${ref:") || p.ofLanguage2(s)
}

// parseText takes a string apart (plan language, rules 1 to 4). The value is good until the next call.
func (p *refParser) parseText(s string) value {
	p.refs, p.pieces = p.refs[:0], p.pieces[:0]
	of, start := p.prefixOf(s)
	if of.isWord() && p.wordOf(s) == nil {
		start = 0 // it is text
	}
	if start == 0 {
		if x, is := p.reservedWhole(s); is {
			return value{whole: true, pieces: p.only(x)}
		}
		return value{pieces: p.template(s)}
	}
	r, end, why := p.parse(s, start)
	r.of = of
	if why == "" && strings.HasPrefix(s[skipSpace(s, end):], "||") {
		return value{whole: true, pieces: p.only(p.alternatives(s, r, end))}
	}
	if spaceOutsideQuotes(s) {
		return value{pieces: p.template(s)}
	}
	if why == "" && end == len(s) {
		return value{whole: true, pieces: p.only(piece{refs: p.one(r)})}
	}
	return value{whole: true, pieces: p.only(broken(s, start, end, why))}
}

// only returns a slice of one piece.
func (p *refParser) only(x piece) []piece { return append(p.pieces[:0], x) }

// alternatives reads what follows the first reference: || and references, and at last perhaps a scalar.
func (p *refParser) alternatives(s string, first ref, end int) piece {
	const grammar = `alternatives are references between ||, and at last perhaps one JSON scalar: "$ref:a.x || $ref:b.y || \"none\""`
	alt := piece{refs: p.one(first)}
	for end < len(s) {
		i := skipSpace(s, end)
		if !strings.HasPrefix(s[i:], "||") {
			return piece{broken: &mistake{why: "the alternatives don't end with " + clip(s[end:]), hint: grammar}}
		}
		i = skipSpace(s, i+2)
		of, start := p.prefixOf(s[i:])
		if start == 0 {
			if !isScalar(s[i:]) {
				return piece{broken: &mistake{why: "an alternative is neither a reference nor a JSON scalar: " + clip(s[i:]), hint: grammar}}
			}
			alt.def = s[i:]
			return alt
		}
		r, next, why := p.parse(s, i+start)
		if why != "" {
			return broken(s[i:], start, next-i, why)
		}
		r.of = of
		alt.refs = append(alt.refs, r)
		end = next
	}
	return alt
}

// isScalar reports whether s is one JSON string, number, true, false or null, without white space around it.
func isScalar(s string) bool {
	if s == "true" || s == "false" || s == "null" {
		return true
	}
	if s == "" {
		return false
	}
	c := jsontape.Cursor{Src: []byte(s)}
	if s[0] == '"' {
		flags, bad := c.Quoted()
		return bad == "" && c.At == len(s) && flags&jsontape.BadText == 0
	}
	_, ok := c.Number()
	return ok && c.At == len(s)
}

// template finds the references in running text.
func (p *refParser) template(s string) []piece {
	out := p.pieces[:0]
	literal := 0 // where the text begins that is not in out yet
	if n := dollars(s); n > 1 && p.wordOf(s[n-1:]) != nil {
		literal = 1 // one of them is the escape
	}
	flush := func(end int) {
		if end > literal {
			out = append(out, piece{text: s[literal:end], from: literal})
		}
	}
	for i := 0; i < len(s); {
		next := strings.IndexByte(s[i:], '$')
		if next < 0 {
			break
		}
		i += next
		n := dollars(s[i:])
		o := p.openingAt(s[i+n:])
		if o == nil || p.language1 && o.language > 1 && n%2 == 1 {
			i += n
			continue
		}
		flush(i + n/2) // (n-1)/2 for odd n, n/2 for even n: the others escape them
		i += n
		if n%2 == 0 {
			literal = i
			continue
		}
		var found piece
		found, i = p.inText(s, i-1, o)
		out = append(out, found)
		literal = i
	}
	flush(len(s))
	p.pieces = out
	return out
}

// inText reads the reference of a template whose "$" is at i, and gives where the text goes on.
func (p *refParser) inText(s string, i int, o *opening) (piece, int) {
	start := i + 1 + len(o.text)
	if o.of == itsInput {
		start = i + len("${")
	}
	r, end, why := p.parse(s, start)
	r.of = o.of
	if p.without(o) != "" {
		p.forget(r)
		if o.braced() && end < len(s) && s[end] == '}' {
			end++
		}
		return reservedRef(s[i:end], o.instead), end
	}
	if o.braced() {
		switch {
		case end < len(s) && s[end] == '}' && why == "":
			return piece{refs: p.one(r)}, end + 1
		case strings.HasPrefix(s[skipSpace(s, end):], "||"):
			why = "there are no alternatives (||) within text"
		case why == "" && end == len(s):
			why = unclosed
		}
		return brokenText(s, i, start, end, why), end
	}
	if why == "" && endsRef(s[end:]) {
		return piece{refs: p.one(r)}, end
	}
	return brokenText(s, i, start, end, why), end
}

// endsRef reports whether a bare reference in a template may end before rest.
func endsRef(rest string) bool {
	if rest == "" || rest[0] >= utf8.RuneSelf || jsontape.IsSpace(rest[0]) || strings.IndexByte(`,;:!?)]}"'`, rest[0]) >= 0 {
		return true
	}
	return rest[0] == '.' && (len(rest) == 1 || jsontape.IsSpace(rest[1]))
}

func skipSpace(s string, i int) int {
	for i < len(s) && jsontape.IsSpace(s[i]) {
		i++
	}
	return i
}

func dollars(s string) int {
	n := 0
	for n < len(s) && s[n] == '$' {
		n++
	}
	return n
}

// spaceOutsideQuotes reports whether s has white space outside double quotes.
func spaceOutsideQuotes(s string) bool { return outsideQuotes(s, jsontape.IsSpace) }

// outsideQuotes reports whether s has a byte of some kind outside double quotes.
func outsideQuotes(s string, is func(c byte) bool) bool {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case !quoted && is(c):
			return true
		}
	}
	return false
}

// keyText takes a key of an object apart: its text with the escapes taken out, and whether it holds a reference, whole
// or broken, which no key may.
func (p *refParser) keyText(s string) (text string, refers bool) {
	if n := dollars(s); n > 1 && (s[n:] == "ref" || s[n:] == "text") {
		return s[1:], false
	}
	if !p.mayRefer(s) {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '$' {
			b.WriteByte(s[i])
			i++
			continue
		}
		n := dollars(s[i:])
		keep := n
		if o := p.openingAt(s[i+n:]); o != nil && n%2 == 0 {
			keep = n / 2
		} else if o != nil && !(p.language1 && o.language > 1) {
			return s, true
		}
		b.WriteString(s[i : i+keep])
		i += n
	}
	return b.String(), false
}

// cutter cuts the text of arguments into what is literal and what is a hole. Literal text that is one piece of the
// source stays part of it; only where something was exchanged is it copied.
type cutter struct {
	src     string
	from    int // where the text begins that was neither copied nor skipped
	built   []byte
	isBuilt bool // built holds the literal in hand, otherwise it is the source from start to end
	start   int
	end     int
	head    string
	holes   int // in parser.holes, where those of this step begin
	cut     int // holes cut so far
}

// copyTo takes the source up to end as literal text.
func (c *cutter) copyTo(end int) {
	if end > c.from {
		c.add(c.from, end)
	}
	c.from = end
}

// skipTo leaves the source up to end out.
func (c *cutter) skipTo(end int) { c.from = end }

func (c *cutter) add(start, end int) {
	switch {
	case c.isBuilt:
		c.built = append(c.built, c.src[start:end]...)
	case c.end == c.start:
		c.start, c.end = start, end
	case c.end == start:
		c.end = end
	default:
		c.build()
		c.built = append(c.built, c.src[start:end]...)
	}
}

// literal takes text that is not in the source.
func (c *cutter) literal(text string) {
	if text == "" {
		return
	}
	c.build()
	c.built = append(c.built, text...)
}

func (c *cutter) build() {
	if !c.isBuilt {
		c.built = append(c.built[:0], c.src[c.start:c.end]...)
		c.isBuilt = true
	}
}

// take returns the literal in hand and begins a new one.
func (c *cutter) take() string {
	s := c.src[c.start:c.end]
	if c.isBuilt {
		s = string(c.built)
	}
	c.isBuilt, c.start, c.end = false, 0, 0
	return s
}

// hole ends the literal in hand and cuts a hole.
func (c *cutter) hole(p *parser, h hole) {
	c.store(p)
	c.cut++
	p.holes = append(p.holes, h)
}

// store puts the literal in hand where it belongs: before the first hole, or behind the last one.
func (c *cutter) store(p *parser) {
	text := c.take()
	if c.cut == 0 {
		c.head = text
	} else {
		p.holes[len(p.holes)-1].after = text
	}
}

// finish returns the text before the first hole.
func (c *cutter) finish(p *parser) string {
	c.store(p)
	return c.head
}
