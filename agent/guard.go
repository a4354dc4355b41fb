package agent

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
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
	elseFail   = "fail"
)

// refusal is what the error of a guard says for programs.
type refusal struct {
	Guard int    `json:"guard"`
	Else  string `json:"else"`
}

// Refuses returns the error of the first guard on something that does not let it pass; see plan.Guards. A condition that
// can't be decided does not let pass.
func (d *Definition) Refuses(on string, seen map[string]json.RawMessage) (err *fault.Error, ends bool) {
	for n := range d.Guards {
		g := &d.Guards[n]
		if g.On != on || g.when == nil {
			continue
		}
		why := g.against(seen)
		if why == nil {
			continue
		}
		message, hint := fault.New(fault.Rejected, "a guard of the agent does not let the %s pass, which asks for: %s", on, g.When), "what does not pass is not used: try it in another way"
		if name := toolOf(seen); name != "" {
			message = fault.New(fault.Rejected, "a guard of the agent does not let this %s of '%s' pass, which asks for: %s", on, name, g.When)
		}
		if why.Message != "" {
			message.Message += " (" + why.Message + ")"
		}
		message.Details, _ = json.Marshal(refusal{n, g.Else}) // of a number and a word
		return message.WithHint("%s", hint), g.Else == elseFail
	}
	return nil, false
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
