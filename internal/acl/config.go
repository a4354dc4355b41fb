package acl

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/subjects"
)

// Home is the account that holds Stepjet's streams, and in which its orchestrators are, where there is one cell.
const Home = "STEPJET"

// homeOf returns that account of a cell.
func homeOf(cell string) string {
	if cell == "" {
		return Home
	}
	return Home + "-" + cell
}

// System is all that a server is told of Stepjet.
type System struct {
	Grants []*Grant
	// Keys are the public nkeys of users, by name. A user without one has a password, from a variable of the server's
	// environment (PasswordVariable).
	Keys map[string]string
	// Cell is that of the grants, which have it in their names.
	Cell string
	// Shards is the number of ledger shards; 0: 1.
	Shards int
	// Listen and StoreDir are the server's address and the folder of its streams.
	Listen, StoreDir string
}

// idleResponse is how long the server keeps the way back for a request with many answers after the last of them. A
// worker that waits for steps hears a heartbeat every 5 s.
const idleResponse = "15s"

// Account returns the account that a grant's user is in.
func (g *Grant) Account() string {
	if g.home() {
		return homeOf(g.cell)
	}
	return g.User
}

// home reports whether the user is in the account of the streams.
func (g *Grant) home() bool { return g.Role == Orchestrator || g.Role == Doctor || g.Role == Observer }

// Imports reports whether the user is in an account that reaches Stepjet by what it imports.
func (g *Grant) Imports() bool { return !g.home() }

// PasswordVariable names the variable of the server's environment that holds a user's password.
func (g *Grant) PasswordVariable() string {
	return "STEPJET_PASSWORD_" + strings.ToUpper(strings.ReplaceAll(g.User, "-", "_"))
}

// Config returns a whole configuration of a nats-server, with an account for the orchestrators and their streams and
// one for each other grant.
func (s System) Config() string {
	var w writer
	w.line("# Stepjet: %s", strings.Join(s.users(), ", "))
	w.line("listen: %s", strconv.Quote(s.Listen))
	w.open("jetstream {")
	w.line("store_dir: %s", strconv.Quote(s.StoreDir))
	w.close("}")
	w.open("accounts {")
	s.whole(&w)
	w.close("}")
	return w.String()
}

// Cellular returns all accounts of a cell, to stand among those of others in the accounts of every server of a
// supercluster.
func (s System) Cellular() string {
	var w writer
	w.line("# Stepjet, cell %s: %s", s.Cell, strings.Join(s.users(), ", "))
	s.whole(&w)
	return w.String()
}

// whole writes the account of the streams and those of all grants.
func (s System) whole(w *writer) {
	w.open("%s {", strconv.Quote(homeOf(s.Cell)))
	w.line("jetstream: enabled")
	s.mapping(w)
	s.exports(w)
	w.open("users: [")
	for _, g := range s.Grants {
		if g.home() {
			s.user(w, g, g.Publishes())
		}
	}
	w.close("]")
	w.close("}")
	s.accounts(w)
}

// Accounts returns what is to be added to a configuration for the grants: their accounts, and what the account of the
// orchestrators exports to them.
func (s System) Accounts() string {
	var w writer
	w.line("# Among the accounts:")
	s.accounts(&w)
	w.line("")
	w.line("# In the account %s (where an export of the same subject is there already, add the account to its list):",
		homeOf(s.Cell))
	s.exports(&w)
	return w.String()
}

// Users returns the users of the grants with their permissions, for a server on which all of Stepjet is in one account.
func (s System) Users() string {
	var w writer
	w.open("users: [")
	for _, g := range s.Grants {
		s.user(&w, g, g.Publishes())
	}
	w.close("]")
	return w.String()
}

func (s System) users() (all []string) {
	for _, g := range s.Grants {
		all = append(all, g.User)
	}
	return all
}

// mapping serves plans that stock clients publish, where there is more than one ledger shard.
func (s System) mapping(w *writer) {
	if s.Shards > 1 {
		from, to := subjects.IntakeMapping(s.Shards)
		w.line("mappings: { %s: %s }", strconv.Quote(from), strconv.Quote(to))
	}
}

// export is one subject that some accounts may reach.
type export struct {
	kind, subject string // "service" or "stream"
	answers       Answers
	accounts      []string
}

