package session

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/mcp/content"
)

// capture takes what a server answers to one request as it came. go-sdk's own forms drop what they don't know, round
// numbers, and read the handle of a task as an empty success. It travels in the request's context.
type capture struct {
	mu     sync.Mutex
	raw    json.RawMessage    // the result; nil until it came
	says   error              // the error of the protocol that came in its place
	sent   bool               // the request may have left
	huge   bool               // the answer is over the limit of messages
	status int                // of HTTP; 0: none
	after  time.Duration      // Retry-After
	asked  []content.Question // what the server asked in between, which was refused
	done   chan struct{}      // closed when there is an answer
}

func newCapture() *capture { return &capture{done: make(chan struct{})} }

type captureKey struct{}

func (c *capture) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, captureKey{}, c)
}

func captureOf(ctx context.Context) *capture {
	c, _ := ctx.Value(captureKey{}).(*capture)
	return c
}

// answered takes an answer: a result, or nothing of an error.
func (c *capture) answered(m *jsonrpc.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return
	default:
	}
	if m.Error == nil {
		c.raw = m.Result
	} else {
		c.says = m.Error
	}
	close(c.done)
}

// mostQuestions bounds what is kept of a server that asks again and again.
const mostQuestions = 16

// asks takes a request of the server that came during this one.
func (c *capture) asks(r *jsonrpc.Request) {
	q, ok := content.QuestionOf(r.Method, r.Params)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok && len(c.asked) < mostQuestions {
		c.asked = append(c.asked, q)
	}
}

func (c *capture) questions() []content.Question {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func (c *capture) note(f func(*capture)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// result returns the result, where there is one.
func (c *capture) result() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw
}

// failure returns what is known of a request without a result; nil where there is one.
func (c *capture) failure(err error) *Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.raw != nil {
		return nil
	}
	f := &Failure{Err: err, Sent: c.sent, Huge: c.huge, Status: c.status, After: c.after, Asked: c.asked}
	if c.says != nil && (f.Status == http.StatusBadRequest || f.Status == http.StatusNotFound) {
		f.Err, f.Status = c.says, 0 // which go-sdk doesn't read there, and which says more than the status
	}
	return f
}

// tap wraps a transport whose messages all pass one connection: stdio and sse.
type tap struct {
	mcp.Transport
	session *Session
}

// Connect returns a connection that keeps raw results.
func (t tap) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tapped{Connection: c, session: t.session, waiting: map[jsonrpc.ID]*capture{}}, nil
}

type tapped struct {
	mcp.Connection
	session *Session

	mu      sync.Mutex
	waiting map[jsonrpc.ID]*capture
}

// Write notes whose request it is.
func (t *tapped) Write(ctx context.Context, m jsonrpc.Message) error {
	c := captureOf(ctx)
	r, ok := m.(*jsonrpc.Request)
	if c == nil || !ok || !r.IsCall() {
		return t.Connection.Write(ctx, m)
	}
	t.mu.Lock()
	t.waiting[r.ID] = c
	t.mu.Unlock()
	c.note(func(c *capture) { c.sent = true })
	return t.Connection.Write(ctx, m)
}

// Read hands the answer to whom it belongs before go-sdk reads it.
func (t *tapped) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := t.Connection.Read(ctx)
	if err != nil {
		t.session.ends(err)
		return m, err
	}
	switch m := m.(type) {
	case *jsonrpc.Response:
		t.mu.Lock()
		c := t.waiting[m.ID]
		delete(t.waiting, m.ID)
		t.mu.Unlock()
		if c != nil {
			c.answered(m)
		}
	case *jsonrpc.Request:
		if c := t.only(); c != nil {
			c.asks(m)
		}
	}
	return m, nil
}

// only returns the one request that waits for an answer; nil where there are several: what the server asks may be of
// any.
func (t *tapped) only() (c *capture) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 1 {
		for _, c = range t.waiting {
		}
	}
	return c
}

// webTap keeps raw results of Streamable HTTP, where each answer comes with the response to its request, and sends the
// headers of the caller.
type webTap struct {
	next http.RoundTripper
	own  atomic.Pointer[http.Header] // for all requests of the connection; one's own headers go before
}

type headersKey struct{}

// WithHeaders has the requests of a context bring the headers of their caller, to servers of http.
func WithHeaders(ctx context.Context, own http.Header) context.Context {
	return context.WithValue(ctx, headersKey{}, own)
}

// HeadersOf returns the headers of the caller whose request a context is of.
func HeadersOf(ctx context.Context) http.Header {
	own, _ := ctx.Value(headersKey{}).(http.Header)
	return own
}

// RoundTrip sends one request.
func (t *webTap) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if own := t.own.Load(); own != nil {
		maps.Copy(req.Header, *own)
	}
	maps.Copy(req.Header, HeadersOf(req.Context()))
	if id := taskOf(req.Context()); id != "" && req.Method == http.MethodPost {
		req.Header.Set("Mcp-Name", id)
	}
	c := captureOf(req.Context())
	if c != nil && req.Method == http.MethodPost {
		c.note(func(c *capture) { c.sent = true })
	}
	resp, err := t.next.RoundTrip(req)
	resumed := req.Header.Get("Last-Event-Id") != "" // of the stream that an answer comes by
	if err != nil || c == nil || req.Method != http.MethodPost && !resumed {
		return resp, err
	}
	c.note(func(c *capture) {
		if resp.StatusCode >= 400 {
			c.status, c.after = resp.StatusCode, hosted.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
		}
	})
	return tapBody(resp, c)
}
