package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/journal"
)

// cell is what one of two worlds knows of itself and of the other: each is a cluster of NATS with an account of its own,
// and gateways join the clusters. A nil cell is a world that is alone.
type cell struct {
	name     string
	tenants  []string
	config   string              // the file of the accounts of both cells, for each server
	gateways map[string][]string // addresses of both clusters
	users    map[string]user     // by the node's letter, or an agent's tenant
}

// user is somebody whom servers know by a key.
type user struct{ seed, inbox string }

// gatewayPort is where a server listens for those of the other cluster; a node of its own has all ports.
const gatewayPort = 7222

// join makes a server one of the cell's cluster.
func (c *cell) join(o *embedded.Options, host string) error {
	if c == nil {
		return nil
	}
	o.Cluster, o.ConfigFile, o.Gateways = c.name, c.config, c.gateways
	o.Name = c.name + "-" + o.Name
	o.GatewayListen = fmt.Sprintf("%s:%d", host, gatewayPort)
	return nil
}

// admit gives a role the key of its user, and a name that no role of the other cell has.
func (c *cell) admit(r *Role) {
	if c == nil {
		return
	}
	who := r.Kind
	if r.Kind == roleAgent {
		who = r.Tenant
	}
	r.Name, r.NKey, r.Inbox = c.name+"-"+r.Name, c.users[who].seed, c.users[who].inbox
}

// harness is the option by which the harness connects.
func (c *cell) harness() nats.Option {
	return func(o *nats.Options) error {
		if c == nil {
			return nil
		}
		key, err := nats.NkeyOptionFromSeed(c.users[harnessUser].seed)
		if err != nil {
			return err
		}
		return key(o)
	}
}

// harnessUser looks at everything in a cell's account.
const harnessUser = "harness"

// region is the part of a network that a cell's nodes are in.
type region struct {
	network
	name string
	mu   *sync.Mutex // both cells begin at the same time
}

func (r region) node(node string) string { return r.name + node }

func (r region) address(node string) (string, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.network.address(r.node(node))
}

func (r region) wrap(node string, argv []string) []string { return r.network.wrap(r.node(node), argv) }

// close leaves the network to whoever made it.
func (r region) close() error { return nil }

// twin is two cells that are harmed together.
type twin struct {
	*rand.Rand
	eu, us     *World
	net        network
	say        func(format string, args ...any)
	injections int
	abroad     map[string]bool // agents that are connected to the other cell's servers
}

// The cells' tenants. The last moves from the one to the other.
const (
	tenantEU, tenantUS, tenantMoved = "acme", "beta", "moved"
)

// runTwin runs a scenario of two cells.
func runTwin(ctx context.Context, s Scenario, o Settings, net network, dir string, say func(string, ...any)) (row Row, err error) {
	t := &twin{Rand: rand.New(rand.NewSource(o.Seed)), net: net, say: say, abroad: map[string]bool{}}
	defer func() { err = errors.Join(err, t.close()) }()
	row = Row{Scenario: s.Name, Settings: s.Shape.withDefaults().Tuning, Load: load(), Fault: s.Fault, Correct: s.Correct,
		Seconds: o.Seconds, Namespaces: o.Namespaces, When: time.Now().UTC().Truncate(time.Second)}
	if err := t.begin(ctx, dir, o.Command, s.Shape); err != nil {
		return row, err
	}
	copies, err := t.copies(ctx)
	if err != nil {
		return row, err
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(o.Seconds)*time.Second)
	err = s.Twin(limited, t)
	cancel()
	if err != nil && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return row, errors.Join(err, context.Cause(ctx))
	}
	evidence, err := t.evidence(ctx)
	if err != nil {
		return row, err
	}
	evidence[0].Found = append(evidence[0].Found, copies.compare(ctx)...)
	row.judgeTwin(s, t, evidence)
	return row, errors.Join(t.eu.leave(row.Violations), t.us.leave(row.Violations))
}

