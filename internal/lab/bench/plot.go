package bench

import (
	"fmt"
	"math"
	"strings"
)

// plotFile is the curve's drawing, beside the document.
const plotFile = "performance-curve.svg"

// The drawing's size and the margins of its field, in pixels.
const (
	plotWidth, plotHeight     = 760, 400
	plotLeft, plotRight       = 70, 150
	plotTop, plotBottom       = 48, 56
	plotFieldX, plotFieldY    = plotWidth - plotLeft - plotRight, plotHeight - plotTop - plotBottom
	colourStepjet             = "#1a5fb4"
	colourFloor               = "#c64600"
	plotFont, plotInk, plotBg = "system-ui, sans-serif", "#333", "#fff"
)

// plot draws the cost of a step against the runs in flight, the latter on a logarithmic scale, as SVG.
func (c *Curve) plot() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="%s" font-size="12" fill="%s">`+"\n", plotWidth, plotHeight, plotFont, plotInk)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="%s"/>`+"\n", plotWidth, plotHeight, plotBg)
	text(&b, plotLeft, 22, "start", 15, "CPU seconds per 1,000 steps against the runs in flight")
	most, unit := c.axis()
	for v := 0.0; v <= most+unit/2; v += unit {
		y := plotY(v, most)
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", plotLeft, plotLeft+plotFieldX, y, y)
		text(&b, plotLeft-8, y+4, "end", 12, fmt.Sprintf("%.2f", v))
	}
	for d := 0; d <= c.decades(); d++ {
		x := c.plotX(math.Pow10(d))
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#ddd"/>`+"\n", x, x, plotTop, plotTop+plotFieldY)
		text(&b, x, plotTop+plotFieldY+18, "middle", 12, whole(int(math.Pow10(d))))
	}
	text(&b, plotLeft+plotFieldX/2, plotHeight-14, "middle", 12, "runs in flight")
	c.line(&b, "Stepjet", colourStepjet, most, func(p Point) float64 { return p.Figures.CPU })
	c.line(&b, "JetStream alone", colourFloor, most, func(p Point) float64 { return p.Floor.CPU })
	b.WriteString("</svg>\n")
	return b.String()
}

// line draws one side, with its name at the right end.
func (c *Curve) line(b *strings.Builder, name, colour string, most float64, of func(Point) float64) {
	var points []string
	var x, y float64
	for _, p := range c.Points {
		x, y = c.plotX(float64(p.InFlight)), plotY(of(p), most)
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x, y, colour)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "),
		colour)
	fmt.Fprintf(b, `<g fill="%s">`, colour)
	text(b, x+10, y+4, "start", 12, name)
	b.WriteString("</g>\n")
}

func text(b *strings.Builder, x, y float64, anchor string, size int, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d">%s</text>`+"\n", x, y, anchor, size, s)
}

// axis returns the top of the vertical axis and the distance of its lines.
func (c *Curve) axis() (most, unit float64) {
	for _, p := range c.Points {
		most = max(most, p.Figures.CPU, p.Floor.CPU)
	}
	unit = 0.01
	for _, u := range []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1} {
		if most/unit > 8 {
			unit = u
		}
	}
	return math.Ceil(most/unit) * unit, unit
}

// decades is how many tenfold steps the horizontal axis has.
func (c *Curve) decades() int {
	most := 10.0
	for _, p := range c.Points {
		most = max(most, float64(p.InFlight))
	}
	return int(math.Ceil(math.Log10(most) - 1e-9))
}

func (c *Curve) plotX(v float64) float64 {
	return plotLeft + plotFieldX*math.Log10(v)/float64(c.decades())
}

func plotY(v, most float64) float64 { return plotTop + plotFieldY*(1-v/most) }
