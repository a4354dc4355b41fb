package session

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/servers"
)

// stateless is the version of MCP from which on a request says all that the server has to know of its caller.
const stateless = "2026-07-28"

// Session is one connection to a server, with its process where it is a program.
type Session struct {
	entry *servers.Entry
	cs    *mcp.ClientSession
	child *child       // of stdio
	web   *http.Client // of http and sse
	tap   *webTap
	// Modern says that its version of MCP is stateless: each request brings all that the server knows of its caller.
	Modern bool
	// Tasks says that it knows tasks (io.modelcontextprotocol/tasks): a call may be answered with the handle of one.
	Tasks bool
	over  chan struct{} // closed when the connection has ended

	listing sync.Mutex
	listed  bool // its tools were asked for; guarded by listing

	mu      sync.Mutex
	broke   error                      // why the connection could not be read any more
	calls   int                        // that were made, each with a progress token of its own
	hearers map[string]func(*Progress) // by token
}

// Progress is what a server says of how far a call is.
type Progress = mcp.ProgressNotificationParams

// Open connects to a server, within its connect_timeout. own are the headers of the caller; changed is called when the
// server says that its tools are others than before. Errors are faults: tool_terminal for what the server refuses and
// programs that can't be started, else tool_failed.
func Open(ctx context.Context, e *servers.Entry, own http.Header, changed func()) (*Session, error) {
	ctx, cancel := e.ConnectWithin(ctx)
	defer cancel()
	s := &Session{entry: e, over: make(chan struct{}), hearers: map[string]func(*Progress){}}
	transport, err := s.transport(own)
	if err != nil {
		return nil, fault.Wrap(fault.ToolFailed, err, "starting the MCP server "+e.Name).
			WithHint("install it on the worker, or correct its command")
	}
	options := &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{}, // no roots, no sampling, no questions
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			s.heard(r.Params)
		},
	}
	if changed != nil {
		options.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed() }
	}
	declareTasks(options.Capabilities)
	c := newCapture()
	client := mcp.NewClient(&mcp.Implementation{Name: "stepjet", Version: version.String()}, options)
	if err := addTaskMethods(client); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "adding the methods of tasks")
	}
	if s.cs, err = client.Connect(c.in(ctx), transport, nil); err != nil {
		s.abandon()
		return nil, s.refused(ctx, c, err)
	}
	s.Modern, s.Tasks = s.cs.InitializeResult().ProtocolVersion >= stateless, servesTasks(s.cs.InitializeResult())
	if s.Modern && e.Lazy() {
		s.tap.own.Store(nil) // from here on each request brings its own caller's
	}
	go func() {
		defer close(s.over)
		err := s.cs.Wait()
		s.ends(err)
		_ = s.cs.Close() // it has ended; what go-sdk began for it has not
		s.abandon()
	}()
	return s, nil
}

// Keep has all requests of the connection bring the headers of the caller that it was made for.
func (s *Session) Keep(own http.Header) {
	if s.tap != nil {
		s.tap.own.Store(&own)
	}
}

// transport makes what messages go by; it starts the program of a stdio server.
func (s *Session) transport(own http.Header) (mcp.Transport, error) {
	e := s.entry
	if e.Kind == servers.Stdio {
		var err error
		if s.child, err = startChild(e); err != nil {
			return nil, err
		}
		return tap{s.child.transport(), s}, nil
	}
	s.web = hosted.GuardedClient(e.URL.Host, e.Private)
	web := *s.web
	s.tap = &webTap{next: s.web.Transport}
	s.tap.own.Store(&own)
	web.Transport = s.tap
	if e.Kind == servers.SSE {
		return tap{&mcp.SSEClientTransport{Endpoint: e.URL.String(), HTTPClient: &web}, s}, nil
	}
	return &mcp.StreamableClientTransport{Endpoint: e.URL.String(), HTTPClient: &web}, nil
}

// refused is the error of a connection that did not come about.
func (s *Session) refused(ctx context.Context, c *capture, err error) error {
	var ours *fault.Error
	if errors.As(err, &ours) {
		return ours // of the dial guard
	}
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &ours) {
		err = ours
	}
	f := fault.New(fault.ToolFailed, "the MCP server %s can't be reached: %s", s.entry.Name, plainly(err))
	if s.child != nil {
		if said := s.child.last(); said != "" {
			f.Message += "; " + said
		}
	}
	if seen := c.failure(err); seen != nil && seen.Status != 0 {
		f = StatusFault(s.entry.Name, seen.Status, seen.After, f.Message)
	}
	f.Cause = err
	return f
}

// plainly is an error of go-sdk as part of a message.
func plainly(err error) string {
	return text.Clip(servers.Clean(err.Error()), 2<<10)
}

// ends notes the first reason why the connection ended.
func (s *Session) ends(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broke == nil {
		s.broke = err
	}
}

// tooLarge reports whether the connection ended by a message over its limit. go-sdk has no name for that error.
func (s *Session) tooLarge() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broke != nil && strings.Contains(s.broke.Error(), "exceeded the configured maximum line length")
}

// Alive reports whether calls may be made.
func (s *Session) Alive() bool {
	select {
	case <-s.over:
		return false
	default:
		return true
	}
}

// Close ends the connection and returns when all of it is gone.
func (s *Session) Close() {
	if s.child != nil {
		s.child.end() // first: a process that reads nothing would hold the connection's end up
	}
	_ = s.cs.Close() // the connection may have ended by itself
	<-s.over
}

