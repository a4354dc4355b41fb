package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
)

// failed makes of a fault what a caller gets: a result with isError for what a model can mend, else an error of
// JSON-RPC.
func failed(err error) (*mcp.CallToolResult, error) {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		return nil, err
	}
	f := fault.As(err)
	switch f.Code {
	case fault.Internal, fault.Timeout, fault.Cancelled: // others say why the time was not enough
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
	}
	if !mendable(f.Code) {
		return nil, internalError(f)
	}
	text, _ := json.Marshal(f) // an envelope can be written
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, IsError: true}, nil
}

// mendable reports whether a caller can do something about a fault other than to try again.
func mendable(code fault.Code) bool {
	switch code {
	case fault.NoConnection, fault.NoJetStream, fault.Permission, fault.StoreFull, fault.NotReady, fault.NewerVersion,
		fault.InvalidConfig, fault.Internal, fault.Timeout:
		return false
	}
	return true
}

// internalError is the error of JSON-RPC for a fault that its caller can do nothing about.
func internalError(f *fault.Error) *jsonrpc.Error {
	data, _ := json.Marshal(f) // an envelope can be written
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.Message, Data: data}
}

// invalidParams is the error of JSON-RPC for what a caller wrote.
func invalidParams(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

// missing is the error for a client that has not said that it knows tasks.
func missingTasks() *jsonrpc.Error {
	return &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Message: "missing required client capability",
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`),
	}
}

// noScope is the error for a caller whose token lacks a scope, where HTTP has no say.
func noScope(scope string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the token lacks the scope " + scope}
}
