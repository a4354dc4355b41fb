package plan

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Eight bytes at a time: ones has the lowest bit of each byte set, highs the highest.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// specials gives a word whose lowest set bit lies in the first byte of w that scanString has to look at: a quote, a
// backslash, a "$", a control character, or a byte of 0x80 and above.
func specials(w uint64) uint64 {
	quote, slash, dollar := w^(ones*'"'), w^(ones*'\\'), w^(ones*'$')
	return (w | (w - ones*0x20) | (quote - ones) | (slash - ones) | (dollar - ones)) & highs
}

// scanString reads a JSON string from behind its opening quote, and gives the index of the closing one. bad says, where
// it is no string, why, and end where.
func scanString(src []byte, i int) (end int, flags flag, bad string) {
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
			flags |= f | fEscaped
			i += n
		case c < 0x20:
			return i, flags, "a control character in a string has to be escaped"
		case c < utf8.RuneSelf:
			if c == '$' {
				flags |= fDollar
			}
			i++
		default:
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				flags |= fBadText
			}
			i += n
		}
	}
}

// scanEscape reads one escape; a surrogate pair is one. A lone surrogate is an escape, but no text.
func scanEscape(b []byte) (n int, flags flag, ok bool) {
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
		return 6, fDollar, true
	}
	if !utf16.IsSurrogate(r) {
		return 6, 0, true
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if low, ok := hex4(b[8:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12, 0, true
		}
	}
	return 6, fBadText, true
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

// numberEnd gives the end of the number at i, or where it stops being one.
func numberEnd(b []byte, i int) (end int, ok bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
		if i < len(b) && isDigit(b[i]) { // leading zero
			return i, false
		}
	default:
		if i, ok = digits(b, i); !ok {
			return i, false
		}
	}
	if i < len(b) && b[i] == '.' {
		if i, ok = digits(b, i+1); !ok {
			return i, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i, ok = digits(b, i); !ok {
			return i, false
		}
	}
	return i, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func digits(b []byte, i int) (end int, ok bool) {
	start := i
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i, i > start
}

// appendUnescaped appends the text that the inside of a JSON string stands for. What is no text becomes U+FFFD.
func appendUnescaped[S string | []byte](dst []byte, raw S) []byte {
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

// spanText gives the text of a string in the source.
func spanText(src []byte, s span) string {
	raw := src[s.start:s.end]
	if s.flags&fEscaped != 0 {
		return string(appendUnescaped(nil, raw))
	}
	return string(raw)
}

// escapes gives, for each byte, how many bytes it takes within a JSON string.
var escapes = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c == '"', c == '\\', c == '\b', c == '\f', c == '\n', c == '\r', c == '\t':
			t[c] = 2
		case c < 0x20:
			t[c] = 6
		default:
			t[c] = 1
		}
	}
	return t
}()

// escapedSize gives the number of bytes that text takes within a JSON string.
func escapedSize[S string | []byte](text S) (n int) {
	for i := 0; i < len(text); i++ {
		n += int(escapes[text[i]])
	}
	return n
}

// appendEscaped appends text as the inside of a JSON string.
func appendEscaped[S string | []byte](dst []byte, text S) []byte {
	from := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if escapes[c] == 1 {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, text[from:]...)
}

// appendToken appends one reference token of a JSON pointer (RFC 6901).
func appendToken(b []byte, token string) []byte {
	token = strings.ToValidUTF8(token, "\uFFFD")
	b = append(b, '/')
	for i := 0; i < len(token); i++ {
		switch c := token[i]; c {
		case '~':
			b = append(b, '~', '0')
		case '/':
			b = append(b, '~', '1')
		default:
			b = append(b, c)
		}
	}
	return b
}

func appendIndex(b []byte, i int) []byte { return strconv.AppendInt(append(b, '/'), int64(i), 10) }
