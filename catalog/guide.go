package catalog

import (
	"strings"

	"github.com/stepjet/stepjet/tool"
)

// purpose is the short description of execute_tool_plan; it has to stay under maxDescription.
const purpose = `Runs several tool calls as one plan and returns only the results you ask for. Use it whenever a task takes three or more tool ` +
	`calls, calls that use each other's results, or the same call for many items: independent steps run at the same time, results flow from ` +
	`step to step without passing through you, and failures are tried again. Steps may have conditions; only where you have to read a ` +
	`result yourself to decide what to do next, end the plan there and send another one.`

// Guide tells a model how to write a good plan over the given tools, and lists them. It is what Meta puts beside the
// schema; it may as well stand in a system prompt.
func Guide(tools []*tool.Definition) string {
	var b strings.Builder
	b.WriteString(strings.NewReplacer("{{example}}", Example, "{{numbers}}", NumbersExample).Replace(guide))
	if len(tools) == 0 {
		return b.String()
	}
	b.WriteString("\n\nTOOLS, as name(arguments) -> result. Use these names and no others:")
	for _, d := range callable(tools) {
		b.WriteString("\n- " + Signature(d))
	}
	return b.String()
}

// strictNote goes before the guide where arguments can't be objects.
const strictNote = `Here "arguments" is written as a string that holds the JSON object: "arguments": "{\"location\": \"Tokyo\"}".` + "\n\n"

// Example is the worked example of the guide. Its tools are made up.
const Example = `{"steps": [
 {"id": "orders", "tool": "list_orders", "arguments": {"status": "late"}},
 {"id": "customers", "tool": "get_customer", "for_each": {"in": "$ref:orders.items", "as": "order"}, "arguments": {"id": "$ref:order.customer_id"}},
 {"id": "policy", "tool": "search", "arguments": {"query": "delays"}, "optional": true},
 {"id": "report", "tool": "write_report", "arguments": {"title": "${ref:orders.total} late orders",
  "customers": "$ref:customers[*].data.name", "policy": "$ref:policy.hits[0].text || \"none found\""}},
 {"id": "excuse", "tool": "send_mail", "if": "$status:report == 'failed'", "arguments": {"why": "$error:report"}}
], "output_steps": ["report"]}`

// NumbersExample is the guide's example of numbers, which needs no tools.
const NumbersExample = `{"steps": [
 {"id": "gross", "value": {"$calc": "$ref:net * 1.19"}, "for_each": {"in": [12.5, 8], "as": "net"}},
 {"id": "rest", "value": {"$calc": "100 - sum($ref:gross[*].data)"}}
], "output_steps": ["rest"]}`

const guide = `A step, {"id", "tool", "arguments"} or {"id", "value"}, starts when all it refers to has succeeded; their order means nothing.

REFERENCES, strings anywhere in arguments:
- "$ref:ID" is the whole result of step ID; "$ref:ID.field.inner", "$ref:ID.items[0].name", "$ref:ID[\"any key\"]" are parts with their types; "$ref:ID.items[*].name" is a list. No negative indexes or arithmetic.
- Of a tool that returns {result: number} the number is "$ref:ID.result".
- "$ref:a.x || $ref:b.y || \"none\"" is the first that is not null. What is missing is null.
- In text: "Dear ${ref:user.name}". A literal "$ref:" is "$$ref:".
Take paths from the result types below; of "any", fields that you know it has, or the whole.

MANY ITEMS: "for_each": {"in": "$ref:list.items", "as": "item"} runs the step for each element, which is "$ref:item" in its arguments. ` +
	`Others see a list: [{"index": 0, "status": "ok", "data": <result>}, {"index": 1, "status": "error", "error": {...}}], so "$ref:ID[0].data" is one result, "$ref:ID[*].data" all. ` +
	`In the answer it is {"results": [that list]}.

VALUES: "value" calls nothing: any JSON with references and {"$calc": "expression"}. All arithmetic goes there: + - * / ?: sum product min max round(x, digits) abs len concat upper lower trim, ` +
	`spaces around a minus. Others refer to "$ref:total", not "$ref:total.result".

CONDITIONS: "if": "$ref:a.total > 100 and not ($ref:a.country in ['DE'])" (== != < <= > >= or contains ??). Null is false. ` +
	`A step not taken is no failure; what refers to its result is not taken either, unless by "$ref:yes.text || $ref:no.text".
FAILURES: "$status:ID" is succeeded, failed, skipped, cancelled or not_taken; "$error:ID" is {"code", "message"} or null. ` +
	`Who names a step by these runs however it ended; if it succeeds, the failure is handled.

MORE, where needed. In a step: "plan": {"steps": [...]} instead of a tool; in it "$input.x" is of the step's "arguments". ` +
	`"repeat": {"until": "$last.done", "max": 20, "every": "2s"}; "$last", "$index" in arguments. "approval": true waits for a yes; the tool ask, {"question", "choices"}, asks the user. ` +
	`"depends_on": ["id"]; "optional": true; "timeout": "30s"; "retry": {"max_attempts": 3}. ` +
	`In the plan: "output_steps": ids whose results you need to see (few), or "output": the value itself; "on_failure": "stop"; "on_missing": "error".

DON'T invent tools or ids, nor call execute_tool_plan in a step.

EXAMPLES (their tools are made up: call those that you have):
{{example}}
{{numbers}}

The answer has "status", "results" by step id, "not_taken", "errors". A refused plan has "problems" that say what to write: mend all, send it again.`
