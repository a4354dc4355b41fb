package text

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine makes text of strangers fit for one line of a terminal: control characters, escape sequences among them, and
// line breaks become blanks, and so does what turns the direction of writing. What is no UTF-8 becomes U+FFFD.
func OneLine(s string) string { return strings.Map(harmless, s) }

func harmless(r rune) rune {
	if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
		return ' '
	}
	return r
}

// Escaped writes a JSON document for a terminal: what that would act upon, behind ASCII, becomes an escape of JSON, which
// means the same. (What is in ASCII is escaped in any JSON.)
func Escaped(doc []byte) []byte {
	if !bytes.ContainsFunc(doc, acts) {
		return doc
	}
	var b []byte
	for _, r := range string(doc) {
		if acts(r) {
			b = fmt.Appendf(b, "\\u%04x", r)
			continue
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}

func acts(r rune) bool { return r >= 0x7f && harmless(r) == ' ' && r != ' ' }

// Columns counts the columns that text takes on a terminal. Wide letters (East Asian ones and emoji) count twice; it
// rather counts too many than too few, so that no line wraps.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if r < 0x1100 || r >= 0x2000 && r < 0x2e80 && !strings.ContainsRune(wideSigns, r) {
		return 1
	}
	return 2
}

// wideSigns are the signs among the arrows, boxes and dingbats that a terminal draws as wide as a letter of East Asia.
const wideSigns = "\u231a\u231b\u2329\u232a\u23e9\u23ea\u23eb\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2648\u2649" +
	"\u264a\u264b\u264c\u264d\u264e\u264f\u2650\u2651\u2652\u2653\u267f\u2693\u26a1\u26aa\u26ab\u26bd" +
	"\u26be\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a\u270b\u2728\u274c" +
	"\u274e\u2753\u2754\u2755\u2757\u2795\u2796\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55"

// Fit shortens text to a number of columns, says with "…" that it did, and returns how many it takes now. The codes that
// colour text take none, and colours end where the text does; nothing else that steers a terminal is left.
func Fit(s string, columns int) (fits string, taken int) {
	var b strings.Builder
	coloured, rest := false, s
	for rest != "" {
		if code := colour(rest); code != "" {
			b.WriteString(code)
			coloured, rest = code != "\x1b[0m", rest[len(code):]
			continue
		}
		letter := rest
		for i := range rest {
			if i > 0 {
				letter = rest[:i]
				break
			}
		}
		rest = rest[len(letter):]
		w := Columns(letter)
		if left := columns - taken; w > left || w == left && seen(rest) {
			if left > 0 {
				b.WriteString("…")
				taken++
			}
			break
		}
		taken += w
		b.WriteString(OneLine(letter))
	}
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String(), taken
}

// colour returns the code at the beginning of a text that colours what follows; "" where there is none.
func colour(s string) string {
	if !strings.HasPrefix(s, "\x1b[") {
		return ""
	}
	end := strings.IndexFunc(s[2:], func(r rune) bool { return (r < '0' || r > '9') && r != ';' })
	if end < 0 || s[2+end] != 'm' {
		return ""
	}
	return s[:2+end+1]
}

// seen reports whether a text has anything but colours.
func seen(s string) bool {
	for code := colour(s); code != ""; code = colour(s) {
		s = s[len(code):]
	}
	return s != ""
}

// Wrap breaks a line into lines of at most so many columns, between words where that goes; all but the first begin with an
// indent.
func Wrap(s string, columns int, indent string) (lines []string) {
	columns = max(columns, 2*Columns(indent)+8)
	for Columns(s) > columns {
		used, end, blank := 0, 0, 0
		for i, r := range s {
			if used += columnsOf(r); used > columns {
				end = i
				break
			}
			if r == ' ' && strings.TrimLeft(s[:i], " ") != "" {
				blank = i
			}
		}
		if blank > 0 {
			end = blank
		}
		lines, s = append(lines, s[:end]), indent+strings.TrimLeft(s[end:], " ")
	}
	return append(lines, s)
}
