package bridge

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/servers"
	"github.com/stepjet/stepjet/mcp/session"
)

// isError is the error of a step whose tool reports one. It may have done part of its work, and says so to a model
// rather than to a program; so it is tried again only where the file names such errors.
func (t *bridged) isError(r content.Result) error {
	said := r.Message
	if said == "" {
		said = string(r.Body)
	}
	f := fault.New(fault.ToolFailed, "%s", text.Clip(servers.Clean(said), 16<<10))
	f.Retryable = t.up.entry.RetryErrors != nil && t.up.entry.RetryErrors.MatchString(said)
	return f
}

// failed is the error of a step whose call brought no result.
func (t *bridged) failed(ctx context.Context, s *session.Session, f *session.Failure) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	server := t.up.entry.Name
	var answer *jsonrpc.Error
	var ours *fault.Error
	switch {
	case f.Huge:
		return fault.New(fault.TooLarge, "the MCP server %s sent a message over 16 MiB, which ended its connection", server).
			WithHint("ask the tool for less; calls beside this one end with the connection too")
	case f.Status != 0:
		return t.unseen(f.Sent && f.Status >= 500,
			session.StatusFault(server, f.Status, f.After, text.Clip(servers.Clean(f.Error()), 2<<10)))
	case errors.As(f.Err, &answer):
		return t.answered(answer)
	case errors.As(f.Err, &ours):
		return ours
	}
	return t.unseen(f.Sent, fault.New(fault.ToolFailed, "the connection to the MCP server %s ended during the call: %s",
		server, s.Why(ctx, f.Err)))
}

// answered is the error of a call that the server answered with an error of the protocol.
func (t *bridged) answered(e *jsonrpc.Error) error {
	f := fault.New(fault.ToolFailed, "the MCP server %s answered with the error %d: %s", t.up.entry.Name, e.Code,
		text.Clip(servers.Clean(e.Message), 4<<10))
	if final(e) {
		f.Code, f.Retryable = fault.ToolTerminal, false
	}
	if e.Code == mcp.CodeMissingRequiredClientCapabilities {
		f.Hint = "the tool would ask its caller something: " + askHint
	}
	f.Details = rpcDetails(e)
	if f.Code == fault.ToolTerminal {
		return f
	}
	return t.unseen(true, f)
}

// final reports whether an error of the protocol will be the same again: −32600 to −32602, and the lack of something
// that the bridge doesn't offer.
func final(e *jsonrpc.Error) bool {
	return e.Code <= jsonrpc.CodeInvalidRequest && e.Code >= jsonrpc.CodeInvalidParams ||
		e.Code == mcp.CodeMissingRequiredClientCapabilities
}

func rpcDetails(e *jsonrpc.Error) json.RawMessage {
	raw, err := jsontape.Marshal(map[string]any{"jsonrpc": e})
	if err != nil || len(raw) > 4<<10 { // data of a server may be anything
		raw, _ = jsontape.Marshal(map[string]any{"jsonrpc": map[string]any{"code": e.Code}})
	}
	return raw
}

// unseen is an error after which nobody knows what the tool has done: of a tool that must not be called twice it is
// outcome_unknown.
func (t *bridged) unseen(sent bool, f *fault.Error) error {
	if !sent || !t.once || f.Code != fault.ToolFailed {
		return f
	}
	g := *f
	g.Code, g.Retryable, g.RetryAfter = fault.OutcomeUnknown, false, 0
	g.Hint = "the tool may have been called: look at what it changes before it is called again"
	return &g
}
