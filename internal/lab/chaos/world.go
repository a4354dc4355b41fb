package chaos

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/living"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/worker"
)

// Shape says what a world consists of. Zero fields take the defaults.
type Shape struct {
	Servers       int    // 1 or 3; 3 keep every stream three times
	Version       string // of orchestrators and workers at the start; empty: this program's
	Orchestrators int    // default 2
	Workers       int    // default 3
	Agents        int    // default 2, each a tenant of its own
	Bare          int    // lanes of JetStream without Stepjet, to compare with
	Parallel      int    // runs at a time of each agent; default 8
	Runs          int    // of each agent; 0: until the faults are over
	Living        int    // lanes of living runs; 0: there are no clients of such
	Kinds         []string
	Reuse         int  // run ids of each agent; 0: no id is used twice
	Insist        bool // agents submit again what takes long
	Tuning
	Whole      bool // the ledger keeps everything until it is checked, under shipped settings too
	LedgerMax  int64
	MaxStore   int64
	Disk       int64         // bytes of a disk of its own for each server; 0: none
	Durability config.Store  // the dial; the servers flush as it says
	Sealed     bool          // orchestrators and workers of today's version hold a key, so agents seal their secrets
	Retention  time.Duration // of finished runs; default 7 days
	cell       *cell         // of two that gateways join; nil: alone
	Settle     time.Duration // how long to wait, once all is quiet, before anything is looked at
	Heal       time.Duration // how long everything may take after the faults are over; default 60 s
}

// Tuning are those settings of the programs that say how soon something is mended, or given up.
type Tuning struct {
	SweepEvery    time.Duration `json:"sweep_every"`
	AckWait       time.Duration `json:"ack_wait"`
	MaxDeliveries int           `json:"max_deliveries"`
	Grace         time.Duration `json:"grace"`
}

// quick lets a short run meet many repairs, takes nothing that is killed by chance for poison, and keeps everything in
// the ledger until it is checked.
var quick = Tuning{SweepEvery: time.Second, AckWait: 2 * time.Second, MaxDeliveries: 100, Grace: time.Hour}

// shipped is what the programs do where nobody tells them otherwise.
var shipped = Tuning{
	SweepEvery: orchestrator.DefaultSweepEvery, AckWait: kv.DefaultAckWait, MaxDeliveries: worker.DefaultMaxDeliveries,
	Grace: orchestrator.DefaultGrace,
}

func (t Tuning) String() string {
	return fmt.Sprintf("sweep %s, lease %s, %d deliveries, grace %s", short(t.SweepEvery), short(t.AckWait),
		t.MaxDeliveries, short(t.Grace))
}

// short writes 1m for a minute.
func short(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d >= unit.of && d%unit.of == 0 {
			return fmt.Sprint(int64(d/unit.of), unit.name)
		}
	}
	return d.String()
}

// or returns the settings with those of another where they say nothing.
func (t Tuning) or(other Tuning) Tuning {
	return Tuning{
		cmp.Or(t.SweepEvery, other.SweepEvery), cmp.Or(t.AckWait, other.AckWait),
		cmp.Or(t.MaxDeliveries, other.MaxDeliveries), cmp.Or(t.Grace, other.Grace),
	}
}

// asShipped returns the shape with the programs' own settings. What waits for a lease waits for longer then.
func (s Shape) asShipped() Shape {
	s.Tuning, s.Heal = shipped, max(s.Heal, shippedHeal)
	if s.Whole {
		s.Grace = quick.Grace
	}
	return s
}

// shippedHeal is time for what was killed once more after the faults were over, and for its lease.
const shippedHeal = 4 * time.Minute

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
	span := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	span(&s.Heal, time.Minute)
	s.Tuning = s.Tuning.or(quick)
	if len(s.Kinds) == 0 {
		s.Kinds = []string{kindRandom, kindRandom, kindStop, kindChain, kindRandom, kindCancel, kindOnce, kindRandom}
		if s.Version == "" { // what came before knows no conditions, and no plans within steps
			s.Kinds[4], s.Kinds[7] = kindBranch, kindNest
			s.Kinds = append(s.Kinds, living.StateKind)
		}
	}
	return s
}

// store says how the streams are set up.
func (s Shape) store() kv.Config {
	dial := s.Durability
	dial.Replicas, dial.AckWait, dial.LedgerMaxBytes, dial.Retention = s.Servers, s.AckWait, s.LedgerMax, s.Retention
	if s.cell != nil {
		dial.Cluster = s.cell.name
	}
	return dial.Config()
}

