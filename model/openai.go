package model

import "encoding/json"

// The form of OpenAI's Chat Completions, which all compatible endpoints speak.

type openAITool struct {
	Type     string         `json:"type"`
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type openAIMessage struct {
	Role      string       `json:"role"`
	Content   *string      `json:"content,omitempty"`
	ToolCalls []openAICall `json:"tool_calls,omitempty"`
	CallID    string       `json:"tool_call_id,omitempty"`
}

type openAICall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// openAIBody writes the request; messages stand last, so that a longer conversation begins with the bytes of a shorter
// one.
func openAIBody(t transcript, m Model) []byte {
	var o body
	own := m.BaseURL == ""
	o.add("model", m.ID)
	o.add("stream", true)
	o.add("stream_options", map[string]bool{"include_usage": true})
	if own { // others know the older name
		o.add("max_completion_tokens", m.MaxOutputTokens)
		o.add("prompt_cache_key", t.cacheKey())
	} else {
		o.add("max_tokens", m.MaxOutputTokens)
	}
	o.extras(m)
	if len(t.tools) > 0 {
		tools := make([]openAITool, len(t.tools))
		for i, tool := range t.tools {
			tools[i] = openAITool{"function", openAIFunction{wireName(tool.Name), tool.Description, tool.inputSchema()}}
		}
		o.add("tools", tools)
	}
	if t.schema != nil {
		type schema struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
			Strict bool            `json:"strict"`
		}
		o.add("response_format", struct {
			Type   string `json:"type"`
			Schema schema `json:"json_schema"`
		}{"json_schema", schema{answerName, t.schema, false}})
	}
	o.add("messages", openAIMessages(t))
	return o.json()
}

func openAIMessages(t transcript) []any {
	all := []any{}
	if t.system != "" {
		all = append(all, openAIMessage{Role: "system", Content: &t.system})
	}
	var wanted []Step // of the state before
	for _, turn := range t.turns {
		switch {
		case turn.state != nil:
			wanted = []Step{}
			for _, item := range turn.state.Items {
				all = append(all, compact(item))
				wanted = append(wanted, openAICalls(item)...)
			}
			continue
		case turn.role == assistant:
			all = append(all, openAISaid(turn))
		default:
			for _, r := range answers(turn.results, wanted) {
				all = append(all, openAIMessage{Role: "tool", CallID: r.id, Content: &r.text})
			}
			if turn.text != "" || len(turn.results) == 0 && len(wanted) == 0 {
				all = append(all, openAIMessage{Role: "user", Content: &turn.text})
			}
		}
		wanted = nil
	}
	return all
}

func openAISaid(turn turn) openAIMessage {
	msg := openAIMessage{Role: "assistant"}
	if turn.text != "" || len(turn.calls) == 0 {
		msg.Content = &turn.text
	}
	for _, c := range turn.calls {
		call := openAICall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = wireName(c.Tool), string(c.Arguments)
		msg.ToolCalls = append(msg.ToolCalls, call)
	}
	return msg
}

// openAIChunk is an event of the stream.
type openAIChunk struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content string `json:"content"`
			Refusal string `json:"refusal"`
			Calls   []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Function struct {
					Name      string          `json:"name"`
					Arguments json.RawMessage `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
			// what models with reasoning want back, by the names that endpoints have for it
			ReasoningContent string            `json:"reasoning_content"`
			Reasoning        string            `json:"reasoning"`
			Details          []json.RawMessage `json:"reasoning_details"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     count `json:"prompt_tokens"`
		Completion count `json:"completion_tokens"`
		Details    struct {
			Cached count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// openAIStream reads the events of an answer.
type openAIStream struct {
	byIndex                     map[int]*written // the call that an index stands for
	reasoningContent, reasoning string
	details                     []json.RawMessage
}

func (s *openAIStream) event(a *assembly, _ string, data []byte) *Failure {
	if string(data) == "[DONE]" {
		a.ended = true
		return nil
	}
	var c openAIChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return &Failure{Kind: Broken, Message: "an event that is no JSON of this API"}
	}
	if !isNull(c.Error) {
		return a.failed(data)
	}
	if u := c.Usage; u != nil {
		a.usage.InputTokens, a.usage.OutputTokens, a.usage.CachedTokens = int64(u.Prompt), int64(u.Completion), int64(u.Details.Cached)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // one answer is asked for
		}
		d := choice.Delta
		a.say(d.Content)
		a.refusal += d.Refusal
		s.reasoningContent += d.ReasoningContent
		s.reasoning += d.Reasoning
		s.details = append(s.details, d.Details...)
		for _, call := range d.Calls {
			s.call(a, call.Index, call.ID, call.Function.Name, call.Function.Arguments)
		}
		if choice.Finish != "" {
			a.finish(openAIFinish(choice.Finish))
		}
	}
	return nil
}

// call takes a piece of a call. Pieces of one have its index; some endpoints send whole calls that all have the index 0
// and differ in their ids.
func (s *openAIStream) call(a *assembly, index int, id, name string, arguments json.RawMessage) {
	if s.byIndex == nil {
		s.byIndex = map[int]*written{}
	}
	w := s.byIndex[index]
	if w == nil || id != "" && w.id != "" && id != w.id {
		w = a.call(id, "")
		s.byIndex[index] = w
	}
	if w.id == "" {
		w.id = id
	}
	w.name += name
	var text string
	if json.Unmarshal(arguments, &text) != nil && !isNull(arguments) {
		text = string(arguments) // some endpoints send an object
	}
	a.argue(w, text)
}

func openAIFinish(reason string) ending {
	switch reason {
	case "length":
		return cut
	case "content_filter":
		return refused
	}
	return whole
}

// state is the message as it has to go back, where there is something in it that its text and calls don't show.
func (s *openAIStream) state(a *assembly) []json.RawMessage {
	if s.reasoningContent == "" && s.reasoning == "" && len(s.details) == 0 {
		return nil
	}
	var o body
	o.add("role", "assistant")
	o.add("content", a.text.String())
	if s.reasoningContent != "" {
		o.add("reasoning_content", s.reasoningContent)
	}
	if s.reasoning != "" {
		o.add("reasoning", s.reasoning)
	}
	if len(s.details) > 0 {
		o.add("reasoning_details", s.details)
	}
	if steps := a.sent(); len(steps) > 0 {
		o.add("tool_calls", openAISaid(turn{calls: steps}).ToolCalls)
	}
	return []json.RawMessage{o.json()}
}
