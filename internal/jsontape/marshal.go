package jsontape

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// Marshal returns the JSON of a value as encoding/json writes it, but without the escapes that only HTML needs: what
// people and models read should look as it was written. Errors are those of encoding/json.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ObjectWriter writes an object whose members stand in the order in which they were added.
type ObjectWriter struct{ b []byte }

// Add adds a member; raw is JSON.
func (o *ObjectWriter) Add(name string, raw []byte) {
	sep := byte(',')
	if len(o.b) == 0 {
		sep = '{'
	}
	o.b = append(AppendQuoted(append(o.b, sep), name), ':')
	o.b = append(o.b, raw...)
}

// Text adds a member that is a string.
func (o *ObjectWriter) Text(name, text string) { o.Add(name, AppendQuoted(nil, text)) }

// Int adds a member that is a number.
func (o *ObjectWriter) Int(name string, n int64) { o.Add(name, strconv.AppendInt(nil, n, 10)) }

// JSON returns the object. The writer is used no more.
func (o *ObjectWriter) JSON() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	return append(o.b, '}')
}

// Open returns the object without its end, so that members of another may follow. The writer is used no more.
func (o *ObjectWriter) Open() []byte { return o.b }

// AppendArray appends an array.
func AppendArray[S ~[]byte](dst []byte, items []S) []byte {
	dst = append(dst, '[')
	for i, x := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, x...)
	}
	return append(dst, ']')
}

// Canonical writes a JSON number as digits without zeros at either end, and the power of ten that they are multiplied
// by, so that 100, 1e2 and 100.0 are the same; it is exact and costs no more than the literal's length.
func Canonical(lit string) string {
	sign := ""
	if lit[0] == '-' {
		sign, lit = "-", lit[1:]
	}
	digits, power := lit, new(big.Int)
	if i := strings.IndexAny(lit, "eE"); i >= 0 {
		digits = lit[:i]
		if len(lit)-i > 32 {
			return sign + lit // an exponent that nobody means: equal only if it is written the same
		}
		power.SetString(strings.TrimPrefix(lit[i+1:], "+"), 10)
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	power.Add(power, big.NewInt(int64(len(digits)-len(trimmed)-len(fraction))))
	return sign + trimmed + "e" + power.String()
}
