package agent

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/plan"
)

// guardWords are what the condition of a guard may look at.
var guardWords = map[string][]string{
	plan.OnInput:  {ofInput},
	plan.OnCall:   {ofInput, ofTool, ofArgs, ofRound},
	plan.OnResult: {ofInput, ofTool, ofResult, ofRound},
	plan.OnOutput: {ofInput, ofOutput, ofRound},
}

// What follows where a guard says no.
const (
	elseReject = "reject"
	elseAsk    = "ask"
	elseFail   = "fail"
)

// refusal is what the error of a guard says for programs.
type refusal struct {
	Guard int    `json:"guard"`
	Else  string `json:"else"`
}

// Refuses asks the conditions on something, from a place on, for the first that does not let it pass; see plan.Guards. One
// that can't be decided does not let pass.
func (d *Definition) Refuses(on string, from int, seen map[string]json.RawMessage) *plan.Refusal {
	for n := from; n < len(d.Guards); n++ {
		g := &d.Guards[n]
		if g.On != on || g.when == nil {
			continue
		}
		why := g.against(seen)
		if why == nil {
			continue
		}
		message := "a guard of the agent does not let " + passing(on, toolOf(seen)) + " pass, which asks for: " + g.When
		if why.Message != "" {
			message += " (" + why.Message + ")"
		}
		return g.refuses(n, message)
	}
	return nil
}

// passing names what is to pass a guard.
func passing(on, tool string) string {
	if tool == "" {
		return "the " + on
	}
	return "this " + on + " of '" + tool + "'"
}

// refuses returns what a guard says that does not let something pass.
func (g *Guard) refuses(n int, message string) *plan.Refusal {
	err := fault.New(fault.Rejected, "%s", message).WithHint("what does not pass is not used: try it in another way")
	err.Details, _ = json.Marshal(refusal{n, g.Else}) // of a number and a word
	return &plan.Refusal{Guard: n, Err: err, Asks: g.Else == elseAsk, Ends: g.Else == elseFail}
}

// Asks reports whether a person may be asked because of a condition on something.
func (d *Definition) Asks(on string) bool {
	return slices.ContainsFunc(d.Guards, func(g Guard) bool { return g.On == on && g.Tool == "" && g.Else == elseAsk })
}

// Tool returns the first guard on something, from a place on, that is a tool; see plan.Guards.
func (d *Definition) Tool(on string, from int) (guard, tool int, ok bool) {
	for n, g := range d.Guards {
		switch {
		case g.Tool == "":
		case n >= from && g.On == on:
			return n, tool, true
		default:
			tool++
		}
	}
	return 0, 0, false
}

// GuardTools returns the tools of the guards that are such, in their order; nil for none.
func (d *Definition) GuardTools() (tools []string) {
	for _, g := range d.Guards {
		if g.Tool != "" {
			tools = append(tools, g.Tool)
		}
	}
	return tools
}

// mostReason is how much of what a guard says is told, in bytes.
const mostReason = 1 << 10

// Said returns what a guard that is a tool has said: true, or an object whose "pass" is, lets pass. Anything else does not,
// nor does one that has failed.
func (d *Definition) Said(guard int, of string, value []byte, failed *fault.Error) *plan.Refusal {
	g := &d.Guards[guard]
	var said struct {
		Pass   *bool  `json:"pass"`
		Reason string `json:"reason"`
	}
	switch {
	case failed != nil:
		said.Reason = "it failed: " + failed.Message
	case value == nil:
		said.Reason = "what it returned is too large to be a word of its"
	case string(value) == "true":
		return nil
	case string(value) == "false":
	case json.Unmarshal(value, &said) == nil && said.Pass != nil:
		if *said.Pass {
			return nil
		}
	default:
		said.Reason = `it returned neither true or false nor {"pass": true}`
	}
	message := "the guard '" + g.Tool + "' of the agent does not let " + passing(g.On, of) + " pass"
	if said.Reason != "" {
		message += ": " + text.Clip(said.Reason, mostReason)
	}
	return g.refuses(guard, message)
}

// Rejected is the error of what a person rejected whom a guard had asked.
func (d *Definition) Rejected(guard int, why *fault.Error) *fault.Error {
	err := *why
	err.Details, _ = json.Marshal(refusal{guard, elseReject}) // of a number and a word
	return &err
}

// Ends reports whether the agent fails with the error of one of its guards.
func (d *Definition) Ends(err *fault.Error) bool {
	var said refusal
	return err.Code == fault.Rejected && json.Unmarshal(err.Details, &said) == nil && said.Else == elseFail
}

// NotMade reports whether an error says that a guard did not let a call pass, so that it was not made.
func (d *Definition) NotMade(err *fault.Error) bool {
	said := refusal{Guard: -1}
	is := err.Code == fault.Rejected && json.Unmarshal(err.Details, &said) == nil && said.Guard >= 0 && said.Guard < len(d.Guards)
	return is && d.Guards[said.Guard].On == plan.OnCall
}

// toolOf is the name of the tool that is seen; empty for none.
func toolOf(seen map[string]json.RawMessage) (name string) {
	_ = json.Unmarshal(seen[ofTool], &name)
	return name
}

// against says why a guard does not let pass what is seen, without words where its condition is false; nil where it does.
func (g *Guard) against(seen map[string]json.RawMessage) *fault.Error {
	away := "" // what can't be looked at, and would have to be
	holds, err := g.when.holds(func(r reference) ([]byte, bool) {
		v, is := seen[r.word]
		if is && v == nil {
			away = r.word
		}
		return within(v, r.path)
	})
	switch {
	case away != "":
		return fault.New(fault.TooLarge, "$%s is too large to be looked at", away)
	case err != nil:
		return err
	case !holds:
		return &fault.Error{}
	}
	return nil
}

// onGuard returns the words that a guard's condition knows; those of all where nobody knows what it looks at.
func onGuard(on string) []string {
	if words := guardWords[on]; words != nil {
		return words
	}
	return slices.Concat([]string{ofInput, ofTool, ofArgs}, []string{ofResult, ofOutput, ofRound})
}
