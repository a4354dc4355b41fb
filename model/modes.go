package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// forms tell a model how to answer in the modes in which it writes an object.
var forms = map[Mode]string{
	ModePlan: `Answer with one JSON object and nothing else: {"steps": [{"id", "tool", "arguments"}], "output"?}.
- A step calls one of the tools below. id: letters, digits, "_" and "-", each once. arguments: an object.
- A string "$ref:ID" in arguments, or "$ref:ID.field", stands for what the step ID returns; it runs after that step.
- Steps that don't refer to each other run at once.
- When nothing is left to call: {"steps": [], "output": the answer}.`,
	ModeCalls: `Answer with one JSON object and nothing else: {"calls": [{"_tool", …arguments…, "_outputPath"?}], "output"}.
- A call names one of the tools below in _tool and has its arguments beside it.
- "_outputPath": "†state.NAME" keeps what it returns; "†state.NAME" or "†input.NAME" in an argument stands for a value.
- output is null as long as there is more to do after these calls; otherwise it is the answer.`,
	ModeCommands: `Answer with one JSON object and nothing else, next_action first:
{"next_action": "execute" | "response", "execution_commands": [{"purpose", "tool_name", "tool_kwargs", "todo_suggestion", "next"}]}.
- "execute" runs the commands, which run at once; "response" says that nothing more has to be run.
- A command calls one of the tools below in tool_name; tool_kwargs: an object.`,
}

// answerName is what a structured answer is called where it needs a name.
const answerName = "answer"

var schemas = map[Mode]json.RawMessage{
	ModePlan: json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object",` +
		`"properties":{"id":{"type":"string"},"tool":{"type":"string"},"arguments":{"type":"object"}},` +
		`"required":["id","tool","arguments"]}},"output":{}},"required":["steps"]}`),
	ModeCalls: json.RawMessage(`{"type":"object","properties":{"calls":{"type":"array","items":{"type":"object",` +
		`"properties":{"_tool":{"type":"string"},"_outputPath":{"type":"string"}},"required":["_tool"]}},"output":{}},` +
		`"required":["calls","output"]}`),
	ModeCommands: json.RawMessage(`{"type":"object","properties":{"next_action":{"type":"string",` +
		`"enum":["execute","response"]},"execution_commands":{"type":"array","items":{"type":"object","properties":{` +
		`"purpose":{"type":"string"},"tool_name":{"type":"string"},"tool_kwargs":{"type":"object"},` +
		`"todo_suggestion":{"type":"string"},"next":{"type":"string"}},"required":["purpose","tool_name","tool_kwargs"]}}},` +
		`"required":["next_action","execution_commands"]}`),
}

// schema returns the schema of what is to be answered, nil where that is text, and whether the asker wrote it.
func (r *Request) schema() (schema json.RawMessage, own bool) {
	if r.Mode == ModeText || r.Final {
		return compactOrNil(r.OutputSchema), true
	}
	return schemas[r.Mode], false
}

// Schema names the schema that an answer is asked for by: its SHA-256, in hex; empty for none.
func (r *Request) Schema() string {
	schema, _ := r.schema()
	if schema == nil {
		return ""
	}
	sum := sha256.Sum256(schema)
	return hex.EncodeToString(sum[:])
}

// structured reports whether the answer is an object of a dialect.
func (r *Request) structured() bool { return !r.Final && schemas[r.Mode] != nil }
