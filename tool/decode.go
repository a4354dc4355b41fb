package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of what is decoded. A plan nests 64 deep at most, and a result within its arguments
// another 64.
const maxDepth = 256

// decodeExact decodes JSON into what the schema validator works on: map[string]any, []any, string, bool, nil, and
// json.Number, which keeps every digit.
func decodeExact(raw []byte) (any, error) { return decodeWith(raw, false) }

// decodeBounded is decodeExact with numbers that cost no more than their size to calculate with (see boundNumber).
func decodeBounded(raw []byte) (any, error) { return decodeWith(raw, true) }

func decodeWith(raw []byte, bound bool) (any, error) {
	d := decoder{b: raw, bound: bound}
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	d.space()
	if d.i != len(d.b) {
		return nil, d.unexpected()
	}
	return v, nil
}

// decoder reads one JSON value. It exists beside encoding/json because it refuses keys used twice and deep nesting, and
// because it takes a quarter of the time for the small objects that arguments are.
type decoder struct {
	b     []byte
	i     int
	bound bool
}

func (d *decoder) unexpected() error {
	if d.i >= len(d.b) {
		return fmt.Errorf("the JSON ends too early, at byte %d", len(d.b))
	}
	return fmt.Errorf("unexpected %q at byte %d of the JSON", d.b[d.i], d.i)
}

func (d *decoder) space() {
	for d.i < len(d.b) && (d.b[d.i] == ' ' || d.b[d.i] == '\n' || d.b[d.i] == '\t' || d.b[d.i] == '\r') {
		d.i++
	}
}

// next skips white space and gives the byte there, 0 at the end.
func (d *decoder) next() byte {
	d.space()
	if d.i < len(d.b) {
		return d.b[d.i]
	}
	return 0
}

func (d *decoder) value(depth int) (any, error) {
	switch c := d.next(); {
	case c == '{' || c == '[':
		if depth >= maxDepth {
			return nil, fmt.Errorf("the JSON is nested more than %d deep", maxDepth)
		}
		d.i++
		if c == '{' {
			return d.object(depth + 1)
		}
		return d.array(depth + 1)
	case c == '"':
		return d.str()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	case c == 't':
		return true, d.word("true")
	case c == 'f':
		return false, d.word("false")
	case c == 'n':
		return nil, d.word("null")
	}
	return nil, d.unexpected()
}

func (d *decoder) word(w string) error {
	if !bytes.HasPrefix(d.b[d.i:], []byte(w)) {
		return d.unexpected()
	}
	d.i += len(w)
	return nil
}

func (d *decoder) object(depth int) (any, error) {
	m := map[string]any{}
	if d.next() == '}' {
		d.i++
		return m, nil
	}
	for {
		if d.next() != '"' {
			return nil, d.unexpected()
		}
		key, err := d.str()
		if err != nil {
			return nil, err
		}
		if d.next() != ':' {
			return nil, d.unexpected()
		}
		d.i++
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		before := len(m)
		m[key] = v
		if len(m) == before {
			return nil, fmt.Errorf("the key %q is used twice in one object", clip(key))
		}
		if end, err := d.separator('}'); end || err != nil {
			return m, err
		}
	}
}

func (d *decoder) array(depth int) (any, error) {
	a := []any{}
	if d.next() == ']' {
		d.i++
		return a, nil
	}
	for {
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
		if end, err := d.separator(']'); end || err != nil {
			return a, err
		}
	}
}

// separator reads a comma or the end of the container.
func (d *decoder) separator(closing byte) (end bool, err error) {
	switch d.next() {
	case closing:
		d.i++
		return true, nil
	case ',':
		d.i++
		return false, nil
	}
	return false, d.unexpected()
}

// str reads a string; one with escapes is left to encoding/json.
func (d *decoder) str() (string, error) {
	start := d.i
	escaped := false
	for d.i++; d.i < len(d.b); d.i++ {
		switch c := d.b[d.i]; {
		case c == '"':
			d.i++
			if !escaped {
				return string(d.b[start+1 : d.i-1]), nil
			}
			var s string
			if err := json.Unmarshal(d.b[start:d.i], &s); err != nil {
				return "", fmt.Errorf("bad escape in the string at byte %d of the JSON", start)
			}
			return s, nil
		case c == '\\':
			escaped = true
			d.i++
		case c < 0x20:
			return "", d.unexpected()
		}
	}
	d.i = len(d.b)
	return "", d.unexpected()
}

func (d *decoder) number() (any, error) {
	start := d.i
	for d.i < len(d.b) && strings.IndexByte("+-.eE0123456789", d.b[d.i]) >= 0 {
		d.i++
	}
	raw := d.b[start:d.i]
	if !json.Valid(raw) {
		d.i = start
		return nil, d.unexpected()
	}
	if d.bound {
		return json.Number(boundNumber(string(raw))), nil
	}
	return json.Number(raw), nil
}

// Numbers beyond these bounds are compared by their first maxDigits digits, and as if their exponent were ±maxExponent.
// A schema's own limits lie within, so "type", "minimum" and the like come out right, and only multipleOf and equality
// lose what lies beyond. Without the bounds a plan of a megabyte could ask for minutes of arithmetic: 1e1000000 is seven
// bytes.
const (
	maxDigits   = 512
	maxExponent = 512
)

// boundNumber gives a number that is cheap to calculate with: s itself within the bounds, otherwise its first maxDigits
// digits and an exponent of at most ±maxExponent.
func boundNumber(s string) string {
	if len(s) <= 4 { // 1e99 at most
		return s
	}
	mantissa, exp, _ := strings.Cut(strings.ReplaceAll(s, "E", "e"), "e")
	e := 0
	if exp != "" {
		n, err := strconv.Atoi(exp)
		if err != nil { // beyond int: as far as it goes, in its direction
			n = 1 << 30
			if exp[0] == '-' {
				n = -n
			}
		}
		e = n
	}
	if len(mantissa) <= maxDigits && e >= -maxExponent && e <= maxExponent {
		return s
	}
	sign := ""
	if mantissa[0] == '-' {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+frac, "0")
	if digits == "" {
		return "0"
	}
	e -= len(frac)
	if extra := len(digits) - maxDigits; extra > 0 {
		digits, e = digits[:maxDigits], e+extra
	}
	return sign + digits + "e" + strconv.Itoa(min(max(e, -maxExponent), maxExponent))
}

func itoa(n int) string { return strconv.Itoa(n) }

func quoted(s string) string { return strconv.Quote(s) }
