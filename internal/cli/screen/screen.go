// Package screen is a terminal on which a command shows how a run goes, and asks whoever sits there what the run asks of
// people.
//
// What is written to a Screen stands there for good. Below it are lines that are drawn anew in place, and below those,
// while a question is open, the line that is being typed. Where a terminal can't be redrawn, there are only lines. Texts
// of strangers are made harmless where a line is made (text.OneLine); what is drawn is made so once more, and cut.
//
// While a question is open, and only then, the terminal hands over each key as it is typed. Whoever ends the process
// before its time calls Restore first.
package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/stepjet/stepjet/internal/text"
)

// Screen is a terminal that lines are written to, for good or for a moment. Its methods may be called by several
// goroutines.
type Screen struct {
	w       io.Writer
	redraws bool
	size    func() (columns, rows int)

	mu    sync.Mutex
	frame []string // is drawn anew
	drawn []int    // columns of each line of it that stands on the terminal
	line  *line    // is being typed; nil: nobody is asked
}

// line is a line that is being typed, behind a prompt.
type line struct {
	prompt string
	editor
	shown  int  // columns that stand on a terminal that redraws
	stands bool // on one that doesn't
}

// New returns the screen of a terminal. One that doesn't redraw only gets lines, and no codes that steer it. size returns
// how large it is just now.
func New(w io.Writer, redraws bool, size func() (columns, rows int)) *Screen {
	return &Screen{w: w, redraws: redraws, size: size}
}

// Size returns how large the terminal is.
func (s *Screen) Size() (columns, rows int) { return s.size() }

// Redraws reports whether what is drawn is shown.
func (s *Screen) Redraws() bool { return s.redraws }

// Write writes whole lines above what is drawn anew. With nothing there, it writes what it is given.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.drawn) == 0 && s.line == nil {
		return s.w.Write(p)
	}
	if len(p) == 0 {
		return 0, nil
	}
	var b strings.Builder
	s.erase(&b)
	b.Write(p)
	if p[len(p)-1] != '\n' {
		b.WriteByte('\n')
	}
	s.paint(&b)
	if _, err := io.WriteString(s.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Draw puts lines in the place of those that were drawn before.
func (s *Screen) Draw(frame []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redraws {
		s.frame = frame
		s.again()
	}
}

// Done leaves what is drawn where it stands, for good.
func (s *Screen) Done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame, s.drawn = nil, nil
}

// Again draws the same lines once more.
func (s *Screen) Again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redraws {
		s.again()
	}
}

// Ask shows a prompt, behind which nothing is typed yet.
func (s *Screen) Ask(prompt string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.erase(&b)
	s.line = &line{prompt: prompt}
	s.paint(&b)
	_, _ = io.WriteString(s.w, b.String())
}

// Asks reports whether there is a prompt.
func (s *Screen) Asks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line != nil
}

// Typed reports whether anything stands behind the prompt.
func (s *Screen) Typed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line != nil && len(s.line.text) > 0
}

// Type takes keys. Where Enter is among them, the prompt is gone, what was typed stands there for good, and is returned;
// the keys behind it are for nothing.
func (s *Screen) Type(keys []byte) (typed string, entered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == nil {
		return "", false
	}
	before := slices.Clone(s.line.text)
	entered = s.line.take(keys)
	if s.echo(before); !entered {
		return "", false
	}
	typed = string(s.line.text)
	s.gone("")
	return typed, true
}

// Withdraw takes the prompt away, and leaves a line there for good in its place.
func (s *Screen) Withdraw(instead string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line != nil {
		s.gone(instead)
	}
}

// gone takes the prompt away. Instead of what was typed behind it may stand something else.
func (s *Screen) gone(instead string) {
	var b strings.Builder
	if s.erase(&b); s.redraws && instead == "" {
		instead = s.line.prompt + text.OneLine(string(s.line.text))
	}
	if instead != "" {
		b.WriteString(instead + "\n")
	}
	s.line = nil
	s.paint(&b)
	_, _ = io.WriteString(s.w, b.String())
}

// echo shows what is typed now, and was before before.
func (s *Screen) echo(before []rune) {
	if s.redraws {
		s.again()
		return
	}
	same := 0
	for same < len(before) && same < len(s.line.text) && before[same] == s.line.text[same] {
		same++
	}
	back := strings.Repeat("\b \b", text.Columns(text.OneLine(string(before[same:]))))
	_, _ = io.WriteString(s.w, back+text.OneLine(string(s.line.text[same:])))
}

func (s *Screen) again() {
	var b strings.Builder
	s.erase(&b)
	s.paint(&b)
	_, _ = io.WriteString(s.w, b.String())
}

// erase goes back to where what is drawn begins, and takes it away. A terminal that has become narrower has broken its
// lines anew.
func (s *Screen) erase(b *strings.Builder) {
	if !s.redraws {
		if s.line != nil && s.line.stands {
			b.WriteByte('\n')
		}
		return
	}
	width, _ := s.size()
	up := 0
	for _, columns := range s.drawn {
		up += rowsOf(columns, width)
	}
	if s.line != nil {
		up += rowsOf(s.line.shown, width) - 1
	}
	switch {
	case up > 0:
		fmt.Fprintf(b, "\r\x1b[%dA\x1b[J", up)
	case s.line != nil:
		b.WriteString("\r\x1b[J")
	}
	s.drawn = nil
}

func rowsOf(columns, width int) int { return max(1, (columns+width-1)/width) }

// paint draws what is to be drawn. No line reaches the last column, so that none wraps, and the first of them stays
// where a terminal has too few rows.
func (s *Screen) paint(b *strings.Builder) {
	if !s.redraws {
		if s.line != nil {
			b.WriteString(s.line.prompt + text.OneLine(string(s.line.text)))
			s.line.stands = true
		}
		return
	}
	width, rows := s.size()
	frame := s.frame
	if most := max(rows-2, 1); len(frame) > most {
		frame = append([]string{frame[0]}, frame[len(frame)-most+1:]...)
	}
	s.drawn = nil
	for _, line := range frame {
		fits, columns := text.Fit(line, max(width-1, 1))
		b.WriteString(fits + "\n")
		s.drawn = append(s.drawn, columns)
	}
	if s.line != nil {
		s.line.paint(b, max(width-1, 1))
	}
}

// paint draws a prompt, and the end of what is typed where the whole is too long.
func (l *line) paint(b *strings.Builder, width int) {
	typed := []rune(text.OneLine(string(l.text)))
	prompt, columns := text.Fit(l.prompt, max(width*2/3, 1))
	b.WriteString(prompt)
	first := len(typed)
	for room := width - columns; first > 0; first-- {
		if room -= text.Columns(string(typed[first-1])); room < 0 {
			break
		}
	}
	b.WriteString(string(typed[first:]))
	l.shown = columns + text.Columns(string(typed[first:]))
}
