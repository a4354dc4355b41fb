package server

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool/group"
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

// GroupScope begins a scope that bounds its token to the tools of a group: group:web.
const GroupScope = subjects.GroupPermission

// groups returns the scopes of a caller that name groups, as the permissions of its runs; nil: it is bound to none.
func (p Principal) groups() (all []string) {
	for _, scope := range p.Scopes {
		if strings.HasPrefix(scope, GroupScope) {
			all = append(all, scope)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// misnamed returns the first of some scopes that names a group which none can be, or one too many; empty: none does. To
// pass over it would open more than was meant.
func misnamed(scopes []string) string {
	n := 0
	for _, scope := range scopes {
		if role, is := strings.CutPrefix(scope, GroupScope); is {
			if n++; n > group.MaxPermissions || !group.ValidName(role) {
				return scope
			}
		}
	}
	return ""
}
