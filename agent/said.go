package agent

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsonmend"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
)

// MaxAnswer is the largest answer of a planner, in bytes.
const MaxAnswer = 4 << 20

// mostTook bounds what one answer may say that it took, so that no sum of them overflows.
const mostTook = 1 << 40

// Tokens is what an answer took, as its planner says.
type Tokens struct {
	Model        string  `json:"model,omitempty"`
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CachedTokens int64   `json:"cached_tokens,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`
}

// UnmarshalJSON reads each member by itself, so that one that is wrong takes nothing from the others: what it took was paid for all
// the same. A number counts however it is written, 4e3, 4000.0 and "4000" too; a part of a token is one. What is no number is nothing.
// Errors: it is no object.
func (t *Tokens) UnmarshalJSON(b []byte) error {
	var said struct {
		Model  json.RawMessage `json:"model"`
		Input  amount          `json:"input_tokens"`
		Output amount          `json:"output_tokens"`
		Cached amount          `json:"cached_tokens"`
		Cost   amount          `json:"cost_usd"`
	}
	if err := json.Unmarshal(b, &said); err != nil {
		return err
	}
	*t = Tokens{InputTokens: said.Input.whole(), OutputTokens: said.Output.whole(), CachedTokens: said.Cached.whole(), CostUSD: float64(said.Cost)}
	_ = json.Unmarshal(said.Model, &t.Model) // one that is no text is none
	return nil
}

// amount is a number as somebody wrote it, within what counts.
type amount float64

func (a *amount) UnmarshalJSON(b []byte) error {
	var n json.Number
	*a = 0
	if json.Unmarshal(b, &n) == nil && n != "" {
		x, _ := strconv.ParseFloat(n.String(), 64) // beyond all measure it is infinite
		*a = amount(min(max(0, x), mostTook))
	}
	return nil
}

func (a amount) whole() int64 { return int64(math.Ceil(float64(a))) }

// said is what a planner returned, taken apart but not judged.
type said struct {
	report
	members  map[string]value
	dialect  Dialect
	text     string
	usage    Tokens
	provider json.RawMessage
	repaired bool
	value    json.RawMessage // an object that is of no dialect: it may be an output
}

// take takes an answer apart: an object, a text that holds one, or a text.
func take(answer []byte) *said {
	s := &said{}
	if len(answer) > MaxAnswer {
		s.problem(fault.TooLarge, "", "answer with less at a time", "the answer has %d bytes, at most %d are allowed", len(answer), MaxAnswer)
		return s
	}
	if !s.sound(answer) {
		s.spoken(string(answer))
		return s
	}
	v := value{raw: json.RawMessage(strings.TrimSpace(string(answer)))}
	switch v.kind() {
	case jsontape.String:
		s.spoken(jsontape.Unquoted(v.raw))
	case jsontape.Object:
		s.whole(v)
	default:
		s.problem(fault.InvalidValue, "", `write {"steps": […]}, {"output": …} or text`, "an answer is an object or text, but this is %s", v.kind())
	}
	return s
}

// Took is what an answer says that it took, also one that can't be used.
func Took(answer []byte) Tokens {
	if len(answer) == 0 {
		return Tokens{}
	}
	return take(answer).usage
}

// sound reports whether the answer is JSON. Keys used twice are problems: which of them counts would be a guess.
func (s *said) sound(answer []byte) bool {
	scan := jsontape.New(answer, plan.MaxDepth)
	defer scan.Release()
	var flaws []func()
	scan.Flaw = func(x *jsontape.Scanner, code fault.Code, key *jsontape.Span) {
		at, what, hint := x.Pointer("", key), "a key stands there twice", "keep one of the two"
		if code != fault.DuplicateKey {
			what, hint = "this is no text", "write UTF-8"
		}
		flaws = append(flaws, func() { s.problem(code, at, hint, "%s", what) })
	}
	if scan.Scan() != nil {
		return false
	}
	for _, f := range flaws {
		f()
	}
	return true
}

// whole takes an object. One that says nothing but a text is that text.
func (s *said) whole(v value) {
	_, s.members = v.members()
	s.aside()
	switch {
	case s.form():
		s.text = readable(s.members["text"].raw, s.members["text"].kind() == jsontape.String)
	case s.members["text"].kind() == jsontape.String:
		s.spoken(jsontape.Unquoted(s.members["text"].raw))
	case len(s.members["usage"].raw) > 0: // a planner that said nothing
		s.dialect = DialectEnd
	default:
		s.value = v.raw
	}
}

// form says which dialect the answer is of; false for none.
func (s *said) form() bool {
	dialects := dialectsOf(s.members)
	if len(dialects) > 0 {
		s.dialect = dialects[0]
	}
	if len(dialects) > 1 {
		s.problem(fault.InvalidValue, "", `write "steps", "calls" or "execution_commands", one of them`,
			"the answer is of several forms at once: %s and %s", dialects[0], dialects[1])
	}
	return len(dialects) > 0
}

// aside takes what a planner says beside its answer. What it found wrong itself is a problem.
func (s *said) aside() {
	_ = json.Unmarshal(s.members["usage"].raw, &s.usage) // one that is no object is none
	s.repaired = s.members["repaired"].kind() == jsontape.True
	if v := s.members["provider_state"]; v.kind() == jsontape.Object {
		s.provider = v.raw
	}
	var found []struct{ At, Message, Hint string }
	if json.Unmarshal(s.members["problems"].raw, &found) == nil {
		for _, f := range found {
			s.problem(fault.MalformedJSON, f.At, f.Hint, "%s", f.Message)
		}
	}
}

// spoken takes a text: the answer that it is or ends with, else itself.
func (s *said) spoken(text string) {
	r := jsonmend.Value(text, ofDialect)
	switch {
	case r.Flaw == jsonmend.None && s.sound(r.Value):
		beside := s.members
		_, s.members = value{raw: r.Value}.members()
		if beside == nil {
			s.aside()
		} // else what a model wrote does not say what it cost
		s.repaired = s.repaired || r.Repaired
		s.form()
	case r.Flaw == jsonmend.Unwanted && (kindOf(r.Value) == jsontape.Object || kindOf(r.Value) == jsontape.Array):
		s.value, s.text, s.repaired = r.Value, text, s.repaired || r.Repaired
	case r.Flaw == jsonmend.Words || r.Flaw == jsonmend.Unwanted:
		s.dialect, s.text = DialectEnd, text
	case len(s.Problems) == 0: // else who wrote it down has told it
		message, hint := r.Flaw.Told()
		if r.Flaw == jsonmend.None { // deeper than anything is read
			message, hint = jsonmend.Unreadable.Told()
		}
		s.problem(fault.MalformedJSON, "", hint, "%s", message)
	}
}
