package screen

import (
	"unicode"
	"unicode/utf8"
)

// mostTyped is the most that a line takes, in characters: more than anybody types.
const mostTyped = 1 << 16

// editor is a line that is typed: keys in, text out. There is no cursor to move; keys that steer one are left out.
type editor struct {
	text []rune
	part []byte // the beginning of a character that has not come as a whole
	code codeState
}

// codeState says how much of a code came that a key like an arrow sends.
type codeState int

const (
	noCode    codeState = iota
	begunCode           // ESC
	inCode              // ESC [ or ESC O, up to a letter
)

// take takes keys up to Enter, and reports whether that was among them.
func (e *editor) take(keys []byte) (entered bool) {
	keys = append(e.part, keys...)
	e.part = nil
	for len(keys) > 0 {
		if !utf8.FullRune(keys) {
			e.part = append([]byte(nil), keys...)
			return false
		}
		r, n := utf8.DecodeRune(keys)
		keys = keys[n:]
		if e.steers(r) {
			continue
		}
		if r == '\r' || r == '\n' || r == 4 && len(e.text) == 0 { // Ctrl-D
			return true
		}
		e.key(r)
	}
	return false
}

// steers reports whether a character belongs to a code.
func (e *editor) steers(r rune) bool {
	switch was := e.code; {
	case r == 0x1b:
		e.code = begunCode
	case was == begunCode && (r == '[' || r == 'O'):
		e.code = inCode
	case was == begunCode:
		e.code = noCode
	case was == inCode && r >= 0x40 && r <= 0x7e:
		e.code = noCode
	default:
		return was == inCode
	}
	return true
}

func (e *editor) key(r rune) {
	switch {
	case r == 8 || r == 0x7f: // backspace
		e.text = e.text[:max(0, len(e.text)-1)]
	case r == 0x15: // Ctrl-U
		e.text = e.text[:0]
	case r == 0x17: // Ctrl-W
		e.word()
	case r == '\t':
		e.add(' ')
	case r != utf8.RuneError && unicode.IsGraphic(r):
		e.add(r)
	}
}

func (e *editor) add(r rune) {
	if len(e.text) < mostTyped {
		e.text = append(e.text, r)
	}
}

// word takes the last word away.
func (e *editor) word() {
	for _, blank := range []bool{true, false} {
		for len(e.text) > 0 && unicode.IsSpace(e.text[len(e.text)-1]) == blank {
			e.text = e.text[:len(e.text)-1]
		}
	}
}
