// Package selector picks tools by a list such as "web_*,hint:readOnly,!web_delete". It is what "stepjet mcp --expose"
// and "include" and "exclude" of a bridged server are written in.
//
//	name          the tool of that name
//	prefix*       tools whose names begin so; * alone: all
//	/regex/       tools whose names the expression fits somewhere (RE2)
//	group:web     tools of that group
//	hint:readOnly tools with that annotation: readOnly, destructive, idempotent or openWorld
//	!…            not those
//
// A tool is picked if one of the elements without "!" fits it, or there is none such, and none of those with "!" does.
package selector

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// Tool is what an element can ask for.
type Tool struct {
	Name        string
	Groups      []string
	Annotations *tool.Annotations
}

// Selector picks tools. The zero Selector picks all.
type Selector struct {
	want, refuse []fits
	groups       []string
}

type fits func(Tool) bool

// Parse reads a list of elements, divided by commas; white space around them counts for nothing. Errors have the code
// invalid_value and name the element.
func Parse(list string) (Selector, error) {
	var s Selector
	for _, element := range split(list) {
		element = strings.TrimSpace(element)
		text, not := strings.CutPrefix(element, "!")
		if name, ok := strings.CutPrefix(text, "group:"); ok {
			s.groups = append(s.groups, name)
		}
		f, err := parse(text)
		if err != nil {
			return Selector{}, fault.New(fault.InvalidValue, "%q selects no tools: %v", element, err).
				WithHint("write a name, prefix*, /regex/, group:NAME or hint:readOnly, with ! before what is not meant")
		}
		if not {
			s.refuse = append(s.refuse, f)
		} else {
			s.want = append(s.want, f)
		}
	}
	return s, nil
}

// Groups returns the groups that the list names, as it has them: whoever picks has to know what these hold.
func (s Selector) Groups() []string { return s.groups }

// Picks reports whether a tool is one of those that are meant.
func (s Selector) Picks(t Tool) bool {
	fit := func(f fits) bool { return f(t) }
	return (len(s.want) == 0 || slices.ContainsFunc(s.want, fit)) && !slices.ContainsFunc(s.refuse, fit)
}

// split divides a list at its commas, but not at those of expressions.
func split(list string) (elements []string) {
	rest := list
	for {
		start := strings.TrimLeft(rest, " \t!")
		skip := len(rest) - len(start)
		if strings.HasPrefix(start, "/") {
			if end := closing(start); end > 0 {
				skip += end
			}
		}
		comma := strings.IndexByte(rest[skip:], ',')
		if comma < 0 {
			return append(elements, rest)
		}
		elements, rest = append(elements, rest[:skip+comma]), rest[skip+comma+1:]
	}
}

// closing returns the place behind the slash that ends an expression: one that a comma or nothing follows. 0: none.
func closing(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			continue
		}
		if s[i] == '/' && strings.HasPrefix(strings.TrimLeft(s[i+1:], " \t")+",", ",") {
			return i + 1
		}
	}
	return 0
}

func parse(text string) (fits, error) {
	if name, ok := strings.CutPrefix(text, "group:"); ok {
		if name == "" {
			return nil, fmt.Errorf("it names no group")
		}
		return func(t Tool) bool { return slices.Contains(t.Groups, name) }, nil
	}
	if name, ok := strings.CutPrefix(text, "hint:"); ok {
		return hint(name)
	}
	if len(text) > 1 && text[0] == '/' && text[len(text)-1] == '/' {
		re, err := regexp.Compile(text[1 : len(text)-1])
		if err != nil {
			return nil, err
		}
		return func(t Tool) bool { return re.MatchString(t.Name) }, nil
	}
	prefix, star := strings.CutSuffix(text, "*")
	switch {
	case text == "":
		return nil, fmt.Errorf("it is empty")
	case strings.ContainsAny(prefix, "*! "):
		return nil, fmt.Errorf("* stands at the end alone, ! at the beginning")
	case star:
		return func(t Tool) bool { return strings.HasPrefix(t.Name, prefix) }, nil
	}
	return func(t Tool) bool { return t.Name == text }, nil
}

// hint reads the name of an annotation, with or without the "Hint" that MCP writes.
func hint(name string) (fits, error) {
	var of func(*tool.Annotations) *bool
	switch strings.TrimSuffix(name, "Hint") {
	case "readOnly":
		of = func(a *tool.Annotations) *bool { return a.ReadOnlyHint }
	case "destructive":
		of = func(a *tool.Annotations) *bool { return a.DestructiveHint }
	case "idempotent":
		of = func(a *tool.Annotations) *bool { return a.IdempotentHint }
	case "openWorld":
		of = func(a *tool.Annotations) *bool { return a.OpenWorldHint }
	default:
		return nil, fmt.Errorf("the hints are readOnly, destructive, idempotent and openWorld")
	}
	return func(t Tool) bool {
		if t.Annotations == nil {
			return false
		}
		given := of(t.Annotations)
		return given != nil && *given
	}, nil
}
