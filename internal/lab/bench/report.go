package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// The lines between which the figures stand in docs/performance.md. What is outside of them is written by hand.
const (
	benchBegin = "<!-- bench: written by make bench, make bench-scale and make bench-core -->"
	benchEnd   = "<!-- bench: end -->"
)

// figures are all that are kept.
type figures struct {
	layouts       []*LayoutFigures
	large         *Large
	curve         *Curve
	inflight      *InFlight
	backlog       *Backlog
	retained      *Retained
	orchestrators *Orchestrators
	core          *Core
}

// WriteReport puts the figures that are kept in a folder between their marks in a document, and draws the plot beside
// it.
func WriteReport(folder, path string) error {
	f, err := readFigures(folder)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), benchBegin)
	_, after, closed := strings.Cut(rest, benchEnd)
	if !found || !closed {
		return fault.New(fault.InvalidConfig, "%s has no marks for the figures", path).
			WithHint("it needs the lines %s and %s", benchBegin, benchEnd)
	}
	if f.curve != nil {
		if err := write(filepath.Join(filepath.Dir(path), plotFile), []byte(f.curve.plot())); err != nil {
			return err
		}
	}
	return write(path, []byte(before+benchBegin+"\n\n"+f.markdown()+"\n"+benchEnd+after))
}

func readFigures(folder string) (*figures, error) {
	f := &figures{}
	for _, l := range Layouts {
		x := &LayoutFigures{}
		there, err := kept(folder, l.Part, x)
		if err != nil {
			return nil, err
		}
		if there {
			f.layouts = append(f.layouts, x)
		}
	}
	return f, firstError(
		readInto(folder, "large", &f.large), readInto(folder, "curve", &f.curve), readInto(folder, "inflight", &f.inflight),
		readInto(folder, "backlog", &f.backlog), readInto(folder, "retained", &f.retained),
		readInto(folder, "orchestrators", &f.orchestrators), readInto(folder, "core", &f.core),
	)
}

func readInto[T any](folder, part string, to **T) error {
	x := new(T)
	there, err := kept(folder, part, x)
	if there && err == nil {
		*to = x
	}
	return err
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *figures) markdown() string {
	var b strings.Builder
	f.peers(&b)
	f.ratios(&b)
	f.scale(&b)
	f.pure(&b)
	f.targets(&b)
	return b.String()
}

// stamp says when and where figures were measured.
func stamp(s Stamp) string {
	return fmt.Sprintf("%s, %s, %s", s.Time.UTC().Format("2006-01-02 15:04 MST"), s.Version, s.Machine)
}

// table writes one with a header; columns from right on are numbers.
func table(b *strings.Builder, right int, header ...string) {
	b.WriteString("\n| " + strings.Join(header, " | ") + " |\n|")
	for i := range header {
		if i < right {
			b.WriteString("---|")
		} else {
			b.WriteString("---:|")
		}
	}
	b.WriteByte('\n')
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func number(v float64) string {
	switch {
	case v >= 1000:
		return whole(int(math.Round(v)))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func (f *figures) layout(part string) *LayoutFigures {
	for _, l := range f.layouts {
		if l.Layout.Part == part {
			return l
		}
	}
	return nil
}

func (l *LayoutFigures) pair(prefix string) *Pair {
	if l == nil {
		return nil
	}
	if prefix == "sustained" {
		return l.Sustained
	}
	for i := range l.Pairs {
		if strings.HasPrefix(l.Pairs[i].Shape, prefix) {
			return &l.Pairs[i]
		}
	}
	return nil
}
