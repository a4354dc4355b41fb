package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// transcript is a request as a conversation, before it is put into the form of a provider. It only grows: that of a
// later round begins with that of an earlier one, but for what the tail says.
type transcript struct {
	system string
	tools  []Tool // offered natively, by name
	turns  []turn
	schema json.RawMessage // of the answer; nil for text and native calls
	strict bool            // the schema is the asker's own, and the answer is its value
	ids    map[string]bool // of native calls: no two of a conversation may have the same
}

// turn is what one side says at a time.
type turn struct {
	role    role
	text    string
	calls   []Step   // of the model
	results []result // of calls
	state   *State   // of the provider, instead of text and calls
}

type role string

const (
	user      role = "user"
	assistant role = "assistant"
)

// result is what a call came to, as text.
type result struct {
	id, text string
	failed   bool
}

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
	}
	if len(t.turns) == 0 || t.turns[len(t.turns)-1].role == assistant {
		t.say("Go on.") // a provider answers a user, and asks for at least one message
	}
	return t
}

func sortedTools(tools []Tool) []Tool {
	tools = slices.Clone(tools)
	slices.SortFunc(tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return tools
}

func (t *transcript) say(text string) { t.turns = append(t.turns, turn{role: user, text: text}) }

// messages adds those that came after the beginning of one round, and before the answer of another.
func (t *transcript) messages(r *Request, after, before int) {
	for _, m := range r.Messages {
		if m.Round > after && m.Round <= before {
			t.message(m)
		}
	}
}

func (t *transcript) message(m Message) {
	if m.Role != "system" { // those stand in the system prompt
		t.turns = append(t.turns, turn{role: role(m.Role), text: string(m.Content)})
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

// toolLines writes tools by name, a line each.
func toolLines(tools []Tool) string {
	var b strings.Builder
	for _, t := range sortedTools(tools) {
		t.InputSchema, t.OutputSchema = compactOrNil(t.InputSchema), compactOrNil(t.OutputSchema)
		b.WriteString("\n")
		b.Write(encode(t))
	}
	return b.String()
}

func compactOrNil(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return nil
	}
	return compact(raw)
}

func orEmpty(records []Record) []Record {
	if records == nil {
		return []Record{}
	}
	return records
}

// objectOf returns arguments as an object; those of a call that were none become one, since providers take no other.
func objectOf(raw json.RawMessage) json.RawMessage {
	switch {
	case isObject(raw):
		return compact(raw)
	case isNull(raw):
		return json.RawMessage("{}")
	}
	return encode(map[string]json.RawMessage{"arguments": compact(raw)})
}

// result is what a model is told of a call: its result, or its error.
func (rec Record) result() result {
	out := result{id: rec.ID}
	switch {
	case !isNull(rec.Error):
		out.text, out.failed = `{"error":`+string(compact(rec.Error))+`}`, true
	case !isNull(rec.Result):
		out.text = readable(rec.Result)
	case rec.Status != "" && rec.Status != "succeeded":
		out.text, out.failed = string(encode(map[string]string{"status": rec.Status})), true
	default:
		out.text = "null"
	}
	if rec.Note != "" {
		out.text += "\n" + rec.Note
	}
	return out
}

// readable returns a string as its text, any other value as JSON.
func readable(raw json.RawMessage) string {
	var text string
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) && json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(compact(raw))
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
