package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// Fields that nobody knows, and that decide for whoever wrote them whether something runs, or with what. To ignore one
// would run what was not meant, so each is a problem, whose hint has what was meant.

// slip is such a field, or another that stands for a known one.
type slip struct {
	*parser
	level  *level
	object int32 // what it stands in
	key    int32
}

func (s slip) name() string { return s.keyName(s.key) }
func (s slip) value() int32 { return s.key + 1 }

// wishes are what models write for an approval, in a step and in a plan.
var wishes = []string{
	"requires_approval", "require_approval", "needs_approval", "need_approval", "approval_required", "approval_needed", "human_approval", "approve",
	"requires_confirmation", "require_confirmation", "needs_confirmation", "confirmation_required", "confirm", "confirmation", "human_in_the_loop",
}

// guards are what models write for a condition; prerequisites and wait_for mean steps to wait for.
var guards = []string{
	"when", "condition", "conditions", "run_if", "only_if", "run_when", "execute_if", "unless", "skip_if",
	"guard", "precondition", "preconditions", "where",
}

// branches are what models write for the steps behind a condition, and how the step with the condition ended there.
var branches = map[string]string{
	"then": "succeeded", "if_true": "succeeded", "on_true": "succeeded",
	"else": "not_taken", "otherwise": "not_taken", "if_false": "not_taken", "on_false": "not_taken",
}

// handlers are what models write in a plan for on_failure; true means that the plan ends at a failure.
var handlers = map[string]bool{
	"on_error": false, "continue_on_error": false, "continue_on_failure": false,
	"stop_on_error": true, "stop_on_failure": true, "fail_fast": true,
}

// alias returns the field that it stands for; empty where it stands for none that the plan's language has.
func (s slip) alias() string {
	name := s.name()
	meant := s.level.aliases[name]
	_, handles := handlers[name]
	switch {
	case meant != "" || s.level.other == nil || s.refs.language1:
	case slices.Contains(wishes, name):
		meant = "approval"
	case s.level == stepLevel && slices.Contains(guards, name):
		meant = "if"
	case s.level == planLevel && handles:
		meant = "on_failure"
	}
	if s.refs.lacks(meant) {
		return ""
	}
	return meant
}

// why says what is wrong with a field that is refused.
func (s slip) why() string {
	if s.name() == "calls" {
		return `the plan has both "steps" and "calls"`
	}
	return fmt.Sprintf("%q is not a field of %s", s.name(), s.level.name)
}

// refused returns the hint for a field that stands for no other; empty for one that is harmless, as far as anybody
// knows.
func (s slip) refused() string {
	name := s.name()
	if s.refs.language1 || s.tape[s.value()].Kind == jsontape.Null {
		return ""
	}
	switch ended := branches[name]; {
	case s.level == stepLevel && ended != "":
		return s.branch(ended)
	case s.level != planLevel:
		return ""
	case ended != "", slices.Contains(guards, name):
		return `remove it, and write "if" in each step that it is for, as in "if": "$ref:<id>.total > 100"`
	case name == "calls" && s.fieldOf(s.object, "steps") != 0:
		return s.twoForms()
	case (name == "inputs" || name == "variables" || name == "vars") && s.tape[s.value()].Kind == jsontape.Object:
		return fmt.Sprintf(`write the values themselves where they are used, since a plan has no input; or let a step hold them, `+
			`{"id": %q, "value": %s}, and refer to "$ref:%[1]s"`, name, s.parser.value(s.value()))
	}
	return ""
}

// inward returns the hint for an approval or a condition that stands in a for_each or a repeat, where nobody reads it;
// empty for anything else, which is ignored as elsewhere.
func (s slip) inward() string {
	name := s.name()
	switch {
	case s.level != forEachLevel && s.level != repeatLevel, s.refs.language1, s.tape[s.value()].Kind == jsontape.Null:
	case name == "approval" || slices.Contains(wishes, name):
		return fmt.Sprintf(`write "approval": true beside %q, in the step`, s.level.name)
	case name == "if": // of a repeat it is a slip of until
		return "remove it: " + takesAll + `; whether the step runs at all is for an "if" beside "for_each"`
	}
	return ""
}

const takesAll = "a for_each takes every item of its list; let the step that makes the list leave the others out"

const withoutSteps = `leave "steps" out: the calls are the plan`

// twoForms says what to do with calls beside steps: whichever of them ran, the others would be left out.
func (s slip) twoForms() string {
	if steps := s.fieldOf(s.object, "steps"); s.tape[steps].Kind == jsontape.Array && s.tape[steps].Next == steps+1 {
		return withoutSteps
	}
	return `a plan has steps or calls: write each call as a step, {"id", "tool", "arguments"}, and leave "calls" out`
}

