package catalog

import (
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Bounds of the enumeration of tools in the schema of plans.
const (
	// MaxEnum is the most tools whose names the schema lists; beyond, any name fits it, and the orchestrator judges.
	MaxEnum = 300
	// OpenAI's bound on a strict enumeration of more than 250 values, in characters.
	strictEnum, strictEnumSize = 250, 15_000
)

// PlanSchema returns the JSON Schema of plans over the given tools; with none, of plans over any. It accepts every plan
// that package plan accepts, as far as a schema can tell. What Meta gives to a model is shorter: it leaves out what a
// model has no use for (schedule, backoff, null for what may be absent).
func PlanSchema(tools []*tool.Definition, o Options) ([]byte, error) {
	schema := planSchema(sorted(tools), "The steps, in any order.", o.Strict)
	if !o.Strict && !o.Planner {
		schema = withAgents(schema)
	}
	if !o.Strict {
		schema = orCalls(schema, tools)
	}
	return indent(schema)
}

// withAgents lets the steps of a schema of plans define agents themselves. What stands in one is what the schema of agents
// says of their definitions.
func withAgents(schema object) object {
	const about = `Instead of a tool: an agent, as under "agent" in its definition, beside description, inputSchema and outputSchema. The step's arguments are its input.`
	text := object{{"type", []any{"string", "null"}}}
	agent := object{{"type", []any{"object", "null"}}, {"description", about}, {"properties", object{
		{"planner", object{{"type", "object"}, {"properties", object{{"tool", object{{"type", "string"}}}, {"model", text}, {"mode", text}}}, {"required", []any{"tool"}}}},
		{"instructions", text},
		{"tools", object{{"type", []any{"array", "null"}}}},
		{"inputSchema", object{{"type", []any{"object", "null"}}}},
		{"outputSchema", object{{"type", []any{"object", "null"}}}},
	}}, {"required", []any{"planner"}}}
	within := []string{"properties", "steps", "items", "properties"}
	return added(schema, within, "agent", agent)
}

// added returns an object with a member in an object within it.
func added(to object, within []string, name string, value any) object {
	if len(within) == 0 {
		return to.with(name, value)
	}
	inner, _ := to.get(within[0]).(object) // which this package has put there
	return to.with(within[0], added(inner, within[1:], name, value))
}

// orCalls lets a schema of plans accept those of the state dialect, too.
func orCalls(schema object, tools []*tool.Definition) object {
	text := object{{"type", []any{"string", "null"}}}
	call := object{{"type", "object"}, {"properties", object{
		{"_tool", toolSchema(sorted(tools), false)},
		{"_outputPath", text.with("description", `Where the result goes: "†state.receipt", or with a place for the error "†state.receipt || †state.error".`)},
		{"_id", object{{"type", []any{"string", "null"}}, {"pattern", "^[A-Za-z0-9_-]{1,64}$"}}},
		{"_if", text.with("description", `Call it only where this is true: "†state.total > 100".`)},
		{"_after", object{{"type", []any{"string", "array", "null"}}, {"description", "Ids of calls to wait for without using their results."}, {"items", object{{"type", "string"}}}}},
		{"_outputMethod", text},
	}}, {"required", []any{"_tool"}}}
	calls := object{
		{"calls", object{
			{"type", "array"}, {"description", "Instead of steps: calls that write to a state and read from it."},
			{"items", call}, {"minItems", 1}, {"maxItems", plan.MaxSteps},
		}},
		{"output", object{{"description", `What the run returns: any value with references, or "†state".`}}},
		{"input", object{{"description", "Constants that calls refer to as †input."}}},
		{"state", object{{"type", []any{"object", "null"}}, {"properties", object{{"initial", object{{"type", []any{"object", "null"}}}}}}}},
	}
	either := []any{object{{"required", []any{"steps"}}}, object{{"properties", calls}, {"required", []any{"calls"}}}}
	return schema.without("required").with("anyOf", either)
}

// forModel returns a schema of plans without what a model has no use for.
func forModel(schema object) object {
	out := object{}
	for _, m := range schema {
		switch v := m.value.(type) {
		case object:
			if m.name == "properties" {
				v = v.without("schedule").without("backoff")
			}
			m.value = forModel(v)
		case []any:
			kept := []any{}
			for _, x := range v {
				if x != nil && !(m.name == "type" && (x == "null" || x == "string" && len(v) > 1 && v[0] == "object")) {
					kept = append(kept, x)
				}
			}
			if m.value = kept; m.name == "type" && len(kept) == 1 {
				m.value = kept[0]
			}
		}
		out = append(out, m)
	}
	return out
}

func planSchema(tools []*tool.Definition, steps string, strict bool) object {
	schema := plainPlanSchema(tools, steps, strict)
	if !strict {
		return schema
	}
	s, _ := strictly(schema) // it can be written so; a test checks it
	return s
}

// modelSchema is the schema of plans that a model is given.
func modelSchema(tools []*tool.Definition, steps string, strict bool) object {
	schema := forModel(plainPlanSchema(tools, steps, strict))
	if !strict {
		return schema
	}
	s, _ := strictly(schema) // likewise
	return s
}

func plainPlanSchema(tools []*tool.Definition, steps string, strict bool) object {
	return object{{"type", "object"}, {"properties", object{
		{"steps", object{{"type", "array"}, {"description", steps}, {"items", stepSchema(tools, strict, 0)}, {"minItems", 1}, {"maxItems", plan.MaxSteps}}},
		{"output_steps", ids("Ids of the steps whose results come back to you. Name as few as you can. Absent: all of them.")},
		{"output", outputSchema(strict)},
		{"on_failure", choice("stop: end the run at the first failure that no step names. Default continue: only what needs the failed step is skipped.", "continue", "stop")},
		{"on_missing", choice("What a reference to nothing becomes: null (default), or an error of the step.", "null", "error")},
		{"schedule", choice("dataflow (default): a step starts when its own inputs are there. waves: when all steps of lesser depth are over.", "dataflow", "waves")},
		{"timeout", duration("Of the whole run, such as 90s, 5m or 2h.")},
		{"approval", approvalSchema(false)},
		{"concurrency", object{{"type", []any{"integer", "null"}}, {"description", "The most calls that are under way at once. Absent: as many as there are."}, {"minimum", 1}, {"maximum", plan.MaxSteps}}},
	}}, {"required", []any{"steps"}}}
}

// outputSchema is that of the value that comes back in place of results.
func outputSchema(strict bool) object {
	const text = `What comes back to you instead of output_steps: any JSON with references, as in {"city": "$ref:a.name"}.`
	if strict { // a value of any kind can't be strict
		return object{{"type", []any{"string", "null"}}, {"description", `What comes back to you instead of output_steps: a reference, or a text with references.`}}
	}
	return object{{"description", text}}
}

// stepSchema is that of a step, so many plans of other steps around it.
func stepSchema(tools []*tool.Definition, strict bool, above int) object {
	arguments := object{{"type", []any{"object", "string", "null"}}, {"description", "The tool's arguments, a JSON object. References may stand in its strings."}}
	list := object{{"type", []any{"string", "array", "object"}}, {"description", `The list: a reference such as "$ref:search.hits", or an array.`}}
	if strict { // an object of any properties can't be strict
		arguments = object{{"type", []any{"string", "null"}}, {"description", "The tool's arguments: a JSON object, written as a string. References may stand in its strings."}}
		list = object{{"type", "string"}, {"description", `The list, as a reference: "$ref:search.hits".`}}
	}
	each := object{{"type", []any{"object", "null"}}, {"description", "Run the step once for each item of a list."}, {"properties", object{
		{"in", list},
		{"as", object{{"type", []any{"string", "null"}}, {"description", `The item's name in references. Default "item".`}}},
	}}, {"required", []any{"in"}}}
	value := object{{"description", `Instead of a tool: what the step is worth, any JSON with references, and {"$calc": "expression"} anywhere in it: {"$calc": "round($ref:a.net * 1.19, 2)"}.`}}
	if strict {
		value = object{{"type", []any{"object", "null"}}, {"description", `Instead of a tool: {"$calc": "round($ref:a.net * 1.19, 2)"} is what the expression comes to.`}, {"properties", object{
			{"$calc", object{{"type", "string"}, {"description", "The expression."}}},
		}}, {"required", []any{"$calc"}}}
	}
	properties := object{
		{"id", object{{"type", "string"}, {"description", "A short name for references to this step's result, unique in the plan."}, {"pattern", "^[A-Za-z0-9_-]{1,64}$"}}},
		{"tool", toolSchema(tools, strict)},
		{"value", value},
		{"for_each", each},
		{"arguments", arguments},
		{"if", object{{"type", []any{"string", "null"}}, {"description", `Run the step only where this is true: "$ref:a.total > 100 and $status:b == 'succeeded'".`}}},
		{"approval", approvalSchema(true)},
		{"depends_on", ids("Ids of steps to wait for without using their results.")},
		{"optional", object{{"type", []any{"boolean", "null"}}, {"description", "true: its failure skips no other step; references to it find nothing."}}},
		{"retry", retrySchema()},
		{"timeout", duration("Of this step, waiting and retries included.")},
	}
	if above == 0 { // a schema that holds itself can't be written in every form that is strict: there it is one plan deep
		properties = append(append(properties, innerPlan(strict)...), member{"repeat", repeatSchema()})
	}
	return object{{"type", "object"}, {"properties", properties}, {"required", []any{"id"}}}
}

// innerPlan are the fields of a step with a plan of its own. Any name of a tool fits its steps: the names stand once.
func innerPlan(strict bool) object {
	const about = `Instead of a tool: a plan of its own, {"steps": […], "output": …}. Its steps see "arguments" as "$input".`
	inner := object{{"type", []any{"object", "null"}}, {"description", about}}
	if strict {
		inner = append(inner, member{"properties", object{
			{"steps", object{{"type", "array"}, {"items", stepSchema(nil, strict, 1)}, {"minItems", 1}}},
			{"output_steps", ids("Ids of the steps whose results it comes to. Absent: all of them.")},
			{"output", outputSchema(strict)},
			{"on_failure", choice("stop: end this plan at the first failure.", "continue", "stop")},
		}}, member{"required", []any{"steps"}})
	}
	return object{
		{"plan", inner},
		{"partial", object{{"type", []any{"boolean", "null"}}, {"description", "true: it succeeds where a part of its plan did."}}},
	}
}

// toolSchema is the schema of a step's tool: one of the registered names, where there are not too many, or the tool that
// asks a person, which is in no registry.
func toolSchema(tools []*tool.Definition, strict bool) object {
	s := object{{"type", []any{"string", "null"}}, {"description", "The name of a tool. Every step has one, a value, or a plan."}}
	size := 0
	names := make([]any, len(tools))
	for i, d := range tools {
		names[i] = d.Name
		size += len(d.Name)
	}
	if len(names) == 0 || len(names) > MaxEnum || strict && len(names) > strictEnum && size > strictEnumSize {
		return s
	}
	return append(s, member{"enum", append(names, tool.AskTool, nil)})
}

func retrySchema() object {
	backoff := object{{"type", []any{"object", "null"}}, {"description", "How long to wait in between."}, {"properties", object{
		{"strategy", choice("Default exponential.", tool.Exponential, tool.Linear, tool.Constant, tool.None)},
		{"initial_ms", object{{"type", []any{"integer", "null"}}}},
		{"max_ms", object{{"type", []any{"integer", "null"}}}},
		{"jitter", object{{"type", []any{"number", "null"}}, {"minimum", 0}, {"maximum", 1}}},
	}}}
	return object{{"type", []any{"object", "null"}}, {"description", "Instead of what the tool's contract says."}, {"properties", object{
		{"max_attempts", object{{"type", []any{"integer", "null"}}, {"minimum", 1}, {"maximum", tool.MaxAttempts}}},
		{"backoff", backoff},
	}}}
}

// repeatSchema is what a step says of its loop.
func repeatSchema() object {
	return object{{"type", []any{"object", "null"}}, {"description", `Run the step again and again. "$last" in its arguments is the result before.`}, {"properties", object{
		{"until", object{{"type", []any{"string", "null"}}, {"description", `The loop is over where this is true after a run: "$last.status == 'done'".`}}},
		{"max", object{{"type", []any{"integer", "null"}}, {"description", "The most runs; more fail the step. Default 100."}, {"minimum", 1}, {"maximum", plan.MaxIterations}}},
		{"every", duration("The pause between two runs, such as 2s.")},
		{"collect", object{{"type", []any{"boolean", "null"}}, {"description", "true: the result is the list of all results, not the last."}}},
	}}}
}

// approvalSchema is what a plan or a step says of the approval that it waits for.
func approvalSchema(ofStep bool) object {
	about, ask := "Nothing begins before a person approves of the plan.", "What the person is asked, in words."
	fields := object{}
	if ofStep {
		about, ask = "The step begins only when a person has approved of it.", "What the person is asked; references may stand in it."
		fields = object{{"all", object{{"type", []any{"boolean", "null"}}, {"description", "true: all items of a for_each are asked for together."}}}}
	}
	return object{{"type", []any{"boolean", "object", "null"}}, {"description", about}, {"properties", append(object{
		{"ask", object{{"type", []any{"string", "null"}}, {"description", ask}}},
		{"timeout", duration("How long an answer may take. Absent: as long as the run.")},
		{"on_timeout", choice("What no answer in time means. Default reject.", "reject", "approve")},
	}, fields...)}}
}

func ids(about string) object {
	return object{{"type", []any{"array", "null"}}, {"description", about}, {"items", object{{"type", "string"}}}}
}

func choice(about string, words ...string) object {
	enum := make([]any, 0, len(words)+1)
	for _, w := range words {
		enum = append(enum, w)
	}
	return object{{"type", []any{"string", "null"}}, {"description", about}, {"enum", append(enum, nil)}}
}

func duration(about string) object {
	return object{{"type", []any{"string", "null"}}, {"description", about}}
}
