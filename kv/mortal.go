package kv

import (
	"sync"

	"github.com/nats-io/nats.go"
)

// mortal is a connection like the store's own, which ends when it breaks: what was published on it, or is about to be,
// reaches the server that it was opened to or none. nats.go keeps what is published while it reconnects for the next server.
// It is opened when it is first needed.
type mortal struct {
	mu     sync.Mutex
	nc     *nats.Conn
	closed bool
}

// conn gives the connection: to the server that the other is connected to now, or another where that can't be reached by
// the address at which it was found.
func (m *mortal) conn(like *nats.Conn) (*nats.Conn, error) {
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

func (m *mortal) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.nc != nil {
		m.nc.Close()
	}
}
