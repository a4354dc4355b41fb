// Package text is what messages to people are made with: texts of strangers cut to size, counted nouns, and the name
// that was probably meant.
package text

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Cut shortens s to at most most bytes, at a character's edge, and says with "…" that it did.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// Clip is Cut for bytes of anybody: what is no UTF-8 becomes U+FFFD.
func Clip(s string, most int) string { return strings.ToValidUTF8(Cut(s, most), "\uFFFD") }

// Last returns the end of a text in at most so many bytes, without half a letter.
func Last(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = s[len(s)-most:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// Count writes how many there are of something: "1 step", "3 steps".
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