// abandon ends what a connection leaves behind.
func (s *Session) abandon() {
	if s.child != nil {
		s.child.end()
		_ = s.child.stdout.Close() // all of it is read
	}
	if s.web != nil {
		s.web.CloseIdleConnections()
	}
}

// maxPages bounds how many pages of tools a server may have.
const maxPages = 1000

// Listed asks for the server's tools, unless that was done over this connection: go-sdk has to have seen the schema
// of a tool that wants arguments in headers before it calls that.
func (s *Session) Listed(ctx context.Context) error {
	s.listing.Lock()
	defer s.listing.Unlock()
	if s.listed {
		return nil
	}
	_, err := s.List(ctx)
	s.listed = err == nil
	return err
}

// List asks for the server's tools, in its own bytes.
func (s *Session) List(ctx context.Context) (all []servers.Remote, err error) {
	ctx, cancel := s.entry.ConnectWithin(ctx)
	defer cancel()
	params := &mcp.ListToolsParams{}
	for range maxPages {
		c := newCapture()
		_, err := s.cs.ListTools(c.in(ctx), params)
		raw := c.result()
		if raw == nil {
			if err == nil {
				err = errors.New("the server answered with what it had said before")
			}
			return nil, fault.New(fault.ToolFailed, "the tools of the MCP server %s can't be listed: %s", s.entry.Name, plainly(err))
		}
		some, err := servers.Listed(raw)
		if err != nil {
			return nil, fault.Wrap(fault.ToolFailed, err, "the tools of the MCP server "+s.entry.Name)
		}
		all = append(all, some...)
		var next struct {
			Cursor string `json:"nextCursor"`
		}
		_ = json.Unmarshal(raw, &next) // listed has read it already
		if next.Cursor == "" {
			return all, nil
		}
		params = &mcp.ListToolsParams{Cursor: next.Cursor}
	}
	return nil, fault.New(fault.ToolFailed, "the MCP server %s lists tools without an end", s.entry.Name)
}

// patience is how long an answer to a cancelled call is waited for: the server may still be at work.
const patience = 5 * time.Second

// Failure is why a call brought no result.
type Failure struct {
	// Err is what go-sdk says of it.
	Err error
	// Sent says that the server may have had the request.
	Sent bool
	// Huge says that its answer was over the limit of messages.
	Huge bool
	// Status is that of HTTP where it was no success, and After what Retry-After said; else 0.
	Status int
	After  time.Duration
	// Asked is what the server asked during the request.
	Asked []content.Question
}

// Error returns what go-sdk says of it.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns what go-sdk says of it.
func (f *Failure) Unwrap() error { return f.Err }

// hear has what the server says of how far a call is handed to somebody, until stop is called.
func (s *Session) hear(params *mcp.CallToolParams, far func(*Progress)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	token := strconv.Itoa(s.calls)
	s.hearers[token] = far
	params.SetProgressToken(token)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.hearers, token)
	}
}

func (s *Session) heard(p *Progress) {
	token, _ := p.ProgressToken.(string)
	s.mu.Lock()
	far := s.hearers[token]
	s.mu.Unlock()
	if far != nil {
		far(p)
	}
}

// Call calls a tool and returns the result of tools/call as it came, or a Failure. asked is what the server asked its
// caller during the call, which was refused; over one connection for several calls it is known only while there is one.
// When ctx ends, the server is told, and has a moment to stop. far is told how far the call is, where the server says;
// it must not block.
func (s *Session) Call(
	ctx context.Context, params *mcp.CallToolParams, far func(*Progress),
) (raw json.RawMessage, asked []content.Question, err error) {
	defer s.hear(params, far)()
	c := newCapture()
	_, err = s.cs.CallTool(c.in(ctx), params)
	f := c.failure(err)
	if f == nil {
		return c.result(), c.questions(), nil // what go-sdk can't read of it is of no matter
	}
	f.Huge = f.Huge || s.tooLarge()
	if ctx.Err() == nil || !f.Sent || s.child == nil {
		return nil, nil, f
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-s.over:
	case <-timer.C:
	}
	return nil, nil, f
}

// Over is closed when the connection has ended.
func (s *Session) Over() <-chan struct{} { return s.over }

// Why says how the connection ended, or the call that err is of; a process that just ended may not have been seen to
// yet.
func (s *Session) Why(ctx context.Context, err error) string {
	if s.child != nil {
		ctx, cancel := context.WithTimeout(ctx, farewell)
		defer cancel()
		select {
		case <-s.child.over:
		case <-ctx.Done():
		}
		if said := s.child.last(); said != "" {
			return said
		}
	}
	if err == nil {
		return "its connection ended"
	}
	return plainly(err)
}

// StatusFault is the error of an answer with a status of HTTP that is no success. said is what else is known.
func StatusFault(server string, status int, after time.Duration, said string) *fault.Error {
	code, hint := fault.ToolTerminal, ""
	switch {
	case Refusal(status):
		hint = "the credentials of its headers are refused; ${context:KEY} takes them from the run's context"
	case status == http.StatusNotFound, status == http.StatusRequestTimeout, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status >= 500: // 404: the session is not known any more
		code = fault.ToolFailed
	}
	f := fault.New(code, "the MCP server %s answered with %d %s: %s", server, status, http.StatusText(status), said).
		WithHint("%s", hint)
	f.RetryAfter = after
	f.Details = []byte(`{"status":` + strconv.Itoa(status) + `}`)
	return f
}

// Refusal reports whether a status says that the caller's credentials are no good.
func Refusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}
