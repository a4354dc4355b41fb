package client

import (
	"context"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dryrun"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool/group"
)

// DryRunOption says something of a dry run.
type DryRunOption func(*dryRunOptions)

type dryRunOptions struct{ permissions []string }

// DryRunPermissions is what the run may use, as SubmitOptions.Permissions: what it takes more than that is a problem.
func DryRunPermissions(permissions []string) DryRunOption {
	return func(o *dryRunOptions) { o.permissions = permissions }
}

// DryRun returns what a plan would come to if it were submitted now: its problems, or what it would ask of which tools,
// the limits that it would meet, and a run of it in which each tool returns a made-up value, an example of its output
// schema or the least that this accepts. Nothing is published, no tool is called, and no run is stored; only the
// registry is read, whose contracts count as they do for this client's tenant.
//
// The work is bounded: a run with more than 200,000 items of lists, or 256 MiB of arguments, is cut, which
// outcome.DryRun.Cut says. A plan with problems is no error. Errors: MessageTooLarge for a plan that could not be sent,
// Permission, NoConnection, InvalidTool where the plan names a tool whose schema can't be used, and ctx's own.
func (c *Client) DryRun(ctx context.Context, plan []byte, options ...DryRunOption) (*outcome.DryRun, error) {
	if err := fits(c.store.MaxPayload(), plan, nil); err != nil {
		return nil, err
	}
	registered, err := c.Tools(ctx)
	if err != nil {
		return nil, err
	}
	own, err := c.store.Registry.TenantOverrides(ctx, c.tenant)
	if err != nil && fault.CodeOf(err) != fault.Permission { // which a role printed by an older Stepjet lacks
		return nil, err
	}
	tools := make([]dryrun.Tool, len(registered))
	for i, t := range registered {
		tools[i] = dryrun.Tool{Definition: t.Definition, Contract: own[t.Name].Narrow(t.Contract)}
	}
	var o dryRunOptions
	for _, set := range options {
		set(&o)
	}
	var permits *group.Permits
	if o.permissions != nil {
		groups, err := c.store.Groups.AllGroups(ctx)
		if err != nil {
			return nil, err
		}
		permits = group.Permit(o.permissions, groups)
	}
	return dryrun.Of(plan, tools, permits)
}
