package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// closing is how long the endpoint may take to answer what was asked when the daemon ends.
const closing = time.Second

// health answers /healthz and /readyz, and /metrics where there are any.
//
// /healthz is 200 as long as the process answers at all. /readyz is 200 while the service does its work, and 503 while
// it starts, drains, or can't work at the moment. Bodies are {"status": starting | ready | unavailable | draining,
// "reason"?}.
type health struct {
	server *http.Server
	done   chan struct{}
}

type report struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// startHealth listens at once, so that an address which can't be used is known before anything else begins.
func startHealth(ctx context.Context, o Options, s Service) (*health, error) {
	if o.Health == "" {
		return &health{}, nil
	}
	l, err := net.Listen("tcp", o.Health)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "opening the health endpoint")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, report{Status: "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		r := readiness(ctx, o, s)
		if r.Status == "ready" {
			answer(w, http.StatusOK, r)
			return
		}
		answer(w, http.StatusServiceUnavailable, r)
	})
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	h := &health{done: make(chan struct{}), server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}}
	go func() {
		defer close(h.done)
		if err := h.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			o.Logger.Error("the health endpoint has ended", "error", err)
		}
	}()
	o.Logger.Info("health endpoint", "address", l.Addr().String())
	return h, nil
}

func readiness(ctx context.Context, o Options, s Service) report {
	if ctx.Err() != nil {
		return report{"draining", context.Cause(ctx).Error()}
	}
	select {
	case <-s.Ready():
	default:
		return report{Status: "starting"}
	}
	if o.Check != nil {
		if err := o.Check(); err != nil {
			return report{"unavailable", err.Error()}
		}
	}
	return report{Status: "ready"}
}

func answer(w http.ResponseWriter, status int, r report) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(r) // a client that is gone needs no answer
}

func (h *health) stop() {
	if h.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	if h.server.Shutdown(ctx) != nil {
		_ = h.server.Close()
	}
	<-h.done
}
