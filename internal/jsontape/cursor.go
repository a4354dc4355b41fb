package jsontape

// Cursor reads a text token by token. After a false, or a bad that isn't empty, At is where the text stops being JSON.
type Cursor struct {
	Src []byte
	At  int
}

// Space skips white space.
func (c *Cursor) Space() {
	for c.At < len(c.Src) && IsSpace(c.Src[c.At]) {
		c.At++
	}
}

// Next skips white space and returns the byte there, 0 at the end.
func (c *Cursor) Next() byte {
	c.Space()
	if c.At < len(c.Src) {
		return c.Src[c.At]
	}
	return 0
}

// Word reads true, false or null.
func (c *Cursor) Word(w string) bool {
	if len(c.Src)-c.At < len(w) || string(c.Src[c.At:c.At+len(w)]) != w {
		return false
	}
	c.At += len(w)
	return true
}

// Quoted reads a string from its opening quote on; bad says why it is none.
func (c *Cursor) Quoted() (flags Flags, bad string) {
	c.At, flags, bad = scanString(c.Src, c.At+1)
	if bad == "" {
		c.At++
	}
	return flags, bad
}

// Number reads a number.
func (c *Cursor) Number() (flags Flags, ok bool) {
	c.At, flags, ok = scanNumber(c.Src, c.At)
	return flags, ok
}

// Separator reads a comma or the end of the innermost object or array, and the white space before it.
func (c *Cursor) Separator(closing byte) (end, ok bool) {
	switch c.Next() {
	case closing:
		c.At++
		return true, true
	case ',':
		c.At++
		return false, true
	}
	return false, false
}
