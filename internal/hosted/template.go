package hosted

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/subjects"
)

// template is text with placeholders.
type template []part

// part is a placeholder where name is not empty, else literal text.
type part struct{ text, name string }

// parseTemplate reads text in which a placeholder is a name between open and end: "{{" and "}}" for argv, "{" and "}"
// for URLs. Doubled, open stands for itself.
func parseTemplate(s, open, end string) (template, error) {
	var t template
	var literal strings.Builder
	for s != "" {
		i := strings.Index(s, open)
		if i < 0 {
			literal.WriteString(s)
			break
		}
		literal.WriteString(s[:i])
		s = s[i+len(open):]
		if strings.HasPrefix(s, open) {
			literal.WriteString(open)
			s = s[len(open):]
			continue
		}
		name, rest, ok := strings.Cut(s, end)
		if !ok || !validName(name) {
			return nil, fmt.Errorf("%s is not followed by the name of an argument and %s; for the text %s write %s%s", open, end,
				open, open, open)
		}
		if literal.Len() > 0 {
			t = append(t, part{text: literal.String()})
			literal.Reset()
		}
		t, s = append(t, part{name: name}), rest
	}
	if literal.Len() > 0 {
		t = append(t, part{text: literal.String()})
	}
	return t, nil
}

// validName reports whether a placeholder may have this name: letters, digits, "_", "-" and ".", the last not first.
func validName(s string) bool {
	for i := range len(s) {
		if !subjects.IsPlain(s[i]) && s[i] != '.' {
			return false
		}
	}
	return s != "" && s[0] != '.'
}

// names returns the placeholders in order.
func (t template) names() []string {
	var out []string
	for _, p := range t {
		if p.name != "" {
			out = append(out, p.name)
		}
	}
	return out
}

// whole returns the name of the placeholder that is all there is.
func (t template) whole() (string, bool) {
	if len(t) == 1 && t[0].name != "" {
		return t[0].name, true
	}
	return "", false
}

// leading returns the placeholder that the text begins with, or "".
func (t template) leading() string {
	if len(t) == 0 {
		return ""
	}
	return t[0].name
}

// expand puts values in.
func (t template) expand(value func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for _, p := range t {
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		v, err := value(p.name)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
	}
	return b.String(), nil
}
