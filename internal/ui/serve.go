package ui

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/front"
)

// Listen opens the address to serve on. Elsewhere than on loopback somebody has to be asked who calls, and the names have
// to be known that the page goes by. Errors: InvalidConfig.
func (s *Server) Listen(ctx context.Context, address string) (net.Listener, error) {
	if !front.Loopback(address) {
		switch {
		case s.cfg.Auth == nil:
			return nil, fault.New(fault.InvalidConfig, "%s can be reached from elsewhere, and nobody is asked who calls", address).
				WithHint("--auth token=FILE or --auth proxy=FILE says who may; or listen on 127.0.0.1")
		case len(s.cfg.Hosts) == 0:
			return nil, fault.New(fault.InvalidConfig, "%s can be reached from elsewhere, by no name that is known", address).
				WithHint("--host stepjet.example.com: the name that browsers open")
		}
	}
	return front.Listen(ctx, address)
}

// stopWithin is how long requests that are under way may take when the server stops.
const stopWithin = 3 * time.Second

// Serve serves HTTP on a listener until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with it
	}
	return front.Serve(ctx, server, l, stopWithin, nil)
}
