package ui

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/front"
)

// policy allows the page its own files and its own requests, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// guarded refuses requests for names that the page is not known by: those of a web page whose name was pointed here,
// which a browser takes for requests to that page's own site.
func guarded(hosts []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		if !known(hosts, r.Host) {
			refuseAs(w, http.StatusMisdirectedRequest, fault.New(fault.Permission, "this page is not known as %q", r.Host).
				WithHint("open it by a name that --host allows"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// known reports whether a host, with or without a port, is one that the page is known by.
func known(hosts []string, host string) bool {
	name := front.Hostname(host)
	return front.Loopback(name) || slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, name) })
}
