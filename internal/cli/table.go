package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/cli/screen"
	"github.com/stepjet/stepjet/internal/text"
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

// columns counts the columns that text takes on a terminal.
func columns(s string) int { return text.Columns(s) }

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

// oneLine makes text of strangers fit for one line of a terminal.
func oneLine(s string) string { return text.OneLine(s) }

// took writes a duration with three significant digits: 840µs, 12.4 ms, 3.21 s, 4m05s.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 ms"
	case d < time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

func tookMS(ms float64) string { return took(time.Duration(ms * float64(time.Millisecond))) }

// size writes a number of bytes in units of 1024.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
}

// clock writes a time for a list, in now's time zone: the clock for today, else the day too.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.In(now.Location())
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// clipLine is a text of people in one row of a table; the whole of it is shown where one thing is.
func clipLine(s string) string { return oneLine(text.Clip(s, maxResultLine)) }

// writePart prints a JSON value below its name; nothing for none. Control characters stay out.
func writePart(b *bytes.Buffer, st style, name string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n%s\n", st.dim(name), screen.Readable(raw))
}
