package cli

import (
	"io"
	"strings"
)

// cell is a piece of text and its colour.
type cell struct {
	text  string
	paint func(string) string // nil: none
	right bool                // aligned to the right
}

func plain(s string) cell { return cell{text: s} }

func (c cell) painted(text string) string {
	if c.paint == nil {
		return text
	}
	return c.paint(text)
}

// table is rows of aligned columns, two spaces apart.
type table struct{ rows [][]cell }

func (t *table) add(row ...cell) { t.rows = append(t.rows, row) }

// write prints the table with an indent. No line has trailing blanks. width > 0 cuts the last column there.
func (t *table) write(w io.Writer, indent string, width int) {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 || c.right {
				widths[i] = max(widths[i], columns(c.text))
			}
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		writeRow(&b, trimRow(row), widths, indent, width)
	}
	_, _ = io.WriteString(w, b.String())
}

// trimRow drops empty cells at the end, so that nothing is padded for them.
func trimRow(row []cell) []cell {
	for len(row) > 0 && row[len(row)-1].text == "" {
		row = row[:len(row)-1]
	}
	return row
}

func writeRow(b *strings.Builder, row []cell, widths []int, indent string, width int) {
	b.WriteString(indent)
	used := columns(indent)
	for i, c := range row {
		gap := ""
		if i < len(row)-1 || c.right {
			gap = strings.Repeat(" ", max(0, widths[i]-columns(c.text)))
		}
		text := c.text
		if i == len(row)-1 && width > 0 {
			text = cut(text, width-used-len(gap))
		}
		if c.right {
			b.WriteString(gap + c.painted(text))
		} else {
			b.WriteString(c.painted(text) + gap)
		}
		used += columns(text) + len(gap)
		if i < len(row)-1 {
			b.WriteString("  ")
			used += 2
		}
	}
	b.WriteByte('\n')
}

// columns counts the columns that text takes on a terminal. Wide letters (East Asian ones and emoji) count twice; it
// rather counts too many than too few, so that no line wraps.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r >= 0x1100 && (r < 0x2000 || r >= 0x2e80) {
			n++
		}
	}
	return n
}

// cut shortens text to a number of columns, at least 8.
func cut(text string, width int) string {
	width = max(width, 8)
	if columns(text) <= width {
		return text
	}
	n := 1 // the mark
	for i, r := range text {
		if n += columns(string(r)); n > width {
			return text[:i] + "…"
		}
	}
	return text
}

// oneLine makes text of strangers fit for one line of a terminal: control characters, escape sequences among them, and
// line breaks become blanks.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, s)
}
