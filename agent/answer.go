package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/catalog/search"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// Answer returns what a call comes to that needs no worker: that of a facade, of what tells of its tools, of a search,
// of the blackboard and of the account, of a word for the user. is is false for any other entry, and for a facade
// whose tools another one selects. The facts are those before the call. Errors: invalid_arguments.
func (f *Facts) Answer(name string, arguments json.RawMessage, account *Account) (result json.RawMessage, err *fault.Error, is bool) {
	e := f.Entry(name)
	if e == nil {
		return nil, nil, false
	}
	switch e.Kind {
	case KindFacade:
		if e.facade.selects != "" {
			return nil, nil, false
		}
		if err := f.category(e, arguments); err != nil {
			return nil, err, true
		}
		after := f.Clone()
		after.Add(Outcome{Entry: name, Arguments: arguments})
		return quoteJSON(guide{after}.text(e)), nil, true
	case KindContext:
		return quoteJSON(guide{f}.context(e)), nil, true
	case KindSearch:
		result, err = f.search(e, arguments)
		return result, err, true
	case KindBuiltIn:
		if strings.HasPrefix(e.Name, "process_") {
			result, err = account.answer(f, e.Name)
		} else {
			result, err = f.board.answer(e.Name, arguments, f.d.Context.ResultBytes)
		}
		return result, err, true
	case KindTell:
		result, err = told(e, arguments)
		return result, err, true
	case KindTool, KindPlan, KindAsk:
	}
	return nil, nil, false
}

// told is what a word for the user returns: one that stays is its own result, so that it stands in the run's account.
func told(e *Entry, arguments json.RawMessage) (json.RawMessage, *fault.Error) {
	message := Message(arguments)
	switch {
	case message == "" || len(message) > maxTold:
		return nil, fault.New(fault.InvalidArguments, "the message is a text of 1 to %d bytes", maxTold).
			WithHint(`write {"message": "…"}`)
	case e.Name == Communicate:
		return quoteJSON(message), nil
	}
	return json.RawMessage(`"shown"`), nil
}

// Summary reads what a summary tool returned: text, {"output": text} or {"summary": text}, and what that took. It is empty for
// anything else.
func Summary(answer []byte) (text string, took Tokens) {
	s := take(answer)
	v := s.members["summary"]
	if s.members["output"].there() {
		v = s.members["output"]
	}
	if v.there() {
		return strings.TrimSpace(readable(v.raw, v.kind() == jsontape.String)), s.usage
	}
	return strings.TrimSpace(s.text), s.usage
}

// Message is what a call tells the user whose entry is of KindTell; empty for nothing.
func Message(arguments json.RawMessage) string {
	v, ok := within(arguments, []element{{key: "message"}})
	if !ok || kindOf(v) != jsontape.String {
		return ""
	}
	return strings.TrimSpace(jsontape.Unquoted(v))
}

// category refuses a category that there is not.
func (f *Facts) category(e *Entry, arguments json.RawMessage) *fault.Error {
	if len(e.facade.categories) == 0 {
		return nil
	}
	if f.opened.has(e.Name) && noMembers(arguments) {
		return nil
	}
	v, _ := within(arguments, []element{{key: e.facade.parameter}})
	c := ""
	if kindOf(v) == jsontape.String {
		c = jsontape.Unquoted(v)
	}
	if slices.Contains(e.facade.categories, c) {
		return nil
	}
	return fault.New(fault.InvalidArguments, "%q has no %s %q", e.Name, e.facade.parameter, clip(c)).
		WithHint("there are %s", quotedList(e.facade.categories))
}

// search finds tools by words.
func (f *Facts) search(e *Entry, arguments json.RawMessage) (json.RawMessage, *fault.Error) {
	var in struct {
		Query string `json:"query"`
	}
	if json.Unmarshal(arguments, &in) != nil || strings.TrimSpace(in.Query) == "" {
		return nil, fault.New(fault.InvalidArguments, "there is nothing to search for").WithHint(`write {"query": "send an email"}`)
	}
	var tools []*tool.Definition
	for _, name := range f.d.universe.searchable(e.search.group) {
		if t, ok := f.d.universe.lookup(name); ok {
			tools = append(tools, t)
		}
	}
	type hit struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	}
	hits := []hit{}
	for _, t := range search.New(tools).Search(in.Query, e.search.limit) {
		hits = append(hits, hit{t.Name, t.Description, t.InputSchema})
	}
	return marshal(hits), nil
}

// alreadyDone is for a call that was made before, of a tool that changes things.
const alreadyDone = "'%s' was called with the same arguments before, and is not called again: this is that result. " +
	"Where it is to happen once more, say \"again\": true beside it; in a call that has arguments alone, \"_again\": true among these."

// Done returns what a call came to that was made before in this loop, with the same arguments and success, and a note for
// the planner. was is false for any other, and for a tool that is not hinted destructive: so a planner that repeats its
// plan refunds once. A call that says "again" is made all the same (Answer.Again).
func (f *Facts) Done(name string, arguments json.RawMessage) (result json.RawMessage, note string, was bool) {
	e := f.Entry(name)
	if e == nil || !e.Destructive {
		return nil, "", false
	}
	result, was = f.done.get(same(e.Tool, arguments))
	if !was {
		return nil, "", false
	}
	return result, fmt.Sprintf(alreadyDone, e.Name), true
}

// same returns a text that is the same for the same arguments, however they are written.
func same(tool string, arguments json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	var v any = map[string]any{}
	if d.Decode(&v) != nil {
		return tool + " " + string(arguments)
	}
	return tool + " " + string(marshal(equalNumbers(v)))
}

// equalNumbers writes the numbers in a value so that those that are equal are the same: 5, 5.0 and 5e0.
func equalNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		return json.Number(jsontape.Canonical(x.String()))
	case []any:
		for i := range x {
			x[i] = equalNumbers(x[i])
		}
	case map[string]any:
		for name := range x {
			x[name] = equalNumbers(x[name])
		}
	}
	return v
}
