// Package front is what the HTTP servers for people and for programs share: by which names they are reached, whose
// secrets they know, and how they end.
package front

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// Hostname returns the host of an address, with or without a port.
func Hostname(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	return host
}

// Loopback reports whether an address, with or without a port, leads to this machine alone.
func Loopback(address string) bool {
	host := Hostname(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Listen opens an address. Error: InvalidConfig.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "listening")
	}
	return l, nil
}

// Digest is the SHA-256 of a secret, which is all that is known of it.
type Digest [sha256.Size]byte

// ParseDigest reads it in hex. Error: InvalidConfig.
func ParseDigest(text string) (d Digest, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(d) {
		return d, fault.New(fault.InvalidConfig, "%q is no SHA-256 in hex", text).WithHint("printf %%s TOKEN | sha256sum")
	}
	return Digest(b), nil
}

// Of reports whether it is that of a secret, in the same time for all that are not.
func (d Digest) Of(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(d[:], sum[:]) == 1
}

// ReadFile reads the JSON of a file that says who may do what, in which nothing is passed over. Error: InvalidConfig.
func ReadFile(file []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(file)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "reading it")
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // it is returned as it is
		return fault.New(fault.InvalidConfig, "something follows what it says at byte %d", d.InputOffset())
	}
	return nil
}

// Serve serves HTTP on a listener until ctx ends; then closing is called, where there is one, and requests that are under
// way have some time left.
func Serve(ctx context.Context, server *http.Server, l net.Listener, left time.Duration, closing func()) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		if closing != nil {
			closing()
		}
		within, cancel := context.WithTimeout(context.Background(), left)
		defer cancel()
		if server.Shutdown(within) != nil {
			_ = server.Close() // streams that clients hold open
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
