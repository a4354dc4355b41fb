package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/subjects"
)

// access is what the flags of "acl" say.
type access struct {
	tools, tenants     []string
	declared           []string
	shards, toolShards int
	form, keys, cell   string
	accounts           bool
	listen, store      string
	observer           bool
}

func (a *app) aclCommand() *cobra.Command {
	x := &access{}
	c := &cobra.Command{
		Use:   "acl",
		Short: "Print NATS configuration that gives each program no more than it needs",
		Long: `Prints configuration of a NATS server in which each program may use the subjects that its role
needs, and no others. "acl system" prints a whole one: an account for the orchestrators and their
streams, one for the agents and one for the viewers of each tenant, and one for each worker.
docs/security.md says who may what, why, and what is not protected.

Programs are started with the key of their user and with the --inbox-prefix of their user.

--declared T stands in place of --tenant T where T has a bucket of its own for large values
("stepjet tenant add T" makes it): then its users, and the workers that serve it, may read that
bucket and not the one that all other tenants share.`,
		Example: `  stepjet acl system --tenant acme --tool search --tool crm/get,crm/put --keys keys > nats.conf
  stepjet acl worker --tool search --tool fetch
  stepjet acl worker --tool search --declared acme
  stepjet acl agent --tenant acme --form user`,
		Args: knownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := c.PersistentFlags()
	f.SortFlags = false
	f.IntVar(&x.shards, "shards", 1, "ledger shards of the deployment")
	f.IntVar(&x.toolShards, "tool-shards", 0, "step streams that orchestrators may make, one for each 100 tools (default 4)")
	f.StringSliceVar(&x.declared, "declared", nil, "`tenant` with a bucket of its own (stepjet tenant add), in place of --tenant; may be repeated")
	f.StringVar(&x.cell, "cell", "", "`name` of the cell, where gateways join several (docs/cells.md)")
	x.keysFlag(f)
	c.AddCommand(a.aclSystemCommand(x))
	for _, role := range []struct {
		name           acl.Role
		short, example string
	}{
		{acl.Orchestrator, "Print what orchestrators may do", "--shards 4"},
		{acl.Doctor, "Print what \"stepjet doctor\" may do", "--keys keys"},
		{acl.Observer, "Print what \"stepjet ui\" may do: look at the runs of all tenants", "--keys keys"},
		{acl.Agent, "Print what the agents of a tenant may do: submit, wait, look, cancel, answer", "--tenant acme"},
		{acl.Approver, "Print what those may do who approve what a tenant's runs wait for", "--tenant acme"},
		{acl.Viewer, "Print what those may do who look at a tenant's runs", "--tenant acme -o json"},
		{acl.Operator, "Print what those may do who register, override and remove tools; with --tenant, who override them for its runs alone", "--tenant acme --form user"},
		{acl.Worker, "Print what the worker of some tools may do", "--tool search --tool fetch"},
	} {
		c.AddCommand(a.aclRoleCommand(x, role.name, role.short, role.example))
	}
	return c
}

func (a *app) aclRoleCommand(x *access, role acl.Role, short, example string) *cobra.Command {
	c := &cobra.Command{
		Use: string(role), Short: short, Args: exactly(), Example: "  stepjet acl " + string(role) + " " + example,
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			tenant, named := a.flags.tenant, cmd.Flags().Changed("tenant")
			if role == acl.Agent || role == acl.Approver || role == acl.Viewer || role == acl.Operator {
				if len(x.declared) > 1 || len(x.declared) == 1 && named && tenant != x.declared[0] {
					return usage(fmt.Errorf("--tenant or --declared: %s is of one tenant", role))
				}
				if len(x.declared) == 1 {
					tenant = x.declared[0]
				} else if role == acl.Operator && !named {
					tenant = "" // of the cluster
				}
			}
			g, err := acl.New(acl.Spec{
				Role: role, Tenant: tenant, Declared: x.declared, Shared: len(x.tenants) > 0, Tools: x.hosted(), Shards: x.shards, ToolShards: x.toolShards, Cell: x.cell,
			})
			if err != nil {
				return err
			}
			return a.printGrants(x, []*acl.Grant{g})
		}),
	}
	x.formFlag(c)
	if role == acl.Worker {
		c.Flags().StringSliceVar(&x.tenants, "tenant", nil, "`tenant` without a bucket of its own that the worker serves beside those of --declared; may be repeated")
		c.Flags().StringArrayVar(&x.tools, "tool", nil, "`tool` that the worker hosts; may be repeated, or list several with commas")
	}
	return c
}

func (x *access) formFlag(c *cobra.Command) {
	c.Flags().StringVar(&x.form, "form", "account", "`account|user`: an account of its own, or a user's permissions where all of Stepjet is in one account")
}

func (x *access) keysFlag(f *pflag.FlagSet) {
	f.StringVar(&x.keys, "keys", "", "`folder` for the users' nkey seeds; those that are there are used, others are made")
}

// hosted returns all tools that are named.
func (x *access) hosted() (all []string) {
	for _, list := range x.tools {
		all = append(all, strings.Split(list, ",")...)
	}
	return all
}

