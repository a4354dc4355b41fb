package tool

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// What to write in the place of a wrong value. A hint repeats what was given wherever it can be mended: a model that
// reads "write 63 without quotes" need not know the schema.

// at returns the part of the value that a location leads to.
func (f *finder) at(location []string) (v any, there bool) {
	v = f.root
	for _, token := range location {
		switch x := v.(type) {
		case map[string]any:
			if v, there = x[token]; !there {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// notGiven quotes what stands in the place of what should.
func notGiven(e *jsonschema.ValidationError, v any) string {
	switch e.ErrorKind.(type) {
	case *kind.Type:
		switch v.(type) {
		case map[string]any, []any, nil:
			return ""
		}
		return ": " + shown(v)
	case *kind.Enum, *kind.Const, *kind.Pattern, *kind.Format, *kind.Minimum, *kind.Maximum, *kind.ExclusiveMinimum,
		*kind.ExclusiveMaximum, *kind.MultipleOf:
		return ", but is " + shown(v)
	}
	return ""
}

// maxShown is the longest value that a message or a hint repeats, in bytes.
const maxShown = 160

// shown writes a value as JSON; only its kind where it is long.
func shown(v any) string {
	b, err := jsontape.Marshal(v)
	if err != nil {
		return "?"
	}
	s := string(b)
	if len(s) <= maxShown {
		return s
	}
	switch v := v.(type) {
	case string:
		return shown(clip(v))
	case []any:
		return "[…]"
	case map[string]any:
		return "{…}"
	}
	return clip(s)
}

// hint says what to write for a value that breaks a schema; "" where nobody can tell.
func (f *finder) hint(e *jsonschema.ValidationError, v any) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return f.typeHint(e, k.Want, v)
	case *kind.Enum:
		return enumHint(k.Want, v)
	case *kind.Const:
		return "write " + shown(k.Want)
	case *kind.AnyOf, *kind.OneOf:
		return f.branchHint(e, v)
	case *kind.Pattern:
		return patternHint(k.Want, v)
	case *kind.Format:
		return formatHint(k.Want)
	case *kind.FalseSchema:
		return "leave it out"
	case *kind.DependentRequired:
		return "add " + quotedList(k.Missing)
	case *kind.Dependency:
		return "add " + quotedList(k.Missing)
	}
	return sizeHint(e, f.s.byURL[e.SchemaURL], v)
}

// branchHint returns the hint of the first alternative of an anyOf or oneOf that has one for this very value.
func (f *finder) branchHint(e *jsonschema.ValidationError, v any) string {
	for _, c := range e.Causes {
		for len(c.Causes) == 1 {
			c = c.Causes[0]
		}
		if len(c.InstanceLocation) != len(e.InstanceLocation) || c.ErrorKind == nil {
			continue
		}
		if k, ok := c.ErrorKind.(*kind.Type); ok && len(k.Want) == 1 && k.Want[0] == "null" {
			continue
		}
		if h := f.hint(c, v); h != "" {
			return h
		}
	}
	return ""
}

// typeHint says how a value of another type is written.
func (f *finder) typeHint(e *jsonschema.ValidationError, want []string, v any) string {
	for _, t := range want {
		if h := converted(t, v); h != "" {
			return h
		}
	}
	schema := f.s.byURL[e.SchemaURL]
	if v == nil && f.optional(e) {
		return "leave it out, or write " + article(want)
	}
	for _, t := range want {
		switch t {
		case "array":
			return arrayHint(schema, v)
		case "object":
			return objectHint(schema, v)
		}
	}
	if list, ok := v.([]any); ok && len(list) > 1 {
		return "write one value, such as " + shown(list[0]) + "; to do it for each of them, give the step a for_each"
	}
	if len(want) == 0 {
		return ""
	}
	return "write " + placeholder(schema, want)
}

// converted says how a value is written that only needs another form to be of a type; "" where it is more than that.
func converted(want string, v any) string {
	switch v := v.(type) {
	case string:
		return fromText(want, v)
	case json.Number:
		return fromNumber(want, v)
	case bool:
		if want == "string" {
			return fmt.Sprintf(`write "%v", in quotes`, v)
		}
	case []any:
		if len(v) == 1 && isType(want, v[0]) {
			return "write " + shown(v[0]) + ", without the brackets"
		}
	case map[string]any:
		if len(v) != 1 || want == "array" && !holdsArray(v) {
			return ""
		}
		for name, x := range v {
			if isType(want, x) {
				return fmt.Sprintf("write %s, without {%q: …} around it", shown(x), clip(name))
			}
		}
	}
	return ""
}

func holdsArray(v map[string]any) bool {
	for _, x := range v {
		if _, ok := x.([]any); ok {
			return true
		}
	}
	return false
}

// inText finds a number in text: 63 in "63 km", 1000.5 in "$1,000.5".
var inText = regexp.MustCompile(`[-+]?[0-9][0-9,_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`)

// fromText says how what stands in quotes is written without them.
func fromText(want, s string) string {
	text := strings.TrimSpace(s)
	switch want {
	case "number", "integer":
		all := inText.FindAllString(text, 2)
		if len(all) != 1 {
			return ""
		}
		number := strings.TrimPrefix(strings.NewReplacer(",", "", "_", "").Replace(all[0]), "+")
		if trimmed := strings.TrimLeft(strings.TrimPrefix(number, "-"), "0"); !json.Valid([]byte(number)) && trimmed != "" &&
			trimmed[0] != '.' {
			number = trimmed
		}
		return numberHint(want, number, "without quotes")
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1", "y":
			return "write true, without quotes"
		case "false", "no", "off", "0", "n":
			return "write false, without quotes"
		}
	case "null":
		if l := strings.ToLower(text); l == "null" || l == "none" || l == "nil" {
			return "write null, without quotes"
		}
	case "array", "object":
		v, err := decodeExact([]byte(text))
		if err == nil && isType(want, v) {
			return fmt.Sprintf("write the %s itself, not a string that holds it: %s", want, shown(v))
		}
	}
	return ""
}

func fromNumber(want string, n json.Number) string {
	switch want {
	case "string":
		return fmt.Sprintf(`write "%s", in quotes`, n)
	case "integer":
		return numberHint(want, string(n), "")
	case "boolean":
		if n == "1" {
			return "write true"
		} else if n == "0" {
			return "write false"
		}
	}
	return ""
}

// numberHint says how a number is written; of one with a fraction, where a whole one is taken, both beside it.
func numberHint(want, number, how string) string {
	r, ok := new(big.Rat).SetString(boundNumber(number))
	if !ok || !json.Valid([]byte(number)) {
		return ""
	}
	if how != "" {
		how = ", " + how
	}
	if want == "number" {
		return "write " + clip(number) + how
	}
	if r.IsInt() {
		return "write " + clip(r.Num().String()) + how
	}
	down := new(big.Int).Div(r.Num(), r.Denom()) // Euclidean: down, the denominator being above 0
	up := new(big.Int).Add(down, big.NewInt(1))
	return "write a whole number: " + clip(down.String()) + " or " + clip(up.String()) + how
}

func isType(want string, v any) bool {
	switch v := v.(type) {
	case string:
		return want == "string"
	case json.Number:
		return want == "number" || want == "integer" && !strings.ContainsAny(string(v), ".eE")
	case bool:
		return want == "boolean"
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return want == "null"
}

// optional reports whether the value that an error is about may be left out.
func (f *finder) optional(e *jsonschema.ValidationError) bool {
	outer, name, ok := cutLast(e.SchemaURL, "/properties/")
	if !ok || f.s.byURL[outer] == nil {
		return false
	}
	return !contains(f.s.byURL[outer].Required, jsontape.UnescapeToken(name))
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
