package jsontape

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Eight bytes at a time: ones has the lowest bit of each byte set, highs the highest.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// specials returns a word whose lowest set bit lies in the first byte of w that scanString has to look at: a quote, a
// backslash, a "$", a control character, or a byte of 0x80 and above.
func specials(w uint64) uint64 {
	quote, slash, dollar := w^(ones*'"'), w^(ones*'\\'), w^(ones*'$')
	return (w | (w - ones*0x20) | (quote - ones) | (slash - ones) | (dollar - ones)) & highs
}

// scanString reads a JSON string from behind its opening quote, and returns the index of the closing one. bad says,
// where it is no string, why, and end where.
func scanString(src []byte, i int) (end int, flags Flags, bad string) {
	for {
		for i+8 <= len(src) {
			m := specials(binary.LittleEndian.Uint64(src[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) / 8
			break
		}
		if i >= len(src) {
			return i, flags, "the text ends within a string"
		}
		switch c := src[i]; {
		case c == '"':
			return i, flags, ""
		case c == '\\':
			n, f, ok := scanEscape(src[i:])
			if !ok {
				return i, flags, "this is not a JSON escape"
			}
			flags |= f | Escaped
			i += n
		case c < 0x20:
			return i, flags, "a control character in a string has to be escaped"
		case c < utf8.RuneSelf:
			if c == '$' {
				flags |= Dollar
			}
			i++
		default:
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				flags |= BadText
			}
			i += n
		}
	}
}

// scanEscape reads one escape; a surrogate pair is one. A lone surrogate is an escape, but no text.
func scanEscape(b []byte) (n int, flags Flags, ok bool) {
	if len(b) < 2 {
		return 0, 0, false
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, 0, true
	case 'u':
	default:
		return 0, 0, false
	}
	r, ok := hex4(b[2:])
	if !ok {
		return 0, 0, false
	}
	if r == '$' {
		return 6, Dollar, true
	}
	if !utf16.IsSurrogate(r) {
		return 6, 0, true
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if low, ok := hex4(b[8:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12, 0, true
		}
	}
	return 6, BadText, true
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// scanNumber reads the number at i, and returns where it ends, or where it stops being one.
func scanNumber(b []byte, i int) (end int, flags Flags, ok bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
		if i < len(b) && IsDigit(b[i]) { // leading zero
			return i, flags, false
		}
	default:
		if i, ok = digits(b, i); !ok {
			return i, flags, false
		}
	}
	if i < len(b) && b[i] == '.' {
		flags |= Fraction
		if i, ok = digits(b, i+1); !ok {
			return i, flags, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		flags |= Exponent
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i, ok = digits(b, i); !ok {
			return i, flags, false
		}
	}
	return i, flags, true
}

// IsSpace reports whether c is white space between the tokens of JSON.
func IsSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\t' || c == '\r' || c == '\n') }

// IsDigit reports whether c is a digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

func digits(b []byte, i int) (end int, ok bool) {
	start := i
	for i < len(b) && IsDigit(b[i]) {
		i++
	}
	return i, i > start
}

// AppendUnescaped appends the text that the inside of a JSON string stands for. What is no text becomes U+FFFD.
func AppendUnescaped[S string | []byte](dst []byte, raw S) []byte {
	for i := 0; i < len(raw); {
		j := i
		for j < len(raw) && raw[j] != '\\' {
			j++
		}
		dst = append(dst, raw[i:j]...)
		if i = j; i+1 >= len(raw) {
			return append(dst, raw[i:]...)
		}
		if raw[i+1] != 'u' {
			dst = append(dst, unescapeByte(raw[i+1]))
			i += 2
			continue
		}
		piece := []byte(raw[i:min(i+12, len(raw))])
		n, _, ok := scanEscape(piece)
		if !ok { // never behind the scanner
			return append(dst, raw[i:]...)
		}
		r, _ := hex4(piece[2:])
		if n == 12 {
			low, _ := hex4(piece[8:])
			r = utf16.DecodeRune(r, low)
		}
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst
}

// Unquoted returns the text that a string stands for, which is in its quotes and was checked.
func Unquoted(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	inside := raw[1 : len(raw)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return string(inside)
	}
	return string(AppendUnescaped(nil, inside))
}

func unescapeByte(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}
