package server

import (
	"context"
	"slices"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

// bound is what a caller whose scopes name groups sees of a tenant's tools, as the groups are now. nil sees all. What it
// calls, the orchestrator holds against the same scopes, wherever in a run that is.
type bound struct {
	permits *group.Permits
	own     *group.Set // the definitions of its groups alone
}

// boundOf returns what a caller sees. What can't be read opens nothing.
func (r *runs) boundOf(ctx context.Context, who Principal) (*bound, error) {
	scopes := who.groups()
	if scopes == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	all, err := client.GroupsOf(r.client).All(ctx)
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