// begin starts both cells.
func (t *twin) begin(ctx context.Context, dir string, command []string, shape Shape) error {
	var mu sync.Mutex
	eu := &cell{name: "eu", tenants: []string{tenantEU, tenantMoved}}
	us := &cell{name: "us", tenants: []string{tenantUS, tenantMoved}}
	cells, gateways := []*cell{eu, us}, map[string][]string{}
	for _, c := range cells {
		for i := range shape.Servers {
			host, _, err := region{t.net, c.name, &mu}.address(node("n", i))
			if err != nil {
				return err
			}
			gateways[c.name] = append(gateways[c.name], fmt.Sprintf("nats://%s:%d", host, gatewayPort))
		}
		c.gateways = gateways
	}
	if err := writeAccounts(dir, cells); err != nil {
		return err
	}
	var both sync.WaitGroup
	errs := make([]error, len(cells))
	worlds := []**World{&t.eu, &t.us}
	for i, c := range cells {
		both.Go(func() {
			own, of := filepath.Join(dir, c.name), shape
			of.cell = c
			if errs[i] = os.MkdirAll(own, 0o700); errs[i] == nil {
				*worlds[i], errs[i] = newWorld(ctx, region{t.net, c.name, &mu}, own, command, nil, of)
			}
		})
	}
	both.Wait()
	return errors.Join(errs...)
}

// writeAccounts makes a key for each user of each cell, and writes what each server is told of all of them: what
// "stepjet acl system --cell" prints.
func writeAccounts(dir string, cells []*cell) error {
	var tools []string
	for _, d := range definitions() {
		tools = append(tools, d.Name)
	}
	text := "accounts {\n"
	for _, c := range cells {
		sys := acl.System{Cell: c.name, Keys: map[string]string{}}
		c.users, c.config = map[string]user{}, filepath.Join(dir, "accounts.conf")
		specs := map[string]acl.Spec{roleOrchestrator: {Role: acl.Orchestrator}, roleWorker: {Role: acl.Worker, Tools: tools}}
		for _, tenant := range c.tenants {
			specs[tenant] = acl.Spec{Role: acl.Agent, Tenant: tenant}
		}
		everything := &acl.Grant{User: harnessUser + "-" + c.name, Role: acl.Doctor, Inbox: "_INBOX",
			Requests: []acl.Request{{Subject: ">", Answers: acl.None}}, Listens: []string{">"}}
		grants := map[string]*acl.Grant{harnessUser: everything}
		for who, spec := range specs {
			spec.Cell = c.name
			g, err := acl.New(spec)
			if err != nil {
				return err
			}
			grants[who] = g
		}
		for _, who := range slices.Sorted(maps.Keys(grants)) {
			g := grants[who]
			public, file, err := newUser(dir, g.User)
			if err != nil {
				return err
			}
			sys.Grants, sys.Keys[g.User], c.users[who] = append(sys.Grants, g), public, user{file, g.Inbox}
		}
		text += sys.Cellular()
	}
	return os.WriteFile(cells[0].config, []byte(text+"}\n"), 0o600)
}

// newUser makes the key of a user.
func newUser(dir, name string) (public, file string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", "", err
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", "", err
	}
	if public, err = pair.PublicKey(); err != nil {
		return "", "", err
	}
	file = filepath.Join(dir, name+".nk")
	return public, file, os.WriteFile(file, seed, 0o600)
}

// agent starts an agent of a tenant at a cell, on a connection to the servers of the same or of the other one.
func (t *twin) agent(ctx context.Context, w *World, i int, tenant string, at *World) error {
	t.abroad[fmt.Sprintf("%s-%s.1", w.opts.cell.name, node("a", i))] = w != at
	return w.start(ctx, node("a", i), Role{Kind: roleAgent, URL: at.url, Kinds: w.opts.Kinds, Parallel: w.opts.Parallel, Tenant: tenant})
}

