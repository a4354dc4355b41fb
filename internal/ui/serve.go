package ui

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// Listen opens the address to serve on. Elsewhere than on loopback somebody has to be asked who calls, and the names have
// to be known that the page goes by. Errors: InvalidConfig.
func (s *Server) Listen(ctx context.Context, address string) (net.Listener, error) {
	if !isLoopback(hostname(address)) {
		switch {
		case s.cfg.Auth == nil:
			return nil, fault.New(fault.InvalidConfig, "%s can be reached from elsewhere, and nobody is asked who calls", address).
				WithHint("--auth token=FILE or --auth proxy=FILE says who may; or listen on 127.0.0.1")
		case len(s.cfg.Hosts) == 0:
			return nil, fault.New(fault.InvalidConfig, "%s can be reached from elsewhere, by no name that is known", address).
				WithHint("--host stepjet.example.com: the name that browsers open")
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "listening")
	}
	return l, nil
}

// stopWithin is how long requests that are under way may take when the server stops.
const stopWithin = 3 * time.Second

// Serve serves HTTP on a listener until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with it
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		within, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		if server.Shutdown(within) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fault.Wrap(fault.Internal, err, "serving HTTP")
}
