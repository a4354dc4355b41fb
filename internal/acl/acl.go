// Package acl knows what each kind of program may do in NATS, and writes it down as configuration of a NATS server.
//
// A role comes to a Grant: the requests that its programs make and the subjects that they listen to, no more. A grant
// has two uses. As the permissions of a user it says what the user may publish and subscribe to. As the imports of an
// account it says what can be reached from that account at all; and only that makes replies safe. For a server does not
// check the subject that a request wants to be answered on: it publishes the answer there, with the rights of whoever
// answers. In an account of its own the answer comes out in the asker's account, and leads no further than its imports
// do.
//
// The package is pure: it reads nothing, and the same grants come to the same text.
package acl

import (
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Role is a kind of program.
type Role string

// The roles.
const (
	// Orchestrator does everything that Stepjet does, and nothing else.
	Orchestrator Role = "orchestrator"
	// Agent submits plans of one tenant, waits for them, looks at them, cancels them, and answers what they ask; but it
	// approves of nothing.
	Agent Role = "agent"
	// Approver gives and refuses the approvals that one tenant's runs wait for, and looks at them.
	Approver Role = "approver"
	// Viewer looks at one tenant's runs.
	Viewer Role = "viewer"
	// Worker hosts some tools.
	Worker Role = "worker"
	// Operator of a tenant is a viewer that overrides tools for its tenant's runs. Without a tenant it is one of the
	// cluster, who registers, overrides and removes tools for all.
	Operator Role = "operator"
	// Doctor examines and mends: it is an orchestrator that may also publish plans, to see that they arrive.
	Doctor Role = "doctor"
	// Observer reads the runs of all tenants, for "stepjet ui". It makes consumers, so it is to be trusted as an
	// orchestrator is.
	Observer Role = "observer"
)

// Spec says what a grant is for.
type Spec struct {
	Role Role
	// Tenant is that of an agent, an approver, a viewer or an operator; empty for an operator of the cluster.
	Tenant string
	// Declared are tenants with a bucket of their own: of an agent, an approver, a viewer or an operator its own tenant
	// or none, of a worker those that it serves, of an orchestrator, a doctor and an observer all of them.
	Declared []string
	// Shared says that a worker serves tenants without a bucket as well. One that serves none of the others does.
	Shared bool
	// Tools are those of a worker.
	Tools []string
	// Cell is where it counts, one of several that gateways join; empty: there is one.
	Cell string
	// Shards is the number of ledger shards; 0: 1.
	Shards int
	// ToolShards is the number of step streams that an orchestrator may make, one for each 100 tools; 0: 4.
	ToolShards int
}

// defaultToolShards is enough for 400 tools.
const defaultToolShards = 4

// Grant is what the programs of a role may do.
type Grant struct {
	// User names the user; it is made of the role and of what it is for, in [A-Za-z0-9_-].
	User string `json:"user"`
	Role Role   `json:"role"`
	// Inbox is the prefix that its programs are to be started with (--inbox-prefix).
	Inbox string `json:"inbox_prefix"`
	// Requests are what it may publish, Listens what it may subscribe to besides its inbox.
	Requests []Request `json:"requests"`
	Listens  []string  `json:"listens"`

	tenant string
	cell   string
}

// Answers says how a request is answered, which the server has to know where it leads into another account.
type Answers string

// The ways of answering.
const (
	None Answers = "none"
	One  Answers = "one"
	Many Answers = "many"
)

// Request is a subject that is published to, or a filter of several.
type Request struct {
	Subject string  `json:"subject"`
	Answers Answers `json:"answers"`
}

// New returns the grant of a role. Errors: InvalidConfig for a tenant, tool or number that is none, and where a worker
// has no tools.
func New(s Spec) (*Grant, error) {
	s.Shards, s.ToolShards = max(s.Shards, 1), orDefault(s.ToolShards, defaultToolShards)
	if subjects.Partitions%s.Shards != 0 {
		return nil, fault.New(fault.InvalidConfig, "%d ledger shards: the number divides %d", s.Shards, subjects.Partitions)
	}
	for _, tenant := range s.Declared {
		if err := checkTenant(tenant); err != nil {
			return nil, err
		}
	}
	s.Declared = sorted(s.Declared)
	if s.Cell != "" && !subjects.ValidTenant(s.Cell) { // it becomes a part of the names of users and accounts
		return nil, fault.New(fault.InvalidConfig, "%q is no name of a cell", s.Cell).
			WithHint("1 to %d of A-Z a-z 0-9 _ -", subjects.MaxTenant)
	}
	g := &Grant{Role: s.Role, User: string(s.Role), tenant: s.Tenant, cell: s.Cell}
	switch s.Role {
	case Orchestrator, Doctor:
		g.orchestrate(s)
		if s.Role == Doctor {
			g.request(One, subjects.IntakeFilter, subjects.IntakeShardsFilter, subjects.PingSubject, subjects.QueuesSubject)
			g.request(Many, subjects.DemandSubject)
			// whether others have made it
			g.request(One, subjects.StreamRequest("INFO", subjects.BucketStream(subjects.SinksBucket)))
			for _, tenant := range s.Declared { // stepjet tenant remove
				g.request(One, subjects.StreamRequest("DELETE", subjects.BlobsStream(subjects.BlobsOf(tenant))))
			}
		}
	case Observer:
		g.observe(s)
	case Worker:
		if err := g.work(s); err != nil {
			return nil, err
		}
	case Agent, Approver, Viewer, Operator:
		if s.Role == Operator && s.Tenant == "" {
			g.administer()
			break
		}
		if err := checkTenant(s.Tenant); err != nil {
			return nil, err
		}
		g.User += "-" + s.Tenant
		g.look(s)
		if s.Role == Agent {
			g.submit(s)
		}
		if s.Role == Approver {
			g.request(One, subjects.TenantAPIFilter(s.Tenant, subjects.VerbApprove))
			g.request(One, subjects.TenantAPIFilter(s.Tenant, subjects.VerbAmend))
			g.request(One, subjects.TenantAPIFilter(s.Tenant, subjects.VerbAmendApproved))
		}
		if s.Role == Operator {
			g.request(One, subjects.TenantOverride(s.Tenant, "*"))
		}
	default:
		return nil, fault.New(fault.InvalidConfig, "%q is no role", s.Role)
	}
	if s.Role != Worker { // which has its name already, in what it may publish
		g.User = g.within(g.User)
	}
	g.Inbox = subjects.InboxPrefix(g.User)
	return g, nil
}

// within returns a user's name in the grant's cell.
func (g *Grant) within(user string) string {
	if g.cell == "" {
		return user
	}
	return user + "-" + g.cell
}

func checkTenant(name string) error {
	if subjects.ValidTenant(name) {
		return nil
	}
	return fault.New(fault.InvalidConfig, "%q is no tenant", name).
		WithHint("1 to %d of A-Z a-z 0-9 _ -", subjects.MaxTenant)
}

func orDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

func (g *Grant) request(how Answers, list ...string) {
	for _, s := range list {
		g.Requests = append(g.Requests, Request{s, how})
	}
}

func (g *Grant) listen(list ...string) { g.Listens = append(g.Listens, list...) }

// Publishes returns the subjects of the requests.
func (g *Grant) Publishes() []string {
	var all []string
	for _, r := range g.Requests {
		all = append(all, r.Subject)
	}
	return all
}

// Subscribes returns what it listens to, with its inbox.
func (g *Grant) Subscribes() []string { return append([]string{g.Inbox + ".>"}, g.Listens...) }

// bound returns the shards 0 … n-1, each made something of.
func bound(n int, of ...func(shard int) string) (all []string) {
	for i := range n {
		for _, f := range of {
			all = append(all, f(i))
		}
	}
	return all
}

func sorted(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
