package search

import (
	"strings"
	"unicode"
)

// common are words that say nothing about a tool.
var common = map[string]bool{
	"a": true, "all": true, "an": true, "and": true, "any": true, "are": true, "as": true, "at": true, "be": true, "by": true,
	"can": true, "do": true, "for": true, "from": true, "has": true, "how": true, "i": true, "in": true, "is": true, "it": true,
	"its": true, "me": true, "my": true, "of": true, "on": true, "or": true, "that": true, "the": true, "this": true, "to": true,
	"tool": true, "use": true, "want": true, "what": true, "which": true, "with": true, "you": true, "your": true,
}

// words splits a text, or a name in any spelling (get_user, getUser, get-user), into the stems of its words.
func words(text string) (all []string) {
	var word []rune
	flush := func() {
		if w := strings.ToLower(string(word)); w != "" && !common[w] {
			all = append(all, stem(w))
		}
		word = word[:0]
	}
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case i > 0 && unicode.IsUpper(r) && unicode.IsLower(runes[i-1]): // getUser
			flush()
		case i > 0 && unicode.IsUpper(r) && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]): // HTTPServer
			flush()
		}
		word = append(word, r)
	}
	flush()
	return all
}

// shortest is the least that a stem keeps of a word, in bytes.
const shortest = 3

// stem takes the endings from an English word that differ between what a tool does and what one asks for: repositories
// and repository, sending and send, deleted and delete.
func stem(w string) string {
	if strings.HasSuffix(w, "ies") && len(w) > shortest+2 {
		return w[:len(w)-3] + "y"
	}
	for _, ending := range []string{"ations", "ation", "ings", "ing", "ers", "ions", "ion", "ed", "er", "es", "s", "e"} {
		cut := strings.TrimSuffix(w, ending)
		if cut == w || len(cut) < shortest || ending == "s" && strings.HasSuffix(cut, "s") {
			continue
		}
		if n := len(cut); n > shortest && cut[n-1] == cut[n-2] && cut[n-1] != 's' && cut[n-1] != 'l' { // running
			cut = cut[:n-1]
		}
		return strings.TrimSuffix(cut, "e")
	}
	return w
}
