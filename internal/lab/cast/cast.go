// Package cast draws what a terminal showed as an animated picture: an SVG of text, without scripts, which stands still
// for those who want no motion. It records real commands on a real pseudo terminal, and makes nothing up but the typing.
package cast

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/lab/vt"
)

// Frame is what stood on the terminal from a moment on.
type Frame struct {
	At   time.Duration
	Rows []string
}

// tape makes frames of what is written to a terminal.
type tape struct {
	on     *vt.Terminal
	frames []Frame
}

// closer merges frames that nobody could tell apart.
const closer = 40 * time.Millisecond

// write adds what was written at a moment.
func (t *tape) write(at time.Duration, p []byte) {
	_, _ = t.on.Write(p) // it takes all
	rows := t.on.Rows()
	for len(rows) > 0 && strings.TrimSpace(rows[len(rows)-1]) == "" {
		rows = rows[:len(rows)-1]
	}
	if n := len(t.frames); n > 0 && slices.Equal(t.frames[n-1].Rows, rows) {
		return
	} else if n > 0 && at-t.frames[n-1].At < closer {
		t.frames[n-1].Rows = rows
		return
	}
	t.frames = append(t.frames, Frame{at, rows})
}

// Measures of the picture: of a letter, of a row, and around all.
const (
	letter, row, around = 7.2, 17, 12
	still               = 4 * time.Second // how long the last frame stands
)

const prompt = "$ "

// SVG draws frames one after the other, and begins anew after the last. Each row is drawn once, and shown while it stood
// there.
func SVG(frames []Frame, columns, rows int) string {
	end := frames[len(frames)-1].At + still
	width, height := float64(columns)*letter+2*around, rows*row+2*around
	type shown struct {
		row      int
		text     string
		from, to int // frames
	}
	var all []shown
	open := map[int]int{} // by row: which of all stands there
	for i, f := range frames {
		visible := f.Rows[max(0, len(f.Rows)-rows):]
		for r := range rows {
			text := ""
			if r < len(visible) {
				text = strings.TrimRight(visible[r], " ")
			}
			if at, there := open[r]; there && all[at].text == text {
				continue
			} else if there {
				all[at].to = i
				delete(open, r)
			}
			if text != "" {
				open[r] = len(all)
				all = append(all, shown{row: r, text: text, from: i, to: len(frames)})
			}
		}
	}
	var b, styles strings.Builder
	percent := func(frame int) float64 {
		if frame == len(frames) {
			return 100
		}
		return 100 * float64(frames[frame].At) / float64(end)
	}
	spans := map[string]string{}
	for _, s := range all {
		key := fmt.Sprintf("%.2f-%.2f", percent(s.from), percent(s.to))
		name, there := spans[key]
		if !there {
			name = fmt.Sprintf("f%d", len(spans))
			spans[key] = name
			fmt.Fprintf(&styles, "@keyframes %s{0%%{opacity:%d}%.2f%%{opacity:1}%.2f%%{opacity:%d}}\n.%s{animation-name:%s}\n",
				name, bit(percent(s.from) == 0), percent(s.from), percent(s.to), bit(s.to == len(frames)), name, name)
		}
		class := name
		if strings.HasPrefix(s.text, prompt) {
			class += " p"
		}
		if s.to < len(frames) {
			class += " past"
		}
		fmt.Fprintf(&b, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, around, around+row*s.row+row-5, html.EscapeString(s.text))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img" aria-label="A terminal in which stepjet runs plans">
<style>
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6dbe1;white-space:pre;animation:%.1fs steps(1,end) infinite}
.p{fill:#8fd18f;font-weight:bold}
%s@media(prefers-reduced-motion:reduce){text{animation:none}.past{display:none}}
</style>
<rect width="100%%" height="100%%" rx="8" fill="#14181d"/>
%s</svg>
`, width, height, width, height, end.Seconds(), styles.String(), b.String())
}

func bit(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