// printGrants prints the configuration of some roles, which are all in the account of the streams or all in others.
func (a *app) printGrants(x *access, grants []*acl.Grant) error {
	sys, imports := acl.System{Grants: grants, Cell: x.cell, Shards: x.shards}, grants[0].Imports()
	if err := a.giveKeys(x, &sys); err != nil {
		return err
	}
	switch {
	case x.form != "account" && x.form != "user":
		return usage(fmt.Errorf("--form %q: account or user", x.form))
	case a.json() && len(grants) == 1:
		return a.printJSON(grants[0])
	case a.json():
		return a.printJSON(grants)
	case x.form == "user" || !imports: // which is in the account that the others import from
		_, _ = fmt.Fprint(a.stdout, sys.Users())
	default:
		_, _ = fmt.Fprint(a.stdout, sys.Accounts())
	}
	if x.form == "user" && imports {
		a.say("%s in one account with others the server publishes answers wherever the asker says, with nobody's rights checked", a.errStyle.yellow("note:"))
	}
	return nil
}

func (a *app) aclSystemCommand(x *access) *cobra.Command {
	c := &cobra.Command{
		Use:   "system",
		Short: "Print the whole configuration of a NATS server for Stepjet",
		Example: `  stepjet acl system --tenant acme --tenant beta --tool search --tool crm/get,crm/put --keys keys > nats.conf
  nats-server -c nats.conf
  orchestrator --nkey keys/orchestrator.nk --inbox-prefix _INBOX.orchestrator`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			if len(x.declared) > 0 && !cmd.Flags().Changed("tenant") {
				x.tenants = nil
			}
			grants, err := x.system()
			if err != nil {
				return err
			}
			sys := acl.System{Grants: grants, Cell: x.cell, Shards: x.shards, Listen: x.listen, StoreDir: x.store}
			if err := a.giveKeys(x, &sys); err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(grants)
			}
			text := sys.Config()
			if x.accounts {
				text = sys.Cellular()
			}
			if _, err = fmt.Fprint(a.stdout, text); err != nil {
				return err
			}
			for _, tenant := range x.declared {
				a.say("once an orchestrator runs: stepjet tenant add %s, as the user doctor", tenant)
			}
			return nil
		}),
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringArrayVar(&x.tenants, "tenant", []string{subjects.DefaultTenant}, "`tenant` whose agents, approvers and viewers get an account each; may be repeated")
	f.StringArrayVar(&x.tools, "tool", nil, "`tools` of a worker, with commas where it hosts several; repeated for each further worker")
	f.BoolVar(&x.observer, "observer", false, "a user for \"stepjet ui\" too, who looks at the runs of all tenants")
	f.BoolVar(&x.accounts, "accounts", false, "only what is to stand among the accounts of each server, for a cell beside others")
	f.StringVar(&x.listen, "listen", "127.0.0.1:4222", "`address` that the server listens on")
	f.StringVar(&x.store, "store", "jetstream", "`folder` of the server's streams")
	return c
}

// system returns the grants of a whole system.
func (x *access) system() ([]*acl.Grant, error) {
	specs := []acl.Spec{{Role: acl.Orchestrator}, {Role: acl.Doctor}, {Role: acl.Operator}}
	if x.observer {
		specs = append(specs, acl.Spec{Role: acl.Observer})
	}
	for _, tenant := range append(slices.Clone(x.tenants), x.declared...) {
		for _, role := range []acl.Role{acl.Agent, acl.Approver, acl.Viewer, acl.Operator} {
			specs = append(specs, acl.Spec{Role: role, Tenant: tenant})
		}
	}
	for _, tools := range x.tools {
		specs = append(specs, acl.Spec{Role: acl.Worker, Tools: strings.Split(tools, ",")})
	}
	var grants []*acl.Grant
	for _, spec := range specs {
		spec.Shards, spec.ToolShards, spec.Declared, spec.Shared = x.shards, x.toolShards, x.declared, len(x.tenants) > 0
		spec.Cell = x.cell
		g, err := acl.New(spec)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(grants, func(other *acl.Grant) bool { return other.User == g.User }) {
			return nil, fault.New(fault.InvalidConfig, "two users would be called %s", g.User).WithHint("name each tenant and each worker once")
		}
		grants = append(grants, g)
	}
	return grants, nil
}

// giveKeys returns each user the key of the folder, if one is named; a key that is not there is made.
func (a *app) giveKeys(x *access, sys *acl.System) error {
	if x.keys == "" {
		return nil
	}
	if err := os.MkdirAll(x.keys, 0o700); err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "making the folder of keys")
	}
	sys.Keys = map[string]string{}
	for _, g := range sys.Grants {
		file := filepath.Join(x.keys, g.User+".nk")
		public, err := keyOf(file)
		if err != nil {
			return fault.Wrap(fault.InvalidConfig, err, "the key "+file)
		}
		sys.Keys[g.User] = public
		a.say("%s --nkey %s --inbox-prefix %s", g.User, quote(file), g.Inbox)
	}
	return nil
}

// keyOf returns the public part of the user's key in a file, which is made where it is absent.
func keyOf(file string) (public string, err error) {
	seed, err := os.ReadFile(file)
	var pair nkeys.KeyPair
	switch {
	case err == nil:
		pair, err = nkeys.FromSeed(bytes.TrimSpace(seed))
	case errors.Is(err, fs.ErrNotExist):
		pair, err = newKey(file)
	}
	if err != nil {
		return "", err
	}
	return pair.PublicKey()
}

func newKey(file string) (nkeys.KeyPair, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	return pair, os.WriteFile(file, append(seed, '\n'), 0o600)
}
