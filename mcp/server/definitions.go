package server

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/tool"
)

// The tools that are always there.
const (
	executePlan = "execute_tool_plan"
	searchTools = "search_tools"
	getResult   = "get_plan_result"
	cancelPlan  = "cancel_plan"
)

var builtins = []string{executePlan, searchTools, getResult, cancelPlan}

// mostListed is the most tools that execute_tool_plan lists; beyond, it says to search.
const mostListed = 100

// planTool is execute_tool_plan over some tools, of some groups.
func planTool(tools []*tool.Definition, of *groups) (*mcp.Tool, error) {
	listed, note := tools, ""
	if len(tools) > mostListed {
		listed = nil
		note = fmt.Sprintf("\n\nTOOLS: there are %d. Find those that you need with search_tools; a plan may call all that it finds.", len(tools)) +
			of.told(tools)
	}
	raw, err := catalog.Meta(catalog.MCP, listed, catalog.Options{})
	if err != nil {
		return nil, err
	}
	var meta struct {
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading the tool execute_tool_plan")
	}
	schema, err := withRun(meta.InputSchema)
	if err != nil {
		return nil, err
	}
	return &mcp.Tool{
		Name: executePlan, Title: "Run a plan of tool calls", Description: meta.Description + note,
		InputSchema: schema, OutputSchema: json.RawMessage(outcomeSchema),
	}, nil
}

// runProperty is what a plan may say beside what it is.
const runProperty = `{"type": "string", "minLength": 1, "maxLength": 512, "description": ` +
	`"A name of yours for this run. The same plan under the same name runs once: sent again, it returns the same run. Without it, a call that is given up ends the run."}`

// withRun adds the property "run" to the schema of plans.
func withRun(schema json.RawMessage) (json.RawMessage, error) {
	var members, properties map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil || json.Unmarshal(members["properties"], &properties) != nil {
		return nil, fault.New(fault.Internal, "the schema of plans is no object with properties")
	}
	properties["run"] = json.RawMessage(runProperty)
	members["properties"], _ = json.Marshal(properties) // they came from JSON
	return json.Marshal(members)
}

// outcomeSchema is that of what a plan comes to.
const outcomeSchema = `{"type": "object", "required": ["run", "status"], "properties": {
	"run": {"type": "string", "description": "The run's id, for get_plan_result and cancel_plan."},
	"status": {"enum": ["running", "succeeded", "partial", "failed", "cancelled", "expired", "rejected"]},
	"progress": {"type": "string"},
	"waiting": {"type": "array", "items": {"type": "object"}},
	"next": {"type": "string"},
	"results": {"type": "object", "description": "By step id. What was too large is {preview, bytes, uri}."},
	"output": {}, "errors": {"type": "array", "items": {"type": "object"}},
	"not_taken": {"type": "array", "items": {"type": "string"}},
	"problems": {"type": "array", "items": {"type": "object"}},
	"warnings": {"type": "array", "items": {"type": "object"}}}}`

// mostWait is the longest that get_plan_result may be asked to wait, in seconds.
const mostWait = 3600

var (
	yes = true
	no  = false

	searchTool = &mcp.Tool{
		Name: searchTools, Title: "Search tools",
		Description: "Finds tools by words. Every tool that it returns can stand in a plan of execute_tool_plan at once, under its name.",
		InputSchema: json.RawMessage(`{"type": "object", "required": ["query"], "properties": {
			"query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Words of what it should do, such as: create calendar event"},
			"group": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Finds tools of this group alone."},
			"limit": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Default 5."},
			"detail": {"enum": ["signature", "schema"], "description": "signature (default): one line for each tool; schema: whole definitions."}}}`),
		OutputSchema: json.RawMessage(`{"type": "object", "required": ["tools"], "properties": {"tools": {"type": "array"}}}`),
		Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}
	resultTool = &mcp.Tool{
		Name: getResult, Title: "Get what a plan came to",
		Description: "Returns what a run came to, or how far it is. It waits up to wait_s seconds for its end.",
		InputSchema: json.RawMessage(fmt.Sprintf(`{"type": "object", "required": ["run"], "properties": {
			"run": {"type": "string", "minLength": 1, "maxLength": 512, "description": "The id that a result names, or the name that you gave the run."},
			"wait_s": {"type": "number", "minimum": 0, "maximum": %d, "description": "Default 30."}}}`, mostWait)),
		OutputSchema: json.RawMessage(outcomeSchema),
		Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}
	cancelTool = &mcp.Tool{
		Name: cancelPlan, Title: "Cancel a plan",
		Description: "Stops a run: nothing new of it starts, and what runs is told to end. Returns what it had come to.",
		InputSchema: json.RawMessage(`{"type": "object", "required": ["run"], "properties": {
			"run": {"type": "string", "minLength": 1, "maxLength": 512, "description": "The id that a result names, or the name that you gave the run."}}}`),
		OutputSchema: json.RawMessage(outcomeSchema),
		Annotations:  &mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
	}
)

// listedTool is a registered tool as clients are told of it. It has no output schema: what is too large is replaced by a
// link, to which no schema of its author's conforms.
func listedTool(name string, d *tool.Definition) (*mcp.Tool, error) {
	raw, err := catalog.Export(catalog.MCP, []*tool.Definition{d}, catalog.Options{})
	if err != nil {
		return nil, err
	}
	var written []struct {
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal(raw, &written); err != nil || len(written) != 1 {
		return nil, fault.New(fault.Internal, "the tool %s can't be written for clients", text.Clip(d.Name, 80))
	}
	t := &mcp.Tool{
		Name: name, Title: d.Title, Description: written[0].Description, InputSchema: written[0].InputSchema,
	}
	if name != d.Name {
		t.Description += "\n\nIts name in plans: " + d.Name
	}
	if a := d.Annotations; a != nil {
		t.Annotations = &mcp.ToolAnnotations{
			Title: a.Title, ReadOnlyHint: isTrue(a.ReadOnlyHint), IdempotentHint: isTrue(a.IdempotentHint),
			DestructiveHint: a.DestructiveHint, OpenWorldHint: a.OpenWorldHint,
		}
	}
	return t, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// addTool adds a tool to a server. The SDK panics on schemas that clients can't take; that is an error here.
func addTool(s *mcp.Server, t *mcp.Tool, h mcp.ToolHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.InvalidTool, "%v", p)
		}
	}()
	s.AddTool(t, h)
	return nil
}
