package bench

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/embedded"
)

// startServers starts the layout's NATS servers; of a cluster, w.url is the first node's.
func (w *world) startServers() error {
	if !w.layout.Separate {
		daemon.TuneGC() // as "stepjet dev" does
		srv, err := embedded.Start(embedded.Options{Dir: w.dir, SyncAlways: w.layout.Always})
		w.srv = srv
		return err
	}
	if w.layout.nodes() == 1 {
		return w.startServer(role{Role: roleServer, Name: roleServer})
	}
	routes, err := freeRoutes(w.layout.nodes())
	if err != nil {
		return err
	}
	for i := len(routes) - 1; i >= 0; i-- {
		if err := w.startServer(role{Role: roleServer, Name: fmt.Sprintf("%s-%d", roleServer, i+1), Route: routes[i], Routes: routes}); err != nil {
			return err
		}
	}
	led := make(chan error, len(routes))
	for _, p := range w.procs {
		go func() { led <- p.says(w.ctx, func(line string) bool { return line == "leads" }) }()
	}
	return <-led // one of them says so
}

func (w *world) startServer(r role) error {
	r.Dir = filepath.Join(w.dir, r.Name)
	p, err := w.start(r)
	if err != nil {
		return err
	}
	return p.says(w.ctx, func(line string) bool {
		w.url = line
		return strings.HasPrefix(line, "nats://")
	})
}

// freeRoutes gives addresses of the loopback interface that are free at this moment.
func freeRoutes(n int) (routes []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "looking for a free port")
		}
		defer l.Close()
		routes = append(routes, "nats://"+l.Addr().String())
	}
	return routes, nil
}

// gather moves the leaders of the floor's streams and consumers, or of all others, to the node that the programs are
// connected to, so that neither side is lucky.
func (w *world) gather(floor bool) error {
	if w.layout.nodes() == 1 {
		return nil
	}
	node := w.conns[0].ConnectedServerName()
	streams := w.js.ListStreams(w.ctx)
	for s := range streams.Info() {
		if floorOwn(s.Config.Name) != floor {
			continue
		}
		stream, err := w.js.Stream(w.ctx, s.Config.Name)
		if err != nil {
			return err
		}
		if err := w.lead("STREAM.LEADER.STEPDOWN."+s.Config.Name, node, func() (*jetstream.ClusterInfo, error) {
			info, err := stream.Info(w.ctx)
			if err != nil {
				return nil, err
			}
			return info.Cluster, nil
		}); err != nil {
			return err
		}
		for c := range stream.ListConsumers(w.ctx).Info() {
			if c.Config.Durable == "" {
				continue
			}
			if err := w.lead("CONSUMER.LEADER.STEPDOWN."+s.Config.Name+"."+c.Name, node, func() (*jetstream.ClusterInfo, error) {
				consumer, err := stream.Consumer(w.ctx, c.Name)
				if err != nil {
					return nil, err
				}
				return consumer.CachedInfo().Cluster, nil
			}); err != nil {
				return err
			}
		}
	}
	return streams.Err()
}

// lead asks a leader to step down in favour of a node, until that leads.
func (w *world) lead(request, node string, look func() (*jetstream.ClusterInfo, error)) error {
	body := []byte(`{"placement":{"preferred":"` + node + `"}}`)
	for until := time.Now().Add(time.Minute); ; {
		if at, err := look(); err == nil && at != nil && at.Leader == node { // none answers during an election
			return nil
		}
		if _, err := w.conns[0].RequestWithContext(w.ctx, jetstream.DefaultAPIPrefix+request, body); err != nil {
			return err
		}
		if err := wait(w.ctx, 250*time.Millisecond, until); err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "gathering leaders: "+request)
		}
	}
}
