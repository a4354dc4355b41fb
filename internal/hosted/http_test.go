package hosted

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// serve starts a server and closes it at the end; hung handlers are let go through their request's context.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// web makes an http tool on a private server.
func webTool(t *testing.T, s *httptest.Server, path, more string, args ...string) *File {
	t.Helper()
	return parse(t, `{"name":"x",`+schemaOf(args...)+`,"http":{"url":"`+s.URL+path+`","allow_private":true`+more+`}}`)
}

func TestHTTPRequest(t *testing.T) {
	t.Setenv("STEPJETTEST_TOKEN", "t0ken")
	var got *http.Request
	var body []byte
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, ` {"ok": 1.0}`)
	})
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	info := worker.Info{Key: "acme/r/7/s", RetriedKey: "acme/q/3/s", Trace: wire.Trace{Parent: parent, State: "a=b"}}
	f := webTool(t, s, "/v1/{city}/n/{n}?fixed=1", `,"method":"POST","body":"arguments","query":{"q":"{q}","lit":"a&b {{x","opt":"{q}-{n}"},"headers":{"authorization":"Bearer ${env:STEPJETTEST_TOKEN}","X-A":"b"}`, "city", "n:number", "q")
	const args = `{"city":"São Paulo/Zona ?#%2e&x=1","n":1.50,"q":"ü&=+"}`
	out, err := invoke(context.Background(), f, args, info)
	require.NoError(t, err)
	require.Equal(t, ` {"ok": 1.0}`, string(out.Body))
	require.False(t, out.Text)
	require.Equal(t, "POST", got.Method)
	require.Equal(t, "/v1/S%C3%A3o%20Paulo%2FZona%20%3F%23%252e&x=1/n/1.50", got.URL.EscapedPath())
	require.Equal(t, "/v1/São Paulo/Zona ?#%2e&x=1/n/1.50", got.URL.Path)
	require.Equal(t, map[string][]string{"fixed": {"1"}, "q": {"ü&=+"}, "lit": {"a&b {x"}, "opt": {"ü&=+-1.50"}}, map[string][]string(got.URL.Query()))
	require.Equal(t, args, string(body))
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, "Bearer t0ken", got.Header.Get("Authorization"))
	require.Equal(t, "b", got.Header.Get("X-A"))
	require.Equal(t, "acme/r/7/s", got.Header.Get("Idempotency-Key"))
	require.Equal(t, "acme/q/3/s", got.Header.Get("Stepjet-Retried-Key"))
	require.Equal(t, parent, got.Header.Get("Traceparent"))
	require.Equal(t, "a=b", got.Header.Get("Tracestate"))

	_, err = invoke(context.Background(), f, args, worker.Info{Key: "k", Trace: wire.Trace{Parent: "nonsense\r\nX: y", State: "a"}})
	require.NoError(t, err)
	require.Empty(t, got.Header.Get("Traceparent"))
	require.Empty(t, got.Header.Get("X"))
	require.NotContains(t, got.Header, "Stepjet-Retried-Key", "it tries nothing again")
}

func TestHTTPOptionalQuery(t *testing.T) {
	t.Parallel()
	var query atomic.Value
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { query.Store(r.URL.RawQuery) })
	f := parse(t, `{"name":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"def"}}},"http":{"url":"`+s.URL+`","allow_private":true,"query":{"a":"{a}","b":"{b}"}}}`)
	for args, want := range map[string]string{`{}`: "b=def", `{"a":"","b":"x"}`: "a=&b=x", `{"a":null}`: "b=def"} {
		out, err := invoke(context.Background(), f, args, worker.Info{})
		require.NoError(t, err)
		require.Empty(t, out.Body)
		require.Equal(t, want, query.Load())
	}
	_, err := invoke(context.Background(), f, `{"a":[1]}`, worker.Info{})
	require.Equal(t, fault.InvalidArguments, fault.CodeOf(err))
}

