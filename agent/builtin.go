package agent

import (
	"encoding/json"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// SearchTool is the name of the entry that finds tools.
const SearchTool = "search_tools"

// Communicate is the name of the entry by which an agent tells people what stays, maxTold the most bytes of what one tells.
const (
	Communicate = "communicate"
	maxTold     = 16_384
)

// tells are the entries that every agent may have, and that are no tools of the registry.
var tells = map[string]*Entry{
	"progress": {Kind: KindTell, Description: "Tells the user what you are doing right now, in a few words. It is shown for a moment and not kept.", InputSchema: message},
	Communicate: {Kind: KindTell, Description: "Sends the user a message that stays in the conversation: a result, a link, an important outcome.",
		InputSchema: message},
}

var message = json.RawMessage(`{"type":"object","properties":{"message":{"type":"string","minLength":1,"maxLength":16384}},"required":["message"]}`)

// facadesOfOurs are the facades over what is known of an agent's run.
var facadesOfOurs = map[string]struct {
	description string
	tools       []Entry
}{
	"process": {"Tells what you are doing and what you have used up. Call it to see the tools.", []Entry{
		{Name: "process_status", Description: "The run, the agent, its round, its state and the time that it has taken."},
		{Name: "process_budget", Description: "The limits of steps, tokens, cost and time, and what is left of each."},
		{Name: "process_cost", Description: "What was used up so far: model calls, tokens, cost."},
		{Name: "process_history", Description: "The calls so far, with how they ended and how long they took."},
		{Name: "process_tools_stats", Description: "How often each tool was called, and how often it failed."},
		{Name: "process_models", Description: "The models that answered, with how often."},
	}},
	"blackboard": {"Shows the objects that tools have returned so far. Call it to see the tools.", []Entry{
		{Name: "blackboard_list", Description: "All objects with their names, types and sizes."},
		{Name: "blackboard_get", Description: "An object by its name, or a part of it.", InputSchema: json.RawMessage(
			`{"type":"object","properties":{"name":{"type":"string"},"path":{"type":"string"},"from":{"type":"integer","minimum":0},` +
				`"bytes":{"type":"integer","minimum":1}},"required":["name"]}`)},
		{Name: "blackboard_last", Description: "The latest object of a type.", InputSchema: ofType},
		{Name: "blackboard_describe", Description: "What an object looks like: its type, its keys, its size.", InputSchema: json.RawMessage(
			`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)},
		{Name: "blackboard_count", Description: "How many objects of a type there are.", InputSchema: ofType},
	}},
}

var ofType = json.RawMessage(`{"type":"object","properties":{"type":{"type":"string","description":"The full name, or the part behind its last dot."}},"required":["type"]}`)

// builtIn adds an entry that is named alone and is none of the registry's; false where the name is another one.
func (p *entryReader) builtIn(name, at string, in place) bool {
	switch name {
	case tool.PlanTool:
		p.planEntry(at, in)
		return true
	case tool.AskTool:
		d := tool.AskDefinition()
		p.put(&Entry{Name: name, Kind: KindAsk, Tool: name, Description: d.Description, InputSchema: d.InputSchema, At: at}, in)
		return true
	case SearchTool:
		p.search(at, searchRule{limit: DefaultSearchLimit}, in)
		return true
	}
	if e, ok := tells[name]; ok {
		p.put(&Entry{Name: name, Kind: e.Kind, Tool: name, Description: e.Description, InputSchema: e.InputSchema, At: at}, in)
		return true
	}
	f, ok := facadesOfOurs[name]
	if !ok {
		return false
	}
	e := &Entry{Name: name, Kind: KindFacade, Tool: name, Description: f.description, InputSchema: noArguments, At: at, facade: &facade{}}
	if p.put(e, in) == nil {
		return true
	}
	for _, t := range f.tools {
		t.Tool, t.Kind, t.At = t.Name, KindBuiltIn, at
		if t.InputSchema == nil {
			t.InputSchema = noArguments
		}
		p.put(&t, place{facade: e})
	}
	return true
}

// planEntry adds the entry by which a planner of single calls hands in a plan.
func (p *entryReader) planEntry(at string, in place) {
	for _, e := range p.def.entries {
		if e.Kind == KindPlan && e.within == in.facade {
			return
		}
	}
	schema, err := catalog.PlanSchema(nil, catalog.Options{Planner: true})
	if err != nil {
		panic(err) // it is made of nothing but what stands there
	}
	p.put(&Entry{Name: tool.PlanTool, Kind: KindPlan, Tool: tool.PlanTool, Description: planPurpose, InputSchema: schema, At: at}, in)
}

const planPurpose = "Runs several calls as one plan, and returns the results that you ask for. Calls that do not refer to each " +
	"other run side by side; results flow from call to call without passing through you."

// searchEntry reads {"search_tools": {"group"?, "limit"?}}.
func (p *entryReader) searchEntry(v value, in place) {
	m := p.object(v, "a search", "group", "limit")
	if m == nil {
		return
	}
	role := p.text(m["group"])
	if c := p.def.universe.catalog; role != "" && c != nil {
		if _, ok := c.Group(role); !ok {
			p.problem(fault.UnknownTool, m["group"].at, thereAre(role, c.Groups()), "there is no group %q", clip(role))
		}
	}
	p.search(v.at, searchRule{role, int(p.whole(m["limit"], 1, 100, DefaultSearchLimit))}, in)
}

func (p *entryReader) search(at string, rule searchRule, in place) {
	schema := json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1}},"required":["query"]}`)
	p.put(&Entry{Name: SearchTool, Kind: KindSearch, Tool: SearchTool, At: at, search: &rule, InputSchema: schema,
		Description: "Finds tools by words. What it finds can be called from the next answer on."}, in)
	p.planEntry(at, in)
	p.dynamic = true
}
