package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/mcp/task"
)

// stateless is the version of the protocol from which on there are no sessions.
const stateless = "2026-07-28"

// offered reports whether a method is served. The SDK serves some of which nothing is declared.
func offered(method string) bool {
	for _, not := range []string{"prompts/", "completion/", "logging/"} {
		if strings.HasPrefix(method, not) {
			return false
		}
	}
	return true
}

type callerKey struct{}

// callerOf returns who calls a method of tasks.
func callerOf(ctx context.Context) Principal {
	p, _ := ctx.Value(callerKey{}).(Principal)
	return p
}

// principalOf returns whom a token names; there is one.
func principalOf(extra *mcp.RequestExtra) (p Principal, ok bool) {
	if extra == nil || extra.TokenInfo == nil {
		return p, false
	}
	p, _ = extra.TokenInfo.Extra[principalKey].(Principal)
	return p, true
}

// headerOf returns the headers of the HTTP request that a call came with; nil on other ways.
func headerOf(extra *mcp.RequestExtra) http.Header {
	if extra == nil {
		return nil
	}
	return extra.Header
}

// knowsTasks reports whether a call's client said that it knows tasks.
func knowsTasks(req *mcp.CallToolRequest) bool {
	return req.ProtocolVersion() >= stateless && declaresTasks(req.Params.Meta, req.Session)
}

// declaresTasks reports whether a request, or else its session, says that the client knows tasks.
func declaresTasks(meta map[string]any, session *mcp.ServerSession) bool {
	if raw, there := meta[mcp.MetaKeyClientCapabilities]; there {
		b, _ := json.Marshal(raw) // it came from JSON
		return taskDeclared(b)
	}
	if session == nil || session.InitializeParams() == nil || session.InitializeParams().Capabilities == nil {
		return false
	}
	_, there := session.InitializeParams().Capabilities.Extensions[task.Extension]
	return there
}

// taskDeclared reports whether a client's capabilities name the tasks extension.
func taskDeclared(capabilities []byte) bool {
	var c struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	if json.Unmarshal(capabilities, &c) != nil {
		return false
	}
	_, there := c.Extensions[task.Extension]
	return there
}

// canElicit reports whether a call's client can put a form to its user.
func canElicit(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}