// hit notes what is done to both.
func (t *twin) hit(kind string) {
	t.injections++
	t.eu.fault(kind)
	t.us.fault(kind)
}

// cut lets nothing pass between the cells.
func (t *twin) cut() error {
	var one, other []string
	for node := range t.eu.roles {
		one = append(one, "eu"+node)
	}
	for node := range t.us.roles {
		other = append(other, "us"+node)
	}
	// An agent abroad is in the region of the servers that it is connected to, so the gateways alone are cut.
	only := func(list []string) []string {
		return slices.DeleteFunc(list, func(n string) bool { return !strings.HasPrefix(n[2:], "n") })
	}
	return t.net.cut(only(one), only(other))
}

// evidence lets both cells come to rest and returns what each has.
func (t *twin) evidence(ctx context.Context) (all []*Evidence, err error) {
	if err := t.net.heal(); err != nil {
		return nil, err
	}
	for _, w := range []*World{t.eu, t.us} {
		stuck, err := w.finish(ctx)
		if err != nil {
			return nil, err
		}
		reading, cancel := context.WithTimeout(ctx, 5*time.Minute)
		ev, err := w.collect(reading)
		cancel()
		if err != nil {
			return nil, err
		}
		ev.Stuck = stuck
		all = append(all, ev)
	}
	return all, nil
}

func (t *twin) close() (err error) {
	for _, w := range []*World{t.eu, t.us} {
		if w != nil {
			err = errors.Join(err, w.close())
		}
	}
	return errors.Join(err, t.net.close())
}

// judgeTwin checks each cell by itself, and that nothing is in both.
func (row *Row) judgeTwin(s Scenario, t *twin, evidence []*Evidence) {
	row.Injections, row.Counts = t.injections, map[string]int{}
	all := &Report{Counts: row.Counts}
	for i, w := range []*World{t.eu, t.us} {
		r := Check(evidence[i])
		for _, v := range append(r.Violations, evidence[i].Found...) {
			v.Text = w.opts.cell.name + ": " + v.Text
			all.Violations = append(all.Violations, v)
		}
		for what, n := range r.Counts {
			all.Counts[what] += n
		}
		all.Runs, all.Executions = all.Runs+r.Runs, all.Executions+r.Executions
	}
	all.Violations = append(all.Violations, inBoth(evidence[0], evidence[1])...)
	if n := all.Counts[sometimesRepeated]; n > 0 { // no worker was harmed, so no lease ran out
		all.Violations = append(all.Violations, Violation{Invariant: "I2", Text: fmt.Sprintf("%d attempts were executed twice", n)})
	}
	row.Runs, row.Executions, row.Violations = all.Runs, all.Executions, all.Violations
	for _, what := range append([]string{sometimesStrict}, s.Sometimes...) {
		if row.Counts[what] == 0 {
			row.Violations = append(row.Violations, Violation{Invariant: "vacuous", Text: "it never happened: " + what})
		}
	}
	row.Figures = append([]string{lost(nil, all), duplicates(nil, all)}, t.figures(evidence)...)
}

// inBoth says which runs both cells know of: by a plan in the ledger, an execution, or a document.
func inBoth(a, b *Evidence) (all []Violation) {
	known := func(e *Evidence) map[runKey]bool {
		runs := map[runKey]bool{}
		for _, r := range e.Ledger {
			runs[recordRun(r.Subject)] = true
		}
		for _, x := range e.Events {
			if x.Kind == journal.Begin || x.Kind == journal.Accept {
				runs[runKey{x.Tenant, x.Run}] = true
			}
		}
		for _, d := range e.History {
			runs[runKey{d.Tenant, d.Run}] = true
		}
		return runs
	}
	there := known(b)
	for run := range known(a) {
		if there[run] {
			all = append(all, Violation{Invariant: "I1", Run: run.tenant + "/" + run.id, Text: "it is in both cells"})
		}
	}
	return all
}
