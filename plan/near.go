package plan

import (
	"strings"

	"github.com/stepjet/stepjet/internal/text"
)

// suggester finds the name that was probably meant. Its whole work is bounded, so that a plan of thousands of wrong
// names costs no more than one of a few; when the bound is reached it has nothing more to suggest.
type suggester struct{ left int }

// maxSuggestWork is the number of names that one report may be compared with.
const maxSuggestWork = 200_000

// nearest returns the names most like s (text.Nearest); none once the bound is reached.
func (g *suggester) nearest(s string, names []string) []string {
	if !g.afford(len(names)) {
		return nil
	}
	return text.Nearest(s, names)
}

// afford takes some of the work that is left; it reports false once the bound is reached.
func (g *suggester) afford(work int) bool {
	g.left -= work
	return g.left >= 0
}

// didYouMean asks for one of some names, each as it would be written.
func didYouMean(names []string, write func(string) string) string {
	var b strings.Builder
	b.WriteString("did you mean ")
	for i, n := range names {
		switch {
		case i == maxListed:
			b.WriteString(", …?")
			return b.String()
		case i > 0 && i == len(names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(write(n))
	}
	return b.String() + "?"
}

// maxListed is the most names that a hint lists.
const maxListed = 12

// listSome writes the first few names, for a hint.
func listSome(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:maxListed], ", ") + ", …"
}
