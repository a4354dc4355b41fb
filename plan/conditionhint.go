package plan

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// mended writes an expression as it was probably meant, where its references are written as in other languages: {{a.x}},
// ${ref:a.x}, steps.a.x or a.x bare, status(a) or a.status, or any of them in quotes. It returns "" where what comes out
// is no expression over steps that there are.
func (r *expressionReader) mended(text string) string {
	if len(text) > maxMended {
		return ""
	}
	m := mending{p: r.parser, s: text}
	for m.at < len(m.s) {
		m.next()
	}
	right := statusMended(m.b.String())
	if right == "" || right == text {
		return ""
	}
	x, err := expression.Compile(right, r.refs.reads)
	if err != nil || len(x.References()) == 0 {
		return ""
	}
	for _, ref := range x.References() {
		_, start := r.refs.prefixOf(ref)
		to, _, _ := r.refs.parse(ref, start)
		r.refs.forget(to)
		if !r.knownStep(to.id) {
			return ""
		}
	}
	return right
}

// maxMended is the longest condition that a hint writes anew.
const maxMended = 500

// mending is a condition that is written anew.
type mending struct {
	p  *parser
	s  string
	at int
	b  strings.Builder
}

// next writes one piece of the condition.
func (m *mending) next() {
	rest := m.s[m.at:]
	for _, k := range marks { // as around references elsewhere
		if k.open == "%" || k.open == "<" || k.open == "$" || k.open == "[[" || !strings.HasPrefix(rest, k.open) {
			continue
		}
		if inner, _, found := strings.Cut(rest[len(k.open):], k.close); found {
			m.reference(inner)
			m.at += len(k.open) + len(inner) + len(k.close)
			return
		}
	}
	switch c := rest[0]; {
	case c == '"' || c == '\'':
		m.quoted(c)
	case c == '$' && m.prefixed(rest):
		if end, why := m.p.refs.reads(m.s, m.at); why == "" && end > m.at {
			m.copy(end - m.at) // with the keys in quotes
			return
		}
		m.copy(1 + strings.IndexByte(rest, ':'))
		m.copy(wordEnd(m.s[m.at:]))
	case strings.HasPrefix(rest, "===") || strings.HasPrefix(rest, "!=="):
		m.b.WriteString(rest[:2])
		m.at += 3
	case subjects.IsPlain(c) && !jsontape.IsDigit(c) && c != '-' || strings.IndexByte("$#@", c) >= 0:
		m.word()
	default:
		m.copy(1)
	}
}

func (m *mending) copy(n int) {
	m.b.WriteString(m.s[m.at : m.at+n])
	m.at += n
}

// prefixed reports whether a text begins with a reference that is right so far.
func (m *mending) prefixed(s string) bool {
	_, n := m.p.refs.prefixOf(s)
	return n > 0
}

// quoted writes a string, without its quotes where it is a reference.
func (m *mending) quoted(quote byte) {
	rest := m.s[m.at:]
	inner, _, found := strings.Cut(rest[1:], string(quote))
	if !found {
		m.copy(len(rest))
		return
	}
	f, is := m.p.refs.foreign(inner, m.p.knownStep)
	switch {
	case is && !f.digits || m.prefixed(inner):
		m.reference(inner)
	case strings.Contains(inner, "$") && m.template(inner, string(quote)):
	default:
		m.copy(len(inner) + 2)
		return
	}
	m.at += len(inner) + 2
}

// template writes a text with references in it as what puts them together. It reports false where it is none.
func (m *mending) template(text, quote string) bool {
	if strings.Contains(text, `\`) {
		return false
	}
	var parts []string
	refers := false
	for _, x := range m.p.refs.parseText(text).pieces {
		switch {
		case x.broken != nil || len(x.refs) > 1:
			return false
		case len(x.refs) == 1:
			parts, refers = append(parts, x.refs[0].of.prefix()+x.refs[0].text), true
		default:
			parts = append(parts, quote+x.text+quote)
		}
	}
	switch {
	case len(parts) > 1 && refers:
		m.b.WriteString("concat(" + strings.Join(parts, ", ") + ")")
	case refers:
		m.b.WriteString(parts[0])
	}
	return refers
}

// reference writes what stands between marks or quotes, if it is a reference, and else as it is.
func (m *mending) reference(inner string) {
	inner = trimSpace(inner)
	for _, k := range marks {
		if rest, ok := strings.CutPrefix(inner, k.open); ok && k.open != "$" {
			inner = trimSpace(strings.TrimSuffix(rest, k.close))
		}
	}
	for _, prefix := range prefixes[:itsInput] {
		if rest, ok := strings.CutPrefix(inner, prefix[1:]); ok { // ${ref:a}
			inner = "$" + prefix[1:] + rest
		}
	}
	sub := mending{p: m.p, s: inner}
	for sub.at < len(sub.s) {
		sub.next()
	}
	m.b.WriteString(sub.b.String())
}

// word writes a name and its path: as a reference where it is a step's.
func (m *mending) word() {
	s := strings.TrimLeft(m.s[m.at:], "$#@.")
	s = strings.TrimPrefix(s, stepsPrefix)
	skipped := len(m.s) - m.at - len(s)
	n := wordEnd(s)
	name, path, _ := strings.Cut(s[:n], ".")
	if of := slices.Index([]string{"", "error", "status"}, name); of > 0 && strings.HasPrefix(s[n:], "(") {
		if inner, _, found := strings.Cut(s[n+1:], ")"); found {
			m.b.WriteString(prefixes[of] + strings.TrimPrefix(strings.Trim(trimSpace(inner), `"'`), refPrefix))
			m.at += skipped + n + len(inner) + 2
			return
		}
	}
	switch rest, isError := strings.CutPrefix(path, "error"); {
	case !m.p.knownStep(name) || slices.Contains(ownWords, m.s[m.at:m.at+skipped+n]):
		m.copy(max(skipped+n, 1))
		return
	case path == "status":
		m.b.WriteString(itsStatus.prefix() + name)
	case isError && (rest == "" || rest[0] == '.'):
		m.b.WriteString(itsError.prefix() + name + rest)
	default:
		m.b.WriteString(refPrefix + s[:n])
	}
	m.at += skipped + n
}

