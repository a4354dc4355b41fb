package model

import (
	"encoding/json"
	"math"
)

// Answer is what a model said, in the form that its mode asks for. Fields that the mode has no use for are absent.
type Answer struct {
	// Text is what it said in words.
	Text string `json:"text,omitempty"`
	// Steps are native calls as steps of a plan, in ModeTools.
	Steps []Step `json:"steps,omitempty"`
	// Output is the value that an output schema asked for, in ModeText.
	Output json.RawMessage `json:"output,omitempty"`
	// Object is the object of a plan, of calls or of commands; its members stand beside those of the answer.
	Object json.RawMessage `json:"-"`
	// Truncated says that the answer ended at max_output_tokens.
	Truncated bool `json:"truncated,omitempty"`
	// Repaired says that what the model wrote was no JSON, and was made such by its quotes, commas and comments alone.
	Repaired bool `json:"repaired,omitempty"`
	// Problems are what is wrong with the answer, each with its place. A model may be asked again with them.
	Problems []Problem `json:"problems,omitempty"`
	// Usage is what the answer took.
	Usage Usage `json:"usage"`
	// State is what the provider wants back in the next request of the conversation; nil for nothing.
	State *State `json:"provider_state,omitempty"`
}

// Step is a call as a step of a plan.
type Step struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Arguments are an object; a string holds what the model wrote where that is none.
	Arguments json.RawMessage `json:"arguments"`
	// Again says that the call is to be made although it was made before.
	Again bool `json:"again,omitempty"`
}

// Problem is something wrong with an answer.
type Problem struct {
	// At is the place in the answer, as a JSON pointer.
	At      string `json:"at"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// State is what a provider keeps of an answer between requests, such as thinking blocks with their signatures. It is
// given back as it came, and to the same provider and model alone.
type State struct {
	Provider string            `json:"provider"`
	Model    string            `json:"model"`
	Items    []json.RawMessage `json:"items"`
}

// fits reports whether a state may go to a provider's model.
func (s *State) fits(m Model) bool {
	return s != nil && len(s.Items) > 0 && s.Provider == m.Provider && s.Model == m.ID
}

// Usage is what an answer took. Where the provider did not say, or the stream was closed early, all but Model is absent.
type Usage struct {
	// Model is the name, in the configuration, of the model that answered.
	Model string `json:"model"`
	// InputTokens counts all of the request, CachedTokens those of them that came from a prompt cache,
	// CacheWriteTokens those that were written to one.
	InputTokens      int64 `json:"input_tokens,omitempty"`
	OutputTokens     int64 `json:"output_tokens,omitempty"`
	CachedTokens     int64 `json:"cached_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	// CostUSD is what it costs by the configured prices, to a billionth; nil where there are none.
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// Price is what a million tokens cost, in US dollars.
type Price struct {
	Input, Output float64
	// Cached and CacheWrite are of input tokens read from and written to a prompt cache; nil: as Input.
	Cached, CacheWrite *float64
}

// Cost returns what a use costs, to a billionth of a dollar.
func (p Price) Cost(u Usage) float64 {
	plain := max(u.InputTokens-u.CachedTokens-u.CacheWriteTokens, 0)
	sum := float64(plain)*p.Input + float64(u.OutputTokens)*p.Output +
		float64(u.CachedTokens)*or(p.Cached, p.Input) + float64(u.CacheWriteTokens)*or(p.CacheWrite, p.Input)
	return math.Round(sum*1e3) / 1e9
}

func or(v *float64, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return *v
}

// JSON returns the answer as a tool's result.
func (a *Answer) JSON() []byte {
	own := encode(a)
	if len(a.Object) <= len(`{}`) {
		return own
	}
	// the members of both: Object is an object without a member of ours, see object
	return append(append(a.Object[:len(a.Object)-1:len(a.Object)-1], ','), own[1:]...)
}
