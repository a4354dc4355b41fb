package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/stepjet/stepjet/outcome"
)

// style colours text, or leaves it alone. Colours say again what the words say already.
type style struct{ on bool }

// styleOf colours what goes to a terminal, unless NO_COLOR is set (no-color.org) or the terminal is a dumb one.
func styleOf(w io.Writer, env func(string) string) style {
	return style{on: isTerminal(w) && env("NO_COLOR") == "" && env("TERM") != "dumb"}
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// sizeOf returns the terminal's columns and rows; 80 by 24 for anything else.
func sizeOf(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		if c, r, err := term.GetSize(int(f.Fd())); err == nil && c > 0 && r > 0 {
			return c, r
		}
	}
	return 80, 24
}

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(t string) string   { return s.paint("1", t) }
func (s style) dim(t string) string    { return s.paint("2", t) }
func (s style) red(t string) string    { return s.paint("31", t) }
func (s style) green(t string) string  { return s.paint("32", t) }
func (s style) yellow(t string) string { return s.paint("33", t) }
func (s style) cyan(t string) string   { return s.paint("36", t) }

// run colours a run's status.
func (s style) run(status outcome.RunStatus, text string) string {
	switch status {
	case outcome.Succeeded:
		return s.green(text)
	case outcome.Partial, outcome.Cancelled, outcome.Expired:
		return s.yellow(text)
	case outcome.Failed, outcome.Rejected:
		return s.red(text)
	default:
		return s.cyan(text)
	}
}

// step colours a step's status.
func (s style) step(status outcome.StepStatus, text string) string {
	switch status {
	case outcome.StepSucceeded:
		return s.green(text)
	case outcome.StepFailed:
		return s.red(text)
	case outcome.StepSkipped, outcome.StepCancelled, outcome.StepRetrying, outcome.StepAsking:
		return s.yellow(text)
	case outcome.StepRunning, outcome.StepReady:
		return s.cyan(text)
	default:
		return s.dim(text)
	}
}

// mark returns a step's status as one column.
func mark(status outcome.StepStatus) string {
	switch status {
	case outcome.StepSucceeded:
		return "✓"
	case outcome.StepFailed:
		return "✗"
	case outcome.StepSkipped:
		return "-"
	case outcome.StepCancelled:
		return "■"
	case outcome.StepNotTaken:
		return "○"
	case outcome.StepRetrying:
		return "↻"
	case outcome.StepRunning, outcome.StepReady:
		return "›"
	case outcome.StepAsking:
		return "?"
	default:
		return "·"
	}
}
