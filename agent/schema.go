package agent

// Schema is the JSON Schema of definitions: for an editor, for a model that writes one, for a check before Parse. It
// accepts all that Parse accepts; what entries have to do with each other only Parse can tell.
const Schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "The definition of an agent",
  "type": "object",
  "required": ["name", "agent"],
  "properties": {
    "name": {"$ref": "#/$defs/name"},
    "description": {"type": "string"},
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object"},
    "agent": {"$ref": "#/$defs/agent"}
  },
  "$defs": {
    "name": {"type": "string", "pattern": "^[A-Za-z0-9_.:/-]{1,128}$"},
    "names": {"type": ["array", "null"], "items": {"$ref": "#/$defs/name"}, "maxItems": 64},
    "text": {"type": ["string", "null"]},
    "flag": {"type": ["boolean", "null"]},
    "agent": {
      "type": "object",
      "required": ["planner"],
      "properties": {
        "planner": {"type": "object", "required": ["tool"], "properties": {
          "tool": {"$ref": "#/$defs/name"},
          "model": {"$ref": "#/$defs/text"},
          "mode": {"enum": ["tools", "plan", "calls", "commands", null]},
          "max_output_tokens": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000000}}},
        "instructions": {"$ref": "#/$defs/text"},
        "extra_requirement": {"$ref": "#/$defs/text"},
        "tools": {"type": ["array", "null"], "items": {"$ref": "#/$defs/entry"}},
        "max_rounds": {"type": ["integer", "null"], "minimum": 1, "maximum": 10000},
        "advance": {"enum": ["all", "wave", "call", null]},
        "stream_plan": {"$ref": "#/$defs/flag"},
        "concurrency": {"type": ["integer", "null"], "minimum": 1, "maximum": 10000},
        "budget": {"type": ["object", "null"], "properties": {
          "steps": {"type": ["integer", "null"], "minimum": 1},
          "tokens": {"type": ["integer", "null"], "minimum": 1},
          "cost_usd": {"type": ["number", "null"], "exclusiveMinimum": 0},
          "time": {"$ref": "#/$defs/text"}}},
        "states": {"type": ["object", "null"], "required": ["initial"], "properties": {
          "initial": {"type": "string"},
          "final": {"$ref": "#/$defs/names"}}},
        "state": {"type": ["object", "null"], "properties": {
          "initial": {"type": ["object", "null"]},
          "schema": {"type": ["object", "null"]}}},
        "approval": {"anyOf": [{"enum": ["plan", null]}, {"type": "object", "properties": {
          "ask": {"$ref": "#/$defs/text"},
          "timeout": {"$ref": "#/$defs/text"},
          "on_timeout": {"enum": ["reject", "approve", null]}}}]},
        "respond": {"type": ["boolean", "object", "null"], "properties": {"extra_instruction": {"$ref": "#/$defs/text"}}},
        "context": {"type": ["object", "null"], "properties": {
          "result_bytes": {"type": ["integer", "null"], "minimum": 256, "maximum": 1048576},
          "total_bytes": {"type": ["integer", "null"], "minimum": 4096, "maximum": 16777216},
          "summary": {"$ref": "#/$defs/text"}}},
        "capture_nested": {"$ref": "#/$defs/flag"},
        "guards": {"type": ["array", "null"], "items": {"type": "object", "required": ["on"], "properties": {
          "on": {"enum": ["input", "call", "result", "output"]},
          "when": {"$ref": "#/$defs/text"},
          "tool": {"$ref": "#/$defs/text"},
          "else": {"enum": ["reject", "ask", "fail", null]}}}}
      }
    },
    "entry": {"anyOf": [
      {"$ref": "#/$defs/name"},
      {"$ref": "#/$defs/toolEntry"},
      {"type": "object", "required": ["group"], "properties": {
        "group": {"type": "string"},
        "include": {"type": ["array", "null"], "items": {"type": "string"}},
        "exclude": {"type": ["array", "null"], "items": {"type": "string"}},
        "prefix": {"$ref": "#/$defs/text"},
        "note": {"$ref": "#/$defs/text"},
        "optional": {"$ref": "#/$defs/flag"},
        "needs": {"$ref": "#/$defs/needs"},
        "in": {"$ref": "#/$defs/names"}}},
      {"type": "object", "required": ["chain"], "properties": {
        "chain": {"type": "string"},
        "tools": {"type": ["array", "null"], "items": {"anyOf": [{"$ref": "#/$defs/name"}, {"$ref": "#/$defs/toolEntry"}]}},
        "bind": {"type": ["object", "null"]},
        "when": {"$ref": "#/$defs/text"}}},
      {"type": "object", "required": ["unfold", "description"], "properties": {
        "unfold": {"$ref": "#/$defs/name"},
        "description": {"type": "string"},
        "tools": {"type": ["array", "null"], "items": {"$ref": "#/$defs/entry"}},
        "notes": {"$ref": "#/$defs/text"},
        "exclusive": {"$ref": "#/$defs/flag"},
        "by": {"type": ["object", "null"], "minProperties": 1, "maxProperties": 1, "additionalProperties": {
          "type": "object", "minProperties": 1, "maxProperties": 64,
          "additionalProperties": {"type": "array", "items": {"$ref": "#/$defs/entry"}}}},
        "inputSchema": {"type": ["object", "null"]},
        "select": {"$ref": "#/$defs/text"},
        "needs": {"$ref": "#/$defs/needs"},
        "in": {"$ref": "#/$defs/names"}}},
      {"type": "object", "required": ["search_tools"], "properties": {
        "search_tools": {"type": "object", "properties": {
          "group": {"$ref": "#/$defs/text"},
          "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 100}}}}}
    ]},
    "toolEntry": {"type": "object", "required": ["tool"], "properties": {
      "tool": {"$ref": "#/$defs/name"},
      "as": {"$ref": "#/$defs/text"},
      "description": {"$ref": "#/$defs/text"},
      "note": {"$ref": "#/$defs/text"},
      "bind": {"type": ["object", "null"]},
      "optional": {"$ref": "#/$defs/flag"},
      "direct": {"$ref": "#/$defs/flag"},
      "to": {"$ref": "#/$defs/text"},
      "once": {"$ref": "#/$defs/text"},
      "artifact": {"type": ["object", "null"], "required": ["type"], "properties": {
        "type": {"$ref": "#/$defs/name"},
        "path": {"$ref": "#/$defs/text"},
        "when": {"$ref": "#/$defs/text"},
        "sink": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/sink"}, {"type": "array", "items": {"$ref": "#/$defs/sink"}}]}}},
      "needs": {"$ref": "#/$defs/needs"},
      "in": {"$ref": "#/$defs/names"}}},
    "sink": {"type": "object", "properties": {"subject": {"type": "string", "maxLength": 128, "pattern": "^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+){0,7}$"}, "bucket": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}}},
    "needs": {"type": ["object", "null"], "properties": {
      "all": {"$ref": "#/$defs/names"},
      "any": {"$ref": "#/$defs/names"},
      "called": {"$ref": "#/$defs/flag"},
      "artifact": {"$ref": "#/$defs/text"},
      "state": {"$ref": "#/$defs/text"},
      "when": {"$ref": "#/$defs/text"}}}
  }
}
`
