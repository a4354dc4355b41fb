package jsontape

import "unicode/utf8"

// escapes says for each byte how many bytes it takes within a JSON string.
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

// EscapedSize returns the number of bytes that text takes within a JSON string.
func EscapedSize[S string | []byte](text S) (n int) {
	for i := 0; i < len(text); i++ {
		n += int(escapes[text[i]])
	}
	return n
}

// AppendEscaped appends text as the inside of a JSON string.
func AppendEscaped[S string | []byte](dst []byte, text S) []byte {
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

// AppendQuoted appends text as a JSON string, byte for byte as encoding/json writes it without escaping for HTML: what
// is no UTF-8 becomes \ufffd, and U+2028 and U+2029, which end a line in JavaScript, are escaped.
func AppendQuoted(dst []byte, text string) []byte {
	dst = append(dst, '"')
	i := 0
	for i < len(text) && text[i] < utf8.RuneSelf && escapes[text[i]] == 1 {
		i++
	}
	if i == len(text) { // nearly always
		return append(append(dst, text...), '"')
	}
	from := 0
	for i < len(text) {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		escape := ""
		switch {
		case r == utf8.RuneError && n == 1:
			escape = `\ufffd`
		case r == '\u2028':
			escape = `\u2028`
		case r == '\u2029':
			escape = `\u2029`
		}
		if escape != "" {
			dst = append(AppendEscaped(dst, text[from:i]), escape...)
			from = i + n
		}
		i += n
	}
	return append(AppendEscaped(dst, text[from:]), '"')
}
