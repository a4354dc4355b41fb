package server

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/mcp/task"
)

// life is what goes on between calls, and ends with the server.
type life struct {
	ctx     context.Context
	end     context.CancelFunc
	closing atomic.Bool
	working sync.WaitGroup
}

// shared is what all calls of a tenant share.
type shared struct {
	cfg    *Config
	life   *life
	states task.Keys // seal what a call asked
	runs   *runs
	tasks  *tasks
	forms  *forms
}

// who returns who calls: whom the token names, or whoever may call without one.
func (s *shared) who(extra *mcp.RequestExtra) Principal {
	if p, ok := principalOf(extra); ok {
		return p
	}
	return s.cfg.local()
}
