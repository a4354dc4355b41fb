package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/internal/conformance"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// asWorker is the variable that makes a worker of this test's own binary.
const asWorker = "CONFORMANCE_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		os.Exit(program())
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			_, _ = os.Stderr.WriteString("goroutines left: " + err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// arguments are those of the tool conformance.
type arguments struct {
	Echo    json.RawMessage `json:"echo"`
	Fail    string          `json:"fail"`
	SleepMS int             `json:"sleep_ms"`
	Bytes   int             `json:"bytes"`
	Deaf    bool            `json:"deaf"`
	Tell    string          `json:"tell"`
}

// execute is the tool conformance.
func execute(ctx context.Context, nc *nats.Conn, raw json.RawMessage) ([]byte, error) {
	var a arguments
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	if a.SleepMS > 0 {
		t := time.NewTimer(time.Duration(a.SleepMS) * time.Millisecond)
		defer t.Stop()
		stopped := ctx.Done()
		if a.Deaf {
			stopped = nil
		}
		select {
		case <-t.C:
		case <-stopped:
			return nil, context.Cause(ctx)
		}
	}
	if a.Tell != "" {
		_ = nc.Publish(a.Tell, nil)
	}
	switch {
	case a.Fail != "":
		return nil, errors.New(a.Fail)
	case a.Bytes > 0:
		return []byte(`"` + strings.Repeat("x", a.Bytes-2) + `"`), nil
	}
	return a.Echo, nil
}

// guest is a worker in this process, on a connection of its own.
type guest struct {
	nc   *nats.Conn
	stop context.CancelFunc
	done chan struct{}
	err  error
}

func (g *guest) Stop()                 { g.stop() }
func (g *guest) Done() <-chan struct{} { return g.done }

func (g *guest) Why() string {
	if g.err == nil {
		return ""
	}
	return g.err.Error()
}

func (g *guest) Kill() {
	g.stop()
	select {
	case <-g.done:
	case <-time.After(5 * time.Second): // it doesn't listen
		g.nc.Close()
		<-g.done
	}
}

// host starts workers in this process.
type host struct {
	url string
	run func(ctx context.Context, nc *nats.Conn) error
}

func (h host) Start(context.Context) (conformance.Guest, error) {
	nc, err := nats.Connect(h.url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &guest{nc: nc, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(g.done)
		defer nc.Close()
		g.err = h.run(ctx, nc)
	}()
	return g, nil
}

// drive makes checks with a worker in this process.
func drive(t *testing.T, run func(context.Context, *nats.Conn) error, edit func(*conformance.Options)) *conformance.Report {
	t.Helper()
	r, err := driven(t, run, edit)
	require.NoError(t, err)
	return r
}

// driven is drive for other goroutines than the test's.
func driven(t *testing.T, run func(context.Context, *nats.Conn) error, edit func(*conformance.Options)) (*conformance.Report, error) {
	srv, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	defer srv.Shutdown()
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	o := conformance.Options{Conn: nc, Host: host{srv.URL(), run}}
	edit(&o)
	return conformance.Run(ctx, o)
}

// stepjets runs Stepjet's own worker.
func stepjets(ctx context.Context, nc *nats.Conn) error {
	w, err := worker.New(nc, worker.Config{Name: "go", Slots: 16, DrainTimeout: 4 * time.Second})
	if err != nil {
		return err
	}
	def := &tool.Definition{Name: conformance.DefaultTool, Description: "Does what its arguments say.", InputSchema: json.RawMessage(`{"type":"object"}`)}
	err = w.HandleRaw(def, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		body, err := execute(ctx, nc, args)
		return worker.Output{Body: body}, err
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// program is Stepjet's own worker as a program.
func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	nc, err := nats.Connect(os.Getenv("NATS_URL"))
	if err == nil {
		defer nc.Close()
		err = stepjets(ctx, nc)
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return 0
}
