package model

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// The form of Anthropic's Messages.

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Mark        *mark           `json:"cache_control,omitempty"`
}

type anthropicMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type anthropicText struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Mark *mark  `json:"cache_control,omitempty"`
}

type anthropicUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type anthropicResult struct {
	Type    string `json:"type"`
	ID      string `json:"tool_use_id"`
	Content string `json:"content"`
	IsError bool   `json:"is_error,omitempty"`
	Mark    *mark  `json:"cache_control,omitempty"`
}

// mark asks for all up to the end of its block to be kept in the prompt cache. It is no part of what is compared there. A
// request has it behind the instructions, which other conversations begin with, too; behind the last part that the next
// request has as well, and not behind the tail, which nobody sends again; and where the request before had that one, since
// the provider looks for earlier marks no more than twenty blocks back.
type mark struct {
	Type string `json:"type"`
}

var ephemeral = &mark{"ephemeral"}

// anthropicBody writes the request. An answer by schema is the arguments of a call that has to be made.
func anthropicBody(t transcript, m Model) []byte {
	var o body
	o.add("model", m.ID)
	o.add("max_tokens", m.MaxOutputTokens)
	o.add("stream", true)
	o.extras(m)
	tools := make([]anthropicTool, 0, len(t.tools))
	for _, tool := range t.tools {
		tools = append(tools, anthropicTool{Name: wireName(tool.Name), Description: tool.Description, InputSchema: tool.inputSchema()})
	}
	if t.schema != nil {
		tools = append(tools, anthropicTool{Name: answerName, Description: "Takes the answer.", InputSchema: Tool{InputSchema: t.schema}.inputSchema()})
		o.add("tool_choice", map[string]string{"name": answerName, "type": "tool"})
	}
	if t.system == "" && len(tools) > 0 {
		tools[len(tools)-1].Mark = ephemeral
	}
	if len(tools) > 0 {
		o.add("tools", tools)
	}
	if t.system != "" {
		o.add("system", []anthropicText{{"text", t.system, ephemeral}})
	}
	messages := anthropicMessages(t)
	now, before := t.kept()
	for _, i := range []int{now, before} {
		if i >= 0 {
			messages[i].mark()
		}
	}
	o.add("messages", messages)
	return o.json()
}

// mark marks the end of a message, where it is one that may be marked.
func (m *anthropicMessage) mark() {
	if len(m.Content) == 0 {
		return
	}
	switch last := m.Content[len(m.Content)-1].(type) {
	case anthropicText:
		last.Mark = ephemeral
		m.Content[len(m.Content)-1] = last
	case anthropicResult:
		last.Mark = ephemeral
		m.Content[len(m.Content)-1] = last
	}
}

func anthropicMessages(t transcript) []anthropicMessage {
	all := []anthropicMessage{}
	var wanted []Step // of the state before
	for _, turn := range t.turns {
		msg := anthropicMessage{Role: string(turn.role)}
		switch {
		case turn.state != nil:
			wanted = []Step{}
			for _, item := range turn.state.Items {
				msg.Content = append(msg.Content, compact(item))
				wanted = append(wanted, anthropicCalls(item)...)
			}
		case turn.role == assistant:
			msg.Content, wanted = anthropicSaid(turn), nil
		default:
			msg.Content, wanted = anthropicHeard(turn, wanted), nil
		}
		all = append(all, msg)
	}
	return all
}

func anthropicSaid(turn turn) (blocks []any) {
	if strings.TrimSpace(turn.text) != "" || len(turn.calls) == 0 { // a block of text may not be blank
		blocks = append(blocks, anthropicText{Type: "text", Text: notBlank(turn.text)})
	}
	for _, c := range turn.calls {
		blocks = append(blocks, anthropicUse{"tool_use", c.ID, wireName(c.Tool), c.Arguments})
	}
	return blocks
}

// anthropicHeard writes results first, as the API wants them. Where the answer itself was a call, its result is what
// came of it.
func anthropicHeard(turn turn, wanted []Step) (blocks []any) {
	results, text := answers(turn.results, wanted), turn.text
	if len(turn.results) == 0 && len(results) > 0 && text != "" {
		results[0].text, results[0].failed, text = text, false, ""
	}
	for _, r := range results {
		blocks = append(blocks, anthropicResult{Type: "tool_result", ID: r.id, Content: r.text, IsError: r.failed})
	}
	if text != "" || len(blocks) == 0 {
		blocks = append(blocks, anthropicText{Type: "text", Text: notBlank(text)})
	}
	return blocks
}

func notBlank(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}

