package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
)

// mostBody is the largest body of a request, in bytes.
const mostBody = 4 << 20

type tenantKey struct{}

// gate is what a request passes before the SDK reads it: it decides what HTTP has a status for, which the SDK's own
// handlers can't, and which of the two handlers it goes to.
type gate struct {
	s          *Server
	now, older http.Handler
}

// message is a message of JSON-RPC, as far as the gate looks into it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name   string                     `json:"name"`
		TaskID string                     `json:"taskId"`
		Meta   map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := g.s.cfg.local()
	if info := auth.TokenInfoFromContext(r.Context()); info != nil {
		who, _ = info.Extra[principalKey].(Principal)
	}
	m, ok := peek(w, r)
	if !ok {
		return
	}
	if who.Tenant == "" {
		http.Error(w, "the token names no tenant", http.StatusForbidden)
		return
	}
	if scope := g.scope(m); scope != "" && !who.May(scope) {
		g.s.cfg.Auth.refuse(w, r, scope)
		return
	}
	t, err := g.s.tenant(r.Context(), who.Tenant)
	if err != nil {
		write(w, http.StatusServiceUnavailable, m.ID, internalError(fault.As(err)))
		return
	}
	w.Header().Set("X-Accel-Buffering", "no") // streams are of no use to one who gets them at the end
	version := r.Header.Get("Mcp-Protocol-Version")
	if version < stateless {
		if r.Method == http.MethodDelete {
			defer t.forms.leave(r.Header.Get("Mcp-Session-Id"), who)()
		}
		g.older.ServeHTTP(w, r.WithContext(withTenant(r.Context(), t)))
		return
	}
	if status, refused := g.check(t, r, m, who); refused != nil {
		write(w, status, m.ID, refused)
		return
	}
	g.now.ServeHTTP(w, r.WithContext(withTenant(r.Context(), t)))
}

// peek reads the message of a request and puts it back. ok is false where it was answered.
func peek(w http.ResponseWriter, r *http.Request) (m message, ok bool) {
	if r.Method != http.MethodPost {
		return m, true
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, fmt.Sprintf("the body has more than %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
		return m, false
	case err != nil:
		http.Error(w, "the body can't be read", http.StatusBadRequest)
		return m, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_ = json.Unmarshal(body, &m) // what can't be read, the SDK says
	return m, true
}

// scope is what it takes to send a message; empty: nothing but to be known.
func (g *gate) scope(m message) string {
	switch m.Method {
	case "tools/call":
		if m.Params.Name == searchTools || m.Params.Name == getResult {
			return ScopeRead
		}
		return ScopeRun
	case "resources/read", "tasks/get":
		return ScopeRead
	case "tasks/update", "tasks/cancel":
		return ScopeRun
	}
	return ""
}

// check decides what is an error of JSON-RPC with a status of its own in HTTP.
func (g *gate) check(t *tenant, r *http.Request, m message, who Principal) (status int, refused *jsonrpc.Error) {
	declared := taskDeclared(m.Params.Meta[mcp.MetaKeyClientCapabilities])
	ofTask := slices.Contains(taskMethods, m.Method)
	switch {
	case !offered(m.Method):
		return http.StatusNotFound, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method " + m.Method + " is not offered"}
	case ofTask && !declared:
		return http.StatusBadRequest, missingTasks()
	case ofTask && r.Header.Get("Mcp-Name") != m.Params.TaskID:
		return http.StatusBadRequest, &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: "the header Mcp-Name is not params.taskId"}
	case m.Method == "tools/call" && !declared && t.requiresTasks(r.Context(), who, m.Params.Name):
		return http.StatusBadRequest, missingTasks()
	}
	return 0, nil
}

// write answers a request with an error of JSON-RPC.
func write(w http.ResponseWriter, status int, id json.RawMessage, e *jsonrpc.Error) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": e}) // it can be written
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

func withTenant(ctx context.Context, t *tenant) context.Context {
	return context.WithValue(ctx, tenantKey{}, t)
}