// Whatever an argument holds, it stays within its segment.
func TestHTTPPathCannotBeLeft(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 100)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { requests <- r.Host + " " + r.URL.EscapedPath() })
	host := strings.TrimPrefix(s.URL, "http://")
	f := webTool(t, s, "/v1/{a}/x{b}", "", "a", "b")
	for value, want := range map[string]string{
		`ok`: "ok", `a/b`: "a%2Fb", `//evil.example`: "%2F%2Fevil.example", `@evil.example`: "@evil.example", `?q=1#f`: "%3Fq=1%23f", `a\\b`: "a%5Cb", `...`: "...",
		`%2e%2e`: "%252e%252e", `..a`: "..a", `http://evil.example`: "http:%2F%2Fevil.example", ` `: "%20", `é`: "%C3%A9",
	} {
		_, err := invoke(context.Background(), f, `{"a":"`+value+`","b":"y"}`, worker.Info{})
		require.NoError(t, err, value)
		require.Equal(t, host+" /v1/"+want+"/xy", <-requests)
	}
	for _, value := range []string{``, `.`, `..`, `../admin`, `a/../b`, `a/..`, `..\\b`, `a\\.`, `\u0000`, `a\r\nb`, `\u007f`} {
		_, err := invoke(context.Background(), f, `{"a":"`+value+`","b":"y"}`, worker.Info{})
		require.Equal(t, fault.InvalidArguments, fault.CodeOf(err), value)
	}
	pair := webTool(t, s, "/v1/{a}{b}", "", "a", "b") // together they would be ".."
	_, err := invoke(context.Background(), pair, `{"a":".","b":"."}`, worker.Info{})
	require.Equal(t, fault.InvalidArguments, fault.CodeOf(err))
	require.Empty(t, requests)
}

func TestHTTPOutput(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/text":
			w.Header().Set("Content-Type", "Text/Plain; charset=utf-8")
			_, _ = io.WriteString(w, "42")
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0xfe})
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/bomb": // 64 MiB in 64 KiB
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 64 {
				_, _ = z.Write(make([]byte, 1<<20))
			}
			_ = z.Close()
		default:
			_, _ = io.WriteString(w, strings.Repeat("x", 11))
		}
	})
	out, err := invoke(context.Background(), webTool(t, s, "/text", ""), `{}`, worker.Info{})
	require.NoError(t, err)
	require.Equal(t, worker.Output{Body: []byte("42"), Text: true}, out)
	out, err = invoke(context.Background(), webTool(t, s, "/empty", ""), `{}`, worker.Info{})
	require.NoError(t, err)
	require.Empty(t, out.Body)
	_, err = invoke(context.Background(), webTool(t, s, "/binary", ""), `{}`, worker.Info{})
	require.Equal(t, fault.ToolTerminal, fault.CodeOf(err))
	_, err = invoke(context.Background(), webTool(t, s, "/", `,"output_limit_bytes":10`), `{}`, worker.Info{})
	require.Equal(t, fault.TooLarge, fault.CodeOf(err))
	require.ErrorContains(t, err, "10 bytes")
	_, err = invoke(context.Background(), webTool(t, s, "/", `,"output_limit_bytes":11`), `{}`, worker.Info{})
	require.NoError(t, err)
	_, err = invoke(context.Background(), webTool(t, s, "/bomb", ``), `{}`, worker.Info{})
	require.Equal(t, fault.TooLarge, fault.CodeOf(err))
}