// anthropicEvent is an event of the stream.
type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		JSON       string `json:"partial_json"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage *anthropicUsage `json:"usage"`
}

type anthropicUsage struct {
	Input   count `json:"input_tokens"`
	Output  count `json:"output_tokens"`
	Read    count `json:"cache_read_input_tokens"`
	Written count `json:"cache_creation_input_tokens"`
}

// block is one of the answer's.
type block struct {
	kind      string
	raw       json.RawMessage // as it began
	text      strings.Builder
	signature strings.Builder
	call      *written
}

// anthropicStream reads the events of an answer.
type anthropicStream struct {
	blocks map[int]*block
	used   anthropicUsage
}

func (s *anthropicStream) event(a *assembly, _ string, data []byte) *Failure {
	var e anthropicEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return &Failure{Kind: Broken, Message: "an event that is no JSON of this API"}
	}
	switch e.Type {
	case "error":
		return a.failed(data)
	case "message_start":
		s.count(a, e.Message.Usage)
	case "content_block_start":
		return s.begin(a, e)
	case "content_block_delta":
		s.more(a, e)
	case "message_delta":
		if e.Usage != nil {
			s.count(a, *e.Usage)
		}
		if e.Delta.StopReason != "" {
			a.finish(anthropicFinish(e.Delta.StopReason))
		}
	case "message_stop":
		a.ended = true
	}
	return nil // ping, and what later versions add
}

// count takes the usage as far as it is told: what it counts is counted from the beginning.
func (s *anthropicStream) count(a *assembly, u anthropicUsage) {
	t := &s.used
	t.Input, t.Output = max(t.Input, u.Input), max(t.Output, u.Output)
	t.Read, t.Written = max(t.Read, u.Read), max(t.Written, u.Written)
	a.usage.InputTokens = int64(t.Input + t.Read + t.Written)
	a.usage.OutputTokens, a.usage.CachedTokens, a.usage.CacheWriteTokens = int64(t.Output), int64(t.Read), int64(t.Written)
}

func (s *anthropicStream) begin(a *assembly, e anthropicEvent) *Failure {
	var start struct{ Type, ID, Name, Text string }
	if json.Unmarshal(e.Block, &start) != nil || s.blocks[e.Index] != nil {
		return &Failure{Kind: Broken, Message: "a block that is none of this API"}
	}
	b := &block{kind: start.Type, raw: e.Block}
	if s.blocks == nil {
		s.blocks = map[int]*block{}
	}
	s.blocks[e.Index] = b
	a.bytes += len(e.Block)
	switch start.Type {
	case "tool_use":
		b.call = a.call(start.ID, start.Name)
	case "text":
		b.text.WriteString(start.Text)
		a.say(start.Text)
	}
	return nil
}

func (s *anthropicStream) more(a *assembly, e anthropicEvent) {
	b := s.blocks[e.Index]
	if b == nil {
		return
	}
	switch d := e.Delta; d.Type {
	case "text_delta":
		b.text.WriteString(d.Text)
		a.say(d.Text)
	case "input_json_delta":
		if b.call != nil {
			a.argue(b.call, d.JSON)
			if b.call.name == answerName {
				a.watch(d.JSON)
			}
		}
	case "thinking_delta":
		b.text.WriteString(d.Thinking)
		a.bytes += len(d.Thinking)
	case "signature_delta":
		b.signature.WriteString(d.Signature)
		a.bytes += len(d.Signature)
	}
}

func anthropicFinish(reason string) ending {
	switch reason {
	case "max_tokens":
		return cut
	case "refusal":
		return refused
	case "model_context_window_exceeded":
		return full
	}
	return whole
}

// state is the content as it has to go back, where the model has thought: the provider checks the signatures.
func (s *anthropicStream) state(*assembly) (items []json.RawMessage) {
	thought := false
	for _, i := range slices.Sorted(maps.Keys(s.blocks)) {
		b := s.blocks[i]
		var o body
		switch b.kind {
		case "text":
			if strings.TrimSpace(b.text.String()) == "" {
				continue
			}
			o.add("type", "text")
			o.add("text", b.text.String())
		case "tool_use":
			args, _, ok := b.call.object()
			if !ok {
				return nil // what is no object can't go back; it is rendered anew
			}
			items = append(items, encode(anthropicUse{"tool_use", b.call.id, b.call.name, args}))
			continue
		case "thinking":
			thought = true
			o.add("type", "thinking")
			o.add("thinking", b.text.String())
			o.add("signature", b.signature.String())
		default: // redacted_thinking, and what later versions add, came whole
			thought = true
			items = append(items, compact(b.raw))
			continue
		}
		items = append(items, o.json())
	}
	if !thought {
		return nil
	}
	return items
}
