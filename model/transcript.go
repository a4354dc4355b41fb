package model

import (
	"encoding/json"
	"strings"
)

// converse makes a conversation of a request that is asked of a model.
func converse(r *Request, m Model) transcript {
	t := transcript{system: r.system(), ids: map[string]bool{}}
	native := r.Mode == ModeTools
	if native && !r.Final {
		t.tools = sortedTools(r.Tools)
	}
	if s, strict := r.schema(); s != nil {
		t.schema, t.strict = s, strict
	}
	t.messages(r, -1, 0)
	if !isNull(r.Input) {
		t.say(readable(r.Input))
	}
	told, before := 0, 0
	for i, round := range r.Rounds {
		first, last := round.span(before, i == 0)
		t.messages(r, told, first)
		t.round(first, round, native, m)
		told, before = first, last
	}
	t.messages(r, told, r.next())
	t.toolChanges(r.ToolChanges, native)
	if tail := r.tail(); tail != "" {
		t.say(tail)
		t.tailed = true
	}
	if len(t.turns) == 0 || t.turns[len(t.turns)-1].role == assistant {
		t.say("Go on.") // a provider answers a user, and asks for at least one message
		t.tailed = true
	}
	return t
}

// messages adds those that came after the beginning of one round, and before the answer of another.
func (t *transcript) messages(r *Request, after, before int) {
	for _, m := range r.Messages {
		if m.Round > after && m.Round <= before {
			t.message(m)
		}
	}
}

// system is the system prompt: the same in every round.
func (r *Request) system() string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(r.Instructions)
	add(r.ExtraRequirement)
	for _, m := range r.Messages {
		if m.Role == "system" {
			add(string(m.Content))
		}
	}
	if form := forms[r.Mode]; form != "" && !r.Final {
		add(form)
		add(toolList(r.Tools))
	}
	if r.Mode != ModeText && !isNull(r.OutputSchema) {
		add("The output at the end is a value of this JSON Schema:\n" + string(compact(r.OutputSchema)))
	}
	return strings.Join(parts, "\n\n")
}

// toolList describes tools that are not offered natively.
func toolList(tools []Tool) string { return "Tools, a JSON object each:" + toolLines(tools) }

// began is what a model is told of calls that had begun in an attempt before this one, by whether its answer names its calls itself.
var began = map[bool]string{
	false: "Calls that began while an answer was written that broke off. They are part of this answer, whatever it says: don't make them again",
	true: "Steps that began while a plan was written that broke off. They are part of this plan, whatever it says, and are not made again: " +
		"to refer to one, write it again as it was, under its id",
}

// tail is what is true of this request alone; the next one of the conversation has another.
func (r *Request) tail() string {
	var parts []string
	add := func(what string, v json.RawMessage) {
		if !isNull(v) {
			parts = append(parts, what+":\n"+string(compact(v)))
		}
	}
	add("State", r.State)
	add("Facts", r.Facts)
	add("Tools that can't be called yet", r.Locked)
	add(began[r.Mode == ModePlan], r.Began)
	add("An output that did not count, since a call beside it failed", r.DroppedOutput)
	if r.Final {
		add("Results of all actions", r.ActionResults)
		if r.ExtraInstruction != "" {
			parts = append(parts, r.ExtraInstruction)
		}
		parts = append(parts, "Give the final answer now. Call no tools.")
	}
	return strings.Join(parts, "\n\n")
}
