package chaos

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
)

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
	r.URL, r.Log = cmp.Or(r.URL, w.url), filepath.Join(w.dir, node+".jsonl")
	w.opts.cell.admit(&r)
	command := w.command
	if r.Version != "" {
		command = w.others[r.Version]
	}
	p, err := begin(w.net, node, command, r, filepath.Join(w.dir, node+".log"))
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

// setVersion lets a node be of another version when it is started again.
func (w *World) setVersion(node, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.roles[node]
	r.Version = version
	w.roles[node] = r
}

func (w *World) role(node string) Role {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roles[node]
}

// recast changes the role that a node plays from its next start on.
func (w *World) recast(node string, r Role) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roles[node] = r
}

// broken returns the nodes, but for servers, that were started more than once.
func (w *World) broken() (nodes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for node, r := range w.roles {
		if r.Kind != roleServer && w.lives[node] > 1 {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
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
	nc, err := nats.Connect(w.url, nats.SetCustomDialer(w.net.dialer()), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.PingInterval(2*time.Second),
		nats.Name("harness"), w.opts.cell.harness())
	if err != nil {
		return fault.Wrap(fault.NoConnection, err, "connecting the harness")
	}
	w.nc = nc
	if w.store, err = kv.Open(ctx, nc); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(context.Background())
	w.end = cancel
	for shard := range w.store.Ledger.Shards() {
		w.tasks.Go(func() { w.seen.follow(watching, w.store, shard) })
	}
	if w.opts.Living > 0 {
		if err := w.sent.Follow(nc); err != nil {
			return err
		}
	}
	if len(w.others) > 0 {
		return w.later.follow(watching, w)
	}
	return nil
}

// finish lets the agents finish what they began, and waits until the system is quiet. It gives the agents that could
// not.
func (w *World) finish(ctx context.Context) (stuck []string, err error) {
	until := time.Now().Add(w.opts.Heal)
	nodes := []string{herdNode}
	for i := range w.opts.Agents {
		nodes = append(nodes, node("a", i))
	}
	var others []string
	if livers := w.livers(); len(livers) > 0 { // the first needs the others for the runs that it has begun
		nodes, others = append(nodes, livers[0]), livers[1:]
	}
	stuck = slices.Sorted(slices.Values(append(w.endAll(nodes, until), w.endAll(others, until)...)))
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

// endAll tells agents to end, and returns those that did not in time.
func (w *World) endAll(nodes []string, until time.Time) (stuck []string) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, n := range nodes {
		p := w.part(n)
		if p == nil {
			continue
		}
		all.Go(func() {
			if w.opts.Runs > 0 && p.role.Client == 0 { // it ends by itself
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
	return stuck
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
