package text

import "strings"

// maxNear is the length in bytes from which on a text is no name that is like another.
const maxNear = 128

// Nearest returns the names most like s, in their order; several where they are as near as each other, none where
// nothing is like it. Nearer than all are names that are equal but for case, "_" and "-"; then those at most two edits
// away (one for short names), the fewer the nearer; then those that hold s or are held by it; then those with the
// longest beginning in common, and last those that share a word.
func Nearest(s string, names []string) []string {
	if s == "" || len(s) > maxNear {
		return nil
	}
	best, all := 0, []string(nil)
	for _, n := range names {
		if n == s || n == "" || len(n) > maxNear {
			continue
		}
		switch k := Likeness(s, n); {
		case k == 0 || k < best:
		case k == best:
			all = append(all, n)
		default:
			best, all = k, append(all[:0:0], n)
		}
	}
	return all
}

// The values of Likeness, from the least to the greatest; each but the last two leaves room for how much of it there
// is.
const (
	SharesWord  = 1
	SharesStart = 1_000
	HoldsOther  = 2_000
	FewEdits    = 3_000
	SameWord    = 4_000
)

// leastWord is the length of a shared word from which on it counts.
const leastWord = 4

// Likeness says how alike two names are; 0 for not at all.
func Likeness(a, b string) int {
	if sameLetters(a, b) {
		return SameWord
	}
	short := min(len(a), len(b))
	limit := 3
	if len(a) <= 4 {
		limit = 2
	}
	if d := edits(a, b, limit); d < limit && short > 1 {
		return FewEdits - d
	}
	if short >= 4 && (strings.Contains(a, b) || strings.Contains(b, a)) ||
		short >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
		return HoldsOther
	}
	if n := commonStart(a, b); n >= 4 && 2*n >= short {
		return SharesStart + n
	}
	if n := sharedWord(a, b); n >= leastWord {
		return SharesWord + n
	}
	return 0
}

// commonStart returns the number of letters that two names begin with alike, case aside.
func commonStart(a, b string) (n int) {
	for n < len(a) && n < len(b) && lower(a[n]) == lower(b[n]) {
		n++
	}
	return n
}

// sharedWord returns the length of the longest word of one name that stands in the other, case aside; words are parted
// by what is no letter or digit.
func sharedWord(a, b string) (n int) {
	part := func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') }
	a, b = strings.ToLower(a), strings.ToLower(b)
	for range 2 {
		for x := range strings.FieldsFuncSeq(a, part) {
			if len(x) > n && strings.Contains(b, x) {
				n = len(x)
			}
		}
		a, b = b, a
	}
	return n
}

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

// edits returns the number of bytes to insert, remove or exchange, or two neighbours to swap, to make b of a; limit
// where it is that many or more.
func edits(a, b string, limit int) int {
	if abs(len(a)-len(b)) >= limit {
		return limit
	}
	var rows [3][maxNear + 1]int
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

// nearLetters is the length from which a name has near misses by one edit; a shorter one would have too many.
const nearLetters = 4

// NearMiss returns the known field name that name was probably meant to be: equal to it after lower-casing and removing
// "_" and "-", or, for known names of four letters and more, one edit (a letter inserted, left out or exchanged) away.
// It returns "" where name is itself known, or near none (plan language, "A plan").
func NearMiss(name string, known ...string) string {
	for _, k := range known {
		if name == k {
			return ""
		}
	}
	if len(name) > maxFieldName {
		return ""
	}
	plain := normalise(name)
	for _, k := range known {
		if plain == normalise(k) {
			return k
		}
	}
	for _, k := range known {
		if len(k) >= nearLetters && (oneEdit(name, k) || oneEdit(plain, normalise(k))) {
			return k
		}
	}
	return ""
}

// maxFieldName is longer than any known field name with room for "_" and "-"; a longer name is near nothing.
const maxFieldName = 64

func normalise(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// oneEdit reports whether a becomes b by inserting, leaving out or exchanging exactly one byte.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return a[i+1:] == b[i+1:]
	}
	return a[i:] == b[i+1:]
}
