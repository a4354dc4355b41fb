package jsonmend

import "strings"

// shape is how a text that begins with a bracket is built, whatever its quotes and commas are like.
type shape struct {
	end      int    // behind the bracket that closes the first one; 0: none does, or brackets don't match
	brackets string // up to there, without what stands in strings and comments
	elided   bool   // dots stand for what was left out
}

// quotes are what closes a string, by what opens it.
var quotes = []struct{ open, closed string }{
	{`"`, `"`}, {"'", "'"}, {"“", `”"`}, {"”", `”"`}, {"‘", "’'"}, {"’", "’'"}, {"`", "`´"}, {"´", "`´"},
}

// shapeOf goes through a text once.
func shapeOf(t string) (s shape) {
	var open, all []byte
	before := byte(0) // what stands before, but for spaces and comments; a quote for a string
	for i := 0; i < len(t); {
		switch c := t[i]; {
		case c == '{' || c == '[':
			open, all = append(open, c+2), append(all, c) // in ASCII a bracket is closed by the second one behind it
		case c == '}' || c == ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return s
			}
			open, all = open[:len(open)-1], append(all, c)
			if len(open) == 0 {
				s.end, s.brackets = i+1, string(all)
				return s
			}
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
			continue
		case strings.HasPrefix(t[i:], "..."):
			s.elided = true
		default:
			if n := comment(t, i); n > 0 {
				i += n
				continue
			}
			if n := stringAt(t[i:], before); n != 0 {
				if n < 0 {
					return s
				}
				i, before = i+n, '"'
				continue
			}
		}
		before = t[i]
		i++
	}
	return s
}

// comment returns how long one is that begins at a place; 0 for none. The slashes of an address begin none.
func comment(t string, at int) int {
	rest := t[at:]
	switch {
	case strings.HasPrefix(rest, "//") && (at < 2 || t[at-1] != ':' || !letter(t[at-2])):
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			return n
		}
		return len(rest)
	case strings.HasPrefix(rest, "/*"):
		if n := strings.Index(rest[2:], "*/"); n >= 0 {
			return n + 4
		}
		return len(rest)
	}
	return 0
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// stringAt returns how long the string is that a text begins with; 0 for none, below it for one that nothing closes. Within a
// word a quote is none.
func stringAt(t string, before byte) int {
	if !strings.ContainsRune(`{[,:"}]+(`, rune(before)) {
		return 0
	}
	for _, q := range quotes {
		if !strings.HasPrefix(t, q.open) {
			continue
		}
		for i, c := range t[len(q.open):] {
			at := len(q.open) + i
			if strings.ContainsRune(q.closed, c) && !escaped(t, at) {
				return at + len(string(c))
			}
		}
		return -1
	}
	return 0
}

// escaped reports whether an odd number of backslashes stands before a place.
func escaped(t string, at int) bool {
	n := 0
	for at > 0 && t[at-1] == '\\' {
		at, n = at-1, n+1
	}
	return n%2 == 1
}

// fence is one of Markdown.
type fence struct {
	from, to int    // with its marks; from where the text ends, if there is none
	text     string // within, without spaces around it
}

const mark = "```"

// nextFence returns the first fence from a place on. One begins and ends at the beginning of a line; one without a line of its
// own ends where the text does.
func nextFence(t string, at int) (f fence, ok bool) {
	if f.from = lineWith(t, at); f.from < 0 {
		f.from = len(t)
		return f, false
	}
	within := f.from + len(mark)
	if line, _, more := strings.Cut(t[within:], "\n"); more && !strings.ContainsAny(line, "{[\"") { // the name of a language
		within += len(line)
	}
	f.to = len(t)
	if end := lineWith(t, within); end >= 0 {
		f.to = end + len(mark)
	}
	f.text = strings.TrimSpace(strings.TrimSuffix(t[within:f.to], mark))
	return f, true
}

// lineWith returns where a line begins with the mark, from a place on; below 0 for none.
func lineWith(t string, from int) int {
	at := strings.LastIndexByte(t[:from], '\n') + 1
	if strings.TrimSpace(t[at:from]) == "" {
		at = from
	} else if at = nextLine(t, from); at < 0 {
		return -1
	}
	for ; at >= 0; at = nextLine(t, at) {
		indent := len(t[at:]) - len(strings.TrimLeft(t[at:], " \t"))
		if strings.HasPrefix(t[at+indent:], mark) {
			return at + indent
		}
	}
	return -1
}

// nextLine returns where the line behind a place begins; below 0 for none.
func nextLine(t string, at int) int {
	n := strings.IndexByte(t[at:], '\n')
	if n < 0 {
		return -1
	}
	return at + n + 1
}
