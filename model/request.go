package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// Mode is the form in which a model is to answer.
type Mode string

// The modes.
const (
	// ModeText asks for text, or for a value where the request has an output schema.
	ModeText Mode = "text"
	// ModeTools offers the tools natively; calls become steps.
	ModeTools Mode = "tools"
	// ModePlan asks for a plan: {"steps": […], "output"?}.
	ModePlan Mode = "plan"
	// ModeCalls asks for calls of the state dialect: {"calls": […], "output"}.
	ModeCalls Mode = "calls"
	// ModeCommands asks for {"next_action", "execution_commands": […]}.
	ModeCommands Mode = "commands"
)

// Modes are all modes, in the order in which they are documented.
var Modes = []Mode{ModeText, ModeTools, ModePlan, ModeCalls, ModeCommands}

// Request is what a model is asked. A step of a plan gives instructions and an input, or messages; an agent's loop adds
// tools and the rounds so far. Fields that stand in a planner request and are views of others (plan, done_plans,
// last_round_records) or the loop's own (round, max_rounds, budget) are read over.
type Request struct {
	// Model is the name of a model in the tool's configuration; empty where that has one model, or a default.
	Model string `json:"model,omitempty"`
	// Mode is the form of the answer; empty: ModeTools where there are tools, else ModeText.
	Mode Mode `json:"mode,omitempty"`
	// Instructions and ExtraRequirement make the system prompt.
	Instructions     string `json:"instructions,omitempty"`
	ExtraRequirement string `json:"extra_requirement,omitempty"`
	// Input is what is asked: a string as it is, another value as JSON.
	Input json.RawMessage `json:"input,omitempty"`
	// Messages are those of a conversation, in its order.
	Messages []Message `json:"messages,omitempty"`
	// Tools are what may be called.
	Tools []Tool `json:"tools,omitempty"`
	// Rounds are what was answered before, and what came of it.
	Rounds []Round `json:"rounds,omitempty"`
	// State and Facts are shown after the rounds.
	State json.RawMessage `json:"state,omitempty"`
	Facts json.RawMessage `json:"facts,omitempty"`
	// ToolChanges says how the tools have changed since the round before, and Locked of those that can't be called yet why
	// not.
	ToolChanges *ToolChanges    `json:"tool_changes,omitempty"`
	Locked      json.RawMessage `json:"locked,omitempty"`
	// Final asks for the last answer: no tools are offered. ActionResults and ExtraInstruction go with it.
	Final            bool            `json:"final,omitempty"`
	ActionResults    json.RawMessage `json:"action_results,omitempty"`
	ExtraInstruction string          `json:"extra_instruction,omitempty"`
	// DroppedOutput is an output that did not count, because a call beside it failed.
	DroppedOutput json.RawMessage `json:"dropped_output,omitempty"`
	// Began are calls that had begun while an answer was written that broke off.
	Began json.RawMessage `json:"began,omitempty"`
	// OutputSchema is the JSON Schema of the answer's output: in ModeText and of a final answer it is asked for, in the
	// other modes told.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// MaxOutputTokens bounds the answer; 0: as the model's configuration says.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
}

// Message is one of a conversation.
type Message struct {
	// Role is "user", "assistant" or "system"; the latter is added to the instructions.
	Role string `json:"role"`
	// Content is a string, or a list of {"type": "text", "text"}.
	Content Content `json:"content"`
	// Round is the number of the round before whose answer the message came, from 0: those of a run that goes on stand
	// between its rounds, so that a request only grows at its end.
	Round int `json:"round,omitempty"`
}

// Content is the text of a message.
type Content string

// UnmarshalJSON reads a string, or a list of texts, which are joined by a line break.
func (c *Content) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = Content(text)
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return fmt.Errorf("a content is a string, or a list of {\"type\": \"text\", \"text\": …}")
	}
	var texts []string
	for _, p := range parts {
		if p.Type != "text" {
			return fmt.Errorf("a part of type %q: only \"text\" can be sent", p.Type)
		}
		texts = append(texts, p.Text)
	}
	*c = Content(strings.Join(texts, "\n"))
	return nil
}

// Tool is one that may be called.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

// ToolChanges are tools that are there now, or are others than before, and the names of those that are there no more.
// Tools are sent as those of the first round, so that a request begins as the one before; what changes is told.
type ToolChanges struct {
	Added []Tool   `json:"added,omitempty"`
	Gone  []string `json:"gone,omitempty"`
}

