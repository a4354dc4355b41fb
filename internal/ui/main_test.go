package ui_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/ui"
	"github.com/stepjet/stepjet/subjects"
)

// nats.go 1.55 leaves a goroutine behind where a store is closed before the goroutine that follows its connection for
// large values has run for the first time: it then waits on a channel that is nil.
const leftByNATS = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(leftByNATS)) }

// patience bounds what a test waits for; it is never reached where all is well.
const patience = 2 * time.Minute

// world is the page of a real Stepjet with the tools of the examples.
type world struct {
	t      *testing.T
	stack  *dev.Stack
	nc     *nats.Conn // the page's
	server *ui.Server
	url    string
	token  string // that requests show; empty for none
}

func newWorld(t *testing.T, change func(*ui.Config)) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	w.stack, err = dev.Start(w.ctx(), dev.Options{Dir: t.TempDir(), Tools: "../../examples/tools.json"})
	require.NoError(t, err)
	t.Cleanup(w.stack.Stop)
	w.serve(change)
	return w
}

// serve begins to serve the page of the stack that is there.
func (w *world) serve(change func(*ui.Config)) {
	w.t.Helper()
	w.nc = w.connect()
	cfg := ui.Config{Conn: w.nc, Version: "test"}
	if change != nil {
		change(&cfg)
	}
	var err error
	w.server, err = ui.New(w.ctx(), cfg)
	require.NoError(w.t, err)
	w.t.Cleanup(w.server.Close)
	front := httptest.NewServer(asDescribed(w.t, w.server.Handler()))
	w.t.Cleanup(front.Close)
	w.t.Cleanup(front.CloseClientConnections)
	w.url = front.URL
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) connect() *nats.Conn {
	w.t.Helper()
	nc, err := w.stack.Connect(w.ctx(), "test")
	require.NoError(w.t, err)
	w.t.Cleanup(nc.Close)
	return nc
}

func (w *world) client(tenant string) *client.Client {
	w.t.Helper()
	c, err := client.New(w.ctx(), w.connect(), client.Config{Tenant: tenant})
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// request asks the page's server for something.
func (w *world) request(method, path string, body []byte, header ...string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.ctx(), method, w.url+path, bytes.NewReader(body))
	require.NoError(w.t, err)
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// get reads an answer, which is to be one.
func get[T any](w *world, path string) (value T) {
	w.t.Helper()
	return read[T](w, w.request(http.MethodGet, "/api/v1/"+path, nil))
}

func post[T any](w *world, path, body string) (value T) {
	w.t.Helper()
	return read[T](w, w.request(http.MethodPost, "/api/v1/"+path, []byte(body)))
}

func read[T any](w *world, answer *http.Response) (value T) {
	w.t.Helper()
	body, err := io.ReadAll(answer.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, answer.StatusCode, "%s", body)
	require.NoError(w.t, json.Unmarshal(body, &value), "%s", body)
	return value
}

// refused reads an answer that is to be an error.
func refused(w *world, answer *http.Response, status int) *fault.Error {
	w.t.Helper()
	body, err := io.ReadAll(answer.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, status, answer.StatusCode, "%s", body)
	var e fault.Error
	require.NoError(w.t, json.Unmarshal(body, &e), "%s", body)
	require.NotEmpty(w.t, e.Message)
	return &e
}

// run submits a plan and waits for its end.
func (w *world) run(tenant, id, plan string) string {
	w.t.Helper()
	_, err := w.client(tenant).Run(w.ctx(), []byte(plan), client.SubmitOptions{Run: id})
	require.NoError(w.t, err)
	return subjects.NewRun(tenant, id).Key()
}

// event is one that a stream sent.
type event struct{ id, kind, data string }

// stream opens a stream of events.
func (w *world) stream(query string, header ...string) *bufio.Scanner {
	w.t.Helper()
	answer := w.request(http.MethodGet, "/api/v1/stream"+query, nil, header...)
	require.Equal(w.t, http.StatusOK, answer.StatusCode)
	require.Equal(w.t, "text/event-stream", answer.Header.Get("Content-Type"))
	require.Equal(w.t, "no", answer.Header.Get("X-Accel-Buffering"))
	s := bufio.NewScanner(answer.Body)
	s.Buffer(nil, 1<<20)
	return s
}

// next returns the next event of a stream; ok is false where it has ended.
func next(s *bufio.Scanner) (e event, ok bool) {
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), ": ")
		switch {
		case name == "id":
			e.id = value
		case name == "event":
			e.kind = value
		case name == "data":
			e.data = value
		case s.Text() == "" && e.kind != "":
			return e, true
		}
	}
	return e, false
}

// cancelled is what became of a cancel, where it doesn't matter whose counted.
func cancelled(_ *client.Stopped, err error) error { return err }
