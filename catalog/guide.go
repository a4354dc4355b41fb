package catalog

import (
	"strings"

	"github.com/stepjet/stepjet/tool"
)

// purpose is the short description of execute_tool_plan; it has to stay under maxDescription.
const purpose = `Runs several tool calls as one plan and returns only the results you ask for. Use it whenever a task takes three or more tool ` +
	`calls, calls that use each other's results, or the same call for many items: independent steps run at the same time, results flow from ` +
	`step to step without passing through you, and failures are tried again. For one or two simple calls, or where you have to read a result ` +
	`before you can decide what to do next, call the tools themselves (or send a second plan).`

// Guide tells a model how to write a good plan over the given tools, and lists them. It is what Meta puts beside the schema;
// it may as well stand in a system prompt.
func Guide(tools []*tool.Definition) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(guide, "{{example}}", Example))
	if len(tools) == 0 {
		return b.String()
	}
	b.WriteString("\n\nTOOLS, as name(arguments) -> result. Use these names and no others:")
	for _, d := range sorted(tools) {
		b.WriteString("\n" + line(d))
	}
	return b.String()
}

// strictNote goes before the guide where arguments can't be objects.
const strictNote = `Here "arguments" is written as a string that holds the JSON object: "arguments": "{\"location\": \"Tokyo\"}".` + "\n\n"

// Example is the worked example of the guide. Its tools are made up.
const Example = `{"steps": [
  {"id": "orders", "tool": "list_orders", "arguments": {"status": "late", "limit": 20}},
  {"id": "customers", "tool": "get_customer", "for_each": {"in": "$ref:orders.items", "as": "order"}, "arguments": {"id": "$ref:order.customer_id"}},
  {"id": "policy", "tool": "search_documents", "arguments": {"query": "late delivery policy"}, "optional": true},
  {"id": "report", "tool": "write_report", "arguments": {
    "title": "${ref:orders.total} late orders",
    "customers": "$ref:customers",
    "policy": "$ref:policy.hits[0].text || \"no policy found\""}}
], "output_steps": ["report"]}`

const guide = `A step: {"id", "tool", "arguments"}. It starts as soon as the steps it refers to have succeeded; their order in the list means nothing.

REFERENCES stand in string values anywhere in arguments:
- "$ref:ID" is the whole result of step ID, with its type. "$ref:ID.field.inner" and "$ref:ID.items[0].name" are parts of it; other keys: "$ref:ID[\"any key\"]". No wildcards, no negative indexes.
- "$ref:a.x || $ref:b.y || \"none\"" is the first of them that is there and not null.
- Within text: "Dear ${ref:user.name}, ..." (the value is written into the text).
- A literal "$ref:" is written "$$ref:".
Take paths from the result types below, and don't guess fields where the result is "any": refer to the whole result instead.

FOR MANY ITEMS: "for_each": {"in": "$ref:list.items", "as": "item"} runs the step once for each element of the list; "$ref:item" and "$ref:item.field" in its arguments are the element. ` +
	`Other steps see its result as an array, in the order of the list: [{"index": 0, "status": "ok", "data": <result>}, {"index": 1, "status": "error", "error": {...}}]. ` +
	`One element's result is "$ref:ID[0].data".

OPTIONS, only where needed. Of a step: "depends_on": ["id"] to wait without using the result; "optional": true if others can do without it; "timeout": "30s"; ` +
	`"retry": {"max_attempts": 3}. Of the plan: "output_steps": the ids whose results you need to see (name as few as you can; everything else stays out of your context); ` +
	`"on_failure": "stop" to end the run at the first failure (by default only the steps that need the failed one are skipped); "timeout".

DON'T
- don't invent tools, fields or ids; don't use a result that no step produces.
- don't refer to a result in order to decide something: a plan has no conditions. End the plan there, read what comes back, and send the next one.
- don't call execute_tool_plan in a step.
- don't write the same step many times where for_each does it; don't add depends_on where a reference is there already.

EXAMPLE (its tools are made up, the ones you have are below):
{{example}}

The answer has "status", "results" by step id and "errors" with the reason of every step that did not succeed. A plan with mistakes is refused as a whole, with all of them listed: mend them and send it again.`