func TestHTTPStatus(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		if status == http.StatusConflict {
			_, _ = io.WriteString(w, `{"code":"replan","hint":"ask for the offers again"}`)
			return
		}
		_, _ = io.WriteString(w, "no such city\x01"+strings.Repeat("!", 5000))
	})
	for _, c := range []struct {
		path  string
		code  fault.Code
		after time.Duration
	}{
		{"/503?after=7", fault.ToolFailed, 7 * time.Second}, {"/429?after=120", fault.ToolFailed, 2 * time.Minute}, {"/429?after=soon", fault.ToolFailed, 0},
		{"/429?after=99999999999999999999", fault.ToolFailed, 0}, {"/429?after=9999999999", fault.ToolFailed, 168 * time.Hour}, {"/503?after=-3", fault.ToolFailed, 0},
		{"/500", fault.ToolFailed, 0}, {"/502", fault.ToolFailed, 0}, {"/408", fault.ToolFailed, 0}, {"/425", fault.ToolFailed, 0},
		{"/400", fault.ToolTerminal, 0}, {"/401", fault.ToolTerminal, 0}, {"/404?after=7", fault.ToolTerminal, 0}, {"/422", fault.ToolTerminal, 0}, {"/300", fault.ToolTerminal, 0},
	} {
		_, err := invoke(context.Background(), webTool(t, s, c.path, ""), `{}`, worker.Info{})
		e := fault.As(err)
		require.Equal(t, c.code, e.Code, c.path)
		require.Equal(t, c.code == fault.ToolFailed, e.Retryable)
		require.Equal(t, c.after, e.RetryAfter, c.path)
		require.Contains(t, e.Message, "answered \"x\" with "+c.path[1:4])
		require.Contains(t, e.Message, "no such city\uFFFD!")
		require.Less(t, len(e.Message), tailLimit+200)
		require.JSONEq(t, `{"status":`+c.path[1:4]+`}`, string(e.Details))
	}
	_, err := invoke(context.Background(), webTool(t, s, "/409", ""), `{}`, worker.Info{})
	require.Equal(t, &fault.Error{Code: fault.Replan, Message: "the tool asks for a new plan", Hint: "ask for the offers again"}, fault.As(err))
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"0": 0, " 5 ": 5 * time.Second, "Sun, 01 Mar 2026 12:01:00 GMT": time.Minute, "Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"Sun, 01 Mar 2099 12:01:00 GMT": maxRetryAfter, "": 0, "1.5": 0, "x": 0,
	} {
		require.Equal(t, want, RetryAfter(value, now), value)
	}
}

func TestHTTPPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	require.NoError(t, err)
	f := parse(t, `{"name":"x","http":{"url":"http://localhost:`+port+`/"}}`) // an address would be refused when the file is read
	_, err = invoke(context.Background(), f, `{}`, worker.Info{})
	require.Equal(t, fault.ToolTerminal, fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "allow_private")
	require.Zero(t, reached.Load())
	_, err = invoke(context.Background(), webTool(t, s, "/", ""), `{}`, worker.Info{}) // the damage without the protection
	require.NoError(t, err)
	require.Equal(t, int64(1), reached.Load())
}

func TestHTTPRedirects(t *testing.T) {
	t.Setenv("STEPJETTEST_TOKEN", "t0ken")
	var leaked atomic.Int64
	other := serve(t, func(http.ResponseWriter, *http.Request) { leaked.Add(1) })
	var hops atomic.Int64
	var last atomic.Pointer[http.Request]
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hops.Add(1)
		last.Store(r)
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/once":
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
		case "/other":
			http.Redirect(w, r, other.URL+"/", http.StatusFound)
		case "/other-body":
			http.Redirect(w, r, "http://example.com/", http.StatusTemporaryRedirect)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		case "/scheme":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}
	})
	_, err := invoke(context.Background(), webTool(t, s, "/once", `,"method":"POST","body":"arguments","headers":{"X-Key":"${env:STEPJETTEST_TOKEN}"}`), `{"a":1}`, worker.Info{Key: "k"})
	require.NoError(t, err)
	require.Equal(t, "/end", last.Load().URL.Path)
	require.Equal(t, "POST", last.Load().Method)
	require.Equal(t, "t0ken", last.Load().Header.Get("X-Key"))
	require.Equal(t, "k", last.Load().Header.Get("Idempotency-Key"))

	hops.Store(0)
	for path, part := range map[string]string{
		"/loop": "more than 5 redirects", "/other": "not public", "/metadata": "169.254.169.254", "/scheme": `scheme "file"`,
	} {
		_, err = invoke(context.Background(), webTool(t, s, path, ""), `{}`, worker.Info{})
		require.Equal(t, fault.ToolTerminal, fault.CodeOf(err), "%s: %v", path, err)
		require.ErrorContains(t, err, part)
	}
	require.Equal(t, int64(maxRedirects+1+3), hops.Load())
	_, err = invoke(context.Background(), webTool(t, s, "/other-body", `,"method":"PUT","body":"arguments"`), `{}`, worker.Info{})
	require.ErrorContains(t, err, "with its body to another host")
	require.Zero(t, leaked.Load(), "allow_private is for the tool's own host")
}

