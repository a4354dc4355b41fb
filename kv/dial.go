package kv

import (
	"context"
	"net"
	"sync"

	"github.com/nats-io/nats.go"
)

// latest is the connection that was last made for one nats.Conn, which has one at a time. While it reconnects,
// nats.go drops a connection over which the server's greeting or its word on the credentials did not come, and does
// not close it. The system's own are closed when their memory is collected; an outbox has a goroutine that keeps it.
// So whoever makes the next closes the one before.
type latest struct {
	mu   sync.Mutex
	last *outbox
}

func (l *latest) next(c net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	l.last = newOutbox(c)
	return l.last
}

// dropLast closes the connection before, which is given up by the time that another is asked for.
func (l *latest) dropLast() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

func (l *latest) drop() {
	if l.last != nil {
		l.last.abandon()
		l.last = nil
	}
}

// dialing makes the connections of one nats.Conn, through the dialer that the settings brought, if they did.
func dialing(ctx context.Context) nats.Option {
	return func(o *nats.Options) error {
		o.CustomDialer = &dialer{ctx: ctx, inner: o.CustomDialer}
		return nil
	}
}

// dialer lets the first connection end with the caller's context. Later ones, which reconnect, outlive it.
type dialer struct {
	latest
	ctx   context.Context
	inner nats.CustomDialer // of a context of the nats command; nil: the system's
}

// Dial is called by nats.go for each connection.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.dropLast() // first: its descriptor may be the one that is needed
	c, err := d.dial(network, address)
	if err != nil {
		return nil, err
	}
	return d.next(c), nil
}

func (d *dialer) dial(network, address string) (net.Conn, error) {
	if d.inner != nil {
		return d.inner.Dial(network, address)
	}
	nd, ctx := net.Dialer{Timeout: dialTimeout}, d.ctx
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return nd.DialContext(ctx, network, address)
}

// apart returns the settings of a nats.Conn to another one: with what makes connections shared, each new connection
// of the one would close that of the other.
func apart(o nats.Options) nats.Options {
	if d, ok := o.CustomDialer.(*dialer); ok {
		o.CustomDialer = &dialer{ctx: d.ctx, inner: d.inner}
	}
	if i, ok := o.InProcessServer.(*inside); ok {
		o.InProcessServer = &inside{server: i.server}
	}
	return o
}

// inside returns connections to an embedded server.
type inside struct {
	latest
	server nats.InProcessConnProvider
}

// InProcessConn is called by nats.go for each connection.
func (i *inside) InProcessConn() (net.Conn, error) {
	i.dropLast()
	c, err := i.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	return i.next(c), nil
}

// singleServerConn is a connection like the store's own, which ends when it breaks: what was published on it, or is
// about to be, reaches the server that it was opened to or none. nats.go keeps what is published while it reconnects
// for the next server. It is opened when it is first needed.
type singleServerConn struct {
	mu     sync.Mutex
	nc     *nats.Conn
	closed bool
}

// conn returns the connection: to the server that the other is connected to now, or another where that can't be
// reached by the address at which it was found.
func (m *singleServerConn) conn(like *nats.Conn) (*nats.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, errClosed()
	case m.nc != nil && m.nc.IsConnected() && m.nc.ConnectedServerId() == like.ConnectedServerId():
		return m.nc, nil
	case m.nc != nil:
		m.nc.Close()
	}
	o := apart(like.Opts)
	o.Name += ", purges"
	o.AllowReconnect, o.RetryOnFailedConnect = false, false
	o.ConnectedCB, o.ClosedCB, o.ReconnectedCB = nil, nil, nil
	o.DisconnectedErrCB = func(*nats.Conn, error) {}
	o.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {} // an answer that doesn't come says the same
	same := o
	same.Url, same.Servers = like.ConnectedUrl(), nil
	nc, err := same.Connect()
	if err != nil {
		nc, err = o.Connect()
	}
	if err != nil {
		return nil, Fault(err)
	}
	m.nc = nc
	return nc, nil
}

func (m *singleServerConn) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.nc != nil {
		m.nc.Close()
	}
}
