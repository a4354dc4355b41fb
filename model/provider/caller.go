package provider

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/worker"
)

// Caller asks the models of one configuration. It is safe for concurrent use.
type Caller struct {
	config *model.Config
	idle   time.Duration
	web    *http.Transport
	models map[string]*asked
	limit  *limiter
	parts  *parts.Keeper
	fetch  parts.Fetch
}

// asked is a model as it is asked.
type asked struct {
	model.Model
	key   string
	api   api
	plain refusedSchemas // by these it is asked in words
}

// api posts a body to a provider and returns the events of the response. The hook sees the response first.
type api interface {
	post(ctx context.Context, body []byte, hook hook) (events, error)
}

// events are those of a stream.
type events interface {
	// next returns an event and its name; ok is false after the last, or an error.
	next() (name string, data []byte, ok bool)
	err() error
	close() error
}

// hook takes a response before an SDK reads it.
type hook func(*http.Response) (*http.Response, error)

// behind is the hook as the SDKs' middleware.
func (h hook) behind(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	resp, err := next(r)
	if err != nil {
		return nil, err
	}
	return h(resp)
}

// maxStream is the most bytes of a response: the framing of an answer whose pieces are short is many times its text.
const maxStream = 16 * model.MaxAnswer

// New makes a caller. Keys are read now; getenv is os.LookupEnv but in tests. Errors have code invalid_config, and show
// no key.
func New(c *model.Config, getenv func(string) (string, bool)) (*Caller, error) {
	if getenv == nil {
		getenv = os.LookupEnv
	}
	all := &Caller{config: c, idle: time.Duration(c.IdleMS) * time.Millisecond, web: transport(), models: map[string]*asked{},
		parts: parts.NewKeeper(parts.DefaultKept)}
	if all.idle == 0 {
		all.idle = model.DefaultIdleMS * time.Millisecond
	}
	// no redirect is followed: it would carry the conversation, and of some providers the key, to another host
	web := &http.Client{Transport: all.web, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) { // of several flaws always the same is told
		m, err := c.Model(name)
		if err != nil {
			return nil, err
		}
		key, err := readKey(m.Endpoint, getenv)
		if err != nil {
			f := fault.As(err)
			return nil, fault.New(f.Code, "the model %q: %s", name, f.Message).WithHint("%s", f.Hint)
		}
		a := &asked{Model: m, key: key}
		if m.Provider == model.Anthropic {
			a.api = newAnthropic(m.Endpoint, key, web)
		} else {
			a.api = newOpenAI(m.Endpoint, key, web)
		}
		all.models[name] = a
	}
	return all, nil
}

// Share keeps to the rates of a tool's models together with its other workers. It is called before Host.
func (c *Caller) Share(tool string, r Rates, log *slog.Logger) {
	c.limit = &limiter{tool: tool, rates: r, log: log, begun: time.Now()}
}

// ReadParts says how the parts are read that requests of agents name (package agent/parts). Host reads them of the
// step's own run (worker.ReadPart); without either such a request is refused.
func (c *Caller) ReadParts(fetch parts.Fetch) { c.fetch = fetch }

// Close closes idle connections. Calls under way are not touched.
func (c *Caller) Close() { c.web.CloseIdleConnections() }

func transport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 256 << 10,
	}
}

// maxKey is the longest key, in bytes, with what stands around it in its file.
const maxKey = 16 << 10

func readAtMost(name string, most int64) ([]byte, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(in, most))
}

// readKey reads the key of an endpoint; none where it names none.
func readKey(e model.Endpoint, getenv func(string) (string, bool)) (string, error) {
	var key, from string
	switch {
	case e.KeyEnv != "":
		v, set := getenv(e.KeyEnv)
		if !set || strings.TrimSpace(v) == "" {
			return "", fault.New(fault.InvalidConfig, "the environment variable %s, which holds the key, is not set", e.KeyEnv).
				WithHint("set it for the model worker alone, or leave key_env out where the endpoint needs no key")
		}
		key, from = strings.TrimSpace(v), "the variable "+e.KeyEnv
	case e.KeyFile != "":
		raw, err := readAtMost(e.KeyFile, maxKey+1)
		if err != nil {
			return "", fault.Wrap(fault.InvalidConfig, err, "reading the key").
				WithHint("key_file is read once, when the worker starts, from the folder that it is started in where the path is a relative one")
		}
		// Editors of Windows write such a mark by themselves, and nobody sees it.
		key, from = strings.TrimSpace(strings.TrimPrefix(string(raw), "\ufeff")), "the file "+e.KeyFile
	default:
		return "", nil
	}
	if key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fault.New(fault.InvalidConfig, "%s holds no key: a key is printable characters without spaces", from).
			WithHint("let it hold the key alone, in one line")
	}
	return key, nil
}

