package bench

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/embedded"
)

// startServers starts the layout's NATS servers; of a cluster, w.url is the first node's.
func (w *World) startServers() error {
	if !w.Layout.Separate {
		daemon.TuneGC() // as "stepjet dev" does
		srv, err := embedded.Start(embedded.Options{Dir: w.Store, SyncAlways: w.Layout.Always})
		w.srv = srv
		return err
	}
	if w.Layout.Replicas() == 1 {
		return w.startServer(Role{Role: RoleServer, Name: RoleServer})
	}
	routes, err := freeRoutes(w.Layout.Replicas())
	if err != nil {
		return err
	}
	for i := len(routes) - 1; i >= 0; i-- {
		r := Role{Role: RoleServer, Name: fmt.Sprintf("%s-%d", RoleServer, i+1), Route: routes[i], Routes: routes}
		if err := w.startServer(r); err != nil {
			return err
		}
	}
	led := make(chan error, len(routes))
	for _, p := range w.procs {
		go func() { led <- p.says(w.ctx, func(line string) bool { return line == "leads" }) }()
	}
	return <-led // one of them says so
}

func (w *World) startServer(r Role) error {
	r.Dir = filepath.Join(w.Store, r.Name)
	p, err := w.start(r)
	if err != nil {
		return err
	}
	return p.says(w.ctx, func(line string) bool {
		w.url = line
		return strings.HasPrefix(line, "nats://")
	})
}

// freeRoutes returns addresses of the loopback interface that are free at this moment.
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
