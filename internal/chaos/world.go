package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
)

// Shape says what a world consists of. Zero fields take the defaults.
type Shape struct {
	Servers       int // 1 or 3; 3 keep every stream three times
	Orchestrators int // default 2
	Workers       int // default 3
	Agents        int // default 2, each a tenant of its own
	Parallel      int // runs at a time of each agent; default 8
	Runs          int // of each agent; 0: until the faults are over
	Kinds         []string
	Reuse         int           // run ids of each agent; 0: no id is used twice
	Insist        bool          // agents submit again what takes long
	AckWait       time.Duration // default 2 s
	Grace         time.Duration // default 1 h: the ledger still has everything when it is checked
	SweepEvery    time.Duration // default 1 s
	MaxDeliveries int           // default 100: what is killed by chance is not taken for poison
	LedgerMax     int64
	MaxStore      int64
	SyncAlways    bool
	Retention     time.Duration // of finished runs; default 7 days
	Settle        time.Duration // how long to wait, once all is quiet, before anything is looked at
	Heal          time.Duration // how long everything may take after the faults are over; default 60 s
}

func (s Shape) withDefaults() Shape {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&s.Servers, 1)
	set(&s.Orchestrators, 2)
	set(&s.Workers, 3)
	set(&s.Agents, 2)
	set(&s.Parallel, 8)
	set(&s.MaxDeliveries, 100)
	span := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	span(&s.AckWait, 2*time.Second)
	span(&s.Grace, time.Hour)
	span(&s.SweepEvery, time.Second)
	span(&s.Heal, time.Minute)
	if len(s.Kinds) == 0 {
		s.Kinds = []string{kindRandom, kindRandom, kindStop, kindChain, kindRandom, kindCancel, kindOnce, kindRandom}
	}
	return s
}

// World is a running system and the hand that harms it.
type World struct {
	opts    Shape
	dir     string
	command []string
	net     network
	url     string

	mu     sync.Mutex
	parts  map[string]*process // by node
	lives  map[string]int      // how often each node was started
	roles  map[string]Role     // as the node was started first
	faults []Fault

	nc    *nats.Conn
	store *kv.Store
	seen  *watch
	end   context.CancelFunc
	tasks sync.WaitGroup
}

// startPatience bounds the time that a process may take until it does its work.
const startPatience = 60 * time.Second

// newWorld starts a system and waits until all of it works. The world is returned even with an error, to be closed.
func newWorld(ctx context.Context, net network, dir string, command []string, o Shape) (*World, error) {
	w := &World{
		opts: o.withDefaults(), dir: dir, command: command, net: net, parts: map[string]*process{}, lives: map[string]int{},
		roles: map[string]Role{}, seen: &watch{seen: map[Sighting]bool{}},
	}
	if err := w.startServers(ctx); err != nil {
		return w, err
	}
	for i := range w.opts.Orchestrators {
		err := w.start(ctx, node("o", i), Role{
			Kind: roleOrchestrator, Grace: w.opts.Grace, SweepEvery: w.opts.SweepEvery,
			Store: kv.Config{Replicas: w.opts.Servers, AckWait: w.opts.AckWait, LedgerMaxBytes: w.opts.LedgerMax, Retention: w.opts.Retention},
		})
		if err != nil {
			return w, err
		}
	}
	for i := range w.opts.Workers {
		if err := w.start(ctx, node("w", i), Role{Kind: roleWorker, MaxDeliveries: w.opts.MaxDeliveries}); err != nil {
			return w, err
		}
	}
	return w, w.connect(ctx)
}

func node(kind string, i int) string { return fmt.Sprint(kind, i+1) }

