package agentcheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/tool"
)

// placeholder is "${…}" in a text, with what it names, unless another dollar stands before it.
var placeholder = regexp.MustCompile(`(^|[^$])\$\{([^{}]*)\}`)

// Texts finds what an agent's texts for its planner ask for and is not there. A part of the input that the input schema
// does not name, and does not rule out, is a warning.
func Texts(d *tool.Definition) (problems, warnings []fault.Problem) {
	var of map[string]json.RawMessage
	if json.Unmarshal(d.Agent, &of) != nil {
		return nil, nil // it is no object: others report that
	}
	in := inputOf(d)
	for _, member := range []string{"instructions", "extra_requirement"} {
		var s string
		if json.Unmarshal(of[member], &s) != nil {
			continue // likewise, or it is not there
		}
		for _, m := range placeholder.FindAllStringSubmatch(s, -1) {
			p, sure := in.judge(m[2])
			if p == nil {
				continue
			}
			p.Path = "/agent/" + member
			if sure {
				problems = append(problems, *p)
			} else {
				warnings = append(warnings, *p)
			}
		}
	}
	return problems, warnings
}

// Sinks are what is wrong with the sinks that an agent's entries name.
func Sinks(a *agent.Definition) (problems []fault.Problem) {
	for _, e := range a.Entries() {
		problems = append(problems, e.BadSinks()...)
	}
	return problems
}

// input is what is known of an agent's input.
type input struct {
	names []string // of its members, sorted
	open  bool     // there may be others
	any   bool     // nothing is known of it
}

func inputOf(d *tool.Definition) input {
	var schema map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(d.InputSchema, &schema) != nil || json.Unmarshal(schema["properties"], &properties) != nil || properties == nil {
		return input{any: true}
	}
	x := input{names: slices.Sorted(maps.Keys(properties)), open: string(schema["additionalProperties"]) != "false"}
	for _, more := range []string{"patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas"} {
		x.any = x.any || schema[more] != nil
	}
	return x
}

// first is the first key of a reference to the input.
var first = regexp.MustCompile(`^input\.([A-Za-z0-9_]+)|^input\["([^"]*)"\]`)

// judge says what is wrong with a placeholder; nil for nothing. sure tells a problem from a warning.
func (in input) judge(what string) (p *fault.Problem, sure bool) {
	word := what
	if i := strings.IndexAny(what, ".["); i >= 0 {
		word = what[:i]
	}
	if word != "input" {
		return &fault.Problem{Code: fault.InvalidRef, Message: fmt.Sprintf("${%s} stands for nothing here", text.Clip(what, 60)),
			Hint: in.hint(what) + "; where the text is meant, double the dollar: $${"}, true
	}
	m := first.FindStringSubmatch(what)
	if m == nil || in.any { // all of the input, or what others refuse
		return nil, false
	}
	if key := m[1] + m[2]; !slices.Contains(in.names, key) {
		return &fault.Problem{Code: fault.ImpossibleRef, Message: fmt.Sprintf("the input schema names no %q, so ${%s} stands for nothing",
			text.Clip(key, 60), text.Clip(what, 60)), Hint: in.hint(key)}, !in.open
	}
	return nil, false
}

// hint names what there is.
func (in input) hint(wanted string) string {
	if len(in.names) == 0 {
		return "there is ${input}, with what the agent is called with behind a dot: ${input.topic}"
	}
	names := in.names
	if slices.Contains(names, wanted) {
		names = []string{wanted}
	} else if near := text.Nearest(wanted, names); len(near) > 0 {
		names = near
	}
	const most = 8
	all := make([]string, min(len(names), most))
	for i := range all {
		all[i] = "${input." + names[i] + "}"
	}
	hint := "there is " + strings.Join(all, ", ")
	if more := len(names) - len(all); more > 0 {
		hint += fmt.Sprintf(" and %d more", more)
	}
	return hint
}