// ownWords mean something in a condition, also where a step is called so.
var ownWords = []string{
	"null", "true", "false", "and", "or", "not", "in", "contains", "startsWith", "endsWith", "matches",
}

// wordEnd returns where a name with its path ends: keys and dots.
func wordEnd(s string) int {
	for i := range len(s) {
		if !subjects.IsPlain(s[i]) && s[i] != '.' {
			return i
		}
	}
	return len(s)
}

// statuses are those that a step which is over may have.
var statuses = []string{"succeeded", "failed", "skipped", "cancelled", "not_taken"}

// meantStatus are words that people have for them.
var meantStatus = map[string]string{
	"success": "succeeded", "successful": "succeeded", "ok": "succeeded", "done": "succeeded", "completed": "succeeded", "complete": "succeeded",
	"finished": "succeeded", "error": "failed", "errored": "failed", "failure": "failed", "fail": "failed", "canceled": "cancelled",
	"untaken": "not_taken", "not taken": "not_taken",
}

// noStatus returns the first string, with its quotes, that the status of a step is compared with and that is none, and
// where it stands; "" where there is none.
func noStatus(text string) (word string, at int) {
	for {
		i := strings.Index(text[at:], itsStatus.prefix())
		if i < 0 {
			return "", 0
		}
		at += i + len(itsStatus.prefix())
		at += wordEnd(text[at:])
		n := skipSpace(text, at)
		if !strings.HasPrefix(text[n:], "==") && !strings.HasPrefix(text[n:], "!=") {
			continue
		}
		n = skipSpace(text, n+2)
		if n == len(text) || text[n] != '"' && text[n] != '\'' {
			continue
		}
		inner, _, closed := strings.Cut(text[n+1:], text[n:n+1])
		if closed && !slices.Contains(statuses, inner) {
			return text[n : n+len(inner)+2], n
		}
	}
}

// statusMended writes a condition with the statuses that were meant; "" where nobody knows which.
func statusMended(text string) string {
	for word, at := noStatus(text); word != ""; word, at = noStatus(text) {
		right := meantStatus[strings.ToLower(word[1:len(word)-1])]
		if right == "" {
			return ""
		}
		text = text[:at+1] + right + text[at+len(word)-1:]
	}
	return text
}

// elsewhere says how a condition is written that stands in another field; read reports whether its text can be read as
// it is. What else is wrong with it is a problem of its own.
func (r *expressionReader) elsewhere(name string, value int32) (hint string, read bool) {
	switch {
	case r.tape[value].Kind != jsontape.String:
		return r.hint(value), false
	case name == "unless" || name == "skip_if":
		return `write "if" with the opposite: "if": ` + quoteJSON("not ("+clip(r.str(value))+")"), false
	}
	if _, err := expression.Compile(r.str(value), r.refs.reads); err != nil {
		return `write "if"`, true
	}
	return "write " + r.written("if", value), true
}

// suspect refuses an expression that can be read, and that nobody meant so.
func (r *expressionReader) suspect(text string) {
	right := r.mended(text)
	if word, _ := noStatus(text); word != "" {
		hint := "write 'succeeded', 'failed', 'skipped', 'cancelled' or 'not_taken'"
		if right != "" {
			hint = r.write(right)
		}
		r.col.addf(fault.InvalidCondition, r.at(), hint, "the status of a step is compared with %s, which it never is", clip(word))
	} else if right != "" {
		r.col.addf(fault.InvalidCondition, r.at(), r.write(right),
			"another language's reference stands in quotes, and would be compared as that text")
	}
}
