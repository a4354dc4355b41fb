package dev

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats.go"
)

// door lets other processes of this user into a server that listens on no port: a socket in a folder that only this
// user may enter. It is in the system's temporary folder, because the name of a socket may be no longer than about 100
// bytes.
type door struct {
	dir    string
	listen net.Listener
	server nats.InProcessConnProvider

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
	done   sync.WaitGroup
}

func openDoor(server nats.InProcessConnProvider) (*door, error) {
	dir, err := os.MkdirTemp("", "stepjet-") // of mode 0700
	if err != nil {
		return nil, err
	}
	d := &door{dir: dir, server: server, open: map[net.Conn]bool{}}
	if d.listen, err = net.Listen("unix", d.path()); err != nil {
		_ = os.Remove(dir) // it is empty
		return nil, err
	}
	d.done.Go(d.accept)
	return d, nil
}

func (d *door) path() string { return filepath.Join(d.dir, "s") }

func (d *door) accept() {
	for {
		outside, err := d.listen.Accept()
		if err != nil {
			return // closed
		}
		inside, err := d.server.InProcessConn()
		if err != nil {
			_ = outside.Close()
			continue
		}
		d.join(outside, inside)
	}
}

// join copies both ways until either side ends.
func (d *door) join(outside, inside net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_, _ = outside.Close(), inside.Close()
		return
	}
	d.open[outside] = true
	end := func() {
		_, _ = outside.Close(), inside.Close()
		d.mu.Lock()
		delete(d.open, outside)
		d.mu.Unlock()
	}
	d.done.Go(func() { defer end(); _, _ = io.Copy(inside, outside) })
	d.done.Go(func() { defer end(); _, _ = io.Copy(outside, inside) })
}

// close lets nobody in any more and ends all connections through it.
func (d *door) close() {
	if d == nil {
		return
	}
	_ = d.listen.Close() // which removes the socket
	d.mu.Lock()
	d.closed = true
	for c := range d.open {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.done.Wait()
	_ = os.RemoveAll(d.dir)
}
