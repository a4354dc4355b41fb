package reference

import (
	"regexp"
	"slices"
	"strings"
)

// verbatim returns the string that stands for itself in {"$text": "…"}; nil for any other value.
func verbatim(v *value) *value {
	if text := v.get("$text"); text != nil && len(v.members) == 1 && text.kind == '"' {
		return text
	}
	return nil
}

// The ways in which other languages write references; %s is what is in them.
var (
	markForms   = []string{`{{%s}}`, `${{%s}}`, `${%s}`, `{%s}`, `[[%s]]`, `<%s>`, `%%s%`, `$%s$`}
	prefixForms = []string{`$%s`, `$.%s`, `#%s`, `@%s`, `$steps.%s`}
	wordForm    = regexp.MustCompile(`^(?i:ref:|\$ref\.|\$ref |\$ref:)`) // but not $ref: itself
	digitsRE    = regexp.MustCompile(`^[0-9]+(?:\.[0-9]+|\[[0-9]+\])*$`)
)

const spaceBytes = " \t\r\n"

// insides returns all that a text could have between marks or behind a prefix.
func insides(text string) (marked, prefixed []string) {
	text = strings.Trim(text, spaceBytes)
	cut := func(forms []string) (all []string) {
		for _, form := range forms {
			before, after, _ := strings.Cut(form, "%s")
			if rest, ok := strings.CutPrefix(text, before); ok {
				if inner, ok := strings.CutSuffix(rest, after); ok {
					all = append(all, strings.Trim(inner, spaceBytes))
				}
			}
		}
		return all
	}
	if word := wordForm.FindString(text); word != "" && word != "$ref:" { // a step may be called ref: the longest prefix counts
		prefixed = append(prefixed, strings.Trim(text[len(word):], spaceBytes))
	}
	marked, prefixed = cut(markForms), append(prefixed, cut(prefixForms)...)
	if strings.HasPrefix(text, "$ref:") {
		return nil, nil
	}
	return marked, prefixed
}

// foreign returns the id in another language's reference, or in a right one within such marks; "" where a text is
// neither, or is all digits.
func foreign(text string, known func(id string) bool) string {
	marked, prefixed := insides(text)
	for _, inner := range append(marked, prefixed...) {
		rest, _ := strings.CutPrefix(inner, "steps.")
		for _, s := range []string{rest, inner} {
			if r, err := wholeRef(s); err == nil && known(r.id) {
				if digitsRE.MatchString(s) {
					return ""
				}
				return r.id
			}
		}
	}
	for _, inner := range marked {
		if s, ok := strings.CutPrefix(inner, "$ref:"); ok && !strings.HasPrefix(strings.Trim(text, spaceBytes), "$$ref:") {
			if r, err := wholeRef(s); err == nil && known(r.id) && !digitsRE.MatchString(s) {
				return r.id
			}
		}
	}
	return ""
}

// noForeign refuses another language's references in a step, but for those to steps that it refers to in the right way
// too.
func (p *Plan) noForeign(i int) error {
	s := p.Steps[i]
	var right, wrong []string
	look := func(v *value, as string) {
		known := func(id string) bool { return p.index(id) >= 0 || as != "" && id == as }
		for _, leaf := range leaves(v) {
			if id := foreign(leaf.text, known); id != "" && leaf.kind == '"' {
				wrong = append(wrong, id)
				continue
			}
			some, _ := references(leaf)
			for _, r := range some {
				right = append(right, r.id)
			}
		}
	}
	if s.ForEach {
		look(s.in, "")
	}
	look(s.arguments, s.As)
	for _, id := range wrong {
		if !slices.Contains(right, id) {
			return errRef
		}
	}
	return nil
}

// leaves returns all strings and object forms within a value, without verbatim texts.
func leaves(v *value) []*value {
	if _, is, _ := objectForm(v); verbatim(v) != nil {
		return nil
	} else if is && len(v.members) == 1 || v.kind == '"' || v.calc != nil {
		return []*value{v}
	}
	var all []*value
	for _, m := range v.members {
		all = append(all, leaves(m.value)...)
	}
	return all
}
