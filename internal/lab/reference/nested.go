package reference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
)

// Nested is a random plan with plans within its steps. The reference knows no scopes: to it a composite is a tool, which
// runs the plan within as a plan of its own and returns what that comes to. The input is a step of that plan whose result
// it is.
type Nested struct {
	// Plan is the document.
	Plan []byte

	flat  string // in the form of the reference
	twins map[string]nestedTwin
	loops map[string]nestedLoop
	tools NestedTools
}

// NestedTools are the names of the tools that such plans call.
type NestedTools struct {
	Echo   string // returns its arguments
	Flaky  string // likewise, from the second attempt on
	Broken string // fails
	Text   string // returns a text
}

// nestedTwin is the plan of a composite as the reference has it.
type nestedTwin struct {
	plan    string
	partial bool
}

// The steps of the twin's plans that the input is the result of, and of the plan of an iteration what that knows.
const (
	nestedInput = "INPUT"
	nestedLast  = "LAST"
	nestedIndex = "INDEX"
	nestedEach  = "EACH" // what an iteration does
)

// GenerateNested makes a plan that is valid where its tools are there. Where stop is true, some of the plans in it stop
// with the first failure. The same source makes the same plan.
func GenerateNested(rng *rand.Rand, tools NestedTools, stop bool) *Nested {
	g := &nest{Rand: rng, Nested: &Nested{twins: map[string]nestedTwin{}, loops: map[string]nestedLoop{}, tools: tools}, stop: stop}
	both := g.plan(0)
	g.Plan, g.flat = []byte(both.nested), both.flat
	return g.Nested
}

// Renamed returns the same plan with another name of a tool, which may be one of the others.
func (n *Nested) Renamed(from, to string) *Nested {
	name := func(text string) string { return strings.ReplaceAll(text, from, to) }
	renamed := &Nested{Plan: []byte(name(string(n.Plan))), flat: name(n.flat), twins: map[string]nestedTwin{}, loops: map[string]nestedLoop{}, tools: n.tools}
	for tool, x := range n.twins {
		renamed.twins[tool] = nestedTwin{name(x.plan), x.partial}
	}
	for tool, x := range n.loops {
		x.each = name(x.each)
		renamed.loops[tool] = x
	}
	return renamed
}

// Call is a Behaviour.
func (n *Nested) Call(_, tool string, args []byte, attempt int) Reply {
	switch {
	case tool == n.tools.Broken:
		return Reply{Err: &Err{Code: codeToolTerminal, Message: "it broke"}}
	case tool == n.tools.Flaky && attempt == 1:
		return Reply{Err: &Err{Code: codeToolFailed, Message: "again", Retryable: true}}
	case tool == n.tools.Text:
		return Reply{Body: []byte("a text"), Text: true}
	}
	return Reply{Body: args}
}

// Run returns what the plan comes to, and each plan within it, by the token of the composite with a slash behind it; the
// plan itself by the empty one.
func (n *Nested) Run(contracts map[string]Contract) (map[string]*Result, error) {
	all := map[string]*Result{}
	res, err := n.run(n.flat, nil, "", contracts, all)
	all[""] = res
	return all, err
}

// run returns what a plan comes to in which some tools return what is given, and notes the plans within it. token stands
// before the ids of its steps.
func (n *Nested) run(
	body string, given map[string][]byte, token string, contracts map[string]Contract, all map[string]*Result,
) (res *Result, err error) {
	res, bad := Run([]byte(body), contracts, func(step, tool string, args []byte, attempt int) Reply {
		at := token + step
		if step == nestedEach {
			at = strings.TrimSuffix(token, "/")
		}
		if value, is := given[tool]; is {
			return Reply{Body: value}
		}
		if x, loop := n.loops[tool]; loop {
			reply, bad := n.repeat(x, args, at, contracts, all)
			err = cmp.Or(err, bad)
			return reply
		}
		x, composite := n.twins[tool]
		if !composite {
			return n.Call(step, tool, args, attempt)
		}
		inner, bad := n.run(x.plan, map[string][]byte{nestedInput: args}, at+"/", contracts, all)
		if bad != nil {
			err = bad
			return Reply{}
		}
		all[at+"/"] = inner
		return x.reply(inner)
	})
	if bad != nil {
		return nil, fmt.Errorf("%w: %s", bad, body)
	}
	for _, id := range []string{nestedInput, nestedLast, nestedIndex} {
		delete(res.Steps, id)
	}
	return res, err
}

// reply is what a composite returns whose plan came to an end.
func (x nestedTwin) reply(inner *Result) Reply {
	for _, e := range inner.Errors {
		if e.Step == "=" { // the output can't be made
			return Reply{Err: &Err{Code: e.Code, Message: e.Message}}
		}
	}
	switch {
	case inner.Status != succeeded && !(inner.Status == partial && x.partial):
		return Reply{Err: &Err{Code: codeSubPlanFailed, Message: "its plan failed"}}
	case inner.Output != nil:
		return Reply{Body: inner.Output}
	}
	var named struct {
		Steps []string `json:"output_steps"`
	}
	if err := json.Unmarshal([]byte(x.plan), &named); err != nil {
		panic(err) // it was made here
	}
	var b strings.Builder
	for _, id := range named.Steps {
		text := []byte("null")
		if at := slices.IndexFunc(inner.Results, func(r Output) bool { return r.Step == id }); at >= 0 {
			text = inner.Results[at].JSON
		}
		fmt.Fprintf(&b, ",%q:%s", id, text)
	}
	return Reply{Body: []byte("{" + strings.TrimPrefix(b.String(), ",") + "}")}
}

// Differ compares how all calls ended, by token ("failed timeout"), with what Run returned, and says where they differ.
// How far the items of a list came one of which failed is not compared: that is the order's.
func Differ(account map[string]string, all map[string]*Result) string {
	for token, res := range all {
		if underFailedList(account, token) {
			continue
		}
		for id, s := range res.Steps {
			want, got := s.Status, account[token+id]
			if s.Code != "" && !ranWithin(all, token+id) { // of a composite there may be two reasons
				want += " " + s.Code
			}
			if !strings.HasPrefix(got, want) {
				return fmt.Sprintf("step %s%s: %s, and not %s", token, id, got, want)
			}
		}
	}
	return ""
}

// ranWithin is whether a step has a plan of its own that was run.
func ranWithin(all map[string]*Result, token string) bool {
	for scope := range all {
		if strings.HasPrefix(scope, token+"/") || strings.HasPrefix(scope, token+"=") {
			return true
		}
	}
	return false
}

// underFailedList is whether a scope is below an item of a for_each step that failed.
func underFailedList(account map[string]string, token string) bool {
	for at := strings.LastIndexByte(token, '='); at > 0; at = strings.LastIndexByte(token[:at], '=') {
		if strings.HasPrefix(account[token[:at]], failed) {
			return true
		}
	}
	return false
}
