package server

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

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

// bound is what a caller whose scopes name groups sees of a tenant's tools, as the groups are now. nil sees all. What it
// calls, the orchestrator holds against the same scopes, wherever in a run that is.
type bound struct {
	permits *group.Permits
	own     *group.Set // the definitions of its groups alone
}

// boundOf returns what a caller sees. What can't be read opens nothing.
func (t *desk) boundOf(ctx context.Context, who Principal) (*bound, error) {
	scopes := who.groups()
	if scopes == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	all, err := client.GroupsOf(t.runs.client).All(ctx)
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(slices.Clone(all.All()), func(d *group.Definition) bool {
		return !slices.Contains(scopes, GroupScope+d.Role)
	})
	return &bound{group.Permit(scopes, all), group.NewSet(own)}, nil
}

// sees reports whether a tool is one of the caller's.
func (b *bound) sees(d *tool.Definition) bool {
	return b == nil || len(b.permits.Lacks(d.Name, d.Annotations)) == 0
}

// some returns those of some tools that the caller sees.
func (b *bound) some(tools []*tool.Definition) (seen []*tool.Definition) {
	for _, d := range tools {
		if b.sees(d) {
			seen = append(seen, d)
		}
	}
	return seen
}

// requiresTasks reports whether a tool that a caller sees is for clients that know tasks alone.
func (t *desk) requiresTasks(ctx context.Context, who Principal, name string) bool {
	d := t.shelf.one(name)
	if taskModeOf(d) != taskRequired {
		return false
	}
	b, err := t.boundOf(ctx, who)
	return err == nil && b.sees(d)
}

// listed returns what is listed for a caller: its tools, and of plans the guide over these.
func (t *desk) listed(ctx context.Context, who Principal, list *mcp.ListToolsResult) (mcp.Result, error) {
	b, err := t.boundOf(ctx, who)
	if err != nil {
		return nil, internalError(fault.As(err))
	}
	if b == nil {
		return list, nil
	}
	mine := *list
	mine.Tools = nil
	for _, one := range list.Tools {
		switch d := t.shelf.one(one.Name); {
		case one.Name == executePlan:
			own, err := planTool(b.some(t.shelf.all()), &groups{all: b.own})
			if err != nil {
				return nil, internalError(fault.As(err))
			}
			mine.Tools = append(mine.Tools, own)
		case d != nil && b.sees(d), slices.Contains(builtins, one.Name):
			mine.Tools = append(mine.Tools, one)
		}
	}
	return &mine, nil
}
