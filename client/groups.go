package client

import (
	"cmp"
	"context"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool/group"
)

type (
	// Group is what one provider has for a role.
	Group = group.Definition
	// GroupSet is all groups that there are.
	GroupSet = group.Set
)

// Groups are the groups of tools, which all tenants share: what stands for a role, and which permissions it takes
// (SubmitOptions.Permissions).
type Groups struct{ store *kv.Store }

// GroupsOf returns the groups that a client sees.
func GroupsOf(c *Client) Groups { return Groups{c.store} }

// All returns all groups as they stand. Errors: NewerVersion, NotReady where orchestrators don't know of groups yet, and
// those of reading.
func (g Groups) All(ctx context.Context) (*GroupSet, error) { return g.store.Groups.AllGroups(ctx) }

// Apply sets what a provider has for a role, over what is there; it counts for runs that are submitted from then on. It
// takes the permissions of an operator of the cluster. Errors: InvalidValue with all that is wrong; Permission; NotReady
// where no orchestrator answered before ctx ended.
func (g Groups) Apply(ctx context.Context, definition []byte) (*Group, error) {
	return g.store.Requests.RequestGroup(ctx, definition)
}

// Remove takes what a provider has for a role out; an empty provider is "default". Errors: NotFound, and those
// of Apply.
func (g Groups) Remove(ctx context.Context, role, provider string) error {
	return g.store.Requests.RequestRemoveGroup(ctx, role, cmp.Or(provider, group.DefaultProvider))
}