// Round is an answer and what came of it.
type Round struct {
	// Number is the round's, from 0; nil: that of the round before, and one.
	Number *int `json:"round,omitempty"`
	// Messages and ToolChanges are what came before the answer.
	Messages    []Message    `json:"messages,omitempty"`
	ToolChanges *ToolChanges `json:"tool_changes,omitempty"`
	// Plan is what was answered: steps, calls or commands.
	Plan json.RawMessage `json:"plan,omitempty"`
	// Text is what the answer said beside its calls.
	Text string `json:"text,omitempty"`
	// Records are what its calls came to.
	Records []Record `json:"records,omitempty"`
	// Provider is the state that came with the answer.
	Provider *State `json:"provider_state,omitempty"`
	// Problems say what was wrong with an answer that could not be used.
	Problems json.RawMessage `json:"problems,omitempty"`
	// LeftOut is how many more calls there were.
	LeftOut int `json:"records_left_out,omitempty"`

	// Cut says that of a round ids, statuses and sizes are left. Span are the first and the last of several rounds that
	// have become one entry, with a Summary, or as many Calls of which so many Failed, and the Bytes of their results.
	Cut     bool   `json:"cut,omitempty"`
	Span    []int  `json:"rounds,omitempty"`
	Summary string `json:"summary,omitempty"`
	Calls   int    `json:"calls,omitempty"`
	Failed  int    `json:"failed,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
}

// Record is what one call came to.
type Record struct {
	ID             string          `json:"id"`
	Tool           string          `json:"tool,omitempty"`
	Purpose        string          `json:"purpose,omitempty"`
	Arguments      json.RawMessage `json:"arguments,omitempty"`
	TodoSuggestion string          `json:"todo_suggestion,omitempty"`
	Next           string          `json:"next,omitempty"`
	Status         string          `json:"status,omitempty"`
	Result         json.RawMessage `json:"result,omitempty"`
	Error          json.RawMessage `json:"error,omitempty"`
	// Note is told beside the result. Bytes is how many the result has where it is a preview or left out.
	Note  string `json:"note,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	MS    int64  `json:"ms,omitempty"`
}

// ParseRequest reads a request and fills in its mode. Errors have code invalid_arguments and say what to write instead.
func ParseRequest(raw []byte) (*Request, error) {
	var r Request
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fault.New(fault.InvalidArguments, "the request can't be read: %v", err).
			WithHint("docs/models.md lists the fields of a request")
	}
	if r.Mode == "" {
		r.Mode = ModeText
		if len(r.Tools) > 0 {
			r.Mode = ModeTools
		}
	}
	return &r, r.check()
}

func (r *Request) check() error {
	wrong := func(format string, args ...any) *fault.Error {
		return fault.New(fault.InvalidArguments, format, args...)
	}
	if !r.Mode.known() {
		return wrong("the mode %q is none", r.Mode).WithHint("one of %s", modeNames())
	}
	for n, round := range r.Rounds {
		if len(round.Span) != 0 && (len(round.Span) != 2 || round.Span[0] < 0 || round.Span[1] < round.Span[0]) {
			return wrong("rounds/%d: %v are not the first and the last of several rounds", n, round.Span)
		}
		for i, m := range round.Messages {
			if m.Role != "user" && m.Role != "assistant" {
				return wrong("rounds/%d/messages/%d: the role %q is none", n, i, m.Role).WithHint("user or assistant")
			}
		}
	}
	for i, m := range r.Messages {
		if m.Role != "user" && m.Role != "assistant" && m.Role != "system" {
			return wrong("messages/%d: the role %q is none", i, m.Role).WithHint("user, assistant or system")
		}
		if m.Round < 0 || m.Round > r.next() {
			return wrong("messages/%d: it came before round %d, and this one is %d", i, m.Round, r.next()).
				WithHint("round counts from 0; a message without one stands before all rounds")
		}
	}
	names := map[string]bool{}
	for i, t := range r.Tools {
		if t.Name == "" || names[t.Name] {
			return wrong("tools/%d: the name %q is empty or there twice", i, t.Name)
		}
		names[t.Name] = true
		if len(t.InputSchema) > 0 && !isObject(t.InputSchema) {
			return wrong("tools/%d: the inputSchema of %q is no object", i, t.Name)
		}
	}
	if len(r.OutputSchema) > 0 && !isObject(r.OutputSchema) && !isNull(r.OutputSchema) {
		return wrong("the outputSchema is no object").WithHint("a JSON Schema, such as {\"type\": \"object\", …}")
	}
	if r.MaxOutputTokens < 0 {
		return wrong("max_output_tokens is %d", r.MaxOutputTokens)
	}
	if len(r.Messages) == 0 && isNull(r.Input) && r.Instructions == "" {
		return wrong("there is nothing to answer").WithHint("give instructions and an input, or messages")
	}
	return nil
}

// next is the number of the round that the request asks for an answer in.
func (r *Request) next() int {
	last := -1
	for i, round := range r.Rounds {
		_, last = round.span(last, i == 0)
	}
	return last + 1
}

// span returns the first and the last round that an entry stands for; before is that of the entry before, if any.
func (r Round) span(before int, isFirst bool) (first, last int) {
	switch {
	case len(r.Span) == 2:
		return r.Span[0], r.Span[1]
	case r.Number != nil:
		return *r.Number, *r.Number
	case isFirst:
		return 0, 0
	}
	return before + 1, before + 1
}

func (m Mode) known() bool {
	for _, k := range Modes {
		if m == k {
			return true
		}
	}
	return false
}

func modeNames() string {
	var all []string
	for _, m := range Modes {
		all = append(all, string(m))
	}
	return strings.Join(all, ", ")
}

func isObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

// isNull reports whether a value is absent or null.
func isNull(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}
