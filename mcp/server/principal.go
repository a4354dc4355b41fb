package server

import (
	"slices"

	"github.com/stepjet/stepjet/mcp/task"
)

// What a scope of a token allows.
const (
	ScopeRun    = "plans:run"        // submit plans, call tools, cancel, answer what runs ask for
	ScopeRead   = "plans:read"       // look at what came of them, search tools
	ScopeDecide = "approvals:decide" // approve and reject
)

// Scopes returns all scopes that allow something; those of groups (GroupScope) bound what of it.
func Scopes() []string { return []string{ScopeRun, ScopeRead, ScopeDecide} }

// Principal is who calls.
type Principal struct {
	Tenant string
	// Name tells callers of one tenant apart; empty where nobody says who calls.
	Name string
	// Scopes are those of this package.
	Scopes []string
	// Claims are what the token says of its owner; nil where there is none.
	Claims map[string]string
}

// May reports whether a caller has a scope.
func (p Principal) May(scope string) bool { return slices.Contains(p.Scopes, scope) }

func (p Principal) owner() task.Owner { return task.Owner{Tenant: p.Tenant, Principal: p.Name} }

// by is what records say of who did something.
func (p Principal) by() string {
	if p.Name == "" {
		return "mcp"
	}
	return p.Name + " (mcp)"
}

// principalKey is where a verified token's principal stands in the SDK's account of it.
const principalKey = "stepjet"
