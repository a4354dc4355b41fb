package worker

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// hear listens to beats for the test's length.
func (w *world) hear() *kv.Workers {
	w.t.Helper()
	heard, err := w.store.Beats().Hear(w.ctx())
	require.NoError(w.t, err)
	w.t.Cleanup(heard.Stop)
	return heard
}

func named(heard *kv.Workers, name string) *tool.Worker {
	all, _ := heard.List()
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// twoTools hosts the tool "say", which fails, waits to be let, or answers; and "held" behind a gate.
func twoTools(gate *Gate, began chan<- struct{}, let <-chan struct{}) func(*Worker) {
	return func(worker *Worker) {
		worker.mistake(worker.HandleRaw(&tool.Definition{Name: "say"}, func(_ context.Context, args json.RawMessage) (Output, error) {
			switch string(args) {
			case `{"fail":true}`:
				return Output{}, errors.New("no")
			case `{"wait":true}`:
				began <- struct{}{}
				<-let
			}
			return Output{}, nil
		}, Slots(4), Tenants("acme", "beta")))
		worker.mistake(worker.HandleRaw(&tool.Definition{Name: "held"}, func(context.Context, json.RawMessage) (Output, error) {
			return Output{}, nil
		}, Gated(gate), Tenants("acme")))
	}
}

// A worker says what it has at work and what it has done, again and again, at once when somebody asks, while it drains,
// and when it goes.
func TestAWorkerSaysThatItLives(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var gate Gate
	gate.Close()
	began, let := make(chan struct{}), make(chan struct{})
	heard := w.hear()
	r := w.worker(Config{Name: "w 1.x"}, func(worker *Worker) {
		worker.beatEvery = 20 * time.Millisecond
		twoTools(&gate, began, let)(worker)
	})
	w.worker(Config{Name: "quiet"}, func(worker *Worker) {
		worker.beatEvery = time.Hour
		worker.mistake(worker.HandleRaw(&tool.Definition{Name: "other"}, func(context.Context, json.RawMessage) (Output, error) { return Output{}, nil }))
	})
	w.run("say", `{}`)
	w.run("say", `{"fail":true}`)
	w.run("say", `{}`)
	waits := w.attempt("say", "waits", "a")
	w.dispatch(waits, `{"wait":true}`)
	<-began
	w.eventually(func() bool {
		x := named(heard, "w 1.x")
		return x != nil && x.Busy == 1 && x.Done == 2
	}, "not told")
	x := named(heard, "w 1.x")
	require.Equal(t, []tool.WorkerTool{{Tool: "held", Slots: DefaultSlots, Held: true}, {Tool: "say", Slots: 4, Busy: 1, Done: 2, Failed: 1}}, x.Tools)
	require.Equal(t, []string{"acme", "beta"}, x.Tenants)
	require.Equal(t, version.Stepjet(), x.Version)
	require.Equal(t, os.Getpid(), x.PID)
	require.False(t, x.Leaving)
	gate.Open()
	w.eventually(func() bool { return !named(heard, "w 1.x").Of("held").Held }, "the gate is open")

	asking, _, err := w.store.Beats().Listen(w.ctx(), kv.AnswerWithin)
	require.NoError(t, err)
	require.Len(t, asking, 2, "one that beats once an hour says so when it is asked")
	require.Equal(t, "quiet", asking[0].Name)
	require.Nil(t, asking[0].Tenants, "its tool is for all")

	r.stop()
	w.eventually(func() bool { return named(heard, "w 1.x").Leaving }, "it drains")
	close(let)
	require.NoError(t, r.end())
	w.eventually(func() bool { return named(heard, "w 1.x") == nil }, "it is gone at once")
	require.NotNil(t, named(heard, "quiet"))
}

// Under permissions of before there were beats a worker works, and complains once.
func TestAWorkerThatMayNotSaySo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(file, []byte(`authorization { users: [
		{ user: "all", password: "x" }
		{ user: "old", password: "x", permissions: { publish: { deny: ["beat.>"] }, subscribe: { deny: ["beat.>"] } } }
	] }
	no_auth_user: all
	`), 0o600))
	w := start(t, kv.Config{}, func(o *embedded.Options) { o.ConfigFile, o.Listen = file, "127.0.0.1:0" })
	w.registrar()
	heard := w.hear()
	nc, err := nats.Connect(w.srv.URL(), nats.UserInfo("old", "x"))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	r := w.launch(nc, Config{Name: "old"}, func(worker *Worker) {
		worker.beatEvery = 5 * time.Millisecond
		worker.mistake(worker.HandleRaw(&tool.Definition{Name: "say"}, func(context.Context, json.RawMessage) (Output, error) { return Output{}, nil }))
	})
	r.awaitReady()
	w.eventually(func() bool { return w.logs.count("may not say that it lives") > 0 }, "it complains")
	for range 20 {
		require.Nil(t, w.run("say", `{}`).Error)
	}
	require.Equal(t, 1, w.logs.count("may not say that it lives"))
	require.Nil(t, named(heard, "old"))
}

// A worker that is killed says nothing, and is gone when three of its beats were missed; the one beside it stays.
func TestAKilledWorkerIsGone(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{}, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	w.registrar()
	heard := w.hear()
	cmd, _ := w.processWorker()
	w.worker(Config{Name: "stays"}, func(worker *Worker) {
		worker.mistake(worker.HandleRaw(&tool.Definition{Name: "other"}, func(context.Context, json.RawMessage) (Output, error) { return Output{}, nil }))
	})
	w.eventually(func() bool { return named(heard, "paused") != nil && named(heard, "stays") != nil }, "both live")
	last := named(heard, "paused")
	require.Equal(t, cmd.Process.Pid, last.PID)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it says that it was killed
	w.eventually(func() bool {
		if x := named(heard, "paused"); x != nil {
			last = x
			return false
		}
		return true
	}, "it is gone")
	require.GreaterOrEqual(t, time.Since(last.Heard), wire.MissedBeats*wire.BeatEvery)
	require.NotNil(t, named(heard, "stays"))
}
