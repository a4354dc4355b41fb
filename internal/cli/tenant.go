package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func (a *app) tenantCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "tenant",
		Short: "Give tenants a bucket of their own for large values",
		Long: `What is over 256 KiB, and outcomes over 512 KiB, lie in an object store. All tenants share one
bucket of it, and whoever may read there reads all of it. A tenant that is declared has a bucket
of its own, which only its own users and the workers that serve it may read.

On a server with permissions, in this order (docs/security.md):

  stepjet acl system --declared acme … > nats.conf     with all the flags of before
  nats-server --signal reload
  stepjet tenant add acme                              as the user "doctor"

Runs that have started keep to the bucket that they started with.`,
		Example: "  stepjet tenant add acme\n  stepjet tenant list\n  stepjet tenant remove acme --force",
		Args:    knownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.tenantAddCommand(), a.tenantListCommand(), a.tenantRemoveCommand())
	return c
}

func (a *app) tenantAddCommand() *cobra.Command {
	x := &access{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a tenant's bucket, and print what its users may do",
		Long: `Makes the bucket of a tenant, and returns when all orchestrators know of it: every run that is
submitted from then on has its large values there. It prints the permissions of the tenant's
agents, viewers and operators, as "stepjet acl" does. Doing it again changes nothing.`,
		Example: "  stepjet tenant add acme\n  stepjet tenant add acme --keys keys\n  stepjet tenant add acme --form user",
		Args:    exactly("NAME"),
		RunE:    a.work(func(cmd *cobra.Command, args []string) error { return a.tenantAdd(cmd.Context(), x, args[0]) }),
	}
	x.formFlag(c)
	x.keysFlag(c.Flags())
	return c
}

func (a *app) tenantAdd(ctx context.Context, x *access, name string) error {
	err := a.onStore(ctx, func(ctx context.Context, store *kv.Store) error {
		x.shards = store.Ledger.Shards()
		made, err := store.Archive.Declare(ctx, name)
		if err != nil {
			return permitted(err, name)
		}
		if made {
			a.say("the tenant %s has the bucket %s, and all orchestrators know of it", name, subjects.BlobsOf(name))
		} else {
			a.say("the tenant %s has its bucket already", name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var grants []*acl.Grant
	for _, role := range []acl.Role{acl.Agent, acl.Approver, acl.Viewer, acl.Operator} {
		g, err := acl.New(acl.Spec{Role: role, Tenant: name, Declared: []string{name}, Shards: x.shards})
		if err != nil {
			return err
		}
		grants = append(grants, g)
	}
	if err := a.printGrants(x, grants); err != nil {
		return err
	}
	a.say(`Next, on a server with permissions:
  - orchestrators, the doctor, and the workers that serve %[1]s need the bucket too: "stepjet acl system" and
    "stepjet acl worker" print it with --declared %[1]s
  - runs that had started before, and their outcomes, lie in %[2]s, which the printed users don't read`, name, subjects.BlobsBucket)
	return nil
}

// permitted says what to do about a bucket that the user must not make or remove.
func permitted(err error, tenant string) error {
	return forRole(err, "print the permissions with --declared %s (stepjet acl system), load them, and do this as the user \"doctor\"", tenant)
}

// forRole is an error, nil too; where it is one of permissions, with what another role may do.
func forRole(err error, hint string, args ...any) error {
	if fault.CodeOf(err) != fault.Permission {
		return err
	}
	f := *fault.As(err)
	return f.WithHint(hint, args...)
}

// onStore does something with the store within --timeout.
func (a *app) onStore(ctx context.Context, do func(context.Context, *kv.Store) error) error {
	s, err := a.open(ctx, registry)
	if err != nil {
		return err
	}
	defer s.close()
	return a.withStore(ctx, s, func(store *kv.Store) error {
		ctx, cancel := a.patience(ctx)
		defer cancel()
		return why(ctx, do(ctx, store))
	})
}

func (a *app) tenantListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tenants that have a bucket of their own, and how much lies there", Example: "  stepjet tenant list -o json", Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			all := []*kv.TenantBucket{}
			err := a.onStore(cmd.Context(), func(ctx context.Context, store *kv.Store) error {
				names, err := store.Archive.Tenants(ctx)
				for _, name := range names {
					var b *kv.TenantBucket
					if b, err = store.Archive.TenantBucket(ctx, name); err != nil {
						return permitted(err, name)
					}
					all = append(all, b)
				}
				return err
			})
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(all)
			}
			if len(all) == 0 {
				a.say("no tenant has a bucket of its own; %s holds the large values of all", subjects.BlobsBucket)
				return nil
			}
			rows, head := &table{}, func(s string) cell { return cell{text: s, paint: a.style.dim} }
			rows.add(head("TENANT"), head("BUCKET"), head("DECLARED"), head("HOLDS"))
			for _, b := range all {
				rows.add(plain(b.Tenant), plain(b.Bucket), plain(b.Declared.UTC().Format(time.RFC3339)), plain(size(int64(b.Bytes))))
			}
			rows.write(a.stdout, "", 0)
			return nil
		}),
	}
}

func (a *app) tenantRemoveCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a tenant's bucket with all that it holds",
		Long: `Removes the bucket of a tenant; what is submitted from then on shares the one of all others. It is
refused while runs of the tenant go on, and without --force while the bucket holds anything:
finished runs that are still kept refer to it, and lose their large values.`,
		Example: "  stepjet tenant remove acme",
		Args:    exactly("NAME"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.onStore(cmd.Context(), func(ctx context.Context, store *kv.Store) error { return a.tenantRemove(ctx, store, args[0], force) })
		}),
	}
	c.Flags().BoolVar(&force, "force", false, "remove it although it holds large values")
	return c
}

func (a *app) tenantRemove(ctx context.Context, store *kv.Store, name string, force bool) error {
	b, err := store.Archive.TenantBucket(ctx, name)
	if err != nil {
		return permitted(err, name)
	}
	active, err := store.Ledger.ActiveRuns(ctx, name)
	if err != nil {
		return err
	}
	if len(active) > 0 {
		return fault.New(fault.Conflict, "runs of the tenant %s go on, or ended within the last minute: %d", name, len(active)).
			WithHint("wait for them, or cancel them: stepjet list --tenant %s --status running", name)
	}
	kept, err := store.Archive.HistoryRuns(ctx, name)
	if err != nil {
		return err
	}
	holds := fmt.Sprintf("%s of large values; %d finished runs of the tenant are kept, and what they refer to there goes with it", size(int64(b.Bytes)), len(kept))
	if b.Messages > 0 && !force {
		return fault.New(fault.Conflict, "the bucket %s holds %s", b.Bucket, holds).WithHint("--force removes it all the same; or wait until their retention is over")
	}
	if err := store.Archive.Undeclare(ctx, name); err != nil {
		return permitted(err, name)
	}
	a.say("removed the bucket %s, which held %s", b.Bucket, holds)
	a.say("print the permissions of its users anew, with --tenant %s in place of --declared %s", name, name)
	return nil
}
