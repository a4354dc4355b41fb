package acl

import (
	"fmt"
	"strconv"
	"strings"
)

// writer writes lines, indented.
type writer struct {
	strings.Builder
	depth int
}

func (w *writer) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text != "" {
		text = strings.Repeat("  ", w.depth) + text
	}
	w.WriteString(text + "\n")
}

func (w *writer) open(format string, args ...any) {
	w.line(format, args...)
	w.depth++
}

func (w *writer) close(text string) {
	w.depth--
	w.line("%s", text)
}

func (w *writer) list(name string, list []string) {
	w.open("%s: { allow: [", name)
	for _, s := range sorted(list) {
		w.line("%s", strconv.Quote(s))
	}
	w.close("] }")
}

func quoted(list []string) string {
	var all []string
	for _, s := range list {
		all = append(all, strconv.Quote(s))
	}
	return strings.Join(all, ", ")
}
