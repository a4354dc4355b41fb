package acl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// system is Stepjet under the printed configuration: each program connects with its own key.
type system struct {
	t      *testing.T
	urls   []string          // of the servers
	book   *book             // what programs ask of them
	public map[string]string // keys, by user
	next   atomic.Int64
	shape  shape
	seeds  map[string]string // files, by user
	grants map[string]*acl.Grant
	keys   *seal.Keyring
	held   chan struct{} // a step with "hold" has begun
	let    chan struct{} // closed, it lets them go on
}

// shape is how a system is laid out.
type shape struct {
	shards     int
	oneAccount bool // permissions alone
	cluster    bool // three servers, three replicas
	witness    bool // a user beside them who may do everything in the streams' account
	declared   bool // acme and other have buckets of their own; the worker of search serves acme alone
}

// start runs a server that was told of an orchestrator, the tenants acme and other, and the tools of two workers.
func start(t *testing.T, of shape) *system {
	t.Helper()
	s := &system{t: t, shape: of, seeds: map[string]string{}, grants: map[string]*acl.Grant{}, public: map[string]string{},
		book: &book{said: map[string]map[string]bool{}}, held: make(chan struct{}), let: make(chan struct{})}
	key, err := seal.NewKey(time.Now())
	require.NoError(t, err)
	s.keys = seal.NewKeyring(key)
	shards := max(of.shards, 1)
	sys := acl.System{Keys: map[string]string{}, Shards: shards, Listen: "127.0.0.1:0", StoreDir: "ignored"}
	dir := t.TempDir()
	for _, spec := range []acl.Spec{
		{Role: acl.Orchestrator}, {Role: acl.Doctor}, {Role: acl.Observer}, {Role: acl.Agent, Tenant: "acme"}, {Role: acl.Agent, Tenant: "other"}, {Role: acl.Viewer, Tenant: "acme"},
		{Role: acl.Approver, Tenant: "acme"},
		{Role: acl.Operator, Tenant: "acme"}, {Role: acl.Operator}, {Role: acl.Worker, Tools: []string{"search"}}, {Role: acl.Worker, Tools: []string{"crm/get", "fetch"}},
	} {
		spec.Shards = shards
		if of.declared {
			spec.Declared = declaredFor(spec)
		}
		s.admit(&sys, spec, dir)
	}
	text := sys.Config()
	if of.oneAccount {
		text = "accounts: { STEPJET: { jetstream: enabled\n" + sys.Users() + "} }\n"
	}
	if of.witness {
		text = strings.Replace(text, "users: [", `users: [ { user: "witness", password: "sees all" }`, 1)
	}
	conf := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	configured := func(o *embedded.Options) { o.ConfigFile, o.Listen = conf, "127.0.0.1:0" }
	if of.cluster {
		for _, srv := range natstest.StartCluster(t, 3, configured) {
			s.urls = append(s.urls, srv.URL())
		}
	} else {
		s.urls = []string{natstest.Start(t, configured).URL()}
	}
	t.Cleanup(func() { granted.add(s) })
	for i, url := range s.urls {
		s.urls[i] = relay(t, url, s.book)
	}
	return s
}

// admit adds a user to a system, with a key of its own.
func (s *system) admit(sys *acl.System, spec acl.Spec, dir string) {
	s.t.Helper()
	g, err := acl.New(spec)
	require.NoError(s.t, err)
	pair, err := nkeys.CreateUser()
	require.NoError(s.t, err)
	public, err := pair.PublicKey()
	require.NoError(s.t, err)
	seed, err := pair.Seed()
	require.NoError(s.t, err)
	sys.Keys[g.User], s.public[g.User], s.seeds[g.User], s.grants[g.User] = public, public, filepath.Join(dir, g.User), g
	sys.Grants = append(sys.Grants, g)
	require.NoError(s.t, os.WriteFile(s.seeds[g.User], seed, 0o600))
}

// declaredFor returns the tenants whose buckets a role is given.
func declaredFor(spec acl.Spec) []string {
	switch {
	case spec.Tenant != "":
		return []string{spec.Tenant}
	case slices.Contains(spec.Tools, "search"):
		return []string{"acme"}
	}
	return []string{"acme", "other"}
}

// inEach has a test made with a system of each shape.
func inEach(t *testing.T, shapes map[string]shape, test func(t *testing.T, s *system)) {
	t.Helper()
	for name, of := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, of))
		})
	}
}

// staff starts an orchestrator and the two workers.
func (s *system) staff() {
	s.t.Helper()
	s.orchestrate(max(s.shape.shards, 1))
	s.host("worker-search", "search")
	s.host("worker-crm_2Fget-fetch", "crm/get", "fetch")
}

