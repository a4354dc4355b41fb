package dev

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
)

// Shared is Stepjet on a data folder, whichever process has the folder: this one, or another that this one joined. When
// the other ends, or is killed, one of those that joined it takes the folder over, and the connections of all lead
// there. So commands that run at once on a folder work on one ledger.
type Shared struct {
	options Options
	failed  chan error

	mu      sync.Mutex
	stack   *Stack // nil while another process has the folder
	served  bool   // the process that has it listens for everybody, with tools of its own
	joined  bool   // Join has returned
	work    *host
	stopped bool
	late    sync.WaitGroup // a toolworker that is started where the folder was taken over
}

// Join returns when plans can be submitted: it joins the process that has the folder of the options, or starts
// everything here. While another process has the folder and can't be reached (yet), it waits, and waiting is called
// once. A toolworker runs in this process whenever it has the folder; beside another that has it where hosting says so,
// unless that is "stepjet dev" and no tools are named. Errors: those of Start; the context's, when it ends.
func Join(ctx context.Context, o Options, hosting bool, waiting func()) (*Shared, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Shared{options: o, failed: make(chan error, 2)}
	if err := s.enter(ctx, waiting); err != nil {
		s.Stop()
		return nil, err
	}
	if s.Here() || hosting && (o.Tools != "" || !s.served) {
		if err := s.host(ctx); err != nil {
			s.Stop()
			return nil, err
		}
	}
	s.mu.Lock()
	s.joined = true
	s.mu.Unlock()
	return s, nil
}

// lookEvery is how often a folder that another process has is looked at. The lock is the operating system's, and no
// notice comes when it is free.
const lookEvery = 50 * time.Millisecond

func (s *Shared) enter(ctx context.Context, waiting func()) error {
	for told := false; ; told = true {
		c, err := s.dial(ctx)
		if err == nil {
			return c.Close() // it was only to see whether there is a way
		}
		if !InUse(err) {
			return err
		}
		if !told && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookEvery):
		}
	}
}

// host starts the toolworker of this process, if it isn't there.
func (s *Shared) host(ctx context.Context) error {
	tools, err := s.options.tools()
	if err != nil {
		return err
	}
	h, err := startHost(ctx, s.Connect, s.options, tools, s.failed)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = h
	return nil
}

// hostLate starts the toolworker of a process that has taken the folder over: the run that it watches may need one.
func (s *Shared) hostLate() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.host(ctx); err != nil {
		s.options.Logger.Error("no toolworker runs here", "error", err)
	}
}

// InProcessConn is called by nats.go for each connection, and again whenever one is lost.
func (s *Shared) InProcessConn() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.dial(ctx)
}

// dial connects to whoever has the folder; if nobody has, this process takes it.
func (s *Shared) dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return nil, net.ErrClosed
	case s.stack != nil:
		return s.stack.server.InProcess().InProcessConn()
	}
	if c, listens, ok := knock(s.options.Dir); ok {
		s.served = listens
		return c, nil
	}
	o := s.options
	o.NoWorker, o.Listen = true, ""
	stack, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	s.stack = stack
	if s.joined && s.work == nil {
		s.late.Go(s.hostLate)
	}
	return stack.server.InProcess().InProcessConn()
}

// knock connects to the process that has a folder, if it can be reached, and tells whether it listens for everybody.
func knock(dir string) (c net.Conn, listens, ok bool) {
	a, ok := readAddress(dir)
	if !ok {
		return nil, false, false
	}
	network, at := "unix", a.Socket
	if at == "" {
		u, err := url.Parse(a.URL)
		if err != nil || u.Host == "" {
			return nil, false, false
		}
		network, at = "tcp", u.Host
	}
	c, err := net.DialTimeout(network, at, time.Second)
	return c, a.URL != "", err == nil
}

// Connect opens a connection to whoever has the folder; the caller closes it. Who has it may end at this very moment:
// then it is tried again, with who has it next.
func (s *Shared) Connect(ctx context.Context, name string) (*nats.Conn, error) {
	for {
		nc, err := kv.Connect(ctx, kv.ConnectOptions{InProcess: s, Name: "stepjet " + name, Logger: s.options.Logger})
		if err == nil || fault.CodeOf(err) != fault.NoConnection {
			return nc, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lookEvery):
		}
	}
}

// Here reports whether this process has the folder.
func (s *Shared) Here() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stack != nil
}

// Dir returns the data folder, from the root of the file system where that can be told.
func (s *Shared) Dir() string {
	if abs, err := filepath.Abs(s.options.Dir); err == nil {
		return abs
	}
	return s.options.Dir
}

// Stop ends the toolworker, which finishes what it has begun, and all that this process has of the folder.
func (s *Shared) Stop() {
	s.late.Wait()
	s.mu.Lock()
	work, again := s.work, s.stopped
	s.work = nil
	s.mu.Unlock()
	if again {
		return
	}
	work.end() // while its connection can still be made anew: what it has begun is to be recorded
	s.mu.Lock()
	stack := s.stack
	s.stopped = true
	s.mu.Unlock()
	if stack != nil {
		stack.Stop()
	}
}
