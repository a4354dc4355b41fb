package graph

import (
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/plan"
)

// defaultWidth is the number of columns where the caller names none.
const defaultWidth = 80

// maxColumn bounds the aligned columns of ids and tools: a single long name must not push all others to the right.
const maxColumn = 28

func wider(column int, name string) int {
	if len(name) > maxColumn {
		return column
	}
	return max(column, len(name))
}

type textDrawing struct {
	plan    *plan.Plan
	outputs map[int]bool
	options Options
	b       strings.Builder
	id      int // width of the column of ids
	tool    int // width of the column of tools
}

func drawText(p *plan.Plan, o Options) string {
	if o.Width <= 0 {
		o.Width = defaultWidth
	}
	if o.Paint == nil {
		o.Paint = func(_ Part, s string) string { return s }
	}
	d := newTextDrawing(p, o)
	waves := p.Waves()
	d.head(len(waves))
	label := len(waveLabel(len(waves)))
	for n, w := range waves {
		d.wave(n, w, label)
	}
	return d.b.String()
}

func newTextDrawing(p *plan.Plan, o Options) *textDrawing {
	d := &textDrawing{plan: p, outputs: outputs(p), options: o}
	for _, w := range p.Waves() {
		for _, i := range d.shown(w) {
			d.id = wider(d.id, p.Steps[i].ID)
			d.tool = wider(d.tool, does(p, i))
		}
	}
	return d
}

// inner draws the plan of a step below it, without its waves.
func (d *textDrawing) inner(p *plan.Plan, indent int) {
	in := newTextDrawing(p, d.options)
	margin := strings.Repeat(" ", indent)
	for _, w := range p.Waves() {
		shown := in.shown(w)
		for _, i := range shown {
			in.b.WriteString(margin)
			in.step(i, indent)
		}
		in.folded(len(w)-len(shown), indent)
	}
	d.b.WriteString(in.b.String())
}

// folded counts the steps of a wave that are not drawn.
func (d *textDrawing) folded(rest, indent int) {
	if rest > 0 {
		d.b.WriteString(strings.Repeat(" ", indent) + d.options.Paint(PartNote, "… and "+Thousands(rest)+" more") + "\n")
	}
}

func (d *textDrawing) head(waves int) {
	parts := []string{plural(len(d.plan.Steps), "step"), plural(waves, "wave")}
	if d.outputs != nil {
		parts = append(parts, plural(len(d.plan.Outputs), "output"))
	}
	if d.plan.Approval != nil {
		parts = append(parts, "after an approval")
	}
	d.note(strings.Join(parts, " · "))
	if d.plan.Schedule == plan.Waves {
		d.note("a wave starts when the one before is over")
	}
	if d.plan.OnFailure == plan.Stop {
		d.note("the first failure stops the run")
	}
	d.b.WriteByte('\n')
}

func (d *textDrawing) note(text string) { d.b.WriteString(d.options.Paint(PartNote, text) + "\n") }

// shown returns the steps of a wave that are drawn. Folding one step would save nothing, so it takes at least two.
func (d *textDrawing) shown(wave []int) []int {
	if d.options.All || len(wave) <= FoldAfter+1 {
		return wave
	}
	return wave[:FoldAfter]
}

func waveLabel(n int) string { return "wave " + Thousands(n) }

func (d *textDrawing) wave(n int, wave []int, label int) {
	shown := d.shown(wave)
	for k, i := range shown {
		name := ""
		if k == 0 {
			name = waveLabel(n + 1)
		}
		d.b.WriteString(d.options.Paint(PartWave, pad(name, label)) + "  ")
		d.step(i, label+2)
	}
	d.folded(len(wave)-len(shown), label+2)
}

func (d *textDrawing) step(i, indent int) {
	s, does := &d.plan.Steps[i], does(d.plan, i)
	line := d.options.Paint(PartStep, pad(s.ID, d.id)) + "  "
	used := indent + max(d.id, len(s.ID)) + 2 + max(d.tool, utf8.RuneCountInString(does))
	tail, mark := "", ""
	if d.outputs[i] {
		mark = "  → output"
	}
	if s.Optional {
		mark += "  (optional)"
	}
	if len(s.Deps) > 0 {
		tail = "  ← " + d.deps(s, d.options.Width-used-4-utf8.RuneCountInString(mark))
	}
	if tail == "" && mark == "" {
		line += d.options.Paint(PartTool, does)
	} else {
		line += d.options.Paint(PartTool, pad(does, d.tool)) + d.options.Paint(PartDeps, tail) + d.options.Paint(PartOutput, mark)
	}
	d.b.WriteString(line + "\n")
	if c := printable(remarks(s)); c != "" {
		room := max(d.options.Width-indent-4, maxColumn)
		if utf8.RuneCountInString(c) > room {
			c = strings.TrimRight(string([]rune(c)[:room-1]), " ") + "…"
		}
		d.b.WriteString(strings.Repeat(" ", indent+2) + d.options.Paint(PartDeps, c) + "\n")
	}
	if s.Does().Plan != nil {
		d.inner(s.Does().Plan, indent+2)
	}
}

// deps names as many dependencies as fit into room columns, and counts the rest. The first is always named.
func (d *textDrawing) deps(s *plan.Step, room int) string {
	var b strings.Builder
	deps := s.Deps
	for k, dep := range deps {
		id := d.plan.Steps[dep].ID
		if s.Regards(dep) {
			id += " (" + however + ")"
		}
		more := ""
		if rest := len(deps) - k - 1; rest > 0 {
			more = " +" + Thousands(rest)
		}
		if k > 0 && b.Len()+2+len(id)+len(more) > room {
			b.WriteString(" +" + Thousands(len(deps)-k))
			return b.String()
		}
		if k > 0 {
			b.WriteString(", ")
		}
		b.WriteString(id)
	}
	return b.String()
}

func pad(s string, width int) string {
	if n := utf8.RuneCountInString(s); n < width {
		return s + strings.Repeat(" ", width-n)
	}
	return s
}