// ask sends a request to one model and reads the answer.
func (c *Caller) ask(ctx context.Context, m *asked, r *model.Request) (a *model.Answer, err error) {
	schema := r.Schema()
	p := model.Prepare(r, m.Model, m.plain.has(schema))
	a, err = c.kept(ctx, m, p)
	var f *model.Failure
	if p.Structured && errors.As(err, &f) && f.Kind == model.Invalid && f.AboutSchema() {
		m.plain.add(schema) // from now on it is asked in words, for an answer by this one: others may be taken
		return c.kept(ctx, m, model.Prepare(r, m.Model, true))
	}
	return a, err
}

// kept sends a request as far as the model's rate has room for it.
func (c *Caller) kept(ctx context.Context, m *asked, p *model.Prepared) (*model.Answer, error) {
	if err := c.limit.take(ctx, m.Model, p); err != nil {
		return nil, err
	}
	a, header, err := c.send(ctx, m, p)
	c.limit.settle(ctx, m.Model, p, a, header, err)
	return a, err
}

// Causes for which a stream is cut.
var (
	errSilent = errors.New("the stream was silent for too long")
	errHuge   = errors.New("the response has more bytes than an answer may")
)

// send sends a request and reads the answer. header is that of the response, nil without one.
func (c *Caller) send(parent context.Context, m *asked, p *model.Prepared) (*model.Answer, http.Header, error) {
	ctx, cut := context.WithCancelCause(parent)
	defer cut(nil)
	silent := time.AfterFunc(c.idle, func() { cut(errSilent) })
	defer silent.Stop()
	var header http.Header
	hook := func(resp *http.Response) (*http.Response, error) {
		header = resp.Header
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			return nil, m.failed(resp)
		}
		resp.Body = &watched{ReadCloser: resp.Body, left: maxStream, heard: func() { silent.Reset(c.idle) }}
		return resp, nil
	}
	stream, err := m.api.post(ctx, p.Body, hook)
	if err != nil {
		return nil, header, c.explain(ctx, parent, m, err, model.Unreachable)
	}
	defer stream.close() //nolint:errcheck // what was needed has been read
	reader := model.NewReader(p)
	reader.Tell(func(text string) { worker.Write(parent, text) })
	if steps := worker.NewStream(parent); steps.Wanted() {
		reader.HandOver(steps.Text, steps.Step)
	}
	for done := false; !done; {
		name, data, ok := stream.next()
		if !ok {
			break
		}
		var f *model.Failure
		if done, f = reader.Event(name, data); f != nil {
			f.Message = model.Printable(f.Message, m.key)
			return nil, header, f
		}
	}
	if err := stream.err(); err != nil {
		return nil, header, c.explain(ctx, parent, m, err, model.Broken)
	}
	a, f := reader.Closed()
	if f != nil {
		f.Message = model.Printable(f.Message, m.key)
		return nil, header, f
	}
	return a, header, nil
}

// failed reads the beginning of a response that is no success.
func (m *asked) failed(resp *http.Response) error {
	const start = 16 << 10
	text, _ := io.ReadAll(io.LimitReader(resp.Body, start)) // what can't be read is not in the message
	_ = resp.Body.Close()
	return model.Failed(m.Model, resp.StatusCode, resp.Header, text, m.key)
}

// explain makes a failure of an error of HTTP. What it says itself may hold an address that was redirected to, or what a
// proxy wrote: only its kind is told.
func (c *Caller) explain(ctx, parent context.Context, m *asked, err error, kind model.Kind) error {
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	var f *model.Failure
	if errors.As(err, &f) {
		return f
	}
	f = &model.Failure{Kind: kind, Provider: m.Provider, Other: m.BaseURL != "", Model: m.Name}
	switch {
	case errors.Is(context.Cause(ctx), errSilent):
		f.Kind = model.Late
	case errors.Is(err, errHuge):
		f.Kind = model.TooLarge
	default:
		f.Message = model.Printable(plainCause(err), m.key)
	}
	return f
}

// plainCause is the innermost of an error's causes, which says what happened and not to whom.
func plainCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// watched is the body of a response, bounded, that tells when something has come.
type watched struct {
	io.ReadCloser
	left  int
	heard func()
}

// Read reads, as far as there may be more.
func (w *watched) Read(b []byte) (int, error) {
	if w.left <= 0 {
		return 0, errHuge
	}
	n, err := w.ReadCloser.Read(b[:min(len(b), w.left)])
	w.left -= n
	if n > 0 {
		w.heard()
	}
	return n, err
}
