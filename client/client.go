// Package client is the agent's side of Stepjet: submit a plan, wait for what it comes to, watch it, look it up, cancel
// it, try again what failed.
//
// Safety. A plan is accepted once its record lies in the ledger, and that is what Submit waits for. A submit that timed
// out is unknown, never failed: it is sent again under the same run id, which can't start the run twice. An id that was
// used for another plan is a conflict, found by comparing digests with the record or with the finished run. What tries
// something again (Retry, RetryDead) derives the new run's id from what it tries again, so that asking twice, also
// after a crash in between, does it once.
//
// Liveness. The owner of a run tells the client that submitted it on one subject per client, so that waiting for a
// thousand runs costs one subscription, one map and one goroutine. Such a notice may be lost or come twice; the outcome
// in the history bucket is what counts. Whoever waits is therefore subscribed before the plan is sent, and the history
// is read again with growing pauses of at most 5 s, and whenever the connection comes back.
//
// Failure. Every error is a *fault.Error of the codes no_connection, no_jetstream, permission, not_ready, store_full,
// message_too_large, too_large, limit_exceeded, conflict, not_found, already_finished, invalid_id; or it is the error
// of the caller's own context.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/observer"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Config is what a client needs besides its connection. The zero value is the tenant "default", without a log.
type Config struct {
	// Tenant owns all runs of this client: [A-Za-z0-9_-]{1,64}; empty: "default".
	Tenant string
	// SealTo is the public key that secrets are sealed to, in its text form. Empty: the key that an orchestrator has
	// published, if any. Who gives it need not believe what the registry says.
	SealTo string
	// Logger takes what the client does unasked: lost connections, reads that failed. nil: nothing is logged.
	Logger *slog.Logger
	// Observer is told of plans that are submitted; package observe says what it may do. nil: nobody is told, which
	// costs nothing.
	Observer observe.Observer
}

// Client submits plans of one tenant and waits for them. It may be used from many goroutines.
type Client struct {
	store  *kv.Store
	nc     *nats.Conn
	tenant string
	token  string // names this client in the headers of its plans
	log    *slog.Logger
	tell   teller
	waits  *waits
	notify *nats.Subscription

	sealing sealing

	closing sync.Once
	stop    context.CancelCauseFunc
	ctx     context.Context // ends with Close
	done    chan struct{}   // the loop has ended
}

// errClosed is what a wait ends with when its client is closed.
var errClosed = fault.New(fault.NoConnection, "the client was closed")

// New opens a client on a connection, which stays the caller's own. It puts itself before the connection's error
// handler, which goes on being called, in order to say what the server refuses; so set handlers before. Close the
// client when it is of no more use. Errors: InvalidConfig (tenant, key), NotReady where no orchestrator has set Stepjet
// up there, NoJetStream, Permission, NoConnection.
func New(ctx context.Context, nc *nats.Conn, c Config) (*Client, error) {
	if c.Tenant == "" {
		c.Tenant = subjects.DefaultTenant
	}
	if !subjects.ValidTenant(c.Tenant) {
		return nil, fault.New(fault.InvalidConfig, "%q is no tenant", c.Tenant).WithHint("1 to %d of A-Z a-z 0-9 _ -", subjects.MaxTenant)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var pinned *seal.Public
	if c.SealTo != "" {
		var err error
		if pinned, err = seal.ParsePublic(c.SealTo); err != nil {
			return nil, err
		}
	}
	store, err := kv.Open(ctx, nc)
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancelCause(context.Background())
	cl := &Client{
		store: store, nc: nc, tenant: c.Tenant, token: nuid.Next(), log: c.Logger,
		waits: newWaits(), ctx: life, stop: stop, done: make(chan struct{}),
	}
	cl.sealing.pinned = pinned
	cl.notify, err = nc.Subscribe(subjects.NotifyFilter(cl.tenant, cl.token), cl.noticed)
	if err == nil {
		err = heard(ctx, cl.store, subjects.NotifyFilter(cl.tenant, cl.token))
	}
	if err != nil {
		stop(errClosed)
		store.Close()
		return nil, kv.Fault(err)
	}
	cl.tell.to = observer.New(c.Observer, c.Logger)
	go cl.loop()
	return cl, nil
}

// flushWithin bounds a round trip to the server for a caller who gave no bound.
const flushWithin = 10 * time.Second

// heard returns once the server knows of the subscription to a subject, or has refused it.
func heard(ctx context.Context, store *kv.Store, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	return store.Heard(ctx, subject)
}

// Close ends all waits with an error and frees what the client holds; the connection stays open. Runs go on.
func (c *Client) Close() {
	c.closing.Do(func() {
		c.stop(errClosed)
		_ = c.notify.Unsubscribe() // the connection may be closed already, which is as good
		<-c.done
		c.store.Close()
		c.tell.to.Close()
	})
}

// Tenant returns the tenant of this client.
func (c *Client) Tenant() string { return c.tenant }

// noticed takes the news that a run of this client is over.
func (c *Client) noticed(m *nats.Msg) {
	r, ok := subjects.ParseNotify(m.Subject)
	switch {
	case !ok || !wire.KindEvent.Known(m.Header):
	case isConflict(m.Data):
		// It says that a plan sent under this id is not the run's plan. That may be true of another submit than the one
		// that is waited for; the history knows.
		c.waits.hurry(r.ID)
	default:
		c.waits.resolve(r.ID, m.Data)
	}
}

// maxConflict bounds the notices that are looked into for a conflict: they hold one problem and nothing else.
const maxConflict = 4 << 10

func isConflict(raw []byte) bool {
	if len(raw) > maxConflict || !bytes.Contains(raw, []byte(fault.Conflict)) {
		return false
	}
	var o outcome.Outcome
	if json.Unmarshal(raw, &o) != nil || o.Status != outcome.Rejected {
		return false
	}
	return len(o.Problems) == 1 && o.Problems[0].Code == fault.Conflict
}

// name makes a run's name of a run id.
func (c *Client) name(id string) (subjects.Run, error) {
	if !subjects.ValidRun(id) {
		return subjects.Run{}, fault.New(fault.InvalidID, "a run id has %d bytes", len(id)).WithHint("1 to %d bytes", subjects.MaxRunID)
	}
	return subjects.NewRun(c.tenant, id), nil
}

// Server is an orchestrator that answers.
type Server struct {
	Name string `json:"name"`
	// Version is that of the Stepjet within; "(devel)" where it was built from a folder.
	Version string `json:"version"`
}

// Ping asks whether any orchestrator is alive. Errors: NotReady where none answers while ctx lasts or within 5 s.
func (c *Client) Ping(ctx context.Context) (Server, error) {
	var s Server
	body, err := c.request(ctx, subjects.PingSubject, nil, ownerWithin)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fault.Wrap(fault.Internal, err, "reading the answer to a ping")
	}
	return s, nil
}

