package server

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/front"
)

// Path is where the server answers; "/" does as well.
const Path = "/mcp"

// Handler returns the server as an HTTP handler: on one address for clients of 2026-07-28, which have no sessions, and for
// older ones, which do. Where Config.Auth says so it asks for tokens, and publishes where to get them (RFC 9728).
func (s *Server) Handler() (http.Handler, error) {
	get := func(r *http.Request) *mcp.Server {
		if t, ok := r.Context().Value(tenantKey{}).(*tenant); ok {
			return t.mcp
		}
		return nil
	}
	// Two handlers, for the SDK serves 2026-07-28 without sessions only, and without them older clients can't be asked.
	now := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Stateless: true, Logger: s.cfg.Logger, PropagateRequestCancellation: true,
	})
	older := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Logger: s.cfg.Logger, SessionTimeout: s.cfg.sessionFor})
	g := &gate{s: s, now: now, older: older}
	protection := http.NewCrossOriginProtection()
	for _, origin := range s.cfg.Origins {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			return nil, fault.Wrap(fault.InvalidConfig, err, "reading an allowed origin").WithHint("https://app.example.com")
		}
	}
	mux := http.NewServeMux()
	guarded := s.cfg.Auth.guard(g)
	mux.Handle(Path, guarded)
	mux.Handle("/{$}", guarded)
	s.cfg.Auth.publish(mux)
	return sameHost(protection.Handler(mux)), nil
}

// sameHost refuses requests for a name of elsewhere that reach a loopback address: a web page whose name was pointed
// here.
func sameHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if local != nil && front.Loopback(local.String()) && !front.Loopback(r.Host) {
			http.Error(w, "Forbidden: this address is not called "+r.Host, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Listen opens the address to serve on. Without tokens that is a loopback address, since everybody who reaches it may do
// everything. Errors: InvalidConfig.
func (s *Server) Listen(ctx context.Context, address string) (net.Listener, error) {
	if s.cfg.Auth == nil && !front.Loopback(address) {
		return nil, fault.New(fault.InvalidConfig, "%s can be reached from elsewhere, and nobody is asked for a token", address).
			WithHint("--auth FILE says who may call; or listen on 127.0.0.1")
	}
	return front.Listen(ctx, address)
}

// stopWithin is how long calls that are under way may take when the server stops.
const stopWithin = 5 * time.Second

// ServeHTTP serves HTTP on a listener until ctx ends.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener) error {
	h, err := s.Handler()
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	return front.Serve(ctx, server, l, stopWithin, func() { s.life.closing.Store(true) })
}
