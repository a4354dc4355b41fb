package hosted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/worker"
)

// request is an http tool.
type request struct {
	name      string // of the tool
	method    string
	base      string // scheme, host and port
	path      template
	fixed     string // the query that stands in the url
	query     []parameter
	header    http.Header         // as configured, but for
	templates map[string]template // those that take something from the run's context
	body      bool
	defaults  map[string]json.RawMessage
	timeout   time.Duration // 0: that of the contract
	limit     int64         // of the response's body, in bytes
	client    *http.Client
}

// parameter is one of query; it is left out where it is nothing but an argument that is absent.
type parameter struct {
	name  string
	value template
}

// call sends the request once and reads the response.
func (r *request) call(parent context.Context, args json.RawMessage, info worker.Info) (worker.Output, error) {
	ctx := parent
	if r.timeout > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, r.timeout, r.late())
		defer done()
	}
	req, err := r.build(ctx, args, info)
	if err != nil {
		return worker.Output{}, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return worker.Output{}, r.failed(ctx, parent, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return worker.Output{}, r.refused(resp, info.Context, time.Now())
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, r.limit+1))
	if err != nil {
		return worker.Output{}, r.failed(ctx, parent, err)
	}
	if int64(len(body)) > r.limit {
		return worker.Output{}, fault.New(fault.TooLarge, "the response to %q has more than its limit of %d bytes", r.name,
			r.limit).
			WithHint("ask for less, or raise output_limit_bytes (%d at most)", maxOutput)
	}
	if !utf8.Valid(body) {
		return worker.Output{}, fault.New(fault.ToolTerminal, "the response to %q is not UTF-8", r.name).
			WithHint("the API must answer with JSON or text in UTF-8")
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return worker.Output{Body: body, Text: kind == "text/plain"}, nil
}

// build makes the request of the arguments. Whatever they are, scheme, host and the shape of the path stay those of the
// template.
func (r *request) build(ctx context.Context, raw json.RawMessage, info worker.Info) (*http.Request, error) {
	args, err := readArguments(raw, r.defaults)
	if err != nil {
		return nil, err
	}
	path, err := r.path.expand(func(name string) (string, error) { return segment(args, name) })
	if err != nil {
		return nil, err
	}
	if err := dotSegments(path); err != nil {
		return nil, err
	}
	query, err := r.parameters(args)
	if err != nil {
		return nil, err
	}
	target := r.base + path
	if query != "" {
		target += "?" + query
	}
	var body io.Reader
	if r.body {
		body = bytes.NewReader(bytes.Clone(raw)) // it may still be read when the call has returned
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fault.New(fault.InvalidArguments, "the arguments make no URL")
	}
	r.headers(req, info)
	return req, r.contextHeaders(req.Header, info.Context)
}

// segment returns an argument escaped for one segment of a path.
func segment(args arguments, name string) (string, error) {
	v, err := args.must(name)
	if err != nil {
		return "", err
	}
	if v == "" || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fault.New(fault.InvalidArguments,
			"the argument %q must not be empty or hold control characters: it is part of a path", name)
	}
	return url.PathEscape(v), nil
}

// dotSegments refuses a path with "." or ".." between slashes. Escaped slashes count: servers tend to unescape a path
// before they look at it.
func dotSegments(path string) error {
	plain, err := url.PathUnescape(path)
	if err != nil {
		return fault.New(fault.InvalidArguments, "the path %q is not escaped as it should be", text.Cut(path, 100))
	}
	for s := range strings.FieldsFuncSeq(plain, func(r rune) bool { return r == '/' || r == '\\' }) {
		if s == "." || s == ".." {
			return fault.New(fault.InvalidArguments, "the path would have %q between slashes", s).
				WithHint("an argument must stay within its place in the path")
		}
	}
	return nil
}

func (r *request) parameters(args arguments) (string, error) {
	values := url.Values{}
	for _, p := range r.query {
		if name, ok := p.value.whole(); ok {
			if _, given, err := args.text(name); err == nil && !given {
				continue
			}
		}
		v, err := p.value.expand(args.must)
		if err != nil {
			return "", err
		}
		values.Set(p.name, v)
	}
	added := values.Encode()
	if r.fixed != "" && added != "" {
		return r.fixed + "&" + added, nil
	}
	return r.fixed + added, nil
}

// ownHeaders are those that tell of the step; no tools file sets them, and no other host is told.
var ownHeaders = []string{keyHeader, subjects.HeaderRetriedKey, "Traceparent", "Tracestate"}

const keyHeader = "Idempotency-Key"

func (r *request) headers(req *http.Request, info worker.Info) {
	req.Header.Set("Accept", "application/json, text/plain;q=0.9, */*;q=0.5")
	req.Header.Set("User-Agent", "stepjet")
	if r.body {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if info.Key != "" {
		req.Header.Set(keyHeader, info.Key)
		if info.RetriedKey != "" {
			req.Header.Set(subjects.HeaderRetriedKey, info.RetriedKey)
		}
	}
	trace := info.Trace.Valid()
	if trace.Parent != "" {
		req.Header.Set("traceparent", trace.Parent)
	}
	if trace.State != "" {
		req.Header.Set("tracestate", trace.State)
	}
}

func (r *request) late() *fault.Error {
	return fault.New(fault.Timeout, "the request of %q took longer than its timeout of %s", r.name, r.timeout).
		WithHint("timeout_ms of its http entry is the limit")
}

// failed is the error of a request that got no response. The URL stays out of it, since its query may hold secrets.
func (r *request) failed(ctx, parent context.Context, err error) error {
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	var ours *fault.Error
	if errors.As(err, &ours) || ctx.Err() != nil && errors.As(context.Cause(ctx), &ours) {
		e := *ours
		if e.Code == fault.ToolTerminal {
			e.Message = fmt.Sprintf("the request of %q was refused: %s", r.name, e.Message)
		}
		return &e
	}
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err
	}
	return fault.Wrap(fault.ToolFailed, err, fmt.Sprintf("the request of %q to %s", r.name, r.base))
}
