// Package embedded runs a NATS server with JetStream inside the process: for development, for demonstrations and for
// tests. It is one of the few packages that may import nats-server.
//
// Safety: a server started without Listen opens no port at all; it is reached through InProcess alone. Liveness: Start
// returns once the server takes connections. Failure: what Start began it also ends when it returns an error.
package embedded

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
)

// startTimeout is how long a server may take until it accepts connections. A store of many gigabytes is read first.
const startTimeout = 30 * time.Second

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	ns   *server.Server
	of   Options
	url  string
	temp string // folder to remove at the end; empty for none
	stop sync.Once
}

// Start runs a server and waits until it takes connections. Errors: InvalidConfig where the options can't be used (no
// right to write to the folder, a port that is taken), Internal where the server does not come up within 30 s.
func Start(o Options) (*Server, error) {
	s := &Server{}
	if o.Dir == "" && !o.NoJetStream {
		dir, err := os.MkdirTemp("", "stepjet-")
		if err != nil {
			return nil, fault.Wrap(fault.InvalidConfig, err, "making a temporary folder for the store")
		}
		o.Dir, s.temp = dir, dir
	}
	if err := s.start(o); err != nil {
		s.Shutdown()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(o Options) error {
	s.of = o
	opts, err := o.server()
	if err != nil {
		return err
	}
	if s.ns, err = server.NewServer(opts); err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "configuring the embedded NATS server")
	}
	failed := &failure{}
	s.ns.SetLogger(&logger{out: o.Logger, failed: failed}, false, false)
	go s.ns.Start() // returns once the server listens; without a listener it returns at once
	if err := s.await(failed); err != nil {
		return err
	}
	if !o.NoJetStream && !s.ns.JetStreamEnabled() {
		return fault.New(fault.InvalidConfig, "the embedded NATS server could not open its store %s", o.Dir).
			WithHint("check that the folder can be written and that no other server uses it")
	}
	if !opts.DontListen {
		s.url = s.ns.ClientURL()
	}
	return nil
}

// await returns once the server takes connections, or has given up.
func (s *Server) await(failed *failure) error {
	for until := time.Now().Add(startTimeout); time.Now().Before(until); {
		if why := failed.get(); why != "" {
			return fault.New(fault.InvalidConfig, "the embedded NATS server did not start: %s", why)
		}
		if s.ns.ReadyForConnections(100 * time.Millisecond) {
			return nil
		}
	}
	return fault.New(fault.Internal, "the embedded NATS server did not start within %v", startTimeout)
}

// Reload reads the configuration file again and takes over what is new in it, as nats-server does at its signal.
// Errors: InvalidConfig, where it can't be read or has what no running server takes over.
func (s *Server) Reload() error {
	opts, err := s.of.server()
	if err != nil {
		return err
	}
	if err := s.ns.ReloadOptions(opts); err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "reloading "+s.of.ConfigFile)
	}
	return nil
}

// InProcess returns what nats.InProcessServer needs to connect without a socket.
func (s *Server) InProcess() nats.InProcessConnProvider { return s.ns }

// URL returns the address that clients connect to, such as nats://127.0.0.1:4222; "" without Listen.
func (s *Server) URL() string { return s.url }

// ClusterURL returns the address that other members of the cluster connect to; "" without Cluster.
func (s *Server) ClusterURL() string {
	if a := s.ns.ClusterAddr(); a != nil {
		return fmt.Sprintf("nats://%s", a)
	}
	return ""
}

// LeadsCluster reports whether this member was elected to lead JetStream's administration of its cluster and sees at
// least members of them, itself included. False without Cluster.
func (s *Server) LeadsCluster(members int) bool {
	return s.ns.JetStreamIsLeader() && len(s.ns.JetStreamClusterPeers()) >= members
}

// Shutdown ends the server and waits until it is down, then removes a temporary store. More calls wait for the first.
func (s *Server) Shutdown() {
	s.stop.Do(func() {
		if s.ns != nil {
			s.ns.Shutdown()
			s.ns.WaitForShutdown()
		}
		if s.temp != "" {
			_ = os.RemoveAll(s.temp) // a leftover in the system's temporary folder harms nobody
		}
	})
}