// branch says how the steps behind a condition are written.
func (s slip) branch(ended string) string {
	id := s.fieldOf(s.object, "id")
	condition := `"if": "$ref:<id>.total > 100"`
	own := s.fieldOf(s.object, "if")
	switch acts := s.fieldOf(s.object, "tool") != 0 || s.fieldOf(s.object, "value") != 0; {
	case acts && id != 0 && s.tape[id].Kind == jsontape.String:
		condition = `"if": ` + quoteJSON("$status:"+clip(s.str(id))+" == '"+ended+"'")
	case own == 0 || s.tape[own].Kind != jsontape.String:
	case ended == "succeeded":
		condition = s.written("if", own)
	default:
		condition = `"if": ` + quoteJSON("not ("+clip(s.str(own))+")")
	}
	return fmt.Sprintf("remove it, since a step has no branches, and write %s in %s", condition, s.behind())
}

// behind names the steps that a branch leads to.
func (s slip) behind() string {
	if ids := s.ids(); len(ids) == 1 {
		return "step " + ids[0]
	} else if len(ids) > 1 {
		return "each of the steps " + strings.Join(ids, ", ")
	}
	return "each step of that branch, which stand among the other steps"
}

// ids returns the ids that the value holds, in quotes; nil where it is neither an id nor a list of them.
func (s slip) ids() (ids []string) {
	all := []int32{s.value()}
	if v := s.tape[s.value()]; v.Kind == jsontape.Array {
		all = nil
		for n := s.value() + 1; n < v.Next; n = s.tape[n].Next {
			all = append(all, n)
		}
	}
	for _, n := range all {
		if s.tape[n].Kind != jsontape.String || !subjects.ValidStepID(s.str(n)) {
			return nil
		}
		ids = append(ids, quoteJSON(s.str(n)))
	}
	return ids
}

// meant says how a field is written that stands for another one; read reports whether its value can be read as that
// one's own.
func (s slip) meant(field string) (hint string, read bool) {
	name, value := s.name(), s.value()
	kind := s.tape[value].Kind
	switch {
	case kind == jsontape.Null:
	case field == "approval":
		return s.approval()
	case field == "on_failure" && s.level == planLevel:
		return s.onFailure(), false
	case name == "where" && s.fieldOf(s.object, "for_each") != 0:
		return "remove it: " + takesAll, false
	case field == "if" && kind == jsontape.Array && strings.HasPrefix(name, "precondition"):
		if ids := s.ids(); len(ids) > 0 {
			return `write "depends_on": [` + strings.Join(ids, ", ") + "]", false
		}
	}
	return s.aliasHint(name, field, value)
}

// approval says how it is written that a person is to be asked.
func (s slip) approval() (hint string, read bool) {
	const plain = `write "approval": true`
	if s.level == stepLevel && s.needsNone() {
		return "leave it out: this step calls no tool that could wait for an approval", false
	}
	switch v := s.tape[s.value()]; v.Kind {
	case jsontape.True, jsontape.Object:
		return "write " + s.written("approval", s.value()), true
	case jsontape.False:
		return "leave it out: nobody is asked then", false
	case jsontape.String:
		text := s.str(s.value())
		switch strings.ToLower(text) {
		case "false", "no", "never", "none", "":
			return "leave it out: nobody is asked then", false
		case "true", "yes", "always", "required", "human", "manual":
			return plain, false
		}
		if x, err := expression.Compile(text, s.refs.reads); err == nil && len(x.References()) > 0 || s.level == planLevel && s.refs.mayRefer(text) {
			return plain + "; a person is asked each time", false
		}
		return `write "approval": {"ask": ` + quoteJSON(clip(text)) + "}", false
	default:
		return plain, false
	}
}

// needsNone reports whether the step is one that nobody can be asked for: one that asks itself, or a value.
func (s slip) needsNone() bool {
	t := s.fieldOf(s.object, "tool")
	if t == 0 || s.tape[t].Kind == jsontape.Null {
		return s.fieldOf(s.object, "value") != 0
	}
	return s.tape[t].Kind == jsontape.String && s.str(t) == AskTool
}

// onFailure says how it is written what a failure does to the whole plan.
func (s slip) onFailure() string {
	v := s.tape[s.value()]
	stops := handlers[s.name()]
	word := ""
	if v.Kind == jsontape.String {
		word = strings.ToLower(s.str(s.value()))
	}
	switch {
	case v.Kind == jsontape.True:
	case v.Kind == jsontape.False:
		stops = !stops
	case slices.Contains([]string{"stop", "fail", "abort", "halt", "raise", "throw", "error", "exit"}, word):
		stops = true
	case slices.Contains([]string{"continue", "ignore", "skip", "proceed", "resume"}, word):
		stops = false
	default:
		return `remove it, and write "if": "$status:<id> == 'failed'" in the step that deals with the failure of step <id>`
	}
	if stops {
		return `write "on_failure": "stop"`
	}
	return `write "on_failure": "continue", or leave it out: that is the default`
}
