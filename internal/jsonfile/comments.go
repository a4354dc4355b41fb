package jsonfile

import (
	"bytes"
	"unicode/utf8"
)

// Uncommented returns the JSON that a file holds which may have comments (// and /* */) and a comma behind a last member or
// element, as the files of VS Code may. In the place of these stand blanks, one for each character, so that lines and columns
// stay what they are. All else is left as it is, and is JSON or not: a comment without an end is none.
func Uncommented(raw []byte) []byte {
	if !utf8.Valid(raw) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	last, comma := byte(0), -1 // the last byte that is no white space; where it is a comma that may be taken away, its place
	for i := 0; i < len(raw); {
		n := 1
		switch c := raw[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			out = append(out, c)
			i++
			continue
		case c == '/':
			if n = comment(raw[i:]); n > 0 {
				out = blanks(out, raw[i:i+n])
				i += n
				continue
			}
			n = 1
		case c == '"':
			n = quoted(raw[i:])
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
		}
		comma = -1
		if raw[i] == ',' && last != 0 && last != '{' && last != '[' && last != ',' {
			comma = len(out)
		}
		out = append(out, raw[i:i+n]...)
		i += n
		last = raw[i-1]
	}
	return out
}

// comment returns the length of the comment with which a text begins, without the end of its line; 0 where there is none.
func comment(raw []byte) int {
	switch {
	case bytes.HasPrefix(raw, []byte("//")):
		if end := bytes.IndexAny(raw, "\r\n"); end >= 0 {
			return end
		}
		return len(raw)
	case bytes.HasPrefix(raw, []byte("/*")):
		if end := bytes.Index(raw[2:], []byte("*/")); end >= 0 {
			return end + 4
		}
	}
	return 0
}

// quoted returns the length of the text in quotes with which a text begins, all of it where the quote is never closed.
func quoted(raw []byte) int {
	for i := 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// blanks adds a blank for each character but the ends of lines.
func blanks(out, text []byte) []byte {
	for _, c := range string(text) {
		if c != '\n' && c != '\r' {
			c = ' '
		}
		out = append(out, byte(c))
	}
	return out
}
