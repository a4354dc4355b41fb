// Package natstest gives every test a NATS server of its own: JetStream on disk, in process, up in a few milliseconds.
package natstest

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
)

// Start runs a server with its store in t.TempDir, without a port unless an option sets Listen. It is shut down when
// the test ends.
func Start(t testing.TB, opts ...func(*embedded.Options)) *embedded.Server {
	t.Helper()
	o := embedded.Options{Dir: t.TempDir()}
	for _, f := range opts {
		f(&o)
	}
	srv, err := embedded.Start(o)
	require.NoError(t, err)
	t.Cleanup(srv.Shutdown)
	return srv
}

// Connect opens a connection to srv that reconnects within milliseconds and is closed when the test ends.
func Connect(t testing.TB, srv *embedded.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	all := []nats.Option{nats.Timeout(time.Minute), nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond),
		nats.ReconnectJitter(0, 0)}
	if srv.URL() == "" {
		all = append(all, nats.InProcessServer(srv.InProcess()))
	}
	nc, err := nats.Connect(srv.URL(), append(all, opts...)...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// StartCluster runs n servers with JetStream as one cluster over the loopback interface and waits until it has a
// leader that sees all of them. They are shut down when the test ends.
func StartCluster(t testing.TB, n int, opts ...func(*embedded.Options)) []*embedded.Server {
	t.Helper()
	var servers []*embedded.Server
	var err error
	for range 5 { // another process may take a port between choosing and using it
		if servers, err = startMembers(t, n, opts); err == nil {
			break
		}
	}
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		for _, s := range servers {
			if s.LeadsCluster(n) {
				return true
			}
		}
		return false
	}, 30*time.Second, 10*time.Millisecond, "the cluster elected no leader")
	return servers
}

func startMembers(t testing.TB, n int, opts []func(*embedded.Options)) ([]*embedded.Server, error) {
	addrs := freeAddresses(t, n)
	var routes []string
	for _, a := range addrs {
		routes = append(routes, "nats://"+a)
	}
	var servers []*embedded.Server
	for i, a := range addrs {
		o := embedded.Options{Dir: t.TempDir(), Name: fmt.Sprintf("n%d", i+1), Cluster: "test", ClusterListen: a,
			Routes: routes}
		for _, f := range opts {
			f(&o)
		}
		s, err := embedded.Start(o)
		if err != nil {
			for _, started := range servers {
				started.Shutdown()
			}
			return nil, err
		}
		t.Cleanup(s.Shutdown)
		servers = append(servers, s)
	}
	return servers, nil
}

// freeAddresses returns n addresses of the loopback interface that are free at this moment.
func freeAddresses(t testing.TB, n int) []string {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}
