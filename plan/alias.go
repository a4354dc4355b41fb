package plan

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// What models write instead of a step's fields, and the field that they mean; for those that decide whether a step runs
// see slip.
var stepAliases = map[string]string{
	"args": "arguments", "params": "arguments", "parameters": "arguments", "input": "arguments", "inputs": "arguments",
	"depends": "depends_on", "dependencies": "depends_on", "deps": "depends_on", "dep": "depends_on", "needs": "depends_on",
	"requires": "depends_on", "prerequisites": "depends_on", "wait_for": "depends_on", "after": "depends_on",
	"sub_plan": "plan", "subplan": "plan", "subPlan": "plan", "retries": "retry", "on_error": "optional", "continue_on_error": "optional",
}

// Names that mean a field only where that is absent; elsewhere they are labels. The first of them that stands there
// counts.
var stepLabels = []label{
	{"$calc", stepValue}, {"calc", stepValue}, {"calculate", stepValue}, {"compute", stepValue}, {"expression", stepValue}, {"formula", stepValue},
	{"tool_name", stepTool}, {"function", stepTool}, {"action", stepTool}, {"name", stepTool}, {"step_id", stepID},
}

type label struct {
	name  string
	field int
}

// byLabels reads the labels of a step in the place of fields that are absent, and takes the others for foreign fields.
func (p *parser) byLabels(l *level, keys []int32, m *members, at place) {
	for _, want := range l.labels {
		for n, key := range keys {
			if key == 0 || p.keyName(key) != want.name {
				continue
			}
			if m.has(want.field) || want.field == stepTool && m[stepPlan]+m[stepAgent] != 0 || p.tape[key+1].Kind == jsontape.Null {
				p.foreign(l, key, at)
			} else {
				p.byLabel(l, want, key, m, at)
			}
			keys[n] = 0
		}
	}
}

// has reports whether a field of a step is there, or another that says what the step does.
func (m *members) has(field int) bool {
	if field == stepTool || field == stepValue {
		return m[stepTool] != 0 || m[stepValue] != 0
	}
	return m[field] != 0
}

// byLabel reads one label as the field that is absent. An object such as {"name", "arguments"} stands for two fields.
func (p *parser) byLabel(l *level, want label, key int32, m *members, at place) {
	value := key + 1
	message := fmt.Sprintf("%q is not a field of %s, and %q is absent", want.name, l.name, l.fields[want.field])
	inner, arguments := p.calledIn(value)
	switch {
	case want.field == stepTool && inner != 0:
		hint := "write " + p.written("tool", inner)
		m[stepTool] = inner
		p.note(inner, want.name)
		if arguments != 0 {
			hint += ", " + p.written("arguments", arguments)
			if m[stepArguments] == 0 {
				m[stepArguments] = arguments
				p.note(arguments, want.name)
			}
		}
		p.fieldProblem(at, want.name, message, hint)
	case want.field == stepValue && p.tape[value].Kind == jsontape.String:
		m[stepValue] = value
		p.fieldProblem(at, want.name, message, `write "value": {"$calc": `+p.value(value)+"}")
	default:
		m[want.field] = value
		p.fieldProblem(at, want.name, message, "write "+p.written(l.fields[want.field], value))
	}
}

// calledIn returns the name and the arguments in an object such as {"name", "arguments"}, 0 for what is not there.
func (p *parser) calledIn(object int32) (name, arguments int32) {
	if p.tape[object].Kind != jsontape.Object {
		return 0, 0
	}
	for k := object + 1; k < p.tape[object].Next; k = p.tape[k+1].Next {
		switch p.keyName(k) {
		case "name", "tool":
			name = k + 1
		case "arguments", "args", "parameters", "input":
			arguments = k + 1
		}
	}
	return name, arguments
}

// note keeps which object a value stands in that was read as if it stood in the step itself, for its pointer.
func (p *parser) note(value int32, object string) {
	if p.inside == nil {
		p.inside = map[int32]string{}
	}
	p.inside[value] = object
}

// aliasHint says what to write for an alias or a near miss, with the value at hand; read reports whether that value can
// be read as the field's own.
func (p *parser) aliasHint(name, field string, value int32) (hint string, read bool) {
	v := p.tape[value]
	switch {
	case v.Kind == jsontape.Null:
		return fmt.Sprintf("write %q, or leave it out", field), true
	case name == "on_error", name == "continue_on_error":
		return p.optionalHint(value), false
	case field == "if":
		return (&expressionReader{parser: p, field: "if"}).elsewhere(name, value)
	case field == "retry" && v.Kind == jsontape.Number:
		return p.retriesHint(value), false
	case (field == "depends_on" || field == "output_steps") && v.Kind == jsontape.String:
		return fmt.Sprintf("write %q: %s", field, listOfIDs(p.str(value))), false
	}
	return "write " + p.written(field, value), true
}

// optionalHint says what on_error and continue_on_error are written as.
func (p *parser) optionalHint(value int32) string {
	stops := p.tape[value].Kind == jsontape.False
	if p.tape[value].Kind == jsontape.String {
		switch strings.ToLower(p.str(value)) {
		case "stop", "fail", "abort", "halt", "raise", "throw", "error":
			stops = true
		}
	}
	if stops {
		return `leave it out: what needs this step is skipped anyway; to end the whole run at a failure, write "on_failure": "stop" beside "steps"`
	}
	return `write "optional": true`
}

