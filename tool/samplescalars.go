package tool

import (
	"encoding/json"
	"math/big"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// texts proposes strings: the shortest that match a pattern, an example of a format, or as many letters as there have
// to be.
func (m *maker) texts(flat []*jsonschema.Schema, yield func(any) bool) bool {
	least, plain := 0, true
	for _, x := range flat {
		if x.MinLength != nil {
			least = max(least, *x.MinLength)
		}
	}
	if least > m.size {
		return false
	}
	m.size -= least
	for _, x := range flat {
		if x.Format != nil && formats[x.Format.Name] != "" && yield(formats[x.Format.Name]) {
			return true
		}
		if x.Pattern == nil {
			continue
		}
		plain = false
		for i := m.from; i < m.from+variants; i++ {
			if s, ok := m.matching(x.Pattern, i, least); ok && yield(s) {
				return true
			}
		}
	}
	for i := m.from; plain && i < m.from+variants; i++ {
		if yield(letters(i, least)) {
			return true
		}
	}
	return false
}

// letters returns the i-th text of at least so many letters: of none, the empty one.
func letters(i, least int) string {
	var b []byte
	for ; i > 0; i /= 26 {
		b = append(b, byte('a'+i%26))
	}
	for len(b) < least {
		b = append(b, 'a')
	}
	return string(b)
}

// matching returns the i-th text that a pattern matches, of at least so many characters where it can be as long.
func (m *maker) matching(re jsonschema.Regexp, i, least int) (string, bool) {
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return "", false
	}
	s, ok := m.match(tree, i, 0)
	if missing := least - utf8.RuneCountInString(s); ok && missing > 0 {
		s, ok = m.match(tree, i, missing)
	}
	if missing := least - utf8.RuneCountInString(s); ok && missing > 0 { // a pattern need not match to the end
		s += strings.Repeat("a", missing)
	}
	return s, ok
}

// match returns the i-th text that a pattern matches, with so many repetitions beyond the fewest.
func (m *maker) match(tree *syntax.Regexp, i, extra int) (string, bool) {
	w := matchWriter{variant: i, extra: extra, room: m.size}
	w.write(tree)
	m.size -= w.b.Len()
	return w.b.String(), w.room >= 0
}

// matchWriter writes a text that a pattern matches.
type matchWriter struct {
	b       strings.Builder
	variant int // which of several letters or ways to take
	extra   int // repetitions beyond the fewest
	room    int // bytes; below 0 where it was not enough, or nothing matches
}

func (w *matchWriter) write(r *syntax.Regexp) {
	switch r.Op {
	case syntax.OpNoMatch:
		w.room = -1
	case syntax.OpLiteral:
		for _, c := range r.Rune {
			w.rune(c)
		}
	case syntax.OpCharClass:
		w.rune(oneOfClass(r.Rune, w.variant))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.rune(rune('a' + w.variant%26))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range r.Sub {
			w.write(sub)
		}
	case syntax.OpStar:
		w.repeat(r.Sub[0], w.extra)
	case syntax.OpPlus:
		w.repeat(r.Sub[0], 1+w.extra)
	case syntax.OpQuest:
		w.repeat(r.Sub[0], min(w.extra, 1))
	case syntax.OpRepeat:
		n := r.Min + w.extra
		if r.Max >= 0 {
			n = min(n, r.Max)
		}
		w.repeat(r.Sub[0], n)
	case syntax.OpAlternate:
		w.write(r.Sub[w.variant%len(r.Sub)])
	default: // what matches between characters, and the empty text
	}
}

func (w *matchWriter) repeat(r *syntax.Regexp, n int) {
	for range n {
		if w.room--; w.room < 0 {
			return
		}
		w.write(r)
	}
}

func (w *matchWriter) rune(c rune) {
	if w.room -= utf8.RuneLen(c); w.room >= 0 {
		w.b.WriteRune(c)
	}
}

// oneOfClass returns the i-th character of a class, which is pairs of bounds: letters and digits before others.
func oneOfClass(class []rune, i int) rune {
	var usual []rune
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- " {
		for k := 0; k+1 < len(class); k += 2 {
			if class[k] <= c && c <= class[k+1] {
				usual = append(usual, c)
			}
		}
	}
	switch {
	case len(usual) > 0:
		return usual[i%len(usual)]
	case len(class) == 0:
		return utf8.RuneError
	}
	return class[0] + rune(i)%(class[1]-class[0]+1)
}

