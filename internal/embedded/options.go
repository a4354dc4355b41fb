package embedded

import (
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/stepjet/stepjet/fault"
)

// Options say how a server is to run. The zero value is a server for this process only: no port, and a temporary store
// that Shutdown removes.
type Options struct {
	// Dir is the folder of JetStream's store; it is created if absent. Empty: a temporary one, removed by Shutdown.
	Dir string
	// Listen is the TCP address "host:port" to take connections on; port 0 picks a free one. Empty: in-process only.
	Listen string
	// Name is the server's name; empty gives a random one. Members of a cluster need different names.
	Name string
	// SyncAlways flushes every write to disk before it is acknowledged (sync_interval: always). Otherwise the server
	// flushes every two minutes: a killed process loses nothing, a power cut may.
	SyncAlways bool
	// MaxPayload is the largest message, in bytes, headers included. 0: the server's default of 1 MiB.
	MaxPayload int32
	// MaxStore bounds JetStream's use of the disk, in bytes. 0: three quarters of what the server finds free.
	MaxStore int64
	// NoJetStream leaves JetStream off.
	NoJetStream bool
	// Cluster makes the server a member of the cluster of that name; it then listens for clients and members, on
	// 127.0.0.1 with free ports unless Listen and ClusterListen say otherwise. Routes are other members' cluster
	// addresses, nats://host:port.
	Cluster       string
	ClusterListen string
	Routes        []string
	// Gateways joins the cluster with others: the gateway addresses of each, nats://host:port, by its name. Its own are
	// told at GatewayListen.
	Gateways      map[string][]string
	GatewayListen string
	// ConfigFile is read first, in the server's own configuration language (accounts, users, mappings); the fields
	// above override it. Empty: none.
	ConfigFile string
	// Logger takes the server's warnings and errors; nil: none.
	Logger *slog.Logger
}

// server returns the options in the server's own form.
func (o Options) server() (*server.Options, error) {
	// Every step has subjects of its own, so what the server remembers of who listens to one is never asked for again.
	opts := &server.Options{NoSublistCache: true}
	if o.ConfigFile != "" {
		parsed, err := server.ProcessConfigFile(o.ConfigFile)
		if err != nil {
			return nil, fault.Wrap(fault.InvalidConfig, err, "reading "+o.ConfigFile)
		}
		opts = parsed
	}
	opts.NoSigs, opts.NoLog = true, false
	opts.ServerName = o.Name
	opts.JetStream, opts.StoreDir = !o.NoJetStream, o.Dir
	if o.SyncAlways {
		opts.SyncAlways = true
	}
	if o.MaxPayload > 0 {
		opts.MaxPayload = o.MaxPayload
		opts.MaxPending = max(server.MAX_PENDING_SIZE, 8*int64(o.MaxPayload))
	}
	if o.MaxStore > 0 {
		opts.JetStreamMaxStore = o.MaxStore
	}
	if !o.NoJetStream {
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, fault.Wrap(fault.InvalidConfig, err, "making the store's folder")
		}
	}
	if err := o.listen(opts); err != nil {
		return nil, err
	}
	if err := o.cluster(opts); err != nil {
		return nil, err
	}
	return opts, o.gateway(opts)
}

func (o Options) listen(opts *server.Options) error {
	addr := o.Listen
	if addr == "" && o.Cluster != "" {
		addr = "127.0.0.1:0"
	}
	if addr == "" {
		opts.DontListen = true
		return nil
	}
	host, port, err := splitAddress(addr)
	opts.Host, opts.Port = host, port
	return err
}

// clusterPing is how often members ask each other whether they are there. One that fell silent is given up after the
// third interval; until then the others go on sending it what its clients had asked for, and once it is back, TCP takes
// as long as it was silent to try a connection again that nobody has closed.
const clusterPing = 2 * time.Second

func (o Options) cluster(opts *server.Options) error {
	if o.Cluster == "" {
		return nil
	}
	addr := o.ClusterListen
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, port, err := splitAddress(addr)
	if err != nil {
		return err
	}
	opts.Cluster = server.ClusterOpts{
		Name: o.Cluster, Host: host, Port: port, PoolSize: -1,
		PingInterval: clusterPing, MaxPingsOut: 2, // as docs/operations.md says for clusters
	}
	for _, r := range o.Routes {
		u, err := url.Parse(r)
		if err != nil {
			return fault.Wrap(fault.InvalidConfig, err, "reading a route")
		}
		opts.Routes = append(opts.Routes, u)
	}
	return nil
}

func (o Options) gateway(opts *server.Options) error {
	if o.GatewayListen == "" {
		return nil
	}
	host, port, err := splitAddress(o.GatewayListen)
	if err != nil {
		return err
	}
	opts.Gateway = server.GatewayOpts{Name: o.Cluster, Host: host, Port: port}
	for name, list := range o.Gateways {
		remote := &server.RemoteGatewayOpts{Name: name}
		for _, one := range list {
			u, err := url.Parse(one)
			if err != nil {
				return fault.Wrap(fault.InvalidConfig, err, "reading the address of a gateway")
			}
			remote.URLs = append(remote.URLs, u)
		}
		opts.Gateway.Gateways = append(opts.Gateway.Gateways, remote)
	}
	return nil
}

func splitAddress(addr string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fault.Wrap(fault.InvalidConfig, err, "reading the address "+addr)
	}
	if port, err = strconv.Atoi(p); err != nil || port < 0 || port > 65535 {
		return "", 0, fault.New(fault.InvalidConfig, "the address %s has no port number", addr)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}