// retriesHint says how a number of retries is written.
func (p *parser) retriesHint(value int32) string {
	n, err := strconv.Atoi(p.src[p.tape[value].Start:p.tape[value].End])
	if err != nil || n < 0 {
		return `write "retry": {"max_attempts": 3}`
	}
	return fmt.Sprintf(`write "retry": {"max_attempts": %d}, which counts the first attempt too`, min(n+1, tool.MaxAttempts))
}

// listOfIDs writes ids that stand in one string as an array.
func listOfIDs(s string) string {
	ids := strings.FieldsFunc(clip(s), func(r rune) bool { return r == ',' || r == ';' || r == ' ' })
	for i := range ids {
		ids[i] = quoteJSON(strings.TrimPrefix(ids[i], refPrefix))
	}
	return "[" + strings.Join(ids, ", ") + "]"
}

// maxWritten is the longest value that a hint repeats.
const maxWritten = 160

// written writes a field with a value of the plan, shortened where it is long.
func (p *parser) written(field string, value int32) string {
	return fmt.Sprintf("%q: %s", field, p.value(value))
}

// value returns a value as it stands in the plan; only its brackets where it is long.
func (p *parser) value(n int32) string {
	v := p.tape[n]
	raw := p.src[v.Start:v.End]
	switch {
	case len(raw) <= maxWritten && !strings.ContainsAny(raw, "\n\r\t"):
		return strings.ToValidUTF8(raw, "\uFFFD")
	case v.Kind == jsontape.Object:
		return "{…}"
	case v.Kind == jsontape.Array:
		return "[…]"
	case v.Kind == jsontape.String:
		return quoteJSON(clip(p.str(n)))
	}
	return clip(raw)
}

// quoteJSON writes a JSON string as a model would write it.
func quoteJSON(s string) string { return string(jsontape.AppendQuoted(nil, s)) }

// wrappers are the keys of an object around a plan.
var wrappers = []string{"plan", "arguments", "args", "input", "parameters", "function", RecursiveTool}

// wrapped reports a plan that stands within something else: {"plan": …}, or a call of execute_tool_plan.
func (p *parser) wrapped() bool {
	if p.fieldOf(0, "steps") != 0 {
		return false
	}
	var keys []string
	object := int32(0)
	for range 3 { // {"function": {"arguments": {"plan": …}}} and no deeper
		value, key := p.planBelow(object)
		if value == 0 {
			return false
		}
		keys = append(keys, key)
		if p.holdsPlan(value) {
			p.wrappedIn(keys, value)
			return true
		}
		if object = value; p.tape[value].Kind != jsontape.Object {
			return false
		}
	}
	return false
}

// planBelow returns the value of the first wrapper that an object has.
func (p *parser) planBelow(object int32) (value int32, key string) {
	for _, key := range wrappers {
		if value := p.fieldOf(object, key); value != 0 && (p.tape[value].Kind == jsontape.Object || p.tape[value].Kind == jsontape.String || p.tape[value].Kind == jsontape.Array) {
			return value, key
		}
	}
	return 0, ""
}

// holdsPlan reports whether a value is a plan: an object with steps, a string that holds one, or steps alone.
func (p *parser) holdsPlan(value int32) bool {
	switch v := p.tape[value]; v.Kind {
	case jsontape.Object:
		return p.fieldOf(value, "steps") != 0
	case jsontape.Array:
		return p.tape[value-1].Kind == jsontape.String && p.keyName(value-1) == "plan"
	case jsontape.String:
		var in struct {
			Steps json.RawMessage `json:"steps"`
		}
		return strings.HasPrefix(strings.TrimSpace(p.str(value)), "{") && json.Unmarshal([]byte(p.str(value)), &in) == nil && in.Steps != nil
	default: // a scalar that is no text holds no plan
	}
	return false
}

func (p *parser) wrappedIn(keys []string, value int32) {
	where := strings.Join(keys, ".")
	hint := fmt.Sprintf(`write what stands under %q, and nothing around it: {"steps": [`, where)
	if p.tape[value].Kind == jsontape.Array {
		hint = fmt.Sprintf(`write "steps" for %q: {"steps": [`, where)
	} else if p.tape[value].Kind == jsontape.String {
		hint = fmt.Sprintf(`write the object that the string under %q holds, and nothing around it: {"steps": [`, where)
	}
	var at []byte
	for _, key := range keys {
		at = jsontape.AppendToken(at, key)
	}
	p.col.add(fault.EmptyPlan, string(at), fmt.Sprintf("the plan is wrapped in %q; its steps have to stand at the top", where), hint+"…]}")
}

// fieldOf returns the value of an object's member, 0 where it has none.
func (p *parser) fieldOf(object int32, name string) int32 {
	if p.tape[object].Kind != jsontape.Object {
		return 0
	}
	for k := object + 1; k < p.tape[object].Next; k = p.tape[k+1].Next {
		if p.keyName(k) == name {
			return k + 1
		}
	}
	return 0
}