// Demand returns how much is wanted now of each tool that this client's tenant may use, by all tenants together: the
// steps that workers have, and those that wait for one, wherever they do. It is the number to scale workers by; that a
// tool's consumer lags behind says less. It asks all orchestrators; while one of them is dead it takes up to 3 s, and
// Demands.Unsure says what is missing. Errors: Permission, NotReady where none answers, and those of reading.
func (c *Client) Demand(ctx context.Context) (*tool.Demands, error) {
	tools, err := c.Tools(ctx)
	if err != nil {
		return nil, err
	}
	return c.store.Requests.Demand(ctx, tools)
}

// Workers returns the workers that live, by name, as they say of themselves: all tenants have them in common. It asks
// them and waits for within, 0: a second, which those that are well need no more than a part of. One that answers
// nobody is heard within 6 s, since each says that it lives every 5 s. A worker that was killed is not among them.
// Errors: Permission, NoConnection, and ctx's.
func (c *Client) Workers(ctx context.Context, within time.Duration) ([]tool.Worker, error) {
	all, _, err := c.store.Beats().Listen(ctx, cmp.Or(within, kv.AnswerWithin))
	return all, err
}

// Tools returns the registered tools that this client's tenant may use, by name.
func (c *Client) Tools(ctx context.Context) ([]tool.Registered, error) {
	all, err := c.store.Registry.Tools(ctx)
	if err != nil {
		return nil, err
	}
	mine := all[:0]
	for _, t := range all {
		if allowed(t.Tenants, c.tenant) {
			mine = append(mine, t)
		}
	}
	return mine, nil
}

// ApplyTemplate registers a tool that is a plan, a definition with "plan" (plan language, "Templates"), or an agent, one
// with "agent". Runs that begin from then on have it; it waits until an orchestrator answers or ctx ends. Errors: InvalidTool, of which tool.FlawsOf
// lists all that is wrong; Permission for who is no operator; NotReady where none answered, or one that is alive does
// not know of templates, or of agents.
func (c *Client) ApplyTemplate(ctx context.Context, definition []byte) (tool.Registered, error) {
	return c.store.Requests.RequestTemplate(ctx, definition)
}

// WatchTools calls each with the registered tools that this client's tenant may use, by name, and again whenever they
// have changed, from this goroutine, until ctx ends. Errors: ctx's own, and those of reading.
func (c *Client) WatchTools(ctx context.Context, each func([]tool.Registered)) error {
	mine, complete := map[string]tool.Registered{}, false
	tell := func() {
		if complete {
			each(slices.SortedFunc(maps.Values(mine), func(a, b tool.Registered) int { return strings.Compare(a.Name, b.Name) }))
		}
	}
	return c.store.Registry.WatchTools(ctx, func(t tool.Registered, deleted bool) {
		_, was := mine[t.Name]
		switch is := !deleted && allowed(t.Tenants, c.tenant); {
		case is:
			mine[t.Name] = t
		case was:
			delete(mine, t.Name)
		default:
			return
		}
		tell()
	}, func() {
		complete = true
		tell()
	})
}

func allowed(tenants []string, tenant string) bool {
	for _, t := range tenants {
		if t == tenant {
			return true
		}
	}
	return len(tenants) == 0
}