// What a redirect to another host may carry. The other host is public in this test, so the request is only judged.
func TestRedirectToAnotherHostCarriesNothing(t *testing.T) {
	t.Parallel()
	g := guard{host: "api.example.com"}
	check := g.redirects((&request{header: http.Header{"X-Key": nil, "Authorization": nil}}).own())
	request := func(url string) *http.Request {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		require.NoError(t, err)
		r.Header = http.Header{"X-Key": {"s"}, "Authorization": {"s"}, "Idempotency-Key": {"k"}, "Stepjet-Retried-Key": {"k"}, "Accept": {"a"}, "Referer": {"https://api.example.com/?key=s"}}
		return r
	}
	via := []*http.Request{request("https://api.example.com/")}
	for url, keeps := range map[string]bool{"https://API.example.com/x": true, "https://api.example.com:8443/": false, "https://evil.example/": false} {
		r := request(url)
		require.NoError(t, check(r, via))
		require.Equal(t, keeps, r.Header.Get("X-Key") != "", url)
		require.Equal(t, keeps, r.Header.Get("Authorization") != "", url)
		require.Equal(t, keeps, r.Header.Get("Idempotency-Key") != "", url)
		require.Equal(t, keeps, r.Header.Get("Stepjet-Retried-Key") != "", url)
		require.Empty(t, r.Header.Get("Referer"))
		require.Equal(t, "a", r.Header.Get("Accept"))
	}
	require.ErrorContains(t, check(request("http://api.example.com/"), via), "from https to http")
}

func TestHTTPTimeoutAndCancel(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 2)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/body") {
			_, _ = io.WriteString(w, "begin")
			w.(http.Flusher).Flush()
		}
		if strings.HasPrefix(r.URL.Path, "/told") { // a request of 100 ms may not come here at all
			entered <- struct{}{}
		}
		<-r.Context().Done()
	})
	for _, path := range []string{"/", "/body"} {
		_, err := invoke(context.Background(), webTool(t, s, path, `,"timeout_ms":100`), `{}`, worker.Info{})
		require.Equal(t, fault.Timeout, fault.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, "100ms")
		ctx, cancel := context.WithCancelCause(context.Background())
		done := make(chan error)
		f := webTool(t, s, "/told"+path, "")
		go func() {
			_, err := invoke(ctx, f, `{}`, worker.Info{})
			done <- err
		}()
		<-entered
		cancel(worker.ErrCancelled)
		require.ErrorIs(t, <-done, worker.ErrCancelled)
	}
}

func TestHTTPNoServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	f := parse(t, `{"name":"x",`+schemaOf("k")+`,"http":{"url":"http://`+address+`/p","allow_private":true,"query":{"key":"{k}"}}}`)
	_, err = invoke(context.Background(), f, `{"k":"s3cret"}`, worker.Info{})
	e := fault.As(err)
	require.Equal(t, fault.ToolFailed, e.Code)
	require.True(t, e.Retryable)
	require.Contains(t, e.Message, address)
	require.NotContains(t, e.Message, "s3cret")
}