// exported returns what the grants' accounts need of the account of the orchestrators, each subject once.
func (s System) exported() (all []*export) {
	at := map[string]*export{}
	add := func(kind, subject string, how Answers, account string) {
		e := at[kind+subject]
		if e == nil {
			e = &export{kind: kind, subject: subject, answers: how}
			at[kind+subject] = e
			all = append(all, e)
		}
		if !slices.Contains(e.accounts, account) {
			e.accounts = append(e.accounts, account)
		}
	}
	for _, g := range s.Grants {
		for _, r := range g.imports() {
			add("service", r.Subject, r.Answers, g.Account())
		}
		if !g.home() {
			for _, l := range g.Listens {
				add("stream", l, None, g.Account())
			}
		}
	}
	return all
}

// imports returns the requests of a grant that lead into another account. What a server tells every user of itself does
// not.
func (g *Grant) imports() (all []Request) {
	if g.home() {
		return nil
	}
	for _, r := range g.Requests {
		if r.Subject != subjects.UserInfo {
			all = append(all, r)
		}
	}
	return all
}

func (s System) exports(w *writer) {
	w.open("exports: [")
	for _, e := range s.exported() {
		more := ""
		if e.kind == "service" && e.answers == Many {
			more = ", response_type: stream, response_threshold: " + strconv.Quote(idleResponse)
		}
		w.line("{ %s: %s, accounts: [%s]%s }", e.kind, strconv.Quote(e.subject), quoted(e.accounts), more)
	}
	w.close("]")
}

func (s System) accounts(w *writer) {
	for _, g := range s.Grants {
		if g.home() {
			continue
		}
		w.open("%s {", strconv.Quote(g.Account()))
		w.open("mappings: {")
		for _, r := range g.imports() {
			if local, ok := subjects.Abroad(r.Subject); ok {
				w.line("%s: %s", strconv.Quote(r.Subject), strconv.Quote(destination(local)))
			}
		}
		w.close("}")
		w.open("imports: [")
		for _, r := range g.imports() {
			to := ""
			if local, ok := subjects.Abroad(r.Subject); ok {
				to = ", to: " + strconv.Quote(local)
			}
			if g.approves(r.Subject) {
				to += ", share: true" // so that the server says who approves
			}
			w.line("{ service: { account: %s, subject: %s }%s }", strconv.Quote(homeOf(g.cell)), strconv.Quote(r.Subject), to)
		}
		for _, l := range g.Listens {
			w.line("{ stream: { account: %s, subject: %s } }", strconv.Quote(homeOf(g.cell)), strconv.Quote(l))
		}
		w.close("]")
		w.open("users: [")
		s.user(w, g, g.abroad())
		w.close("]")
		w.close("}")
	}
}

// approves reports whether a subject is one that the role of an approver alone has.
func (g *Grant) approves(subject string) bool {
	return g.Role == Approver && (subject == subjects.TenantAPIFilter(g.tenant, subjects.VerbApprove) ||
		subject == subjects.TenantAPIFilter(g.tenant, subjects.VerbAmendApproved))
}

// destination writes a filter as the destination of a mapping: its wildcards are those of the source, by number.
func destination(filter string) string {
	n := 0
	tokens := strings.Split(filter, ".")
	for i, t := range tokens {
		if t == "*" {
			n++
			tokens[i] = "{{wildcard(" + strconv.Itoa(n) + ")}}"
		}
	}
	return strings.Join(tokens, ".")
}

// abroad returns what is published by the names that it has in the grant's own account: the server checks permissions
// after it has mapped a subject.
func (g *Grant) abroad() (all []string) {
	for _, subject := range g.Publishes() {
		if local, ok := subjects.Abroad(subject); ok {
			subject = local
		}
		all = append(all, subject)
	}
	return all
}

// user writes a user with its permissions.
func (s System) user(w *writer, g *Grant, publishes []string) {
	if key := s.Keys[g.User]; key != "" {
		w.open("{ nkey: %s, permissions: { # %s", key, g.User)
	} else {
		w.open("{ user: %s, password: $%s, permissions: {", strconv.Quote(g.User), g.PasswordVariable())
	}
	w.list("publish", publishes)
	w.list("subscribe", g.Subscribes())
	w.close("} }")
}
