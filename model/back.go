package model

import "encoding/json"

// calls are the native calls in what is given back.
func (s *State) calls() (all []Step) {
	if s == nil {
		return nil
	}
	of := openAICalls
	if s.Provider == Anthropic {
		of = anthropicCalls
	}
	for _, item := range s.Items {
		all = append(all, of(item)...)
	}
	return all
}

// openAICalls returns the calls of a message that goes back.
func openAICalls(item json.RawMessage) (calls []Step) {
	var msg struct {
		ToolCalls []struct {
			ID       string                `json:"id"`
			Function struct{ Name string } `json:"function"`
		} `json:"tool_calls"`
	}
	_ = json.Unmarshal(item, &msg)
	for _, c := range msg.ToolCalls {
		calls = append(calls, Step{ID: c.ID, Tool: c.Function.Name})
	}
	return calls
}

// anthropicCalls returns the call that a block which goes back is, if it is one.
func anthropicCalls(item json.RawMessage) []Step {
	var use struct{ Type, ID, Name string }
	if json.Unmarshal(item, &use) != nil || use.Type != "tool_use" {
		return nil
	}
	return []Step{{ID: use.ID, Tool: use.Name}}
}
