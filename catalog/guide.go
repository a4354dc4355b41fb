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
	b.WriteString(strings.NewReplacer("{{example}}", Example, "{{numbers}}", NumbersExample, "{{refund}}", RefundExample).Replace(guide))
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
  {"id": "orders", "tool": "list_orders", "arguments": {"status": "late", "limit": 20}},
  {"id": "customers", "tool": "get_customer", "for_each": {"in": "$ref:orders.items", "as": "order"}, "arguments": {"id": "$ref:order.customer_id"}},
  {"id": "policy", "tool": "search_documents", "arguments": {"query": "late delivery policy"}, "optional": true},
  {"id": "report", "tool": "write_report", "arguments": {
    "title": "${ref:orders.total} late orders",
    "customers": "$ref:customers[*].data.name",
    "policy": "$ref:policy.hits[0].text || \"no policy found\""}}
], "output_steps": ["report"]}`

// NumbersExample is the guide's example of numbers, which needs no tools.
const NumbersExample = `{"steps": [
  {"id": "gross", "value": {"$calc": "$ref:price * 1.19"}, "for_each": {"in": [12.5, 8, 30], "as": "price"}},
  {"id": "rest", "value": {"$calc": "100 - sum($ref:gross[*].data)"}}
], "output_steps": ["rest"]}`

// RefundExample is the guide's example of a condition, and of a failure that the plan deals with.
const RefundExample = `{"steps": [
  {"id": "pay", "tool": "process_payment", "arguments": {"amount": 50}},
  {"id": "confirm", "tool": "confirm_order", "arguments": {"receipt": "$ref:pay.receipt"}},
  {"id": "report", "tool": "report_failure", "if": "$status:pay == 'failed'", "arguments": {"error": "$error:pay"}}
]}`

const guide = `A step: {"id", "tool", "arguments"}, or {"id", "value"}. It starts as soon as the steps it refers to have succeeded; their order means nothing.

REFERENCES are strings anywhere in arguments:
- "$ref:ID" is the whole result of step ID; "$ref:ID.field.inner" and "$ref:ID.items[0].name" are parts of it, with their types. Other keys: "$ref:ID[\"any key\"]". All names as a list: "$ref:ID.items[*].name". No negative indexes, no arithmetic.
- A tool that returns {result: number} returns an object: the number is "$ref:ID.result".
- "$ref:a.x || $ref:b.y || \"none\"" is the first that is there and not null. What is missing is null, or with "on_missing": "error" in the plan fails the step.
- In text: "Dear ${ref:user.name}, ...". A literal "$ref:" is "$$ref:".
Take paths from the result types below; of "any" use fields that you know it has, or the whole.

FOR MANY ITEMS: "for_each": {"in": "$ref:list.items", "as": "item"} runs the step once for each element; "$ref:item" and "$ref:item.field" in its arguments are the element. ` +
	`Other steps refer to its result as an array in the list's order: [{"index": 0, "status": "ok", "data": <result>}, {"index": 1, "status": "error", "error": {...}}], so "$ref:ID[0].data" is one result and "$ref:ID[*].data" all. ` +
	`In the answer it is {"results": [that array]}.

VALUES: a step with "value" instead of "tool" calls nothing: {"id": "total", "value": {"$calc": "sum($ref:lines[*].data.price) * 1.19"}}. All arithmetic goes there, in few expressions. ` +
	`A value is any JSON with references, {"$calc": "..."} anywhere in it a number, text, boolean or list: what conditions have, and sum product min max round(x, digits) abs concat upper lower trim ?:. Numbers are exact decimals. ` +
	`Spaces around a minus: "$ref:a.total - $ref:b.paid". Others refer to "$ref:total", not "$ref:total.result".

CONDITIONS: "if": "$ref:a.total > 100 and not ($ref:a.country in ['DE', 'FR'])" runs the step only where that is true (== != < <= > >= and or not in contains + - * / ?? len round). ` +
	`null makes it false. A step that was not taken is no failure; one that refers to its result is not taken either, unless by alternatives: "$ref:yes.text || $ref:no.text".
FAILURES: "$status:ID" is succeeded, failed, skipped, cancelled or not_taken; "$error:ID" is {"code", "tool_code", "message", "details"} or null. ` +
	`A step that names another by these runs after it however it ended, and where it succeeds the failure is handled: the run can still succeed.

SEVERAL STEPS FOR EACH: "plan": {"steps": [...]} instead of a tool; inside, "$input.x" is of its "arguments".

AGAIN: "repeat": {"until": "$last.done", "max": 20, "every": "2s"}; "$last", "$index" in arguments

PEOPLE: the tool ask, {"question", "choices": [...]}, asks the user and waits; the answer is its result. "approval": true in a step waits for a person's yes.

OPTIONS, only where needed. Of a step: "depends_on": ["id"] waits without using the result; "optional": true: others can do without it; "timeout": "30s"; ` +
	`"retry": {"max_attempts": 3}. Of the plan: "output_steps": the ids whose results you need to see (few), or "output": the value itself; ` +
	`"on_failure": "stop" ends the run at the first failure that no step names (else only what needs the failed step is skipped); "timeout".

DON'T invent tools or ids; call execute_tool_plan in a step; write a step many times where for_each does it.

EXAMPLES (their tools may be made up: call only those that you have):
{{example}}
{{numbers}}
{{refund}}

The answer has "status", "results" by step id, "not_taken", and "errors" with the reason of every step that did not succeed. A plan with mistakes is refused; its "problems" say what to write: mend them all and send it again.`
