package plan

import (
	"strings"
)

// suggester finds the name that was probably meant. Its whole work is bounded, so that a plan of thousands of wrong
// names costs no more than one of a few; when the bound is reached it has nothing more to suggest.
type suggester struct{ left int }

// maxSuggestWork is the number of names that one report may be compared with.
const maxSuggestWork = 200_000

// nearest gives the name most like s, or "": one that is equal but for case, "_" and "-", else one at most two edits
// away (one for short names), else one that holds s or is held by it.
func (g *suggester) nearest(s string, names []string) string {
	if s == "" || len(s) > maxNearName {
		return ""
	}
	if g.left -= len(names); g.left < 0 {
		return ""
	}
	best, distance := "", 3
	if len(s) <= 4 {
		distance = 2
	}
	part := ""
	for _, n := range names {
		if n == s || len(n) > maxNearName {
			continue
		}
		if sameLetters(n, s) {
			return n
		}
		if d := edits(s, n, distance); d < distance {
			best, distance = n, d
		}
		if part == "" && min(len(n), len(s)) >= 4 && (strings.Contains(n, s) || strings.Contains(s, n)) {
			part = n
		}
	}
	if best == "" {
		return part
	}
	return best
}

// maxNearName is the longest name that is compared.
const maxNearName = 128

// sameLetters reports whether two names are equal but for case, "_" and "-".
func sameLetters(a, b string) bool {
	i, j := 0, 0
	for {
		for i < len(a) && (a[i] == '_' || a[i] == '-') {
			i++
		}
		for j < len(b) && (b[j] == '_' || b[j] == '-') {
			j++
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if lower(a[i]) != lower(b[j]) {
			return false
		}
		i++
		j++
	}
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// edits gives the number of bytes to insert, remove or exchange, or two neighbours to swap, to make b of a; limit where
// it is that many or more.
func edits(a, b string, limit int) int {
	if abs(len(a)-len(b)) >= limit {
		return limit
	}
	var rows [3][maxNearName + 1]int
	before, prev, row := &rows[0], &rows[1], &rows[2]
	for j := 0; j <= len(b); j++ {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			d := prev[j-1]
			if a[i-1] != b[j-1] {
				d = min(d, prev[j], row[j-1]) + 1
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d = min(d, before[j-2]+1)
				}
			}
			row[j] = d
			least = min(least, d)
		}
		if least >= limit {
			return limit
		}
		before, prev, row = prev, row, before
	}
	return min(prev[len(b)], limit)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
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
