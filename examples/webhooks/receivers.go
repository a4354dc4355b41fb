package main

import (
	"context"
	"crypto/hmac"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// receivers are the subscribers' side: a web server on 127.0.0.1 with a hook for each of them.
type receivers struct {
	secret string
	server *http.Server
	url    string

	mu      sync.Mutex
	unready map[string]int // how many more times a hook answers 503
	broken  map[string]bool
	got     map[string][]receipt
}

// receipt is one request to a hook.
type receipt struct {
	at     time.Time
	key    string // the idempotency key
	status int
}

// listen starts the web server on a free port.
func listen(secret string) (*receivers, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receivers{
		secret: secret, url: "http://" + l.Addr().String() + "/hooks/",
		unready: map[string]int{}, broken: map[string]bool{}, got: map[string][]receipt{},
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = r.server.Serve(l) }() // until close
	return r, nil
}

func (r *receivers) close() error {
	err := r.server.Shutdown(context.Background())
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// subscribers returns the hooks of some names.
func (r *receivers) subscribers(names ...string) (all []Subscriber) {
	for _, n := range names {
		all = append(all, Subscriber{n, r.url + n})
	}
	return all
}

// ServeHTTP takes an event, if its signature is right.
func (r *receivers) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimPrefix(req.URL.Path, "/hooks/")
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		return
	}
	status := r.status(name, hmac.Equal([]byte(sign(r.secret, body)), []byte(req.Header.Get("X-Signature"))))
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	r.mu.Lock()
	r.got[name] = append(r.got[name], receipt{time.Now(), req.Header.Get("Idempotency-Key"), status})
	r.mu.Unlock()
	w.WriteHeader(status)
}

func (r *receivers) status(name string, signed bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !signed:
		return http.StatusUnauthorized
	case r.broken[name]:
		return http.StatusInternalServerError
	case r.unready[name] > 0:
		r.unready[name]--
		return http.StatusServiceUnavailable
	}
	return http.StatusAccepted
}

// receipts returns the requests to one hook.
func (r *receivers) receipts(name string) []receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]receipt(nil), r.got[name]...)
}
