package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/internal/text"
)

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

// writePart prints a JSON value below its name; nothing for none. Control characters of what is no JSON stay out.
func writePart(b *bytes.Buffer, st style, name string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", st.dim(name))
	if json.Indent(b, raw, "", "  ") != nil {
		b.WriteString(oneLine(string(raw)))
	}
	b.WriteByte('\n')
}
