package ui

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

const (
	// keptDocs is how many documents are kept that were looked at, the last ones.
	keptDocs = 8
	// freshFor is for how long the document of a run that goes on is as good as a new one.
	freshFor = 500 * time.Millisecond
)

// reader holds the clients of tenants and the documents that were last looked at: who looks at a run asks for its steps
// one after another, and many look at the same run.
type reader struct {
	link *link
	cfg  Config

	mu     sync.Mutex
	reads  map[string]*client.Client // by tenant
	acts   map[string]*client.Client
	grants map[string]*client.Client
	ends   []func()
	docs   []*kept // the last one is the one looked at last
	closed bool
}

// kept is a document, or the reading of one that is under way.
type kept struct {
	key  string
	done chan struct{}
	doc  *outcome.Run
	err  error
	at   time.Time // when it was read
}

func newReader(l *link, cfg Config) *reader {
	return &reader{link: l, cfg: cfg, reads: map[string]*client.Client{}, acts: map[string]*client.Client{},
		grants: map[string]*client.Client{}}
}

// client returns the one that runs of a tenant are read with.
func (d *reader) client(ctx context.Context, tenant string) (*client.Client, error) {
	return d.open(ctx, d.reads, tenant, func(ctx context.Context, tenant string) (*client.Client, func(), error) {
		c, err := client.New(ctx, d.cfg.Conn, client.Config{Tenant: tenant, Logger: d.cfg.Logger})
		if err != nil {
			return nil, nil, err
		}
		return c, c.Close, nil
	})
}

// actor returns the client that changes what a tenant has.
func (d *reader) actor(ctx context.Context, tenant string) (*client.Client, error) {
	if d.cfg.Actor == nil {
		return d.client(ctx, tenant)
	}
	return d.open(ctx, d.acts, tenant, d.cfg.Actor)
}

// approver returns the client that gives and refuses what a tenant's runs wait for.
func (d *reader) approver(ctx context.Context, tenant string) (*client.Client, error) {
	if d.cfg.Approver == nil {
		return d.actor(ctx, tenant)
	}
	return d.open(ctx, d.grants, tenant, d.cfg.Approver)
}

type opening func(ctx context.Context, tenant string) (*client.Client, func(), error)

func (d *reader) open(
	ctx context.Context, all map[string]*client.Client, tenant string, dial opening,
) (*client.Client, error) {
	d.mu.Lock()
	c, closed := all[tenant], d.closed
	d.mu.Unlock()
	if c != nil || closed {
		return c, closedError(closed)
	}
	fresh, end, err := dial(ctx, tenant)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := all[tenant]; c != nil || d.closed { // another request was faster
		end()
		return c, closedError(d.closed)
	}
	all[tenant] = fresh
	d.ends = append(d.ends, end)
	return fresh, nil
}

func closedError(closed bool) error {
	if closed {
		return fault.New(fault.NotReady, "the page is being stopped")
	}
	return nil
}

func (d *reader) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, end := range d.ends {
		end()
	}
}

// run returns the document of a run with its steps' arguments. Those who ask at once share one reading.
func (d *reader) run(ctx context.Context, r subjects.Run) (*outcome.Run, error) {
	c, err := d.client(ctx, r.Tenant)
	if err != nil {
		return nil, err
	}
	k, mine := d.keep(r.Key())
	if mine {
		go func() { // it outlives who asked first: others may be waiting
			k.doc, k.err = c.Get(d.link.now(), r.Plain())
			k.at = time.Now()
			close(k.done)
		}()
	}
	select {
	case <-k.done:
		return k.doc, k.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// keep returns what is kept of a run; mine says that the caller has to read it.
func (d *reader) keep(key string) (k *kept, mine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.docs, func(k *kept) bool { return k.key == key })
	if i >= 0 {
		k = d.docs[i]
		d.docs = slices.Delete(d.docs, i, i+1)
	}
	if k == nil || !k.fresh() {
		k, mine = &kept{key: key, done: make(chan struct{})}, true
	}
	d.docs = append(d.docs, k)
	if len(d.docs) > keptDocs {
		d.docs = slices.Delete(d.docs, 0, 1)
	}
	return k, mine
}

// forget has a run read anew: something was done to it.
func (d *reader) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.docs = slices.DeleteFunc(d.docs, func(k *kept) bool { return k.key == key })
}

// fresh reports whether a document may be shown: that of a run that is over doesn't change, but for a rejection, whose
// place another plan may take.
func (k *kept) fresh() bool {
	select {
	case <-k.done:
	default:
		return true // it is being read
	}
	switch {
	case k.err != nil:
		return false
	case k.doc.Status == outcome.Running, k.doc.Status == outcome.Rejected:
		return time.Since(k.at) < freshFor
	}
	return true
}
