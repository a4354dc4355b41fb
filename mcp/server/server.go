// Package server is Stepjet as a server of the Model Context Protocol: its tools submit plans and calls of registered
// tools as runs, tasks of the protocol are those runs, and what a run asks is put to the client's user.
//
// Safety. A call is accepted once its plan lies in the ledger; a handle goes out after that. The server keeps nothing of
// a run, so any other server with the same keys answers for it, and one that is killed loses none. A run that its caller
// named is joined when it is named again. Approvals are given by who has the scope for them, and by nobody else.
//
// Liveness. A call never waits longer than Config.Hold: then it says which run it is about, and how to ask for the rest.
// A call whose client leaves cancels its run, unless the caller named it.
//
// Failure. What a model can mend comes back as a result with isError, with code, message and hint; what is wrong with
// the protocol or the way to NATS as an error of JSON-RPC.
package server

import (
	"context"
	"crypto/rand"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/mcp/task"
)

// Server serves the tools of Stepjet to clients of the Model Context Protocol.
type Server struct {
	cfg    Config
	states task.Keys
	life   life

	mu      sync.Mutex
	tenants map[string]*tenant
}

// New makes a server; Close it after use. Errors: InvalidConfig.
func New(cfg Config) (*Server, error) {
	cfg.defaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, states: cfg.Keys, tenants: map[string]*tenant{}}
	if len(s.states) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		s.states = task.Keys{key}
	}
	s.life.ctx, s.life.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends what the server does between calls, and says that calls which end from now on were not left by their
// clients: their runs go on.
func (s *Server) Close() {
	s.life.closing.Store(true)
	s.life.end()
	s.life.working.Wait()
}

// Serve serves one client on a pair of streams, as stdio is, as the tenant of the configuration and with all scopes. It
// returns when the client closes its stream, or ctx ends.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	t, err := s.tenant(ctx, s.cfg.Tenant)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		s.life.closing.Store(true)
		t.forms.stop()
	})
	defer stop()
	return t.mcp.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
}

// tenant returns what serves a tenant, made when it first comes.
func (s *Server) tenant(ctx context.Context, name string) (*tenant, error) {
	s.mu.Lock()
	t := s.tenants[name]
	if t == nil {
		t = newTenant(&s.cfg, &s.life, s.states, name)
		s.tenants[name] = t
	}
	s.mu.Unlock()
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	return t, nil
}
