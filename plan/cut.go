package plan

// cutter cuts the text of arguments into what is literal and what is a hole. Literal text that is one piece of the
// source stays part of it; only where something was exchanged is it copied.
type cutter struct {
	src     string
	from    int // where the text begins that was neither copied nor skipped
	built   []byte
	isBuilt bool // built holds the literal in hand, otherwise it is the source from start to end
	start   int
	end     int
	head    string
	holes   int // in parser.holes, where those of this step begin
	cut     int // holes cut so far
}

// copyTo takes the source up to end as literal text.
func (c *cutter) copyTo(end int) {
	if end > c.from {
		c.add(c.from, end)
	}
	c.from = end
}

// skipTo leaves the source up to end out.
func (c *cutter) skipTo(end int) { c.from = end }

func (c *cutter) add(start, end int) {
	switch {
	case c.isBuilt:
		c.built = append(c.built, c.src[start:end]...)
	case c.end == c.start:
		c.start, c.end = start, end
	case c.end == start:
		c.end = end
	default:
		c.build()
		c.built = append(c.built, c.src[start:end]...)
	}
}

// literal takes text that is not in the source.
func (c *cutter) literal(text string) {
	if text == "" {
		return
	}
	c.build()
	c.built = append(c.built, text...)
}

func (c *cutter) build() {
	if !c.isBuilt {
		c.built = append(c.built[:0], c.src[c.start:c.end]...)
		c.isBuilt = true
	}
}

// take returns the literal in hand and begins a new one.
func (c *cutter) take() string {
	s := c.src[c.start:c.end]
	if c.isBuilt {
		s = string(c.built)
	}
	c.isBuilt, c.start, c.end = false, 0, 0
	return s
}

// hole ends the literal in hand and cuts a hole.
func (c *cutter) hole(p *parser, h hole) {
	c.store(p)
	c.cut++
	p.holes = append(p.holes, h)
}

// store puts the literal in hand where it belongs: before the first hole, or behind the last one.
func (c *cutter) store(p *parser) {
	text := c.take()
	if c.cut == 0 {
		c.head = text
	} else {
		p.holes[len(p.holes)-1].after = text
	}
}

// finish returns the text before the first hole.
func (c *cutter) finish(p *parser) string {
	c.store(p)
	return c.head
}
