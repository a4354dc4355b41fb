package tool

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
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
	d := decoder{Cursor: jsontape.Cursor{Src: raw}, bound: bound}
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if d.Space(); d.At != len(d.Src) {
		return nil, d.unexpected()
	}
	return v, nil
}

// decoder makes a tree of one JSON value. It exists beside encoding/json because it refuses keys used twice and deep
// nesting, and because it takes a quarter of the time for the small objects that arguments are.
type decoder struct {
	jsontape.Cursor
	bound bool
}

func (d *decoder) unexpected() error {
	if d.At >= len(d.Src) {
		return fmt.Errorf("the JSON ends too early, at byte %d", len(d.Src))
	}
	return fmt.Errorf("unexpected %q at byte %d of the JSON", d.Src[d.At], d.At)
}

func (d *decoder) value(depth int) (any, error) {
	switch c := d.Next(); {
	case c == '{' || c == '[':
		if depth >= maxDepth {
			return nil, fmt.Errorf("the JSON is nested more than %d deep", maxDepth)
		}
		d.At++
		if c == '{' {
			return d.object(depth + 1)
		}
		return d.array(depth + 1)
	case c == '"':
		return d.str()
	case c == '-' || jsontape.IsDigit(c):
		return d.number()
	case c == 't' && d.Word("true"):
		return true, nil
	case c == 'f' && d.Word("false"):
		return false, nil
	case c == 'n' && d.Word("null"):
		return nil, nil
	}
	return nil, d.unexpected()
}

func (d *decoder) object(depth int) (any, error) {
	m := map[string]any{}
	if d.Next() == '}' {
		d.At++
		return m, nil
	}
	for {
		if d.Next() != '"' {
			return nil, d.unexpected()
		}
		key, err := d.str()
		if err != nil {
			return nil, err
		}
		if d.Next() != ':' {
			return nil, d.unexpected()
		}
		d.At++
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		before := len(m)
		m[key] = v
		if len(m) == before {
			return nil, fmt.Errorf("the key %q is used twice in one object", clip(key))
		}
		if end, ok := d.Separator('}'); !ok {
			return nil, d.unexpected()
		} else if end {
			return m, nil
		}
	}
}

func (d *decoder) array(depth int) (any, error) {
	a := []any{}
	if d.Next() == ']' {
		d.At++
		return a, nil
	}
	for {
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
		if end, ok := d.Separator(']'); !ok {
			return nil, d.unexpected()
		} else if end {
			return a, nil
		}
	}
}

// str reads a string. Bytes that are no text are kept as they are, but beside escapes, where each becomes U+FFFD.
func (d *decoder) str() (string, error) {
	start := d.At
	flags, bad := d.Quoted()
	if bad != "" {
		return "", d.badString(start)
	}
	raw := d.Src[start+1 : d.At-1]
	switch {
	case flags&jsontape.Escaped == 0:
		return string(raw), nil
	case flags&jsontape.BadText == 0:
		return string(jsontape.AppendUnescaped(nil, raw)), nil
	}
	return string([]rune(string(jsontape.AppendUnescaped(nil, raw)))), nil
}

// badString says what is wrong with the string at start: an escape counts only where the string is otherwise one.
func (d *decoder) badString(start int) error {
	for d.At = start + 1; d.At < len(d.Src); d.At++ {
		switch c := d.Src[d.At]; {
		case c == '"':
			return fmt.Errorf("bad escape in the string at byte %d of the JSON", start)
		case c == '\\':
			d.At++
		case c < 0x20:
			return d.unexpected()
		}
	}
	return d.unexpected()
}

func (d *decoder) number() (any, error) {
	start := d.At
	_, ok := d.Number()
	raw := d.Src[start:d.At]
	if !ok || d.At < len(d.Src) && strings.IndexByte("+-.eE0123456789", d.Src[d.At]) >= 0 {
		d.At = start
		return nil, d.unexpected()
	}
	if d.bound {
		return json.Number(boundNumber(string(raw))), nil
	}
	return json.Number(raw), nil
}

// Numbers beyond these bounds are compared by their first maxDigits digits, and as if their exponent were ±maxExponent.
// A schema's own limits lie within, so "type", "minimum" and the like come out right, and only multipleOf and equality
// lose what lies beyond. Without the bounds a plan of a megabyte could ask for minutes of arithmetic: 1e1000000 is
// seven bytes.
const (
	maxDigits   = 512
	maxExponent = 512
)

// boundNumber returns a number that is cheap to calculate with: s itself within the bounds, otherwise its first
// maxDigits digits and an exponent of at most ±maxExponent.
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
