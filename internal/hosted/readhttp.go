package hosted

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsonfile"
	"github.com/stepjet/stepjet/tool"
)

// http reads the http field of an entry.
func (r *reader) http(entry jsonfile.Fields, def *tool.Definition) caller {
	f, ok := r.problems.Object(entry.At("http"), entry.Values["http"],
		"method", "url", "headers", "query", "body", "allow_private", "timeout_ms", "output_limit_bytes")
	if !ok {
		return nil
	}
	q := &request{name: def.Name, defaults: defaults(def)}
	q.timeout, q.limit = r.limits(f, def)
	q.method = f.Choice("method", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	q.body = f.Choice("body", "none", "arguments") == "arguments"
	if q.body && (q.method == http.MethodGet || q.method == http.MethodHead) {
		r.problems.Wrong(f.At("body"), "use query, or another method", "a %s has no body", q.method)
	}
	q.query = r.query(f, def)
	r.headers(f, q)
	private := f.Flag("allow_private")
	host := r.url(f, def, q, private)
	if r.file.web == nil {
		r.file.web = newWeb()
	}
	g := guard{r.file.web, host, private}
	q.client = &http.Client{Transport: g, CheckRedirect: g.redirects(q.own())}
	return q.call
}

// own returns the headers that are for the tool's host alone, by their names.
func (q *request) own() http.Header {
	own := q.header.Clone()
	for _, name := range ownHeaders {
		own.Set(name, "")
	}
	for name := range q.templates {
		own.Set(name, "")
	}
	return own
}

// url takes the url apart into what arguments can't touch and the path's template. It returns host and port.
func (r *reader) url(f jsonfile.Fields, def *tool.Definition, q *request, private bool) string {
	text, ok := f.Text("url")
	if !ok {
		if !f.Has("url") {
			r.problems.Wrong(f.Path, "", "the field \"url\" is missing")
		}
		return ""
	}
	at := f.At("url")
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" {
		r.problems.Wrong(at, "for example https://api.example.com/v1/{city}", "it must begin with http:// or https://")
		return ""
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, path := rest[:end], rest[end:]
	path, q.fixed, _ = strings.Cut(path, "?")
	q.base = scheme + "://" + host
	switch {
	case strings.ContainsAny(host, "{}"):
		r.problems.Wrong(at, "write a tool for each host", "host and port can't be arguments")
		return ""
	case strings.ContainsAny(q.fixed, "{}"):
		r.problems.Wrong(at, "move it to \"query\"", "arguments in the query belong into the field \"query\"")
	case strings.Contains(text, "#"):
		r.problems.Wrong(at, "", "a fragment is not sent to the server")
	}
	t, err := parseTemplate(path, "{", "}")
	if err != nil {
		r.problems.Wrong(at, "", "%v", err)
		return ""
	}
	q.path = t
	r.placeholders(at, t.names(), def, false)
	r.target(at, q, private)
	return host
}

// target checks the URL as it will be sent, with a harmless value in each placeholder.
func (r *reader) target(at string, q *request, private bool) {
	path, err := q.path.expand(func(string) (string, error) { return "x", nil })
	if err == nil {
		err = dotSegments(path)
	}
	if err != nil {
		r.problems.Wrong(at, "", "%s", fault.As(err).Message)
		return
	}
	u, err := url.Parse(q.base + path + "?" + q.fixed)
	switch {
	case err != nil:
		var about *url.Error
		if errors.As(err, &about) {
			err = about.Err
		}
		r.problems.Wrong(at, "", "it is no URL: %v", err)
		return
	case u.User != nil:
		r.problems.Wrong(at, "send them in a header, from the environment: ${env:NAME}",
			"credentials don't belong into the url")
		return
	case u.Hostname() == "":
		r.problems.Wrong(at, "", "it names no host")
		return
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !private && !public(a) {
		r.problems.Wrong(at, "set \"allow_private\": true if the tool is meant to reach it", "%s is not a public address", a)
	}
}

func (r *reader) query(f jsonfile.Fields, def *tool.Definition) []parameter {
	var all []parameter
	values := f.TextMap("query")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		path := jsonfile.Under(f.At("query"), name)
		t, err := parseTemplate(values[name], "{", "}")
		if err != nil {
			r.problems.Wrong(path, "", "%v", err)
			continue
		}
		_, optional := t.whole()
		r.placeholders(path, t.names(), def, optional)
		all = append(all, parameter{name, t})
	}
	return all
}

// ours are the headers that are, with ownHeaders, not the file's to set.
var ours = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer"}

func (r *reader) headers(f jsonfile.Fields, q *request) {
	q.header, q.templates = http.Header{}, map[string]template{}
	values := f.TextMap("headers")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		path, canonical := jsonfile.Under(f.At("headers"), name), textproto.CanonicalMIMEHeaderKey(name)
		if !HeaderName(name) {
			r.problems.Wrong(path, "", "%q is no name of a header", name)
			continue
		}
		if slices.Contains(ours, canonical) || slices.Contains(ownHeaders, canonical) {
			r.problems.Wrong(path, "leave it out", "the header %s is set by Stepjet", canonical)
			continue
		}
		t, err := r.headerTemplate(values[name])
		if err == nil && slices.ContainsFunc(t, func(p part) bool { return BadHeaderValue(p.text) }) {
			err = fmt.Errorf("the value holds control characters")
		}
		if err != nil {
			r.problems.Wrong(path, "", "%v", err)
			continue
		}
		q.set(canonical, t)
		r.uses = append(r.uses, t.names()...)
	}
}

// set takes a header: as it is, or as a template where it needs the run's context.
func (q *request) set(name string, t template) {
	if len(t.names()) > 0 {
		q.templates[name] = t
		return
	}
	value, _ := t.expand(nil) // there is nothing to ask for
	q.header.Set(name, value)
}

// HeaderName reports whether s may be a header's name (RFC 9110, 5.6.2).
func HeaderName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	}) < 0
}

// expandEnv puts the worker's variables in for ${env:NAME}.
func (r *reader) expandEnv(s string) (string, error) {
	t, err := parseTemplate(s, "${env:", "}")
	if err != nil {
		return "", err
	}
	return t.expand(func(name string) (string, error) {
		if r.secret(name) {
			return "", fmt.Errorf("%s is the worker's own and not sent", name)
		}
		value, ok := r.getenv(name)
		if !ok {
			return "", fmt.Errorf("the worker has no variable %s", name)
		}
		return value, nil
	})
}
