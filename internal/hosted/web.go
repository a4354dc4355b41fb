package hosted

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

const (
	maxRedirects      = 5
	dialTimeout       = 10 * time.Second
	handshakeTimeout  = 10 * time.Second
	idleTimeout       = 90 * time.Second
	maxResponseHeader = 256 << 10
)

// web holds the connections of all HTTP tools of a file: those to any address, and those to public ones alone. They are
// kept apart, so that a connection made for a tool which may reach private addresses serves no other.
type web struct{ any, public *http.Transport }

func newWeb() *web {
	return &web{any: transport(nil), public: transport(onlyPublic)}
}

// transport makes one that asks no proxy: what a proxy connects to, nobody could check.
func transport(control func(network, address string, c syscall.RawConn) error) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: control}
	return &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout, MaxIdleConnsPerHost: 16,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}

func (w *web) close() {
	w.any.CloseIdleConnections()
	w.public.CloseIdleConnections()
}

// GuardedClient returns a client for a server of one host and port, under the same rules as http tools: it reaches
// addresses that are not public only where private says so, and those of the host alone; it follows redirects to the
// same host. The idle connections of its transport are closed by its CloseIdleConnections.
func GuardedClient(host string, private bool) *http.Client {
	g := guard{newWeb(), host, private}
	return &http.Client{Transport: g, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if !g.same(req.URL) {
			return redirectError("a redirect to another host, %s", text.Cut(req.URL.Host, 100))
		}
		return g.redirects(nil)(req, via)
	}}
}

// CloseIdleConnections closes those of both transports.
func (g guard) CloseIdleConnections() { g.web.close() }

// guard sends requests to the tool's own host where the tool may, and all others to public addresses alone.
type guard struct {
	web     *web
	host    string // host and port of the tool's URL
	private bool   // allow_private
}

// RoundTrip sends one request.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if g.private && g.same(req.URL) {
		return g.web.any.RoundTrip(req)
	}
	return g.web.public.RoundTrip(req)
}

// redirects decides whether a redirect is followed, and takes out what is not for another host.
func (g guard) redirects(own http.Header) func(req *http.Request, via []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		req.Header.Del("Referer") // the query may hold secrets
		switch {
		case len(via) > maxRedirects:
			return redirectError("more than %d redirects", maxRedirects)
		case req.URL.Scheme != "http" && req.URL.Scheme != "https":
			return redirectError("a redirect to the scheme %q", text.Cut(req.URL.Scheme, 40))
		case req.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
			return redirectError("a redirect from https to http")
		case g.same(req.URL):
			return nil
		case req.Body != nil:
			return redirectError("a redirect of a %s with its body to another host, %s", req.Method, text.Cut(req.URL.Host, 100))
		}
		for name := range own {
			req.Header.Del(name)
		}
		return nil
	}
}

// same reports whether a URL leads to the tool's own host and port.
func (g guard) same(u *url.URL) bool { return strings.EqualFold(u.Host, g.host) }

func redirectError(format string, args ...any) error {
	return fault.New(fault.ToolTerminal, format, args...).
		WithHint("write the address that it leads to into the tool's url")
}
