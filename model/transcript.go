package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
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
	t := transcript{system: r.system()}
	native := r.Mode == ModeTools
	if native && !r.Final {
		t.tools = sortedTools(r.Tools)
	}
	if s, strict := r.schema(); s != nil {
		t.schema, t.strict = s, strict
	}
	t.messages(r, 0)
	if !isNull(r.Input) {
		t.say(readable(r.Input))
	}
	for i, round := range r.Rounds {
		if i > 0 {
			t.messages(r, i)
		}
		t.round(i, round, native, m)
	}
	if len(r.Rounds) > 0 {
		t.messages(r, len(r.Rounds))
	}
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

// messages adds those that came before the answer of a round.
func (t *transcript) messages(r *Request, round int) {
	for _, m := range r.Messages {
		if m.Round == round && m.Role != "system" {
			t.turns = append(t.turns, turn{role: role(m.Role), text: string(m.Content)})
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
	return strings.Join(parts, "\n\n")
}

// toolList describes tools that are not offered natively, a line each.
func toolList(tools []Tool) string {
	var b strings.Builder
	b.WriteString("Tools, a JSON object each:")
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

// round adds an answer and what came of it.
func (t *transcript) round(n int, round Round, native bool, m Model) {
	said := turn{role: assistant, text: round.Text}
	if round.Provider.fits(m) {
		said.state = round.Provider
	}
	heard := turn{role: user}
	if native {
		for _, rec := range round.Records {
			said.calls = append(said.calls, Step{ID: rec.ID, Tool: rec.Tool, Arguments: objectOf(rec.Arguments)})
			heard.results = append(heard.results, rec.result())
		}
	} else {
		if !isNull(round.Plan) {
			said.text = string(compact(round.Plan))
		}
		heard.text = "Results of round " + strconv.Itoa(n) + ":\n" + string(encode(orEmpty(round.Records)))
	}
	if said.text == "" && len(said.calls) == 0 && said.state == nil {
		said.text = "(no answer)"
	}
	t.turns = append(t.turns, said)
	if len(heard.results) > 0 || heard.text != "" {
		t.turns = append(t.turns, heard)
	}
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