// numbers proposes 0, or the allowed number that is nearest to it, and the next ones.
func (m *maker) numbers(flat []*jsonschema.Schema, whole bool, yield func(any) bool) bool {
	var b bounds
	for _, x := range flat {
		b.add(x)
	}
	if whole {
		b.multiple(big.NewRat(1, 1))
	}
	n, step := b.nearest()
	n.Add(n, new(big.Rat).Mul(step, big.NewRat(int64(m.from), 1)))
	for range variants {
		if yield(json.Number(decimal(n))) {
			return true
		}
		n.Add(n, step)
	}
	return false
}

// bounds are what several schemas together say of a number.
type bounds struct {
	low, high           *big.Rat // nil for none
	aboveLow, belowHigh bool     // the bound itself is not allowed
	step                *big.Rat // of which it is a multiple; nil for any
}

func (b *bounds) add(x *jsonschema.Schema) {
	for _, low := range []*big.Rat{x.Minimum, x.ExclusiveMinimum} {
		if low != nil && (b.low == nil || low.Cmp(b.low) >= 0) {
			b.low, b.aboveLow = low, low == x.ExclusiveMinimum
		}
	}
	for _, high := range []*big.Rat{x.Maximum, x.ExclusiveMaximum} {
		if high != nil && (b.high == nil || high.Cmp(b.high) <= 0) {
			b.high, b.belowHigh = high, high == x.ExclusiveMaximum
		}
	}
	if x.MultipleOf != nil {
		b.multiple(x.MultipleOf)
	}
}

// multiple makes the number a multiple of one more: the least common one of two fractions.
func (b *bounds) multiple(of *big.Rat) {
	if of.Sign() <= 0 {
		return
	}
	if b.step == nil {
		b.step = of
		return
	}
	up := new(big.Int).Mul(b.step.Num(), of.Num())
	up.Quo(up, new(big.Int).GCD(nil, nil, b.step.Num(), of.Num()))
	down := new(big.Int).GCD(nil, nil, b.step.Denom(), of.Denom())
	b.step = new(big.Rat).SetFrac(up, down)
}

// nearest returns the allowed number nearest to 0, and what leads from it to the next.
func (b *bounds) nearest() (n, step *big.Rat) {
	switch {
	case b.low != nil && (b.low.Sign() > 0 || b.low.Sign() == 0 && b.aboveLow):
		return b.beyond(b.low, b.aboveLow, b.high, 1)
	case b.high != nil && (b.high.Sign() < 0 || b.high.Sign() == 0 && b.belowHigh):
		return b.beyond(b.high, b.belowHigh, b.low, -1)
	case b.high != nil && b.high.Sign() == 0:
		return b.beyond(b.high, false, b.low, -1)
	}
	return b.beyond(new(big.Rat), false, b.high, 1)
}

// beyond returns the first allowed number from a bound on, in a direction, towards another bound that may be nil.
func (b *bounds) beyond(bound *big.Rat, without bool, other *big.Rat, direction int64) (n, step *big.Rat) {
	towards := big.NewRat(direction, 1)
	if b.step == nil {
		step = towards
		if other != nil { // between two bounds there may be no whole number
			step = new(big.Rat).Sub(other, bound)
			step.Quo(step, big.NewRat(2*variants, 1))
		}
		n = new(big.Rat).Set(bound)
		if without {
			n.Add(n, step)
		}
		return n, step
	}
	step = new(big.Rat).Mul(b.step, towards)
	times := new(big.Rat).Quo(bound, step) // how often the step goes into the way from 0
	whole := new(big.Int).Quo(times.Num(), times.Denom())
	n = new(big.Rat).Mul(new(big.Rat).SetInt(whole), step)
	before := func() bool {
		c := n.Cmp(bound) * int(direction)
		return c < 0 || c == 0 && without
	}
	for range 2 {
		if before() {
			n.Add(n, step)
		}
	}
	return n, step
}

// decimal writes a number as JSON has it: exactly, where it has an end.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	digits, exact := r.FloatPrec()
	if !exact {
		digits = max(digits, 17)
	}
	return r.FloatString(digits)
}