// startAgents lets the agents begin.
func (w *World) startAgents(ctx context.Context) error {
	for i, tenant := range w.tenants() {
		err := w.start(ctx, node("a", i), Role{
			Kind: roleAgent, Kinds: w.opts.Kinds, Parallel: w.opts.Parallel, Runs: w.opts.Runs, Tenant: tenant,
			Reuse: w.opts.Reuse, Insist: w.opts.Insist,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *World) tenants() (all []string) {
	for i := range w.opts.Agents {
		all = append(all, fmt.Sprint("tenant", i+1))
	}
	return all
}

func (w *World) startServers(ctx context.Context) error {
	var urls, routes []string
	var all []embedded.Options
	for i := range w.opts.Servers {
		host, port, err := w.net.address(node("n", i))
		if err != nil {
			return err
		}
		o := embedded.Options{
			Dir: filepath.Join(w.dir, node("n", i)), Listen: fmt.Sprintf("%s:%d", host, port), Name: node("n", i),
			SyncAlways: w.opts.SyncAlways, MaxStore: w.opts.MaxStore,
		}
		if w.opts.Servers > 1 {
			_, route, err := w.net.address(node("n", i))
			if err != nil {
				return err
			}
			if route == port {
				route += 2000 // a node of its own has all ports
			}
			o.Cluster, o.ClusterListen = "chaos", fmt.Sprintf("%s:%d", host, route)
			routes = append(routes, "nats://"+o.ClusterListen)
		}
		urls = append(urls, "nats://"+o.Listen)
		all = append(all, o)
	}
	w.url = strings.Join(urls, ",")
	for i, o := range all {
		o.Routes = routes
		if err := w.start(ctx, node("n", i), Role{Kind: roleServer, Server: o}); err != nil {
			return err
		}
	}
	return nil
}

// start runs a role on a node and waits until it works.
func (w *World) start(ctx context.Context, node string, r Role) error {
	p, err := w.launch(node, r)
	if err != nil {
		return err
	}
	return p.awaitReady(ctx, startPatience)
}

// launch runs a role on a node.
func (w *World) launch(node string, r Role) (*process, error) {
	if _, _, err := w.net.address(node); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.roles[node]; !known {
		w.roles[node] = r
	}
	w.lives[node]++
	r.Name = fmt.Sprintf("%s.%d", node, w.lives[node])
	r.URL, r.Log = w.url, filepath.Join(w.dir, node+".jsonl")
	p, err := begin(w.net, node, w.command, r, filepath.Join(w.dir, node+".log"))
	if err != nil {
		return nil, err
	}
	w.parts[node] = p
	return p, nil
}

// again starts what ran on a node once more.
func (w *World) again(ctx context.Context, node string) error {
	return w.start(ctx, node, w.role(node))
}

func (w *World) role(node string) Role {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roles[node]
}

func (w *World) part(node string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.parts[node]
}

// fault notes an injection, before it is made. workers are the nodes whose leases it may cost; "*" for all.
func (w *World) fault(kind string, workers ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := Fault{Kind: kind, At: time.Now()}
	for _, node := range workers {
		if p := w.parts[node]; p != nil {
			node = p.role.Name
		}
		f.Workers = append(f.Workers, node)
	}
	w.faults = append(w.faults, f)
}

// connect opens the harness's own connection and begins to watch the ledger.
func (w *World) connect(ctx context.Context) error {
	nc, err := nats.Connect(w.url, nats.SetCustomDialer(w.net.dialer()), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.PingInterval(2*time.Second), nats.Name("harness"))
	if err != nil {
		return fault.Wrap(fault.NoConnection, err, "connecting the harness")
	}
	w.nc = nc
	if w.store, err = kv.Open(ctx, nc); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(context.Background())
	w.end = cancel
	for shard := range w.store.Shards() {
		w.tasks.Go(func() { w.seen.follow(watching, w.store, shard) })
	}
	return nil
}

// finish lets the agents finish what they began, and waits until the system is quiet. It gives the agents that could not.
func (w *World) finish(ctx context.Context) (stuck []string, err error) {
	until := time.Now().Add(w.opts.Heal)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range w.opts.Agents {
		p := w.part(node("a", i))
		if p == nil {
			continue
		}
		all.Go(func() {
			if w.opts.Runs > 0 { // it ends by itself
				select {
				case <-p.gone:
					return
				case <-time.After(time.Until(until)):
				}
			}
			if p.term(time.Until(until)) != nil {
				mu.Lock()
				defer mu.Unlock()
				stuck = append(stuck, p.role.Name)
			}
		})
	}
	all.Wait()
	slices.Sort(stuck)
	for {
		pending, leases, err := w.outstanding(ctx)
		if err == nil && len(pending)+leases == 0 || !time.Now().Before(until.Add(5*time.Second)) {
			return stuck, err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return stuck, err
		}
	}
}

// close ends every process and removes the network.
func (w *World) close() error {
	if w.end != nil {
		w.end()
	}
	w.tasks.Wait()
	if w.store != nil {
		w.store.Close()
	}
	if w.nc != nil {
		w.nc.Close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.parts {
		p.cont()
		p.kill()
	}
	return w.net.close()
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
