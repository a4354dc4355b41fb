package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// callStep is the id of the one step of a run that calls a single tool.
const callStep = "call"

// result is what a caller gets of a run that is over.
func (r *runs) result(ctx context.Context, out *outcome.Outcome, kind task.Kind, version string) (*mcp.CallToolResult, error) {
	if kind == task.Plan {
		return r.planResult(out), nil
	}
	if out.Status != outcome.Succeeded && out.Status != outcome.Partial {
		return r.toolError(ctx, out)
	}
	raw, _ := out.Results.Get(callStep)
	if len(raw) > r.most && !isContent(raw) {
		return linked(out.Run, callStep, raw), nil
	}
	answer, err := content.Of(raw, func(handle json.RawMessage) ([]byte, error) { return r.artifact(ctx, handle) })
	if err != nil {
		return failed(err)
	}
	items, err := contentOf(answer.Content)
	if err != nil {
		return nil, err
	}
	res := &mcp.CallToolResult{Content: items}
	if answer.Structured != nil && (isObject(answer.Structured) || version >= stateless) {
		res.StructuredContent = answer.Structured
	}
	return res, nil
}

// contentOf reads items of content as the SDK has them.
func contentOf(items []json.RawMessage) ([]mcp.Content, error) {
	wrapped, err := json.Marshal(map[string]any{"content": items})
	if err != nil {
		return nil, err
	}
	var read mcp.CallToolResult
	if err := json.Unmarshal(wrapped, &read); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading the content of a result")
	}
	return read.Content, nil
}

func isObject(raw json.RawMessage) bool {
	at := jsontape.SkipSpace(raw, 0)
	return at < len(raw) && raw[at] == '{'
}

// isContent reports whether a result is content of MCP, which is passed on as it came.
func isContent(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && len(members) == 1 && members["content"] != nil
}

// artifact reads the bytes that a handle in a result stands for.
func (r *runs) artifact(ctx context.Context, handle json.RawMessage) ([]byte, error) {
	var h outcome.Handle
	if err := json.Unmarshal(handle, &h); err != nil {
		return nil, fault.Wrap(fault.InvalidValue, err, "reading the handle of an artifact")
	}
	return r.client.Blob(ctx, &h)
}

// planResult is the outcome of a plan: as structured content and, for clients whose numbers are rounded, as text.
func (r *runs) planResult(out *outcome.Outcome) *mcp.CallToolResult {
	small, links := r.shrunk(out)
	doc := small.ForModel()
	res := &mcp.CallToolResult{
		Content:           append([]mcp.Content{&mcp.TextContent{Text: string(doc)}}, links...),
		StructuredContent: json.RawMessage(doc),
	}
	res.IsError = out.Status != outcome.Succeeded && out.Status != outcome.Partial
	return res
}

// shrunk returns an outcome whose largest results are replaced by previews and links, until it is small enough.
func (r *runs) shrunk(out *outcome.Outcome) (*outcome.Outcome, []mcp.Content) {
	small, total := *out, len(out.Output)
	for _, one := range out.Results {
		total += len(one.JSON)
	}
	if total <= r.most {
		return out, nil
	}
	var links []mcp.Content
	replace := func(step string, raw json.RawMessage) json.RawMessage {
		preview, link := previewOf(out.Run, step, raw)
		total += len(preview) - len(raw)
		links = append(links, link)
		return preview
	}
	if len(out.Output) > smallest {
		small.Output = replace(subjects.RootScope, out.Output)
	}
	small.Results = slices.Clone(out.Results)
	bySize := make([]int, len(small.Results))
	for i := range bySize {
		bySize[i] = i
	}
	slices.SortStableFunc(bySize, func(a, b int) int { return len(out.Results[b].JSON) - len(out.Results[a].JSON) })
	for _, i := range bySize {
		one := &small.Results[i]
		if total <= r.most || len(one.JSON) <= smallest {
			break
		}
		one.JSON = replace(one.Step, one.JSON)
	}
	return &small, links
}

// linked is a result that is too large for its caller.
func linked(run, step string, raw json.RawMessage) *mcp.CallToolResult {
	preview, link := previewOf(run, step, raw)
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(preview)}, link},
		StructuredContent: preview,
	}
}

const (
	previewSize = 1 << 10
	// smallest is the least that is replaced by a link: what takes its place is about so large.
	smallest = 2 << 10
)

// previewOf is what takes the place of a value that is too large, and the link to the whole.
func previewOf(run, step string, raw json.RawMessage) (json.RawMessage, *mcp.ResourceLink) {
	uri := resourceURI(run, step)
	doc := append([]byte(`{"preview":`), jsontape.AppendQuoted(nil, cut(raw, previewSize))...)
	doc = fmt.Appendf(doc, `,"bytes":%d,"uri":`, len(raw))
	doc = append(jsontape.AppendQuoted(doc, uri), '}')
	size := int64(len(raw))
	name := "result of " + step
	if step == subjects.RootScope {
		name = "output"
	}
	return doc, &mcp.ResourceLink{URI: uri, Name: name, MIMEType: jsonType, Size: &size}
}

// toolError is what a caller gets of a call that came to nothing.
func (r *runs) toolError(ctx context.Context, out *outcome.Outcome) (*mcp.CallToolResult, error) {
	if rpc := r.rpcError(ctx, out); rpc != nil {
		return nil, rpc
	}
	doc := map[string]any{"run": out.Run, "status": out.Status}
	if len(out.Errors) > 0 {
		doc["error"] = out.Errors[0]
	}
	if len(out.Problems) > 0 {
		doc["problems"] = out.Problems
	}
	text, _ := json.Marshal(doc) // an outcome can be written
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, IsError: true}, nil
}

// rpcError is the error of JSON-RPC that a call of a single tool came to: the one that a bridged server answered with,
// or the one for what is Stepjet's own fault. nil for all others.
func (r *runs) rpcError(ctx context.Context, out *outcome.Outcome) error {
	if len(out.Errors) == 0 {
		return nil
	}
	switch e := out.Errors[0]; e.Code {
	case fault.Internal, fault.NewerVersion:
		return internalError(&fault.Error{Code: e.Code, Message: e.Message, Hint: e.Hint})
	case fault.ToolFailed, fault.ToolTerminal:
	default:
		return nil
	}
	doc, err := r.client.Get(ctx, out.Run)
	if err != nil || len(doc.Steps) == 0 || doc.Steps[0].Error == nil {
		return nil // the outcome says enough
	}
	var details struct {
		JSONRPC *jsonrpc.Error `json:"jsonrpc"`
	}
	if json.Unmarshal(doc.Steps[0].Error.Details, &details) != nil || details.JSONRPC == nil {
		return nil
	}
	return details.JSONRPC
}
