package servers

import (
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/internal/jsonfile"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/wire"
)

func itoa(n int) string { return strconv.Itoa(n) }

// text reads a string and fills its variables in.
func (r *reader) text(f jsonfile.Fields, name string) string {
	s, _ := f.Text(name)
	return r.expand(f.At(name), s)
}

// expand fills in ${NAME} and ${NAME:-otherwise} (Claude Code), ${env:NAME}, ${workspaceFolder} and ${userHome} (VS
// Code). What can't be is noted.
func (r *reader) expand(path, s string) string {
	out, _ := r.fill(path, s, func(key string) {
		r.problems.Wrong(path, "", "${context:%s} may stand in headers alone", text.Cut(key, 80))
	})
	return out
}

// fill also leaves ${context:KEY} where it stands, and tells of each.
func (r *reader) fill(path, s string, context func(key string)) (out string, ok bool) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		word, after, closed := strings.Cut(rest, "}")
		if !closed {
			r.problems.Wrong(path, "", "${ is not followed by }")
			return "", false
		}
		s = after
		if key, is := strings.CutPrefix(word, "context:"); is {
			context(key)
			b.WriteString("${" + word + "}")
			continue
		}
		value, ok := r.variable(path, word)
		if !ok {
			return "", false
		}
		b.WriteString(value)
	}
}

// variable returns what one ${word} stands for.
func (r *reader) variable(path, word string) (string, bool) {
	switch {
	case word == "workspaceFolder":
		return r.dir, true
	case word == "userHome":
		word = "HOME"
	case strings.HasPrefix(word, "input:"):
		r.problems.Wrong(path, "write ${NAME} and set the variable in the worker's environment",
			"${%s} asks a person, and there is none here", text.Cut(word, 80))
		return "", false
	}
	name, otherwise, has := strings.Cut(strings.TrimPrefix(word, "env:"), ":-")
	if hosted.OwnVariable(name) {
		r.problems.Wrong(path, "", "%s is the worker's own and not passed on", name)
		return "", false
	}
	value, set := r.lookup(name)
	switch {
	case set && (value != "" || !has):
		return value, true
	case has:
		return otherwise, true
	}
	r.problems.Wrong(path, "set it, or write ${"+name+":-otherwise}", "the worker has no variable %s",
		text.Cut(name, 80))
	return "", false
}

// header is one that an http server is sent. A personal one takes something from the run's context.
type header struct {
	name  string
	parts []part
}

// part is a text, or a key of the run's context.
type part struct{ text, key string }

func (h header) personal() bool {
	return slices.ContainsFunc(h.parts, func(p part) bool { return p.key != "" })
}

// value fills a header in from the run's context. A header that is nothing but a key which the run doesn't have is
// left out.
func (h header) value(c wire.Context) (value string, there bool, err error) {
	var b strings.Builder
	for _, p := range h.parts {
		v, ok := c.Get(p.key)
		switch {
		case p.key == "":
			v = p.text
		case !ok && len(h.parts) == 1:
			return "", false, nil
		case !ok:
			return "", false, fault.New(fault.ToolTerminal,
				"the run's context has no key %q, which the header %s of the MCP server needs", p.key, h.name).
				WithHint("submit the run with it; an operator's filter may also keep it from this tool")
		}
		b.WriteString(v)
	}
	if value = b.String(); hosted.BadHeaderValue(value) { // it may be a secret: it is not shown
		return "", false, fault.New(fault.ToolTerminal,
			"the run's context holds control characters that the header %s of the MCP server can't take", h.name)
	}
	return value, true, nil
}

// reserved are headers that the protocol sets.
var reserved = []string{"Host", "Content-Length", "Content-Type", "Accept", "Transfer-Encoding", "Connection", "Upgrade",
	"Te", "Trailer", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Last-Event-Id"}

func (r *reader) headers(f jsonfile.Fields, e *Entry) {
	values := f.TextMap("headers")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		path, canonical := jsonfile.Under(f.At("headers"), name), textproto.CanonicalMIMEHeaderKey(name)
		if !hosted.HeaderName(name) || slices.Contains(reserved, canonical) {
			r.problems.Wrong(path, "leave it out", "%q is no header that can be set here", text.Cut(name, 80))
			continue
		}
		filled, ok := r.fill(path, values[name], func(key string) {
			if !wire.ValidContextKey(key) {
				r.problems.Wrong(path, "", "%q is no key of a run's context", text.Cut(key, 80))
			}
		})
		if ok && hosted.BadHeaderValue(filled) {
			r.problems.Wrong(path, "", "the value holds control characters")
		}
		e.headers = append(e.headers, header{canonical, partsOf(filled)})
	}
}

// partsOf takes a header's value apart, whose variables are filled in.
func partsOf(s string) (parts []part) {
	for s != "" {
		before, rest, found := strings.Cut(s, "${context:")
		if before != "" || !found {
			parts = append(parts, part{text: before})
		}
		var key string
		key, s, _ = strings.Cut(rest, "}")
		if found {
			parts = append(parts, part{key: key})
		}
	}
	return parts
}

// Static returns the headers of a server that takes nothing of its callers.
func (e *Entry) Static() http.Header {
	if e.Lazy() {
		return nil
	}
	h, _ := e.HeadersFor(wire.Context{}) // which can't miss a key
	return h
}

// HeadersFor returns the headers of a request for a step with a context. Errors are those of header.value.
func (e *Entry) HeadersFor(c wire.Context) (http.Header, error) {
	h := http.Header{}
	for _, one := range e.headers {
		value, there, err := one.value(c)
		if err != nil {
			return nil, err
		}
		if there {
			h.Set(one.name, value)
		}
	}
	return h, nil
}

// Keys returns the keys of the run's context that a server's headers take.
func (e *Entry) Keys() (all []string) {
	for _, h := range e.headers {
		for _, p := range h.parts {
			if p.key != "" {
				all = append(all, p.key)
			}
		}
	}
	return all
}
