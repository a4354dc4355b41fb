// Package vt is a terminal of letters, for tests of what is drawn: it takes what a command writes, and shows the rows that
// a person would see. It knows the few codes that Stepjet sends, and says which others came.
package vt

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/internal/text"
)

// Terminal is as wide as it was made, and has as many rows as are written. Lines that are wider break, and break anew
// when it is resized, as those of most terminals do.
type Terminal struct {
	width int
	lines []line // as written, each up to its line break
	at    int    // the line that the cursor is on
	col   int    // the letter of it
	row   int    // the row of it, where nothing was written since the cursor came to a row's beginning
	rest  []byte // of a code or a letter that has not come as a whole
	odd   []string
}

type line []rune

// New returns an empty terminal.
func New(width int) *Terminal { return &Terminal{width: width, lines: []line{nil}} }

// Resize makes it narrower or wider.
func (t *Terminal) Resize(width int) { t.width = width }

// Odd returns what came that steers a terminal and is none of the codes that Stepjet sends.
func (t *Terminal) Odd() []string { return t.odd }

// Rows returns what stands there, row by row.
func (t *Terminal) Rows() []string {
	var rows []string
	for _, l := range t.lines {
		rows = append(rows, t.broken(l)...)
	}
	return rows
}

// String returns the rows as a text.
func (t *Terminal) String() string { return strings.Join(t.Rows(), "\n") }

// broken returns the rows of a line.
func (t *Terminal) broken(l line) (rows []string) {
	row, used := "", 0
	for _, r := range l {
		n := text.Columns(string(r))
		if used+n > t.width {
			rows, row, used = append(rows, row), "", 0
		}
		row, used = row+string(r), used+n
	}
	return append(rows, row)
}

// Write takes what is written to a terminal.
func (t *Terminal) Write(p []byte) (int, error) {
	b := slices.Concat(t.rest, p)
	t.rest = nil
	for len(b) > 0 {
		n := t.take(b)
		if n == 0 {
			t.rest = append([]byte(nil), b...)
			break
		}
		b = b[n:]
	}
	return len(p), nil
}

// take takes one letter or code, and returns its bytes; 0 where it has not come as a whole.
func (t *Terminal) take(b []byte) int {
	if b[0] == 0x1b {
		return t.code(b)
	}
	if !utf8.FullRune(b) {
		return 0
	}
	r, n := utf8.DecodeRune(b)
	switch {
	case r == '\r':
		t.begin(len(t.broken(t.lines[t.at][:t.col])) - 1)
	case r == '\n':
		if t.at++; t.at == len(t.lines) {
			t.lines = append(t.lines, nil)
		}
		t.begin(0)
	case r == '\b':
		t.col = max(t.col-1, 0)
	case r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError && n == 1:
		t.odd = append(t.odd, fmt.Sprintf("%q", b[:n]))
	default:
		l := &t.lines[t.at]
		if t.col < len(*l) {
			(*l)[t.col] = r
		} else {
			*l = append(*l, r)
		}
		t.col++
	}
	return n
}

// code takes a code: up and erase to the end, and colours, which are not shown.
func (t *Terminal) code(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	end := 2
	for b[1] == '[' && end < len(b) && (b[end] >= '0' && b[end] <= '9' || b[end] == ';') {
		end++
	}
	if b[1] == '[' && end == len(b) {
		return 0
	}
	if b[1] != '[' {
		t.odd = append(t.odd, fmt.Sprintf("%q", b[:2]))
		return 2
	}
	number := 1
	_, _ = fmt.Sscanf(string(b[2:end]), "%d", &number) // none is 1
	switch b[end] {
	case 'A':
		t.up(number)
	case 'J':
		t.lines = t.lines[:t.at+1]
		t.lines[t.at] = t.lines[t.at][:min(t.col, len(t.lines[t.at]))]
	case 'm':
	default:
		t.odd = append(t.odd, fmt.Sprintf("%q", b[:end+1]))
	}
	return end + 1
}

// up goes up by rows from the beginning of one, where all do that go up here.
func (t *Terminal) up(rows int) {
	for ; rows > 0; rows-- {
		switch {
		case t.row > 0:
			t.begin(t.row - 1)
		case t.at > 0:
			t.at--
			t.begin(len(t.broken(t.lines[t.at])) - 1)
		}
	}
}

// begin goes to the beginning of a row of the line.
func (t *Terminal) begin(row int) {
	t.row, t.col = row, 0
	for _, above := range t.broken(t.lines[t.at])[:row] {
		t.col += utf8.RuneCountInString(above)
	}
}