// World is a running system and the hand that harms it.
type World struct {
	opts    Shape
	dir     string
	command []string
	others  map[string][]string // commands of other versions
	net     network
	url     string

	mu     sync.Mutex
	parts  map[string]*process // by node
	lives  map[string]int      // how often each node was started
	began  time.Time           // when the agents did
	roles  map[string]Role     // as the node was started first
	faults []Fault

	nc    *nats.Conn
	store *kv.Store
	seen  *watch
	sent  *living.Sent
	later *laterWatch

	memory string // what a scenario says of it
	end    context.CancelFunc
	tasks  sync.WaitGroup
}

// startPatience bounds the time that a process may take until it does its work.
const startPatience = 60 * time.Second

// newWorld starts a system and waits until all of it works. The world is returned even with an error, to be closed.
func newWorld(
	ctx context.Context, net network, dir string, command []string, others map[string][]string, o Shape,
) (*World, error) {
	w := &World{
		opts: o.withDefaults(), dir: dir, command: command, others: others, net: net, parts: map[string]*process{},
		lives: map[string]int{},
		roles: map[string]Role{}, seen: &watch{seen: map[Sighting]kv.Entry{}}, sent: &living.Sent{}, later: &laterWatch{has: map[string]bool{}},
	}
	if err := w.startServers(ctx); err != nil {
		return w, err
	}
	keys, err := w.keyFile()
	if err != nil {
		return w, err
	}
	for i := range w.opts.Orchestrators {
		err := w.start(ctx, node("o", i), Role{
			Kind: roleOrchestrator, Version: w.opts.Version, Grace: w.opts.Grace, SweepEvery: w.opts.SweepEvery,
			Store: w.opts.store(), Keys: keys,
		})
		if err != nil {
			return w, err
		}
	}
	for i := range w.opts.Workers {
		if err := w.start(ctx, node("w", i), Role{Kind: roleWorker, Version: w.opts.Version,
			MaxDeliveries: w.opts.MaxDeliveries, Keys: keys}); err != nil {
			return w, err
		}
	}
	if w.opts.Bare > 0 {
		if err := w.start(ctx, bareNode, Role{Kind: roleBare, Parallel: w.opts.Bare}); err != nil {
			return w, err
		}
	}
	return w, w.connect(ctx)
}

// keyFile writes the file of the key that secrets are sealed to; "" where none are.
func (w *World) keyFile() (string, error) {
	if !w.opts.Sealed {
		return "", nil
	}
	key, err := seal.NewKey(time.Now())
	if err != nil {
		return "", err
	}
	file := filepath.Join(w.dir, "secrets.key")
	return file, seal.Create(file, []seal.Key{key})
}

// bareNode is where JetStream is used without Stepjet.
const bareNode = "b1"

func node(kind string, i int) string { return fmt.Sprint(kind, i+1) }

// startAgents lets the agents begin.
func (w *World) startAgents(ctx context.Context) error {
	w.began = time.Now()
	for i, tenant := range w.tenants() {
		err := w.start(ctx, node("a", i), Role{
			Kind: roleAgent, Kinds: w.opts.Kinds, Parallel: w.opts.Parallel, Runs: w.opts.Runs, Tenant: tenant,
			Reuse: w.opts.Reuse, Insist: w.opts.Insist,
		})
		if err != nil {
			return err
		}
	}
	for i, n := range w.livers() {
		err := w.start(ctx, n, Role{Kind: roleLiving, Client: i, Parallel: w.opts.Living, Runs: w.opts.Runs, Tenant: w.tenants()[0]})
		if err != nil {
			return err
		}
	}
	return nil
}

// livers are the nodes of the clients of living runs.
func (w *World) livers() (nodes []string) {
	for i := range living.Clients {
		if w.opts.Living > 0 {
			nodes = append(nodes, node("l", i))
		}
	}
	return nodes
}

func (w *World) tenants() (all []string) {
	if w.opts.cell != nil {
		return w.opts.cell.tenants
	}
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
			SyncAlways: w.opts.Durability.Sync() == doctor.SyncAlways, MaxStore: w.opts.MaxStore,
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
			if err := w.opts.cell.join(&o, host); err != nil {
				return err
			}
		}
		urls = append(urls, "nats://"+o.Listen)
		all = append(all, o)
	}
	w.url = strings.Join(urls, ",")
	for i, o := range all {
		o.Routes = routes
		r := Role{Kind: roleServer, Server: o}
		if w.opts.Disk > 0 {
			r.Disk = o.Dir + ".disk"
			if err := newDisk(r.Disk, w.opts.Disk); err != nil {
				return err
			}
		}
		if err := w.start(ctx, node("n", i), r); err != nil {
			return err
		}
	}
	return nil
}
