package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// reference is one to a fact, or to what an agent was given: "$succeeded.search", "$artifact.User.role",
// "$input.lines[0]". Keys that are no plain words are written ["so"].
type reference struct {
	word string // behind the "$"
	path []element
}

// element is a key, or an index where the key is empty.
type element struct {
	key   string
	index int
}

// The words that references begin with.
const (
	ofCalled    = "called"
	ofSucceeded = "succeeded"
	ofState     = "state"
	ofArtifact  = "artifact"
	ofOpened    = "opened"
	ofBound     = "bound"
	ofRound     = "round"
	ofInput     = "input"
	ofArgs      = "args"
	ofResult    = "result"
	ofOutput    = "output"
	ofTool      = "tool"
	ofBoard     = "blackboard"
)

// The words that each place knows.
var (
	factWords     = []string{ofCalled, ofSucceeded, ofState, ofArtifact, ofOpened, ofBound, ofRound, ofInput}
	bindWords     = []string{ofInput, ofState, ofArtifact}
	bindArgsWords = append(slices.Clone(bindWords), ofArgs)
	objectWords   = []string{ofArtifact, ofCalled, ofSucceeded, ofState, ofBoard, ofOpened, ofBound, ofRound, ofInput}
	objectAlone   = []string{ofArtifact}
	textWords     = []string{ofInput}
	argsWords     = []string{ofArgs}
)

// named are the words that a name stands behind: of a tool, a type, a facade.
var named = []string{ofCalled, ofSucceeded, ofOpened, ofBound, ofBoard}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || jsontape.IsDigit(c)
}

// readWord returns the end of the word that begins at s[i:].
func readWord(s string, i int) int {
	for i < len(s) && isWordByte(s[i]) {
		i++
	}
	return i
}

// readReference reads the reference whose word begins at s[i:]. end is where it ends; why says what is wrong with it.
func readReference(s string, i int, words []string) (r reference, end int, why string) {
	end = readWord(s, i)
	r.word = s[i:end]
	if !slices.Contains(words, r.word) {
		return r, end, fmt.Sprintf("nothing is called $%s here; there are $%s", clip(r.word), strings.Join(words, ", $"))
	}
	for end < len(s) && (s[end] == '.' || s[end] == '[') {
		var e element
		from := end
		if e, end, why = readElement(s, from); why != "" {
			return r, end, why
		}
		r.path = append(r.path, e)
	}
	if slices.Contains(named, r.word) && (len(r.path) == 0 || r.path[0].key == "") {
		example := ".search or $" + r.word + "[\"web-search\"]"
		if r.word == ofBoard || r.word == ofBound {
			example = ".User"
		}
		return r, end, fmt.Sprintf("behind $%s stands a name, as in $%s%s", r.word, r.word, example)
	}
	return r, end, ""
}

// readElement reads ".key", "[0]" or `["key"]`.
func readElement(s string, i int) (e element, end int, why string) {
	if s[i] == '.' {
		end = readWord(s, i+1)
		if end == i+1 {
			return e, end, `behind "." stands a key; one that is no plain word is written ["so"]`
		}
		return element{key: s[i+1 : end]}, end, ""
	}
	if i+1 < len(s) && s[i+1] == '"' {
		end = min(jsontape.SkipString([]byte(s), i+1), len(s))
		if end < len(s) && s[end] == ']' {
			if key := jsontape.Unquoted([]byte(s[i+1 : end])); key != "" {
				return element{key: key}, end + 1, ""
			}
		}
		return e, end, `a key in brackets is written ["so"]`
	}
	length := strings.IndexByte(s[i:], ']')
	if length < 0 {
		return e, len(s), "a bracket is not closed"
	}
	end = i + length + 1
	n, err := strconv.Atoi(s[i+1 : end-1])
	if err != nil || n < 0 {
		return e, end, `in brackets stand an index from 0 or a key, as in [0] or ["so"]`
	}
	return element{index: n}, end, ""
}

// String writes the reference as it is read.
func (r reference) String() string {
	var b strings.Builder
	b.WriteString("$" + r.word)
	for _, e := range r.path {
		b.WriteString(e.String())
	}
	return b.String()
}

func (e element) String() string {
	switch {
	case e.key == "":
		return "[" + strconv.Itoa(e.index) + "]"
	case readWord(e.key, 0) == len(e.key):
		return "." + e.key
	}
	return "[" + string(jsontape.AppendQuoted(nil, e.key)) + "]"
}

// behind returns the text of a reference to a name: "$called.search".
func behind(word, name string) string {
	return reference{word, []element{{key: name}}}.String()
}

// within returns what stands at a path of a value, null included.
func within(raw []byte, path []element) (json []byte, ok bool) {
	i := jsontape.SkipSpace(raw, 0)
	if i >= len(raw) {
		return nil, false
	}
	for _, e := range path {
		switch {
		case e.key != "" && raw[i] == '{':
			i = jsontape.Member(raw, i, e.key)
		case e.key == "" && raw[i] == '[':
			i = jsontape.Item(raw, i, e.index)
		default:
			return nil, false
		}
		if i < 0 {
			return nil, false
		}
	}
	return raw[i:jsontape.SkipValue(raw, i)], true
}
