package tool

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/stepjet/stepjet/internal/text"
)

// arrayHint says how a value is written as an array.
func arrayHint(x *jsonschema.Schema, v any) string {
	item := itemTypes(x)
	if s, ok := v.(string); ok && strings.Contains(s, ",") {
		parts := strings.Split(s, ",")
		list := make([]string, len(parts))
		for i, part := range parts {
			part = strings.TrimSpace(part)
			list[i] = shown(part)
			for _, t := range item {
				if h := fromText(t, part); strings.HasPrefix(h, "write ") && !strings.Contains(h, ":") {
					list[i], _, _ = strings.Cut(strings.TrimPrefix(h, "write "), ", ")
				}
			}
		}
		return "write " + text.Cut("["+strings.Join(list, ", ")+"]", maxShown)
	}
	for _, t := range item {
		if h := converted(t, v); strings.HasPrefix(h, "write ") && !strings.Contains(h, ":") {
			bare, _, _ := strings.Cut(strings.TrimPrefix(h, "write "), ", ")
			return "write [" + bare + "]"
		}
	}
	if v == nil {
		return "write [] or an array with items"
	}
	return "put it into an array: [" + shown(v) + "]"
}

// itemTypes returns the types that the items of an array may have, as far as they are said.
func itemTypes(x *jsonschema.Schema) []string {
	if x == nil || x.Items2020 == nil || x.Items2020.Types == nil {
		return nil
	}
	return x.Items2020.Types.ToStrings()
}

// objectHint says how a value is written as an object: as the one property that it has to have, where there is only
// one.
func objectHint(x *jsonschema.Schema, v any) string {
	if list, ok := v.([]any); ok && len(list) == 1 && isType("object", list[0]) {
		return "write " + shown(list[0]) + ", without the brackets"
	}
	if x == nil || len(x.Properties) == 0 {
		return `write an object: {"name": value}`
	}
	name := ""
	switch {
	case len(x.Required) == 1:
		name = x.Required[0]
	case len(x.Properties) == 1:
		for name = range x.Properties {
		}
	}
	if p := x.Properties[name]; p != nil && v != nil {
		if p.Types == nil || slices.ContainsFunc(p.Types.ToStrings(), func(t string) bool { return isType(t, v) }) {
			return fmt.Sprintf("write {%q: %s}", clip(name), shown(v))
		}
	}
	parts := make([]string, 0, len(x.Required))
	for _, name := range x.Required {
		parts = append(parts, fmt.Sprintf("%q: %s", clip(name), placeholderOf(x.Properties[name])))
	}
	return "write an object: " + text.Cut("{"+strings.Join(parts, ", ")+"}", maxShown)
}

// enumHint returns the value of an enumeration that was probably meant.
func enumHint(want []any, v any) string {
	given := strings.Trim(shown(v), `" `)
	var words []string
	byWord := map[string]any{}
	for _, w := range want {
		word := strings.Trim(shown(w), `"`)
		if word == given { // only the type differs
			return "write " + shown(w)
		}
		words = append(words, word)
		byWord[word] = w
	}
	near := text.Nearest(given, words)
	if len(near) == 0 && given != "" { // C for celsius
		for _, w := range words {
			if len(w) > len(given) && strings.EqualFold(w[:len(given)], given) {
				near = append(near, w)
			}
		}
	}
	if len(near) == 0 {
		near = words
	}
	const most = 6
	all := make([]string, 0, most)
	for i, w := range near {
		if i == most {
			all = append(all, "…")
			break
		}
		all = append(all, shown(byWord[w]))
	}
	if len(all) > 1 {
		return "write one of " + strings.Join(all, ", ")
	}
	return "write " + strings.Join(all, ", ")
}