// busy starts an orchestrator and a worker, and has that be at a step of another tenant's run until s.let is closed.
func (s *system) busy(run string) *client.Run {
	s.t.Helper()
	s.orchestrate(1)
	s.host("worker-search", "search")
	r, err := s.client("agent-other", "other").Submit(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"search","arguments":{"hold":true}}]}`), client.SubmitOptions{Run: run})
	require.NoError(s.t, err)
	<-s.held
	return r
}

// url returns the servers in turn, so that programs sit on different ones.
func (s *system) url() string { return s.urls[int(s.next.Add(1))%len(s.urls)] }

// connect opens a connection as one of the users.
func (s *system) connect(user string) *nats.Conn {
	s.t.Helper()
	nc, err := kv.Connect(s.ctx(), kv.ConnectOptions{URL: s.url(), NKey: s.seeds[user], InboxPrefix: s.grants[user].Inbox, Name: user, Logger: s.log(user)})
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	return nc
}

// log is for those who may do all that they do: a warning fails the test.
func (s *system) log(who string) *slog.Logger {
	return slog.New(slog.NewTextHandler(complaints{s.t}, &slog.HandlerOptions{Level: slog.LevelError})).With("who", who)
}

// complaints takes the errors that a program logs. A refusal by the server is one of them.
type complaints struct{ t *testing.T }

func (c complaints) Write(b []byte) (int, error) {
	c.t.Errorf("a program complains: %s", b)
	return len(b), nil
}

func (s *system) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

// trespass connects as a user who is going to try what it may not; nobody is told of what is refused.
func (s *system) trespass(user string) *nats.Conn {
	s.t.Helper()
	nc, err := kv.Connect(s.ctx(), kv.ConnectOptions{URL: s.url(), NKey: s.seeds[user], InboxPrefix: s.grants[user].Inbox, Name: user})
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	return nc
}

// witness connects as one who may do everything.
func (s *system) witness() *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect(s.url(), nats.UserInfo("witness", "sees all"), nats.NoEcho()) // it overhears others, not itself
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	return nc
}

// orchestrate runs an orchestrator, orchestrating one that can be stopped.
func (s *system) orchestrate(shards int) { s.orchestrating(shards) }

func (s *system) orchestrating(shards int) (stop func()) {
	s.t.Helper()
	cfg := orchestrator.Config{Name: "o", Logger: s.log("orchestrator"), SecretsKey: s.keys}
	cfg.Store.Shards = shards
	if s.shape.cluster {
		cfg.Store.Replicas = 3
	}
	o, err := orchestrator.New(s.connect("orchestrator"), cfg)
	require.NoError(s.t, err)
	stop = s.run(o)
	if s.shape.declared {
		s.declare("acme", "other")
	}
	return stop
}

// declare does what a person does: stepjet tenant add, as the doctor.
func (s *system) declare(tenants ...string) {
	s.t.Helper()
	for _, tenant := range tenants {
		said, code := s.types("doctor", "", "tenant add "+tenant)
		require.Zero(s.t, code, said)
	}
}

func (s *system) run(p interface {
	Run(context.Context) error
	Ready() <-chan struct{}
}) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.t.Cleanup(stop)
	select {
	case <-p.Ready():
	case err := <-done:
		done <- err
		require.NoError(s.t, err)
	case <-time.After(2 * time.Minute):
		require.Fail(s.t, "not ready")
	}
	return stop
}

type text struct {
	Text string `json:"text"`
}

func (s *system) host(user string, tools ...string) { s.hosting(user, tools...) }

func (s *system) hosting(user string, tools ...string) (stop func()) {
	s.t.Helper()
	return s.hosts(s.connect(user), tools...)
}

func (s *system) hosts(nc *nats.Conn, tools ...string) (stop func()) {
	s.t.Helper()
	user := nc.Opts.Name
	w, err := worker.New(nc, worker.Config{Name: user, Logger: s.log(user), SecretsKey: s.keys})
	require.NoError(s.t, err)
	for _, name := range tools {
		worker.Handle(w, name, s.handle, worker.Annotations(tool.Annotations{ReadOnlyHint: new(true)}))
	}
	return s.run(w)
}

// handle is every tool: it does what its arguments say.
func (s *system) handle(ctx context.Context, in struct {
	Text string `json:"text,omitempty"`
	Size int    `json:"size,omitempty"`
	Fail string `json:"fail,omitempty"`
	Hold bool   `json:"hold,omitempty"`
}) (text, error) {
	info, _ := worker.InfoFrom(ctx)
	switch {
	case in.Fail == "once" && info.Attempt == 1:
		return text{}, errors.New("try again")
	case in.Fail == "until let":
		select {
		case <-s.let:
		default:
			return text{}, errors.New("not yet")
		}
	case in.Fail == "noted" && info.Attempt == 1: // a note is of an attempt: the next has none
		stands, err := worker.Note(ctx, json.RawMessage(`"first"`))
		if again, e := worker.Note(ctx, json.RawMessage(`"second"`)); err != nil || e != nil || string(again) != string(stands) {
			return text{}, worker.Terminal(fmt.Errorf("noted %s, then %s: %w", stands, again, errors.Join(err, e)))
		}
		return text{}, errors.New("try again")
	case in.Fail == "noted":
		noted, err := worker.Noted(ctx)
		return text{in.Text + string(noted)}, err
	case in.Fail == "always":
		return text{}, errors.New("it fails")
	case in.Hold:
		s.held <- struct{}{}
		for held := true; held; {
			worker.Report(ctx, worker.Progress{Message: "on hold"})
			select {
			case <-s.let:
				held = false
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return text{}, ctx.Err()
			}
		}
	}
	return text{in.Text + strings.Repeat("x", in.Size)}, nil
}

func (s *system) client(user, tenant string) *client.Client {
	s.t.Helper()
	c, err := client.New(s.ctx(), s.connect(user), client.Config{Tenant: tenant, Logger: s.log(user)})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

// cancelled is what became of a cancel, where it doesn't matter whose counted.
func cancelled(_ *client.Stopped, err error) error { return err }
