package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// desk is where calls of a tenant's tools arrive.
type desk struct {
	shared
	shelf shelf
}

// callPlan is execute_tool_plan.
func (t *desk) callPlan(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c := t.newCall(req, task.Plan)
	name, body, err := planOf(req.Params.Arguments)
	if err != nil {
		return failed(err)
	}
	return c.start(ctx, name, body)
}

// callTool is a registered tool that is offered as one of its own: a run of one step.
func (t *desk) callTool(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c := t.newCall(req, task.Tool)
	b, err := t.runs.boundOf(ctx, c.caller)
	if err != nil {
		return failed(err)
	}
	d := t.shelf.one(req.Params.Name)
	if d == nil || !b.sees(d) {
		return nil, invalidParams(fmt.Sprintf("unknown tool %q", req.Params.Name))
	}
	c.mode = taskModeOf(d)
	if c.mode == taskRequired && !knowsTasks(req) {
		return nil, missingTasks()
	}
	arguments := req.Params.Arguments
	if len(bytes.TrimSpace(arguments)) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	escaped, err := plan.Escape(arguments)
	if err != nil {
		return failed(err)
	}
	body := jsontape.AppendQuoted([]byte(`{"steps":[{"id":"`+callStep+`","tool":`), d.Name)
	body = append(append(append(body, `,"arguments":`...), escaped...), "}]}"...)
	return c.start(ctx, "", body)
}

// callSearch is search_tools.
func (t *desk) callSearch(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	who := t.who(req.Extra)
	if !who.May(ScopeRead) {
		return nil, noScope(ScopeRead)
	}
	args := struct {
		Query  string `json:"query"`
		Group  string `json:"group"`
		Limit  int    `json:"limit"`
		Detail string `json:"detail"`
	}{Limit: defaultFound}
	if err := readArguments(req, &args); err != nil {
		return failed(err)
	}
	if args.Query == "" || args.Limit < 1 || args.Limit > mostFound {
		return failed(fault.New(fault.InvalidArguments, "query is a text, limit 1 to %d", mostFound).WithHint(`{"query": "create calendar event", "limit": 5}`))
	}
	b, err := t.runs.boundOf(ctx, who)
	if err != nil {
		return failed(err)
	}
	var in *role
	switch {
	case args.Group == "":
	case b != nil:
		in = &role{args.Group, b.own} // of others it is not told
	default:
		all, err := client.GroupsOf(t.runs.client).All(ctx)
		if err != nil {
			return failed(err)
		}
		in = &role{args.Group, all}
	}
	found, err := t.shelf.find(args.Query, args.Limit, in, b)
	if err != nil {
		return failed(err)
	}
	doc, err := describe(found, args.Detail == "schema")
	if err != nil {
		return failed(err)
	}
	return structured(doc), nil
}

// The bounds of search_tools.
const (
	defaultFound = 5
	mostFound    = 20
)

// readArguments reads the arguments of a tool that is always there.
func readArguments(req *mcp.CallToolRequest, into any) error {
	if !isObject(req.Params.Arguments) {
		return fault.New(fault.InvalidArguments, "the arguments of %s are a JSON object", req.Params.Name)
	}
	if err := json.Unmarshal(req.Params.Arguments, into); err != nil {
		return fault.New(fault.InvalidArguments, "the arguments of %s don't fit its schema: %v", req.Params.Name, err)
	}
	return nil
}

// structured is a result that is one JSON document.
func structured(doc json.RawMessage) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(doc)}}, StructuredContent: doc}
}

// found is what search_tools says of a tool.
type found struct {
	Name        string          `json:"name"`
	Signature   string          `json:"signature,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	Output      json.RawMessage `json:"output_schema,omitempty"`
}

// describe writes what search_tools found.
func describe(tools []*tool.Definition, whole bool) (json.RawMessage, error) {
	doc := struct {
		Tools []found `json:"tools"`
	}{Tools: []found{}}
	for _, d := range tools {
		f := found{Name: d.Name, Description: d.Description}
		if whole {
			f.InputSchema, f.Output = d.InputSchema, d.OutputSchema
		} else {
			f.Signature = catalog.Signature(d)
			f.Description = ""
		}
		doc.Tools = append(doc.Tools, f)
	}
	return json.Marshal(doc)
}

// defaultWait is how long get_plan_result waits where it is not told.
const defaultWait = 30 * time.Second

// callResult is get_plan_result.
func (t *desk) callResult(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c := t.newCall(req, task.Plan)
	if !c.caller.May(ScopeRead) {
		return nil, noScope(ScopeRead)
	}
	args := struct {
		Run  string   `json:"run"`
		Wait *float64 `json:"wait_s"`
	}{}
	if err := readArguments(req, &args); err != nil {
		return failed(err)
	}
	wait := defaultWait
	if args.Wait != nil {
		wait = time.Duration(max(0, min(*args.Wait, mostWait)) * float64(time.Second))
	}
	c.hold, c.mode, c.named = min(wait, c.hold), taskNever, true // it is asked about, so it goes on when the asker leaves
	if req.Params.RequestState != "" {
		return c.goOn(ctx)
	}
	r, err := t.runs.runOf(ctx, c.caller, args.Run)
	if err != nil {
		return failed(err)
	}
	c.run = r.ID()
	return c.await(ctx, r)
}

// cancelWithin is how long cancel_plan waits for the end of the run.
const cancelWithin = 5 * time.Second

// callCancel is cancel_plan.
func (t *desk) callCancel(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c := t.newCall(req, task.Plan)
	if !c.caller.May(ScopeRun) {
		return nil, noScope(ScopeRun)
	}
	var args struct {
		Run string `json:"run"`
	}
	if err := readArguments(req, &args); err != nil {
		return failed(err)
	}
	r, err := t.runs.runOf(ctx, c.caller, args.Run)
	if err != nil {
		return failed(err)
	}
	if _, err := t.runs.client.Cancel(ctx, r.ID(), c.caller.by()); err != nil && fault.CodeOf(err) != fault.AlreadyFinished {
		return failed(err)
	}
	c.run, c.named, c.mode, c.hold = r.ID(), true, taskNever, min(cancelWithin, c.hold)
	res, err := c.await(ctx, r)
	if res != nil {
		res.IsError = false // it was asked for
	}
	return res, err
}
func (t *desk) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	p, ok := parsePlace(uri)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if !t.who(req.Extra).May(ScopeRead) {
		return nil, noScope(ScopeRead)
	}
	raw, err := t.runs.value(ctx, p)
	switch fault.CodeOf(err) {
	case "":
	case fault.NotFound, fault.InvalidID:
		return nil, mcp.ResourceNotFoundError(uri)
	default:
		return nil, internalError(fault.As(err))
	}
	part, mime := raw[min(p.offset, len(raw)):], jsonType
	if p.offset > 0 || len(part) > p.limit {
		mime = "text/plain" // a part of a JSON text is none
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mime, Text: cut(part, p.limit)}}}, nil
}