// patternHint returns the value in the form that matches a pattern, if it is only a matter of case or blanks.
func patternHint(pattern string, v any) string {
	s, _ := v.(string)
	re, err := regexp.Compile(ecma(pattern))
	if err == nil {
		for _, form := range []string{
			strings.TrimSpace(s), strings.ToUpper(s), strings.ToLower(s), strings.ReplaceAll(s, " ", ""),
			strings.ReplaceAll(s, " ", "_"), strings.ReplaceAll(s, " ", "-"),
		} {
			if form != s && re.MatchString(form) {
				return "write " + shown(form)
			}
		}
	}
	return "write text that matches " + clip(pattern)
}

// formats are examples of the formats that tools name most.
var formats = map[string]string{
	"date": "2026-01-31", "date-time": "2026-01-31T09:30:00Z", "time": "09:30:00Z", "duration": "PT30M",
	"email": "ann@example.com",
	"uri":   "https://example.com/page", "url": "https://example.com/page", "uuid": "123e4567-e89b-12d3-a456-426614174000",
	"ipv4": "192.0.2.1",
	"ipv6": "2001:db8::1", "hostname": "example.com",
}

func formatHint(format string) string {
	if example := formats[format]; example != "" {
		return fmt.Sprintf("write %q, in this form", example)
	}
	return "write text in the format " + clip(format)
}

// sizeHint returns the bound that a number, a text or a list has to keep.
func sizeHint(e *jsonschema.ValidationError, x *jsonschema.Schema, v any) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Minimum:
		return "write " + rational(k.Want) + upTo(x)
	case *kind.Maximum:
		return "write " + rational(k.Want) + downTo(x)
	case *kind.ExclusiveMinimum:
		return "write more than " + rational(k.Want)
	case *kind.ExclusiveMaximum:
		return "write less than " + rational(k.Want)
	case *kind.MultipleOf:
		return multipleHint(k, v)
	case *kind.MinLength:
		return fmt.Sprintf("write %d characters or more", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("write %d characters or fewer", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("write %d items or more", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("write the first %d items, and the others in another step", k.Want)
	case *kind.UniqueItems:
		return "leave one of the two out"
	}
	return ""
}

func upTo(x *jsonschema.Schema) string {
	if x != nil && x.Maximum != nil {
		return ", or up to " + rational(x.Maximum)
	}
	return " or more"
}

func downTo(x *jsonschema.Schema) string {
	if x != nil && x.Minimum != nil {
		return ", or down to " + rational(x.Minimum)
	}
	return " or less"
}

// multipleHint returns the multiple below and the one above.
func multipleHint(k *kind.MultipleOf, v any) string {
	r, ok := new(big.Rat).SetString(boundNumber(strings.Trim(shown(v), `"`)))
	if !ok || k.Want == nil || k.Want.Sign() <= 0 {
		return ""
	}
	q := new(big.Rat).Quo(r, k.Want)
	n := new(big.Int).Div(q.Num(), q.Denom())
	low := new(big.Rat).Mul(new(big.Rat).SetInt(n), k.Want)
	return "write " + rational(low) + " or " + rational(new(big.Rat).Add(low, k.Want))
}

// placeholder writes what stands for a value of a schema.
func placeholder(x *jsonschema.Schema, types []string) string {
	switch {
	case x != nil && x.Default != nil:
		return shown(*x.Default)
	case x != nil && x.Enum != nil:
		return strings.TrimPrefix(enumHint(x.Enum.Values, ""), "write ")
	case x != nil && len(x.Examples) > 0:
		return shown(x.Examples[0])
	case len(types) == 0:
		return "<value>"
	}
	about := ""
	if x != nil && x.Description != "" {
		about = ": " + clip(strings.Join(strings.Fields(x.Description), " "))
	}
	return "<" + strings.Join(types, " or ") + about + ">"
}

func placeholderOf(x *jsonschema.Schema) string {
	if x == nil || x.Types == nil {
		return placeholder(x, nil)
	}
	return placeholder(x, x.Types.ToStrings())
}
